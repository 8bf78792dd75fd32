//! What a cluster has at night: written down before it was looked what the commands say of it.

use bowline_cloud_kit::Fault;
use bowline_cloud_kit::faults::Canned;
use bowline_cloud_provider::ServiceClasses;
use bowline_cloudscale_sim::{FloatingSpec, MonitorStatus};
use bowline_conformance::cloud::{CloudUnderTest as _, Instance, Start, service, tainted_node};
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
            "a policy denies the finalizer, and nobody works yet",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.services_meet(Effect::Deny(|it| it["metadata"]["finalizers"].is_array()));
                })
            }),
            "patch services/status default/shop with the finalizer service.kubernetes.io/load-balancer-cleanup: ",
            "repair it, or have it leave the manager's writes out",
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
            "a Service was made again without its class",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.config.service_classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
                    let mut start = Start::default();
                    start.config.service_classes = b.config.service_classes.clone();
                    b.world.start_with(start);
                    b.world.ask_for("shop", 31_500);
                })
            }),
            "it has no spec.loadBalancerClass, and this manager serves Services of class ours",
            "to type ClusterIP first, and then to LoadBalancer with a class",
        ),
        (
            "one Node is in another zone than the load balancer, and is not reached",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    b.world
                        .label_node("n3", "topology.kubernetes.io/zone", Some("lpg1"));
                    b.world
                        .sim
                        .set_behaviour(|it| it.unprobed_member = MonitorStatus::Down);
                    b.world.pass_lease().await;
                })
            }),
            "members do not answer: ",
            "they are in several zones: lpg1 (1)",
        ),
        (
            "a machine has another host name, and so another Node",
            Now(|b| {
                b.world.set_ready("n1", "Unknown");
                b.world.apply(tainted_node("worker-1"));
            }),
            "the machine of one that is not ready (n1), its host name has changed",
            "registers it under the name of its instance",
        ),
        (
            "a server was renamed before its Node had its provider ID",
            Now(|b| {
                b.world.sim.add_instance(&Instance::plain("db-7"));
                b.world.apply(tainted_node("worker-1"));
            }),
            "no Node bears the name of these instances, of which it may be one: db-7",
            "renames the instance",
        ),
        (
            "a server that has its Node was renamed",
            Now(|b| {
                let server = b.world.sim.server_named("n1").unwrap().uuid;
                b.world.sim.rename_server(server, "db-7");
            }),
            "service/default/web: ok",
            "3 of 3 Nodes may be members",
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
            "loadbalancer-pool-algoritm (did you mean k8s.cloudscale.ch/loadbalancer-pool-algorithm?)",
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

/// The API server takes 1,024 bytes of an event, and 32,768 of a condition.
#[tokio::test(start_paused = true)]
async fn what_is_long_is_described_with_its_cause_and_its_remedy() {
    let broken = Broken::healthy().await;
    broken.ask_with("loadbalancer-pool-algorithm", &"x".repeat(50_000));
    broken.world.pass(SECOND * 90).await;
    let is_about = |it: &&Value| it["involvedObject"]["name"] == "shop" && it["type"] == "Warning";
    let events = broken.world.api.objects("Event");
    let event = events.iter().find(is_about).unwrap()["message"].as_str().unwrap();
    let shown = broken.world.service("shop").unwrap();
    let condition = shown["status"]["conditions"][0]["message"].as_str().unwrap();
    let target = Target::Service(ServiceKey::new("default", "shop"));
    let screens = broken.screens(&[target]).await;
    for (text, longest) in [
        (event, 1_024),
        (condition, 32_768),
        (&screens[0], 100_000),
        (&screens[1], 100_000),
    ] {
        assert!(text.len() <= longest, "{}", text.len());
        for words in [
            "unsupported value 'xxx",
            "loadbalancer-pool-algorithm",
            "round_robin",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_at_night_is_named() {
    one_command_names_each(cases()).await;
}
