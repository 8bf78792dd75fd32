//! Servers, their flavors and ports.

use bowline_openstack_services::Service::{Compute, Network};
use http::Method;

use crate::walk::{Walk, text};

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let id = walk.ground.server("node-1").await;
    walk.ground.server("node-10").await;
    let get = Method::GET;
    let all = "/servers/detail?name=%5Enode-";
    walk.step("list", Compute, get.clone(), &format!("{all}1%24"), None)
        .await;
    walk.step("list by a prefix", Compute, get.clone(), all, None)
        .await;
    walk.step(
        "no such name",
        Compute,
        get.clone(),
        "/servers/detail?name=%5Enope%24",
        None,
    )
    .await;
    walk.step("page", Compute, get.clone(), "/servers/detail?limit=1", None)
        .await;
    let unknown = format!("/servers/detail?marker={NOBODY}");
    walk.step("unknown marker", Compute, get.clone(), &unknown, None)
        .await;

    let path = format!("/servers/{id}");
    let server = walk.step("one", Compute, get.clone(), &path, None).await;
    let unknown = format!("/servers/{NOBODY}");
    walk.step("unknown", Compute, get.clone(), &unknown, None).await;
    walk.step("no id at all", Compute, get.clone(), "/servers/not-an-id", None)
        .await;

    let flavor = format!("/flavors/{}", text(&server, "/server/flavor/id"));
    walk.step("flavor", Compute, get.clone(), &flavor, None).await;
    walk.step(
        "unknown flavor",
        Compute,
        get.clone(),
        &format!("/flavors/{NOBODY}"),
        None,
    )
    .await;

    let ports = format!("/v2.0/ports?device_id={id}");
    let ports = walk
        .step("ports of a server", Network, get.clone(), &ports, None)
        .await;
    let port = text(&ports, "/ports/0/id");
    walk.step("port", Network, get.clone(), &format!("/v2.0/ports/{port}"), None)
        .await;
    let fields = format!("/v2.0/ports?device_id={id}&fields=id&fields=fixed_ips");
    walk.step("ports with some fields", Network, get, &fields, None)
        .await;
}
