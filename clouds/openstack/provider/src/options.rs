//! What `cloud.conf` says, checked and with its defaults.

mod load_balancer;

pub use load_balancer::{
    ClassOptions, ContainerStore, FloatingOptions, LoadBalancerOptions, MonitorOptions, PlacementOptions,
};
