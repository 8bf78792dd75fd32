//! Looks names up, and counts how long that took. An address is not looked up.

use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tokio::time::Instant;
use tower::Service;

use crate::metrics::KubeMetrics;

/// A resolver whose time is counted. Clones count together.
#[derive(Clone)]
pub(super) struct Measured<R> {
    pub(super) resolver: R,
    pub(super) metrics: KubeMetrics,
}

impl<R> Service<Name> for Measured<R>
where
    R: Service<Name, Future: Send + 'static>,
{
    type Response = R::Response;
    type Error = R::Error;
    type Future = BoxFuture<'static, Result<R::Response, R::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), R::Error>> {
        self.resolver.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (metrics, host, begun) = (self.metrics.clone(), name.to_string(), Instant::now());
        let answer = self.resolver.call(name);
        answer
            .inspect(move |_| metrics.looked_up(&host, begun.elapsed()))
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lookup_is_counted_under_the_name_that_was_looked_up() {
        let mut registry = Registry::default();
        let metrics = KubeMetrics::registered(&mut registry);
        let slow = tower::service_fn(|_: Name| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, Infallible>(())
        });
        let measured = Measured {
            resolver: slow,
            metrics,
        };
        measured
            .oneshot("api.example.com".parse().unwrap())
            .await
            .unwrap();
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let series = "rest_client_dns_resolution_duration_seconds";
        for sample in [
            r#"_bucket{le="0.25",host="api.example.com"} 0"#,
            r#"_bucket{le="0.5",host="api.example.com"} 1"#,
            r#"_count{host="api.example.com"} 1"#,
        ] {
            let line = format!("{series}{sample}");
            assert!(
                text.lines().any(|found| found == line),
                "{line} is missing in\n{text}"
            );
        }
        assert!(!text.contains(r#"le="60.0",host="api"#), "their longest is 30 s");
    }
}
