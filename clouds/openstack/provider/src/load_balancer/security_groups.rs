//! The security group of a Service: it lets the load balancer reach the node ports of its members (pure).
//!
//! ```text
//! security_groups/rules.rs   the wanted rules, and what is missing or too many
//! security_groups/ports.rs   which ports get the group and which lose it
//! ```

pub(crate) mod ports;
pub(crate) mod rules;
