//! Routes: what is written to a Node passes the real validation and the real roles.

use bowline_paper_sim::kit::Fault;
use bowline_paper_sim::{MachineSpec, PaperSim};
use serde_json::json;

use super::plane::Plane;

const TOKEN: &str = "pt-27c1a0e59b3d4f68";

/// `status reason message` of a Node's condition.
async fn condition(plane: &Plane, name: &str) -> Option<String> {
    let conditions = plane.node(name).await?.status?.conditions?;
    let found = conditions
        .into_iter()
        .find(|it| it.type_ == "NetworkUnavailable")?;
    Some(format!(
        "{} {} {}",
        found.status,
        found.reason.unwrap_or_default(),
        found.message.unwrap_or_default()
    ))
}

#[tokio::test]
async fn r01_to_r04_a_route_that_cannot_be_made_is_told_of_made_later_and_goes_with_its_node() {
    let Some(plane) = Plane::start("routes").await else {
        return;
    };
    let sim = PaperSim::builder().token(TOKEN).build();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let cloud = sim.serve(listener).unwrap();
    sim.faults().add(Fault::write().always().status(500));
    let manager = plane.manager_for(
        &["--cloud-provider=paper", "--cluster-cidr=10.200.0.0/16"],
        &[("PAPER_API_URL", &cloud.url()), ("PAPER_TOKEN", TOKEN)],
    );
    let machine = sim.add_machine(MachineSpec::new("n1"));
    plane
        .add_node(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
            "spec": {
                "providerID": format!("paper://{machine}"),
                "podCIDR": "10.200.1.0/24", "podCIDRs": ["10.200.1.0/24"],
            },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
        .await;
    let told = "True NoRouteCreated RouteController failed to create a route";
    manager
        .until("told", async || {
            condition(&plane, "n1").await.as_deref() == Some(told)
        })
        .await;
    let uid = plane.node("n1").await.unwrap().metadata.uid.unwrap();
    let begin = format!("FailedToCreateRoute: Could not create route {uid} 10.200.1.0/24 for node n1 after ");
    manager
        .until("the event", async || {
            plane
                .messages("n1")
                .await
                .iter()
                .any(|event| event.starts_with(&begin))
        })
        .await;
    assert!(sim.routes().is_empty());

    sim.faults().clear();
    let routed = "False RouteCreated RouteController created a route";
    manager
        .until("routed", async || {
            condition(&plane, "n1").await.as_deref() == Some(routed)
        })
        .await;
    let routes = sim.routes();
    assert_eq!((routes.len(), routes[0].machine), (1, Some(machine)));
    // The kubelet's own condition is still there: a patch, not a replacement.
    let conditions = plane
        .node("n1")
        .await
        .unwrap()
        .status
        .unwrap()
        .conditions
        .unwrap();
    assert!(conditions.iter().any(|it| it.type_ == "Ready"), "{conditions:?}");

    plane.delete_node("n1").await;
    manager
        .until("its route is gone", async || sim.routes().is_empty())
        .await;
    plane.assert_nothing_forbidden();
}
