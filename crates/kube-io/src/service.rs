//! From the bytes of a Service to the generated type, without what nobody looks at.

use bowline_cloud_provider::Service;

use crate::error::KubeError;

/// Reads a Service. Its annotations stay complete, because any difference in them is a reason to look at its balancer.
pub(crate) fn decode(bytes: &[u8]) -> Result<Service, KubeError> {
    let mut service: Service =
        serde_json::from_slice(bytes).map_err(|error| KubeError::Decode(format!("service: {error}")))?;
    service.metadata.managed_fields = None;
    Ok(service)
}
