//! An API that gives prepared answers, and samples of its objects.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::ops::Deref;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Secret, Url};
use bowline_cloudscale_client::Client;
use bowline_kit::prepared::PreparedApi;

pub(crate) use bowline_kit::prepared::Answer;

pub(crate) const TOKEN: &str = "xKq0-not-a-real-token-93";

pub(crate) struct Api(PreparedApi);

impl Deref for Api {
    type Target = PreparedApi;

    fn deref(&self) -> &PreparedApi {
        &self.0
    }
}

impl Api {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self(PreparedApi::new(answers))
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with("https://api.example", |_| {})
    }

    pub(crate) fn client_with(&self, base: &str, change: impl FnOnce(&mut CloudHttpConfig)) -> Client {
        let mut config = CloudHttpConfig::new("cloudscale", "bowline/test");
        change(&mut config);
        Client::new(
            CloudHttp::new(config, self.transport()),
            Url::parse(base).unwrap(),
            Secret::new(TOKEN),
        )
    }
}

// Samples, with the fields that the documentation of the API shows (cloudscale.ch API v1, the section of each object)
// and invented values. Fields that no controller uses are left in on purpose: they must not disturb.

/// "Servers".
pub(crate) const SERVER: &str = r#"{
  "href": "https://api.example/v1/servers/11111111-aaaa-4aaa-8aaa-000000000001",
  "uuid": "11111111-aaaa-4aaa-8aaa-000000000001",
  "name": "worker-1", "created_at": "2026-05-04T03:02:01.000009Z", "status": "running",
  "zone": {"slug": "lpg1"},
  "flavor": {"slug": "flex-4-2", "name": "Flex-4-2", "vcpu_count": 2, "memory_gb": 4},
  "image": {"slug": "debian-13"}, "volumes": [{"type": "ssd", "size_gb": 20}],
  "interfaces": [
    {"type": "public", "network": {"name": "Public"}, "addresses": [
      {"version": 4, "address": "192.0.2.17", "prefix_length": 24, "gateway": "192.0.2.1",
       "reverse_ptr": "a.example", "subnet": {"uuid": "22222222-aaaa-4aaa-8aaa-000000000001", "cidr": "192.0.2.0/24"}},
      {"version": 6, "address": "2001:db8:1::17", "subnet": {"uuid": "22222222-aaaa-4aaa-8aaa-000000000002"}}]},
    {"type": "private", "network": {"name": "nodes"}, "addresses": [
      {"version": 4, "address": "10.9.0.17", "gateway": null, "reverse_ptr": null,
       "subnet": {"uuid": "22222222-aaaa-4aaa-8aaa-000000000003", "cidr": "10.9.0.0/16"}}]},
    {"type": "private", "network": {"name": "storage"}, "addresses": []}
  ],
  "ssh_host_keys": null, "server_groups": [], "tags": {"role": "worker"}
}"#;

/// "Load Balancers".
pub(crate) const BALANCER: &str = r#"{
  "href": "https://elsewhere.example/v1/load-balancers/33333333-aaaa-4aaa-8aaa-000000000001",
  "uuid": "33333333-aaaa-4aaa-8aaa-000000000001", "name": "shop",
  "created_at": "2026-05-04T03:02:01.000010Z", "status": "changing", "zone": {"slug": "lpg1"},
  "flavor": {"slug": "lb-standard", "name": "LB-Standard"},
  "vip_addresses": [
    {"version": 4, "address": "192.0.2.80", "subnet": {"uuid": "22222222-aaaa-4aaa-8aaa-000000000001", "cidr": "192.0.2.0/24"}},
    {"version": 6, "address": "2001:db8:1::80", "subnet": null}],
  "tags": {"k8s-service-uid": "77777777-aaaa-4aaa-8aaa-000000000001"}
}"#;

/// "Load Balancer Pools".
pub(crate) const POOL: &str = r#"{
  "uuid": "44444444-aaaa-4aaa-8aaa-000000000001", "name": "tcp/web", "created_at": "2026-05-04T03:02:02.000000Z",
  "load_balancer": {"href": "x", "uuid": "33333333-aaaa-4aaa-8aaa-000000000001", "name": "shop"},
  "algorithm": "round_robin", "protocol": "proxyv2", "tags": {}
}"#;

/// "Load Balancer Pool Members".
pub(crate) const MEMBER: &str = r#"{
  "uuid": "55555555-aaaa-4aaa-8aaa-000000000001", "name": "10.9.0.17:30081", "enabled": true,
  "pool": {"uuid": "44444444-aaaa-4aaa-8aaa-000000000001"}, "protocol_port": 30081, "monitor_port": null,
  "address": "10.9.0.17", "subnet": {"uuid": "22222222-aaaa-4aaa-8aaa-000000000003", "cidr": "10.9.0.0/16"},
  "monitor_status": "no_monitor", "tags": {}
}"#;

/// "Load Balancer Listeners".
pub(crate) const LISTENER: &str = r#"{
  "uuid": "66666666-aaaa-4aaa-8aaa-000000000001", "name": "tcp/81", "pool": null,
  "load_balancer": {"uuid": "33333333-aaaa-4aaa-8aaa-000000000001", "name": "shop"},
  "protocol": "tcp", "protocol_port": 81, "allowed_cidrs": ["198.51.100.0/24", "192.0.2.0/25"],
  "timeout_client_data_ms": 0, "timeout_member_connect_ms": 4000, "timeout_member_data_ms": 61000, "tags": {}
}"#;

/// "Load Balancer Health Monitors".
pub(crate) const MONITOR: &str = r#"{
  "uuid": "88888888-aaaa-4aaa-8aaa-000000000001",
  "pool": {"uuid": "44444444-aaaa-4aaa-8aaa-000000000001", "name": "tcp/web"},
  "delay_s": 7, "timeout_s": 6, "up_threshold": 5, "down_threshold": 4, "type": "https",
  "http": {"expected_codes": ["200-204"], "method": "HEAD", "url_path": "/ready", "version": "1.1", "host": null},
  "tags": {}
}"#;

/// "Floating IPs".
pub(crate) const FLOATING_IP: &str = r#"{
  "href": "https://api.example/v1/floating-ips/203.0.113.5", "network": "203.0.113.5/32", "ip_version": 4,
  "next_hop": "192.0.2.17", "server": {"href": "x", "uuid": "11111111-aaaa-4aaa-8aaa-000000000001"},
  "load_balancer": null, "type": "global", "region": null, "reverse_ptr": "b.example", "tags": {}
}"#;

/// A list with one object.
pub(crate) fn list(object: &str) -> String {
    format!("[{object}]")
}
