use std::sync::Arc;

use bowline_cloud_provider::{
    AddressType, CloudProvider, ErrorKind, Instance, InstanceAnswer, InstanceQuery, InstanceResult, Node,
    PowerState, Purpose,
};
use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::faults::Canned;
use bowline_cloudscale_sim::{InterfaceSpec, ServerSpec, ServerStatus};

use crate::world::World;

fn query(node: &Arc<Node>, purpose: Purpose) -> InstanceQuery {
    InstanceQuery {
        node: Arc::clone(node),
        purpose,
    }
}

fn unnamed(name: &str) -> Arc<Node> {
    Arc::new(Node::named(name))
}

fn with_id(name: &str, id: &str) -> Arc<Node> {
    Arc::new(Node {
        provider_id: Some(id.into()),
        ..Node::named(name)
    })
}

async fn ask(world: &World, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
    world.cloud.instances().unwrap().instances(queries).await
}

async fn ask_one(world: &World, node: &Arc<Node>, purpose: Purpose) -> InstanceResult {
    ask(world, &[query(node, purpose)]).await.remove(0)
}

fn present(answer: InstanceResult) -> Instance {
    match answer.unwrap() {
        InstanceAnswer::Present(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_the_servers_with_addresses_in_interface_order() {
    let world = World::new();
    let server = world.sim.add_server(ServerSpec {
        zone: Some("lpg2".into()),
        interfaces: vec![
            InterfaceSpec::Private,
            InterfaceSpec::Private,
            InterfaceSpec::Public { v6: true },
        ],
        ..ServerSpec::new("db-1")
    });
    let metadata = present(ask_one(&world, &unnamed("db-1"), Purpose::Metadata).await).metadata;
    assert_eq!(metadata.provider_id, Some(format!("cloudscale://{server}")));
    assert_eq!(
        (&*metadata.instance_type, &*metadata.zone, &*metadata.region),
        ("flex-16-4", "lpg2", "lpg")
    );
    let kinds: Vec<&AddressType> = metadata.addresses.iter().map(|address| &address.kind).collect();
    use AddressType::{ExternalIp, Hostname, InternalIp};
    assert_eq!(
        kinds,
        [&Hostname, &InternalIp, &InternalIp, &ExternalIp, &ExternalIp]
    );
    assert_eq!(metadata.addresses[0].address, "db-1");
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_the_spelling_of_its_id() {
    let world = World::new();
    let server = world.sim.add_server(ServerSpec::new("a"));
    let other = world.sim.add_server(ServerSpec::new("b"));
    let upper = server.to_string().to_uppercase();
    for id in [
        format!("cloudscale://{upper}"),
        format!(" cloudscale :// {{{server}}} "),
    ] {
        let node = with_id("a", &id);
        let metadata = present(ask_one(&world, &node, Purpose::Metadata).await).metadata;
        assert_eq!(metadata.provider_id, Some(id));
    }
    let node = with_id("a", &format!("cloudscale://{other}"));
    let metadata = present(ask_one(&world, &node, Purpose::Metadata).await).metadata;
    assert_eq!(metadata.provider_id, Some(format!("cloudscale://{other}")));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_two_servers_share_is_an_error_until_it_is_not() {
    let world = World::new();
    let first = world.sim.add_server(ServerSpec::new("app"));
    let second = world.sim.add_server(ServerSpec::new("app"));
    let error = ask_one(&world, &unnamed("app"), Purpose::Metadata)
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("unable to find node app: found more than one"),
        "{error}"
    );
    assert!(
        [first, second].iter().all(|id| error.contains(&id.to_string())),
        "{error}"
    );
    world.sim.rename_server(first, "other");
    present(ask_one(&world, &unnamed("app"), Purpose::Metadata).await);
    let error = ask_one(&world, &unnamed("gone"), Purpose::Metadata)
        .await
        .unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.kind()),
        ("unable to find node gone: found none", ErrorKind::NotFound)
    );
    let wrong = with_id("app", "cloudscale://6f9619ff-8b86-d011-b42d-00cf4fc964ff");
    let error = ask_one(&world, &wrong, Purpose::Metadata).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("found none with the provider ID cloudscale://6f9619ff"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn existence_is_asked_by_normalised_id_and_proved_by_404() {
    let world = World::new();
    let node = with_id("a", "cloudscale://{6F9619FF-8B86-D011-B42D-00CF4FC964FF}");
    let answer = ask_one(&world, &node, Purpose::Existence).await.unwrap();
    let InstanceAnswer::Absent(proof) = answer else {
        panic!("{answer:?}")
    };
    assert!(proof.to_string().contains("404"));
    let entries = world.sim.journal().entries();
    let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/v1/servers/6f9619ff-8b86-d011-b42d-00cf4fc964ff", "/v1/servers"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_at_which_nothing_is_found_proves_nothing() {
    let world = World::new();
    let node = with_id("a", "cloudscale://6f9619ff-8b86-d011-b42d-00cf4fc964ff");
    let nothing = Canned::json(404, r#"{"detail": "Not found."}"#);
    world.sim.faults().add(Fault::any().always().answer(nothing));
    let error = ask_one(&world, &node, Purpose::Existence).await.unwrap_err();
    assert!(
        error.to_string().starts_with("unable to find node a: "),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_or_not_readable_costs_no_call() {
    let world = World::new();
    let answer = ask_one(&world, &with_id("a", "aws:///eu/i-123"), Purpose::Existence).await;
    assert_eq!(answer.unwrap(), InstanceAnswer::Foreign);
    let error = ask_one(&world, &with_id("a", "cloudscale://x"), Purpose::Existence)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cloudscale://x is not a valid cloudscale provider id: bad providerID (no uuid at end): cloudscale://x"));
    let error = ask_one(&world, &unnamed("a"), Purpose::Existence)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "node a has no ProviderID");
    assert!(world.sim.journal().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_a_stopped_server_is_off() {
    let mut world = World::new();
    let server = world.add_node("a");
    for (status, power) in [
        (ServerStatus::Running, PowerState::On),
        (ServerStatus::Changing, PowerState::On),
        (ServerStatus::Stopped, PowerState::Off),
    ] {
        world.sim.set_server_status(server, status);
        assert_eq!(
            present(ask_one(&world, &world.nodes[0], Purpose::Existence).await).power,
            power
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_api_is_an_error_and_never_an_absence() {
    let mut world = World::new();
    world.add_node("a");
    world.sim.faults().add(Fault::any().always().status(500));
    let error = ask_one(&world, &world.nodes[0], Purpose::Existence)
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("unable to find node a: "));
    world.sim.faults().clear();
    world.sim.faults().add(Fault::any().always().html(404));
    assert!(
        ask_one(&world, &world.nodes[0], Purpose::Existence)
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_costs_one_listing_and_a_call_per_miss_that_needs_proof() {
    let mut world = World::new();
    for index in 0..50 {
        world.add_node(&format!("n{index}"));
    }
    let queries: Vec<InstanceQuery> = world
        .nodes
        .iter()
        .map(|node| query(node, Purpose::Existence))
        .collect();
    let (answers, reads, _) = world.calls_of(ask(&world, &queries)).await;
    assert!(
        answers
            .into_iter()
            .all(|answer| matches!(answer, Ok(InstanceAnswer::Present(_))))
    );
    assert_eq!(reads, 1);
    world.sim.remove_server(world.sim.servers()[3].uuid);
    let (answers, reads, _) = world.calls_of(ask(&world, &queries)).await;
    assert!(matches!(answers[3], Ok(InstanceAnswer::Absent(_))));
    assert_eq!(reads, 2);
}

#[tokio::test(start_paused = true)]
async fn a_sighting_never_asks_for_a_single_server() {
    let mut world = World::new();
    let server = world.add_node("a");
    present(ask_one(&world, &world.nodes[0], Purpose::CredentialCheck).await);
    world.sim.remove_server(server);
    let error = ask_one(&world, &world.nodes[0], Purpose::CredentialCheck)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(world.sim.journal().count(http::Method::GET, "/v1/servers/*"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_spells_its_server_in_another_way_names_no_other_server() {
    let world = World::new();
    let server = world.sim.add_server(ServerSpec::new("n1"));
    let other = world.sim.add_server(ServerSpec::new("n2"));
    let spellings = [
        format!("cloudscale://{}", server.to_string().to_uppercase()),
        format!("cloudscale://{{{server}}}"),
        format!("cloudscale:// {} ", server.simple()),
    ];
    for text in spellings {
        let node = with_id("n1", &text);
        let alone = present(ask_one(&world, &node, Purpose::Metadata).await);
        let beside = [node, with_id("n2", &format!("cloudscale://{other}"))];
        let queries = beside.map(|node| query(&node, Purpose::Metadata));
        let listed = present(ask(&world, &queries).await.remove(0));
        for found in [alone, listed] {
            assert_eq!(found.metadata.provider_id.as_ref(), Some(&text));
        }
    }
}
