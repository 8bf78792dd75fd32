//! From the file to the options.

use bowline_cloud_provider::Environment;
use bowline_openstack_client::SubnetId;

use super::{
    ClassOptions, ContainerStore, FloatingOptions, LoadBalancerOptions, MonitorOptions, PlacementOptions,
};
use crate::config::error::OptionError;
use crate::config::file::File;
use crate::config::sections::{Class, LoadBalancer};

/// How often a load balancer that is pending is looked at. A text that is no number is as good as none.
const WAIT_STEPS: &str = "OCCM_WAIT_LB_ACTIVE_STEPS";

/// Providers of load balancers that the Go manager knows.
const PROVIDERS: [&str; 5] = ["amphora", "octavia", "ovn", "f5", "amphorav2"];

/// The store of certificates that is asked for them, and the one that is not.
const STORES: [&str; 2] = ["barbican", "external"];

/// Reads `[LoadBalancer]` and its classes; `None` if Services get no load balancers.
pub(in crate::config) fn read(
    file: &File,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Option<LoadBalancerOptions>, OptionError> {
    let options = &file.load_balancer;
    if !options.enabled {
        return Ok(None);
    }
    if !matches!(options.lb_version.as_str(), "" | "v2") {
        return Err(OptionError::LbVersion(options.lb_version.clone()));
    }
    for (option, value, known) in [
        ("lb-provider", &options.lb_provider, PROVIDERS.as_slice()),
        ("container-store", &options.container_store, STORES.as_slice()),
    ] {
        if !known.contains(&value.as_str()) {
            warnings.push(format!(
                "`{option}` is {value:?}, which is none of {}: it is used as it stands",
                known.join(", ")
            ));
        }
    }
    let mut read = LoadBalancerOptions::from(options);
    if !read.renames && !read.former_clusters.is_empty() {
        warnings.push(
            "`former-cluster-name` has no effect: `enable-lb-rename` is false, so no load balancer is renamed"
                .to_owned(),
        );
        read.former_clusters.clear();
    }
    read.classes = file
        .classes
        .iter()
        .map(|(name, class)| (name.clone(), class.into()))
        .collect();
    let steps = environment.value(WAIT_STEPS).and_then(|steps| steps.parse().ok());
    read.wait_steps = steps.unwrap_or(read.wait_steps);
    Ok(Some(read))
}

/// A text that is not empty.
fn set(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

impl From<&LoadBalancer> for LoadBalancerOptions {
    fn from(options: &LoadBalancer) -> Self {
        let subnet = |id: &str| set(id).map(SubnetId::from);
        // Octavia counts in whole seconds.
        let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Self {
            provider: options.lb_provider.clone(),
            method: options.lb_method.clone(),
            placement: PlacementOptions {
                network: set(&options.network_id).map(Into::into),
                subnet: subnet(&options.subnet_id),
                member_subnet: subnet(&options.member_subnet_id),
            },
            floating: FloatingOptions {
                network: set(&options.floating_network_id).map(Into::into),
                subnet: subnet(&options.floating_subnet_id),
                subnet_name: set(&options.floating_subnet),
                subnet_tags: set(&options.floating_subnet_tags),
            },
            monitor: MonitorOptions {
                is_wanted: options.create_monitor,
                delay_s: seconds(options.monitor_delay),
                timeout_s: seconds(options.monitor_timeout),
                max_retries: options.monitor_max_retries.into(),
                max_retries_down: options.monitor_max_retries_down.into(),
            },
            manages_security_groups: options.manage_security_groups,
            is_internal: options.internal_lb,
            node_selector: options.node_selector.clone(),
            deletes_by_cascade: options.cascade_delete,
            flavor: set(&options.flavor_id),
            zone: set(&options.availability_zone),
            has_ingress_hostname: options.enable_ingress_hostname,
            ingress_hostname_suffix: options.ingress_hostname_suffix.clone(),
            // With less than nothing to share, nothing is shared.
            max_shared: usize::try_from(options.max_shared_lb).unwrap_or(0),
            tls_container: set(&options.default_tls_container_ref),
            container_store: match options.container_store.as_str() {
                "barbican" => ContainerStore::Barbican,
                _ => ContainerStore::External,
            },
            is_serial: options.provider_requires_serial_api_calls,
            cluster_uid: set(&options.cluster_uid),
            renames: options.enable_lb_rename,
            former_clusters: options.former_cluster_name.clone(),
            ..Self::default()
        }
    }
}

impl From<&Class> for ClassOptions {
    fn from(class: &Class) -> Self {
        let subnet = |id: &str| set(id).map(SubnetId::from);
        Self {
            placement: PlacementOptions {
                network: set(&class.network_id).map(Into::into),
                subnet: subnet(&class.subnet_id),
                member_subnet: subnet(&class.member_subnet_id),
            },
            floating: FloatingOptions {
                network: set(&class.floating_network_id).map(Into::into),
                subnet: subnet(&class.floating_subnet_id),
                subnet_name: set(&class.floating_subnet),
                subnet_tags: set(&class.floating_subnet_tags),
            },
        }
    }
}
