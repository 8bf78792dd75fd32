//! What the operator sets, in the file that `--cloud-config` names and in `clouds.yaml`.

mod clouds_yaml;
mod credentials;
mod error;
mod file;
mod load_balancer;
mod options;
mod search_order;
mod sections;
mod unknown;
mod value;

pub use self::error::{OptionError, OptionsError, SearchOrderError};
pub use self::file::{FileError, Files};
pub use self::options::{NodeOptions, Options, Tls};
pub use self::sections::{
    ClassOptions, FloatingOptions, LoadBalancerOptions, MonitorOptions, PlacementOptions, option_names,
};
pub(crate) use self::value::Section;
pub use self::value::ValueError;

#[cfg(test)]
mod tests;
