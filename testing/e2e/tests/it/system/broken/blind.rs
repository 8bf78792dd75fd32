//! More kinds of broken clusters, written down before it was looked what the commands say of them.

use bowline_cloud_kit::Fault;
use bowline_conformance::cloud::{service, tainted_node};

use super::*;

fn more() -> Vec<Case> {
    vec![
        (
            "the load balancer is in error",
            Now(|b| {
                let balancer = b.world.sim.load_balancers().remove(0);
                b.world.sim.set_load_balancer_status(balancer.uuid, Some("error"));
            }),
            "its status at cloudscale.ch is error",
            "the cloud's support",
        ),
        (
            "the load balancer is in another zone than the Nodes",
            Then(|b| {
                Box::pin(async {
                    for name in ["n1", "n2", "n3"] {
                        b.world
                            .label_node(name, "topology.kubernetes.io/zone", Some("lpg1"));
                    }
                    b.world.kill().await;
                })
            }),
            "the load balancer is in the zone rma1, and no member is: they are in lpg1 (3)",
            "in the zone of the Nodes",
        ),
        (
            "the cloud answers too many requests to everything",
            Now(|b| {
                b.world.cloud().faults().add(Fault::any().always().status(429));
            }),
            "429",
            "who else calls it",
        ),
        (
            "a floating IP is asked for that the project does not have",
            Now(|b| {
                let mut odd = service("shop", &[("", 80, 31_500)]);
                odd["metadata"]["annotations"] =
                    json!({ "k8s.cloudscale.ch/loadbalancer-floating-ips": "[\"192.0.2.9/32\"]" });
                b.world.apply(odd);
            }),
            "192.0.2.9",
            "do: ",
        ),
        (
            "there is no Node",
            Now(|b| {
                for name in ["n1", "n2", "n3"] {
                    b.world.api.delete("Node", "", name);
                }
                b.world.ask_for("shop", 31_500);
            }),
            "there is no Node",
            "adds Nodes",
        ),
        (
            "all Nodes are of another cloud than --cloud-provider",
            Then(|b| {
                Box::pin(async {
                    b.world.kill().await;
                    for name in ["n1", "n2", "n3"] {
                        b.world.api.delete("Node", "", name);
                        let mut node = tainted_node(name);
                        node["spec"] = json!({ "providerID": format!("openstack:///{name}") });
                        b.world.apply(node);
                    }
                })
            }),
            "of openstack: n1, n2, n3",
            "give --cloud-provider the cloud of these Nodes",
        ),
        (
            "a Service has no node ports",
            Now(|b| {
                let mut odd = service("shop", &[("", 80, 31_500)]);
                odd["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
                odd["spec"]["ports"] = json!([{ "name": "http", "port": 80, "protocol": "TCP" }]);
                b.world.apply(odd);
            }),
            "node port",
            "allocateLoadBalancerNodePorts",
        ),
        (
            "a pool takes fewer members than there are Nodes",
            Now(|b| {
                b.world
                    .sim
                    .set_behaviour(|it| it.quota.members_per_pool = Some(1));
                b.world.ask_for("shop", 31_500);
            }),
            "members",
            "the limit raised",
        ),
        (
            "the allowed sources are those of a field without effect",
            Now(|b| {
                b.world.edit_service("web", |it| {
                    it["spec"]["loadBalancerSourceRanges"] = json!(["10.0.0.0/8"])
                });
            }),
            "fields without effect on the load balancer: loadBalancerSourceRanges",
            "use k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs",
        ),
        (
            "nothing may be read with the manager's account",
            Now(|b| {
                let access = b.world.api.access();
                access.permit(Permit::new("system:unauthenticated", &["*"], "*", &["*"]));
            }),
            "list nodes, by the rule",
            "their bindings",
        ),
        (
            "a Service has a field that this cloud ignores",
            Now(|b| {
                let mut odd = service("shop", &[("", 80, 31_500)]);
                odd["spec"]["loadBalancerIP"] = json!("192.0.2.9");
                b.world.apply(odd);
            }),
            "fields without effect on the load balancer: loadBalancerIP",
            "use k8s.cloudscale.ch/loadbalancer-vip-addresses",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_was_thought_of_blindly_is_named() {
    one_command_names_each(more()).await;
}
