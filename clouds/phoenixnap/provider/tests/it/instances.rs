//! Servers as the instances of Nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::{
    AddressType, CloudProvider, InstanceAnswer, InstanceQuery, InstanceResult, Labels, Node, NodeAddress,
    PowerState, Purpose, Selector,
};
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use bowline_phoenixnap_sim::{ServerSpec, ServerStatus};

use crate::world::{self, World};

async fn ask(world: &World, name: &str, id: Option<&str>, purpose: Purpose) -> InstanceResult {
    let node = Arc::new(Node {
        provider_id: id.map(Into::into),
        ..Node::named(name)
    });
    let instances = world.cloud.instances().unwrap();
    instances
        .instances(&[InstanceQuery { node, purpose }])
        .await
        .remove(0)
}

#[tokio::test(start_paused = true)]
async fn a_server_is_found_by_its_hostname_in_any_case_and_needs_a_private_address() {
    let world = World::new();
    let server = |name, public: &[&str]| ServerSpec {
        instance_type: Some("s3.c3.large".into()),
        private_addresses: Some(vec!["10.9.0.3".into()]),
        public_addresses: Some(public.iter().map(ToString::to_string).collect()),
        ..ServerSpec::new(name)
    };
    let id = world
        .sim
        .add_server(server("Worker-NLD-03", &["192.0.2.71", "2001:db8:7::71"]));
    let (answer, calls) = world
        .calls_of(ask(&world, "worker-nld-03", None, Purpose::Metadata))
        .await;
    let Ok(InstanceAnswer::Present(instance)) = answer else {
        panic!("{answer:?}")
    };
    let metadata = instance.metadata;
    assert_eq!(calls, ["servers.list"]);
    assert_eq!(
        metadata.provider_id.as_deref(),
        Some(format!("phoenixnap://{id}").as_str())
    );
    assert_eq!(metadata.instance_type, "s3.c3.large");
    assert_eq!((metadata.region.as_str(), metadata.zone.as_str()), ("NLD", ""));
    use AddressType::{ExternalIp, Hostname, InternalIp};
    assert_eq!(
        metadata.addresses,
        [
            NodeAddress::new(Hostname, "Worker-NLD-03"),
            NodeAddress::new(ExternalIp, "192.0.2.71"),
            NodeAddress::new(ExternalIp, "2001:db8:7::71"),
            NodeAddress::new(InternalIp, "10.9.0.3"),
        ]
    );

    let world = World::new();
    world.sim.add_server(server("quiet", &[]));
    let Ok(InstanceAnswer::Present(quiet)) = ask(&world, "quiet", None, Purpose::Metadata).await else {
        panic!("not found")
    };
    let mut addresses = quiet.metadata.addresses.iter();
    assert!(addresses.all(|it| it.kind != ExternalIp), "{quiet:?}");
    world.sim.add_server(ServerSpec {
        private_addresses: Some(vec![]),
        ..ServerSpec::new("odd")
    });
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let error = ask(&world, "odd", None, Purpose::Metadata).await.unwrap_err();
    assert!(error.to_string().contains("no private IP address"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_hostname_that_two_servers_have_is_no_guess() {
    let world = World::new();
    let one = world.sim.add_server(ServerSpec::new("db"));
    let two = world.sim.add_server(ServerSpec::new("db"));
    let error = ask(&world, "db", None, Purpose::Metadata)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains(&one) && error.contains(&two), "{error}");
    world.sim.set_server_status(&one, ServerStatus::Deleting);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let Ok(InstanceAnswer::Present(instance)) = ask(&world, "db", None, Purpose::Metadata).await else {
        panic!("not found")
    };
    assert!(instance.metadata.provider_id.unwrap().ends_with(&two));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_403_is_gone_only_if_the_list_does_not_have_it() {
    let world = World::new();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.missing_status = 403);
    let id = world.sim.add_server(ServerSpec::new("w9"));
    let provider_id = format!("phoenixnap://{id}");
    let ask = || ask(&world, "w9", Some(&provider_id), Purpose::Existence);
    let fault = world
        .sim
        .faults()
        .add(Fault::operation("servers.read").always().status(403));
    let error = ask().await.unwrap_err();
    assert!(
        error.to_string().contains("the list of servers has it"),
        "{error}"
    );
    let list = world
        .sim
        .faults()
        .add(Fault::operation("servers.list").always().status(403));
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert!(ask().await.is_err());
    world.sim.faults().remove(list);
    world.sim.faults().remove(fault);
    world.sim.add_server(ServerSpec::new("other"));
    world.sim.remove_server(&id);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let (answer, calls) = world.calls_of(ask()).await;
    assert!(matches!(answer, Ok(InstanceAnswer::Absent(_))), "{answer:?}");
    assert_eq!(calls, ["servers.read", "servers.list"]);
}

#[tokio::test(start_paused = true)]
async fn a_404_in_anybodys_words_is_proof_only_together_with_the_list() {
    let world = World::new();
    let id = world.sim.add_server(ServerSpec::new("w9"));
    let provider_id = format!("phoenixnap://{id}");
    let ask = || ask(&world, "w9", Some(&provider_id), Purpose::Existence);
    world
        .sim
        .faults()
        .add(Fault::operation("servers.read").always().html(404));
    assert!(ask().await.is_err(), "the list has it");
    world.sim.add_server(ServerSpec::new("other"));
    world.sim.remove_server(&id);
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let answer = ask().await;
    assert!(matches!(answer, Ok(InstanceAnswer::Absent(_))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_proves_nothing_about_servers_that_answer_403() {
    for list in [None, Some("[]"), Some("null"), Some(r#"[{"id":7}]"#)] {
        let world = World::new();
        world
            .sim
            .set_behaviour(|behaviour| behaviour.missing_status = 403);
        let ids = world.sim.add_servers("n", 2);
        ids.iter().for_each(|id| assert!(world.sim.remove_server(id)));
        if let Some(list) = list {
            let canned = Canned::json(200, list);
            let fault = Fault::operation("servers.list").always();
            world.sim.faults().add(fault.answer(canned));
        }
        let mut answers = ask_all(&world, &ids, Purpose::Existence).await;
        answers.extend(ask_all(&world, &ids[..1], Purpose::Existence).await);
        for answer in answers {
            let error = answer.unwrap_err().to_string();
            assert!(
                error.contains("proves nothing") || error.contains("cannot be read"),
                "{list:?}: {error}"
            );
        }
    }
    // The API's own 404 is proof by itself.
    let world = World::new();
    world.sim.set_behaviour(|it| it.missing_status = 404);
    let ids = world.sim.add_servers("n", 1);
    assert!(world.sim.remove_server(&ids[0]));
    let answers = ask_all(&world, &ids, Purpose::Existence).await;
    assert!(matches!(answers[0], Ok(InstanceAnswer::Absent(_))), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_powered_off_server_is_off() {
    let world = World::new();
    let id = world.sim.add_server(ServerSpec::new("w1"));
    let provider_id = format!("phoenixnap://{id}");
    for (status, expected) in [
        (ServerStatus::PoweredOff, PowerState::Off),
        (ServerStatus::Error, PowerState::On),
        (ServerStatus::Reserved, PowerState::On),
        (ServerStatus::Rebooting, PowerState::On),
        (ServerStatus::Reinstating, PowerState::On),
        (ServerStatus::Other("frozen".to_owned()), PowerState::On),
        (ServerStatus::Deleting, PowerState::On),
    ] {
        world.sim.set_server_status(&id, status);
        let answer = ask(&world, "w1", Some(&provider_id), Purpose::Existence).await;
        let Ok(InstanceAnswer::Present(instance)) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(instance.power, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_cloud_costs_no_call_and_is_left_alone() {
    let world = World::new();
    let (answer, calls) = world
        .calls_of(ask(&world, "w1", Some("openstack:///abc"), Purpose::Existence))
        .await;
    assert!(matches!(answer, Ok(InstanceAnswer::Foreign)), "{answer:?}");
    assert!(calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn five_hundred_servers_and_fifty_nodes_are_one_list() {
    let world = World::new();
    let ids = world.sim.add_servers("n", 500);
    let queries: Vec<InstanceQuery> = ids
        .iter()
        .take(50)
        .map(|id| InstanceQuery {
            node: Arc::new(Node {
                provider_id: Some(format!("phoenixnap://{id}").into()),
                ..Node::named(id)
            }),
            purpose: Purpose::Metadata,
        })
        .collect();
    let instances = world.cloud.instances().unwrap();
    let (answers, calls) = world.calls_of(instances.instances(&queries)).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(InstanceAnswer::Present(_))))
    );
    assert_eq!(calls, ["servers.list"]);
}

/// Asks about several servers at once.
async fn ask_all(world: &World, ids: &[String], purpose: Purpose) -> Vec<InstanceResult> {
    let queries: Vec<InstanceQuery> = ids
        .iter()
        .map(|id| InstanceQuery {
            node: Arc::new(Node {
                provider_id: Some(format!("phoenixnap://{id}").into()),
                ..Node::named(id)
            }),
            purpose,
        })
        .collect();
    world.cloud.instances().unwrap().instances(&queries).await
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_leaves_no_server_unknown_that_can_be_asked_for_by_its_id() {
    let faults: [fn() -> Fault; 3] = [
        || Fault::operation("servers.list").always().status(500),
        || Fault::operation("servers.list").always().html(200),
        || Fault::operation("servers.list").always().html(500),
    ];
    for fault in faults {
        let world = World::new();
        let mut ids = world.sim.add_servers("n", 2);
        ids.push("64f0c2a9be11d37a5c90e1b4".to_owned());
        world.sim.set_behaviour(|it| it.missing_status = 404);
        let what = format!("{:?}", fault());
        world.sim.faults().add(fault());
        let answers = ask_all(&world, &ids, Purpose::Existence).await;
        assert!(
            matches!(
                answers.as_slice(),
                [
                    Ok(InstanceAnswer::Present(_)),
                    Ok(InstanceAnswer::Present(_)),
                    Ok(InstanceAnswer::Absent(_))
                ]
            ),
            "{what}: {answers:?}"
        );
        let (answers, calls) = world
            .calls_of(ask_all(&world, &ids, Purpose::CredentialCheck))
            .await;
        assert!(
            matches!(answers[0], Ok(InstanceAnswer::Present(_))),
            "{what}: {answers:?}"
        );
        assert_eq!(calls.len(), 4, "{calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_for_everybody_s_reason_costs_no_call_for_each_server() {
    let faults: [fn() -> Fault; 5] = [
        || Fault::operation("servers.list").always().status(403),
        || Fault::operation("servers.list").always().status(429),
        || Fault::operation("servers.list").always().html(502),
        || Fault::operation("servers.list").always().status(503),
        || Fault::operation("servers.list").always().drop_before(),
    ];
    for fault in faults {
        let world = World::new();
        let ids = world.sim.add_servers("n", 3);
        let what = format!("{:?}", fault());
        world.sim.faults().add(fault());
        let (answers, calls) = world.calls_of(ask_all(&world, &ids, Purpose::Existence)).await;
        assert!(answers.iter().all(Result::is_err), "{what}: {answers:?}");
        assert!(
            calls.iter().all(|call| call == "servers.list"),
            "{what}: {calls:?}"
        );
    }
}

#[test]
fn a_node_that_is_balanced_over_carries_the_id_of_its_server_if_it_is_selected() {
    let mut options = world::options(world::USUAL);
    options.nodes = Selector::parse("pool=edge").unwrap();
    let cloud = world::provider(&World::new().sim, &options);
    let balancers = cloud.load_balancer().unwrap();
    let noted = |id: Option<&str>, pool: &str| {
        let node = Node {
            provider_id: id.map(Into::into),
            labels: Labels::from_iter([("pool", pool)]),
            ..Node::named("worker")
        };
        balancers.node_annotations(&node)
    };
    let expected = BTreeMap::from([("phoenixnap.com/server-id".to_owned(), "64f0".to_owned())]);
    assert_eq!(noted(Some("phoenixnap://64f0"), "edge"), expected);
    for (id, pool) in [
        (Some("phoenixnap://64f0"), "core"),
        (Some("cloudscale://64f0"), "edge"),
        (None, "edge"),
    ] {
        assert_eq!(noted(id, pool), BTreeMap::new(), "{id:?} {pool}");
    }
}
