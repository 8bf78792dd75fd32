//! The one token.

use std::time::Duration;

use bowline_cloud_provider::{CloudProvider, InstanceAnswer, InstanceQuery, Node, Purpose};
use bowline_phoenixnap_sim::ServerSpec;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use futures::future::join_all;

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

#[tokio::test(start_paused = true)]
async fn a_revoked_token_costs_one_refusal_and_one_new_token() {
    let world = World::with_service();
    world.run("shop/checkout").await.settled();
    world.sim.forget_tokens();
    let mark = world.sim.journal().mark();
    world.run("shop/checkout").await.settled();
    let statuses: Vec<(String, Option<u16>)> = world
        .sim
        .journal()
        .since(mark)
        .into_iter()
        .map(|entry| (entry.operation.to_string(), entry.status()))
        .collect();
    let expected = [("ip-blocks.list", 401), ("token", 200), ("ip-blocks.list", 200)];
    assert_eq!(
        statuses,
        expected.map(|(name, status)| (name.to_owned(), Some(status)))
    );
}

// Nothing is said to be gone.
#[tokio::test(start_paused = true)]
async fn refused_credentials_are_an_error_and_never_an_absence() {
    let world = World::new();
    let queries = queries(&world, 1);
    let instances = world.cloud.instances().unwrap();
    // A wrong URL of the endpoint is as good as wrong credentials.
    let nowhere = Canned::json(404, r#"{"message":"no route"}"#);
    for fault in [
        Fault::operation("token").always().status(401),
        Fault::operation("token").always().answer(nowhere),
    ] {
        world.sim.faults().clear();
        world.sim.faults().add(fault);
        for purpose in [Purpose::Existence, Purpose::Metadata] {
            let query = InstanceQuery {
                purpose,
                ..queries[0].clone()
            };
            let error = instances.instances(&[query]).await.remove(0).unwrap_err();
            assert!(error.to_string().contains("credentials"), "{error}");
            assert!(!error.to_string().contains("Tz81"), "{error}");
        }
    }
    world.sim.faults().clear();
    let answer = instances.instances(&queries).await.remove(0);
    assert!(matches!(answer, Ok(InstanceAnswer::Present(_))));
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
