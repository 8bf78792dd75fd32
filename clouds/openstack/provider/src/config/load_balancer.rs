//! `[LoadBalancer]` and its classes, as far as the file alone does not say them.

use bowline_cloud_provider::Environment;

use super::error::OptionError;
use super::file::File;
use super::sections::LoadBalancerOptions;

/// How often a load balancer that is pending is looked at. A text that is no number is as good as none.
const WAIT_STEPS: &str = "OCCM_WAIT_LB_ACTIVE_STEPS";

/// Providers of load balancers that the Go manager knows.
const PROVIDERS: [&str; 5] = ["amphora", "octavia", "ovn", "f5", "amphorav2"];

/// The store of certificates that is asked for them, and the one that is not.
const STORES: [&str; 2] = ["barbican", "external"];

/// Reads `[LoadBalancer]` and its classes; `None` if Services get no load balancers.
pub(super) fn read(
    file: &File,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Option<LoadBalancerOptions>, OptionError> {
    let options = &file.load_balancer;
    if !options.is_enabled {
        return Ok(None);
    }
    if !matches!(options.version.as_str(), "" | "v2") {
        return Err(OptionError::LbVersion(options.version.clone()));
    }
    for (option, value, known) in [
        ("lb-provider", &options.provider, PROVIDERS.as_slice()),
        ("container-store", &options.container_store, STORES.as_slice()),
    ] {
        if !known.contains(&value.as_str()) {
            warnings.push(format!(
                "`{option}` is {value:?}, which is none of {}: it is used as it stands",
                known.join(", ")
            ));
        }
    }
    let mut read = options.clone();
    if !read.renames && !read.former_clusters.is_empty() {
        warnings.push(
            "`former-cluster-name` has no effect: `enable-lb-rename` is false, so no load balancer is renamed"
                .to_owned(),
        );
        read.former_clusters.clear();
    }
    read.classes.clone_from(&file.classes);
    let steps = environment.value(WAIT_STEPS).and_then(|steps| steps.parse().ok());
    read.wait_steps = steps.unwrap_or(read.wait_steps);
    Ok(Some(read))
}
