//! What a cluster has at night: written down before it was looked what the commands say of it.

use bowline_cloud_kit::Fault;
use bowline_cloud_kit::faults::Canned;
use bowline_cloudscale_sim::FloatingSpec;
use bowline_conformance::cloud::service;
use bowline_kube_api::{Effect, Fault as KubeFault, Status};

use super::*;

impl Broken {
    /// A Service `shop` with an annotation of the cloud.
    fn ask_with(&self, annotation: &str, value: &str) {
        let mut shop = service("shop", &[("", 80, 31_500)]);
        shop["metadata"]["annotations"] = json!({ format!("k8s.cloudscale.ch/{annotation}"): value });
        self.world.apply(shop);
    }

    /// The API server does this with each write of a Service that begins from now on.
    fn services_meet(&self, effect: Effect) {
        let fault = KubeFault::new(effect).verb("patch").resource("services");
        self.world.api.faults().inject(fault);
        self.world.ask_for("shop", 31_500);
    }
}

fn cases() -> Vec<Case> {
    vec![
        (
            "a webhook refuses every write of a Service",
            Now(|b| {
                let text = "admission webhook \"b.example\" denied the request: not today";
                b.services_meet(Effect::Answer(Status::new(400, "BadRequest", text)));
            }),
            "admission webhook \"b.example\" denied the request",
            "repair it, or have it leave the manager's writes out",
        ),
        (
            "a policy denies the finalizer",
            Now(|b| {
                b.services_meet(Effect::Deny(|it| it["metadata"]["finalizers"].is_array()));
            }),
            "denied by a policy",
            "looks at the manager's role, and at webhooks and policies",
        ),
        (
            "the API server gives up on every write of a Service",
            Now(|b| {
                let text = "Timeout: request did not complete within requested timeout";
                b.services_meet(Effect::Answer(Status::new(504, "Timeout", text)));
            }),
            "request did not complete within requested timeout",
            "looks at the API server",
        ),
        (
            "the selector of Nodes takes none",
            Now(|b| {
                b.world.edit_service("web", |it| {
                    it["metadata"]["annotations"]["k8s.cloudscale.ch/loadbalancer-node-selector"] =
                        json!("pool=lb");
                });
            }),
            "left out by the selector of Nodes: n1, n2, n3",
            "corrects its selector of Nodes",
        ),
        (
            "the cloud is in maintenance and says until when",
            Now(|b| {
                let page = Canned::json(503, "{}").header("retry-after", "1800");
                b.world.cloud().faults().add(Fault::any().always().answer(page));
                b.world.ask_for("shop", 31_500);
            }),
            "503",
            "a maintenance",
        ),
        (
            "a firewall cuts every connection to the cloud",
            Now(|b| {
                b.world.cloud().faults().add(Fault::any().always().drop_before());
                b.world.ask_for("shop", 31_500);
            }),
            "GET /v1/",
            "at the network",
        ),
        (
            "two Services ask for one floating IP",
            Now(|b| {
                let address = b.world.sim.add_floating_ip(FloatingSpec::default());
                let asked = format!("[\"{address}/32\"]");
                b.world.edit_service("web", |it| {
                    it["metadata"]["annotations"]["k8s.cloudscale.ch/loadbalancer-floating-ips"] =
                        json!(asked);
                });
                b.ask_with("loadbalancer-floating-ips", &asked);
            }),
            "default/web",
            "loadbalancer-floating-ips",
        ),
        (
            "a subnet is asked for that the project does not have",
            Now(|b| {
                let asked = "[{\"subnet\": \"00000000-0000-4000-8000-00000000beef\"}]";
                b.ask_with("loadbalancer-vip-addresses", asked);
            }),
            "ubnet",
            "k8s.cloudscale.ch/loadbalancer-vip-addresses",
        ),
        (
            "an annotation is misspelt",
            Now(|b| b.ask_with("loadbalancer-pool-algoritm", "source_ip")),
            "unknown annotations have no effect: k8s.cloudscale.ch/loadbalancer-pool-algoritm",
            "Correct the spelling",
        ),
        (
            "a zone is asked for that there is not",
            Now(|b| b.ask_with("loadbalancer-zone", "xyz1")),
            "xyz1",
            "loadbalancer-zone",
        ),
        (
            "a listener was deleted by hand, and nobody works",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    let listener = b.world.sim.listeners().remove(0);
                    b.world.sim.delete_listener(listener.uuid);
                    b.world.pass_lease().await;
                })
            }),
            "the load balancer is not as the Service asks",
            "nobody makes it before a process of Bowline leads",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_happens_at_night_is_named() {
    one_command_names_each(cases()).await;
}
