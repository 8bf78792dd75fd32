//! Routes: what is written to a Node passes the real validation and the real roles.

use std::path::Path;

use bowline_paper_sim::kit::project::Project;
use bowline_paper_sim::kit::{CloudService, Fault};
use bowline_paper_sim::{MachineSpec, PaperSim};
use serde_json::json;

use super::cloudscale;
use super::plane::Plane;
use super::site::{Cloud, Site};

const TOKEN: &str = "pt-27c1a0e59b3d4f68";

/// The example cloud has routes, and had no other manager: it is under the rights of another cloud's.
impl Cloud for PaperSim {
    const PROGRAM: &'static str = "cloud-controller-manager";
    const ROLE: &'static str = cloudscale::ROLE;

    fn new() -> Self {
        Self::builder().token(TOKEN).build()
    }

    fn api(&self) -> CloudService {
        self.service()
    }

    fn flags(&self, _url: &str, _directory: &Path) -> Vec<String> {
        vec!["--cloud-provider=paper".to_owned()]
    }

    fn variables(&self, url: &str) -> Vec<(String, String)> {
        let url = ("PAPER_API_URL".to_owned(), url.to_owned());
        vec![("PAPER_TOKEN".to_owned(), TOKEN.to_owned()), url]
    }

    fn add_instance(&self, name: &str) -> String {
        format!("paper://{}", PaperSim::add_machine(self, MachineSpec::new(name)))
    }

    fn project(&self) -> &dyn Project {
        self
    }
}

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
async fn a_route_that_cannot_be_made_is_told_of_made_later_and_goes_with_its_node() {
    let Some(site) = Site::<PaperSim>::start().await else {
        return;
    };
    site.faults().add(Fault::write().always().status(500));
    let manager = site.manager_with(&["--cluster-cidr=10.200.0.0/16"]);
    let provider_id = Cloud::add_instance(&site.cloud, "n1");
    site.add_node(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
        "spec": {
            "providerID": provider_id,
            "podCIDR": "10.200.1.0/24", "podCIDRs": ["10.200.1.0/24"],
        },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }))
    .await;
    let told = "True NoRouteCreated RouteController failed to create a route";
    manager
        .until("told", async || {
            condition(&site, "n1").await.as_deref() == Some(told)
        })
        .await;
    let uid = site.node("n1").await.unwrap().metadata.uid.unwrap();
    let begin = format!("FailedToCreateRoute: Could not create route {uid} 10.200.1.0/24 for node n1 after ");
    manager
        .until("the event", async || {
            site.messages("n1")
                .await
                .iter()
                .any(|event| event.starts_with(&begin))
        })
        .await;
    assert!(site.cloud.routes().is_empty());

    site.faults().clear();
    let routed = "False RouteCreated RouteController created a route";
    manager
        .until("routed", async || {
            condition(&site, "n1").await.as_deref() == Some(routed)
        })
        .await;
    let routes = site.cloud.routes();
    assert_eq!((routes.len(), routes[0].machine.is_some()), (1, true));
    // The kubelet's own condition is still there: a patch, not a replacement.
    let conditions = site.node("n1").await.unwrap().status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|it| it.type_ == "Ready"), "{conditions:?}");

    site.delete_node("n1").await;
    manager
        .until("its route is gone", async || site.cloud.routes().is_empty())
        .await;
    site.assert_nothing_forbidden();
}
