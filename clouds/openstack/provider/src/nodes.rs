//! Servers as the instances of Nodes.

mod addresses;
pub(crate) mod instances;
mod labels;
mod servers;
