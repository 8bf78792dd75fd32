//! A visitor of the web workload: what `curl` does.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bowline_cloud_kit::dataplane::Transport;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};

use crate::api::Endpoint;
use crate::cloud::Cloud;

/// How long a visitor waits for one page.
const PATIENCE: Duration = Duration::from_secs(2);

/// The page at a balancer's address and port, over a new connection.
pub(crate) async fn visit(cloud: &dyn Cloud, address: IpAddr, port: u16) -> anyhow::Result<String> {
    let place = cloud
        .listener(Transport::Tcp, address, port)
        .with_context(|| format!("nothing listens at {address}:{port}"))?;
    tokio::time::timeout(PATIENCE, page(place))
        .await
        .with_context(|| format!("no page from {place} in {} s", PATIENCE.as_secs()))?
}

/// The page that is served here.
pub(crate) async fn page(place: SocketAddr) -> anyhow::Result<String> {
    let endpoint = Endpoint::plain(place.to_string());
    let (mut sender, _connection) = endpoint.connect().await?;
    let request = Request::get("/")
        .header("host", endpoint.authority())
        .body(Full::<Bytes>::default())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    ensure!(status == StatusCode::OK, "{place} answers {status}");
    let body = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&body).trim_end().to_owned())
}

/// The instance that a page is from.
pub(crate) fn instance(page: &str) -> Option<&str> {
    page.strip_prefix("hello from ")?.split(',').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_its_instance() {
        let page = "hello from demo-node-1, you are 127.0.0.1:5";
        assert_eq!(instance(page), Some("demo-node-1"));
        assert_eq!(instance("bad gateway"), None);
    }
}
