//! The one token.

use std::time::Duration;

use bowline_cloud_provider::{CloudProvider, InstanceQuery, Node, Purpose, ask_all};
use bowline_phoenixnap_sim::ServerSpec;
use bowline_phoenixnap_sim::kit::Fault;
use futures::future::join_all;
use tokio::time::Instant;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_share_one_token_until_it_is_nearly_over() {
    let world = World::new();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.token_lifetime = Duration::from_secs(60));
    let keys: Vec<String> = (0..10).map(|index| format!("shop/s{index}")).collect();
    for key in &keys {
        world.add(key);
    }
    let queries = queries(&world, 40);
    for second in [0, 55] {
        tokio::time::sleep(Duration::from_secs(second)).await;
        let instances = world.cloud.instances().unwrap();
        let nodes = join_all(
            queries
                .iter()
                .map(|query| instances.instances(std::slice::from_ref(query))),
        );
        let (_, _) = tokio::join!(join_all(keys.iter().map(|key| world.run_steps(key, 5))), nodes);
    }
    assert_eq!(world.sim.token_requests().len(), 2);
}

/// Nobody waits for it a second time, in another form.
#[tokio::test(start_paused = true)]
async fn a_token_that_does_not_come_is_asked_for_once_and_told_with_who_does_not_answer() {
    let world = World::new();
    world
        .sim
        .faults()
        .add(Fault::operation("token").always().hang_before());
    let began = Instant::now();
    let (_, failed) = ask_all(world.cloud.sign_in(), std::future::pending).await;
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    let told = failed[0].error().to_string();
    for part in [
        "POST /auth/realms/",
        "no answer within 30 s",
        "(host auth.phoenixnap.com)",
    ] {
        assert!(told.contains(part), "{told}");
    }
    world.sim.faults().clear();
    let (_, failed) = ask_all(world.cloud.sign_in(), std::future::pending).await;
    assert_eq!(failed, []);
}

fn queries(world: &World, count: usize) -> Vec<InstanceQuery> {
    let query = |index: usize| {
        let name = format!("n{index}");
        let id = world.sim.add_server(ServerSpec::new(&name));
        InstanceQuery {
            node: std::sync::Arc::new(Node {
                provider_id: Some(format!("phoenixnap://{id}").into()),
                ..Node::named(&name)
            }),
            purpose: Purpose::Existence,
        }
    };
    (0..count).map(query).collect()
}
