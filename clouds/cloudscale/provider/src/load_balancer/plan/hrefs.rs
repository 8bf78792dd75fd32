//! Addresses of objects in the API, for labels.

use bowline_cloud_http::Url;
use bowline_cloudscale_client::{ListenerId, LoadBalancerId, MemberId, MonitorId, PoolId};

/// Writes addresses of objects as the API does, from the configured base and never from an answer.
#[derive(Debug, Clone)]
pub(crate) struct Hrefs {
    base: String,
}

impl Hrefs {
    /// Paths are resolved against `base`: its last segment counts only if a slash follows it.
    pub(crate) fn new(base: &Url) -> Self {
        let folder = format!("{}{}", base.origin().ascii_serialization(), base.path());
        let end = folder.rfind('/').unwrap_or(folder.len());
        Self {
            base: folder[..end].to_owned(),
        }
    }

    pub(crate) fn balancer(&self, id: LoadBalancerId) -> String {
        format!("{}/v1/load-balancers/{id}", self.base)
    }

    pub(crate) fn pool(&self, id: PoolId) -> String {
        format!("{}/v1/load-balancers/pools/{id}", self.base)
    }

    pub(crate) fn member(&self, pool: PoolId, id: MemberId) -> String {
        format!("{}/v1/load-balancers/pools/{pool}/members/{id}", self.base)
    }

    pub(crate) fn listener(&self, id: ListenerId) -> String {
        format!("{}/v1/load-balancers/listeners/{id}", self.base)
    }

    pub(crate) fn monitor(&self, id: MonitorId) -> String {
        format!("{}/v1/load-balancers/health-monitors/{id}", self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_requests_go_to() {
        let id = LoadBalancerId::from(uuid::Uuid::nil());
        for base in [
            "https://api.example",
            "https://api.example/",
            "https://api.example/v1",
            "https://u:p@api.example/",
        ] {
            let href = Hrefs::new(&Url::parse(base).unwrap()).balancer(id);
            assert_eq!(
                href,
                format!("https://api.example/v1/load-balancers/{id}"),
                "{base}"
            );
        }
    }
}
