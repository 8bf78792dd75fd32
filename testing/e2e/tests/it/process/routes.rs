//! A cloud with routes: what the program has to be told, and what it does then.

use bowline_paper_sim::kit::Server;
use bowline_paper_sim::{MachineSpec, PaperSim};
use serde_json::json;

use super::cluster::Cluster;
use super::program::Running;

/// The cloud of the guide on a loopback port, beside an API server.
struct Site {
    cluster: Cluster,
    paper: PaperSim,
    server: Server,
}

impl Site {
    async fn start() -> Self {
        let paper = PaperSim::builder().build();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Self {
            cluster: Cluster::start().await,
            server: paper.serve(listener).unwrap(),
            paper,
        }
    }

    fn manager(&self, more: &[&str]) -> Running {
        let arguments = [&["--cloud-provider=paper"], more].concat();
        let variables = [
            ("PAPER_API_URL".to_owned(), self.server.url()),
            ("PAPER_TOKEN".to_owned(), "any".to_owned()),
        ];
        Running::start(
            "cloud-controller-manager",
            &self.cluster.arguments(&arguments),
            &variables,
        )
    }

    /// What the health of a process that works says of its controllers.
    async fn health(&self, manager: &Running) -> String {
        let healthy = async || {
            let answer = self.cluster.ask("/healthz?verbose").await;
            answer.is_some_and(|(status, body)| status == 200 && body.contains("cloud-node-controller"))
        };
        manager.until("it works", healthy).await;
        self.cluster.ask("/healthz?verbose").await.unwrap().1
    }
}

#[tokio::test]
async fn a_pod_network_gets_its_route() {
    let site = Site::start().await;
    let manager = site.manager(&["--cluster-cidr=10.200.0.0/16"]);
    let machine = site.paper.add_machine(MachineSpec::new("n1"));
    site.cluster.apply(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
        "spec": { "podCIDR": "10.200.1.0/24", "podCIDRs": ["10.200.1.0/24"] },
    }));
    let is_routed = async || {
        let node = site.cluster.api.object("Node", "", "n1").unwrap();
        node["status"]["conditions"].to_string().contains("RouteCreated")
    };
    manager.until("routed", is_routed).await;
    let routes = site.paper.routes();
    assert_eq!(routes.len(), 1);
    assert_eq!(
        (routes[0].destination.to_string(), routes[0].machine),
        ("10.200.1.0/24".to_owned(), Some(machine))
    );
    let health = site.health(&manager).await;
    assert!(health.contains("[+]node-route-controller ok\n"), "{health}");
}

#[tokio::test]
async fn without_the_pod_networks_it_does_not_start_and_says_what_to_do() {
    let site = Site::start().await;
    for more in [&[][..], &["--cluster-cidr=nonsense"]] {
        let mut manager = site.manager(more);
        let (status, _) = manager.ended().await;
        let log = manager.log().join("\n");
        assert_eq!(status.code(), Some(255), "{log}");
        assert!(
            log.contains("--cluster-cidr") && log.contains("--configure-cloud-routes=false"),
            "{log}"
        );
    }
    assert_eq!(site.cluster.holder(), None, "it took the lease first");
}

#[tokio::test]
async fn with_the_loop_switched_off_the_others_run() {
    let site = Site::start().await;
    let manager = site.manager(&["--configure-cloud-routes=false"]);
    let health = site.health(&manager).await;
    assert!(!health.contains("node-route-controller"), "{health}");
}
