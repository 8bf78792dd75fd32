//! Servers, their flavors and ports.

use bowline_openstack_services::Service::{Compute, Network};

use crate::walk::{Walk, text};

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let id = walk.ground.server("node-1").await;
    walk.ground.server("node-10").await;
    let all = "/servers/detail?name=%5Enode-";
    walk.get("list", Compute, &format!("{all}1%24")).await;
    walk.get("list by a prefix", Compute, all).await;
    walk.get("no such name", Compute, "/servers/detail?name=%5Enope%24")
        .await;
    walk.get("page", Compute, "/servers/detail?limit=1").await;
    let unknown = format!("/servers/detail?marker={NOBODY}");
    walk.get("unknown marker", Compute, &unknown).await;

    let path = format!("/servers/{id}");
    let server = walk.get("one", Compute, &path).await;
    let unknown = format!("/servers/{NOBODY}");
    walk.get("unknown", Compute, &unknown).await;
    walk.get("no id at all", Compute, "/servers/not-an-id").await;

    let flavor = format!("/flavors/{}", text(&server, "/server/flavor/id"));
    walk.get("flavor", Compute, &flavor).await;
    walk.get("unknown flavor", Compute, &format!("/flavors/{NOBODY}"))
        .await;

    let ports = format!("/v2.0/ports?device_id={id}");
    let ports = walk.get("ports of a server", Network, &ports).await;
    let port = text(&ports, "/ports/0/id");
    walk.get("port", Network, &format!("/v2.0/ports/{port}")).await;
    let fields = format!("/v2.0/ports?device_id={id}&fields=id&fields=fixed_ips");
    walk.get("ports with some fields", Network, &fields).await;
}
