//! What upstream does not have: without effect unless it is configured.

use std::sync::Arc;

use bowline_cloud_provider::{CloudProvider as _, InstanceAnswer, InstanceQuery, Node, PowerState, Purpose};
use bowline_phoenixnap_sim::{ServerSpec, ServerStatus};

use crate::world::{USUAL, World};

const KEY: &str = "shop/checkout";
const VIP: &str = "kube-vip.io/loadbalancerIPs";
const WRITTEN: &str = "phoenixnap.com/kube-vip-address";

fn world(variable: &'static str, value: &'static str) -> World {
    let world = World::with(&[USUAL[0], USUAL[1], (variable, value)]);
    world.add(KEY);
    world
}

fn keeping() -> World {
    world("PNAP_KUBE_VIP_ANNOTATION", "true")
}

fn annotation(world: &World, name: &str) -> Option<String> {
    world
        .service(KEY)
        .metadata
        .annotations
        .as_ref()?
        .get(name)
        .cloned()
}

#[tokio::test(start_paused = true)]
async fn kube_vip_s_annotation_is_written_with_the_field_and_follows_it() {
    let world = keeping();
    let run = world.run(KEY).await.settled();
    let address = run.published().remove(0);
    assert_eq!(annotation(&world, VIP).as_deref(), Some(address.as_str()));
    let kinds = run.kinds_of_steps();
    let attached = kinds.iter().position(|kind| *kind == "attach-ip-block");
    assert_eq!(
        attached,
        Some(kinds.len() - 2),
        "one write of the address: {kinds:?}"
    );
    assert!(world.run(KEY).await.settled().steps().is_empty());
    // Another address of the block.
    let third: std::net::Ipv4Addr = address.parse().unwrap();
    let other = std::net::Ipv4Addr::from_bits(third.to_bits() + 1).to_string();
    world.set_field(KEY, &other);
    world.run(KEY).await.settled();
    assert_eq!(annotation(&world, VIP), Some(other.clone()));
    assert_eq!(annotation(&world, WRITTEN), Some(other));
    // It goes with the address.
    world.delete(KEY);
    world.run(KEY).await.settled();
    assert_eq!(
        (annotation(&world, VIP), annotation(&world, WRITTEN)),
        (None, None)
    );
    assert_eq!(world.field(KEY), "");
}

#[tokio::test(start_paused = true)]
async fn kube_vip_s_annotation_is_somebody_else_s_unless_we_wrote_it() {
    let world = keeping();
    world.annotate(KEY, VIP, "192.0.2.200");
    world.run(KEY).await.settled();
    assert_eq!(annotation(&world, VIP).as_deref(), Some("192.0.2.200"));
    assert_eq!(annotation(&world, WRITTEN), None);
    world.delete(KEY);
    world.run(KEY).await.settled();
    assert_eq!(annotation(&world, VIP).as_deref(), Some("192.0.2.200"));
}

#[tokio::test(start_paused = true)]
async fn kube_vip_s_annotation_goes_when_it_is_not_wanted_any_more() {
    let mut world = keeping();
    let address = world.run(KEY).await.published().remove(0);
    world.restart();
    world.run(KEY).await.settled();
    assert_eq!(
        (annotation(&world, VIP), annotation(&world, WRITTEN)),
        (None, None)
    );
    assert_eq!(world.field(KEY), address);
    assert!(world.run(KEY).await.settled().steps().is_empty());
}

#[tokio::test(start_paused = true)]
async fn kube_vip_s_annotation_goes_also_if_the_block_was_given_back_by_hand() {
    let world = keeping();
    world.run(KEY).await.settled();
    let block = world.sim.blocks()[0].id.clone();
    world.run(KEY).await.settled();
    world.sim.remove_block(&block);
    world.delete(KEY);
    let run = world.run(KEY).await.settled();
    assert_eq!(run.steps().len(), 1, "{run:#?}");
    assert_eq!(
        (annotation(&world, VIP), annotation(&world, WRITTEN)),
        (None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_block_is_described_only_if_the_operator_says_how() {
    for (value, expected) in [
        ("", None),
        ("{namespace}/{name}", Some("shop/checkout")),
        ("  Kubernetes ", Some("Kubernetes")),
    ] {
        let world = world("PNAP_BLOCK_DESCRIPTION", value);
        world.run(KEY).await.settled();
        assert_eq!(world.sim.blocks()[0].description.as_deref(), expected, "{value}");
        let bought = world
            .sim
            .journal()
            .filter(|entry| entry.operation == "ip-blocks.create");
        let body = bought[0].body.as_ref().unwrap();
        assert_eq!(body.get("description").is_some(), expected.is_some(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reserved_server_is_shut_down_only_if_the_operator_says_so() {
    for (value, expected) in [
        ("", PowerState::On),
        ("false", PowerState::On),
        ("True", PowerState::Off),
    ] {
        let world = world("PNAP_RESERVED_IS_SHUT_DOWN", value);
        for (status, expected) in [
            (ServerStatus::Reserved, expected),
            (ServerStatus::PoweredOff, PowerState::Off),
            (ServerStatus::PoweredOn, PowerState::On),
        ] {
            let name = format!("{status:?}");
            let id = world.sim.add_server(ServerSpec {
                status: Some(status),
                ..ServerSpec::new(&name)
            });
            let node = Arc::new(Node {
                provider_id: Some(format!("phoenixnap://{id}").into()),
                ..Node::named(&name)
            });
            let query = InstanceQuery {
                node,
                purpose: Purpose::Existence,
            };
            let answer = world
                .cloud
                .instances()
                .unwrap()
                .instances(&[query])
                .await
                .remove(0);
            let Ok(InstanceAnswer::Present(instance)) = answer else {
                panic!("{name}: {answer:?}")
            };
            assert_eq!(instance.power, expected, "{name}, {value:?}");
        }
    }
}
