//! Nodes and the settings that they depend on.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_node_joins_by_its_name_in_any_case() {
    let world = idle().await;
    let id = world.sim.add_server(ServerSpec {
        instance_type: Some("s3.c3.large".into()),
        private_addresses: Some(vec!["10.9.0.3".into()]),
        public_addresses: Some(vec!["192.0.2.71".into(), "2001:db8:7::71".into()]),
        ..ServerSpec::new("Worker-NLD-03")
    });
    let begun = world.since();
    world.apply(tainted_node("worker-nld-03"));
    world
        .until("it joins", |w| w.is_initialized("worker-nld-03"))
        .await;
    world.rest().await;
    assert_eq!(calls(&world, begun), ["servers.list"]);
    let node = world.node("worker-nld-03").unwrap();
    assert_eq!(node["spec"]["providerID"], format!("phoenixnap://{id}"));
    assert_eq!(
        node["status"]["addresses"],
        json!([
            { "type": "Hostname", "address": "Worker-NLD-03" },
            { "type": "ExternalIP", "address": "192.0.2.71" },
            { "type": "ExternalIP", "address": "2001:db8:7::71" },
            { "type": "InternalIP", "address": "10.9.0.3" },
        ])
    );
    let labels = node["metadata"]["labels"].as_object().unwrap();
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "s3.c3.large"),
        ("beta.kubernetes.io/instance-type", "s3.c3.large"),
        ("topology.kubernetes.io/region", "NLD"),
        ("failure-domain.beta.kubernetes.io/region", "NLD"),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    assert!(!labels.keys().any(|key| key.ends_with("/zone")), "{labels:?}");
    assert_eq!(node["metadata"]["annotations"]["phoenixnap.com/server-id"], id);
}

#[tokio::test(start_paused = true)]
async fn a_bare_server_id_is_a_provider_id_like_any_other() {
    let world = idle().await;
    let id = world.sim.add_server(ServerSpec::new("bare"));
    let mut node = tainted_node("other-name");
    node["spec"]["providerID"] = json!(id);
    world.apply(node);
    world.until("it joins", |w| w.is_initialized("other-name")).await;
    world.pass(SECOND * 700).await;
    assert_eq!(world.node("other-name").unwrap()["spec"]["providerID"], json!(id));
    assert_eq!(world.reasons("other-name"), ["Synced"]);
    world.sim.add_server(ServerSpec::new("last"));
    world.sim.remove_server(&id);
    world.set_ready("other-name", "Unknown");
    world.until("it goes", |w| w.node("other-name").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn a_private_server_joins_and_one_without_private_addresses_does_not() {
    let world = idle().await;
    world.sim.add_server(ServerSpec {
        public_addresses: Some(Vec::new()),
        ..ServerSpec::new("quiet")
    });
    world.sim.add_server(ServerSpec {
        private_addresses: Some(vec![]),
        ..ServerSpec::new("loud")
    });
    world.apply(tainted_node("quiet"));
    world.apply(tainted_node("loud"));
    world.until("it joins", |w| w.is_initialized("quiet")).await;
    let addresses = world.node("quiet").unwrap()["status"]["addresses"].to_string();
    assert!(!addresses.contains("ExternalIP"), "{addresses}");
    world.pass(SECOND * 30).await;
    assert!(!world.is_initialized("loud"));
    let event = last_event(&world, "loud");
    assert!(event.contains("no private IP address"), "{event}");
}

#[tokio::test(start_paused = true)]
async fn of_two_servers_with_the_name_none_is_guessed() {
    let world = idle().await;
    let ids = [(); 2].map(|()| world.sim.add_server(ServerSpec::new("db")));
    world.apply(tainted_node("db"));
    world.pass(SECOND * 30).await;
    assert!(!world.is_initialized("db"));
    let event = last_event(&world, "db");
    assert!(ids.iter().all(|id| event.contains(id)), "{event}");
    world.sim.set_server_status(&ids[0], ServerStatus::Deleting);
    world.until("it joins", |w| w.is_initialized("db")).await;
    let node = world.node("db").unwrap();
    assert_eq!(node["spec"]["providerID"], format!("phoenixnap://{}", ids[1]));
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_whose_server_is_denied_and_not_listed() {
    let world = World::with_nodes(2).await;
    world.add_node("w9");
    world.rest().await;
    world.sim.remove_machine("w9");
    world.set_ready("w9", "Unknown");
    let took = world.until("it goes", |w| w.node("w9").is_none()).await;
    assert!(took < SECOND * 10, "{took:?}");
    assert_eq!(world.api.objects("Node").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn of_a_cluster_whose_servers_are_all_denied_and_not_listed_no_node_goes() {
    let world = World::with_nodes(3).await;
    for node in ["n1", "n2", "n3"] {
        world.sim.remove_machine(node);
        world.set_ready(node, "Unknown");
    }
    world.pass(SECOND * 900).await;
    assert_eq!(world.api.objects("Node").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn rights_that_were_lost_delete_no_node() {
    let world = World::with_nodes(30).await;
    let fault = world
        .cloud()
        .faults()
        .add(Fault::path("/bmc/v1/**").always().status(403));
    for index in 1..=30 {
        world.set_ready(&format!("n{index}"), "Unknown");
    }
    // The distance between two questions grows to a minute.
    world.pass(SECOND * 600).await;
    assert!(world.cloud().faults().struck(fault) >= 10, "it never asked");
    assert_eq!(world.api.objects("Node").len(), 30);
}

#[tokio::test(start_paused = true)]
async fn only_a_powered_off_server_is_shut_down() {
    let world = World::with_nodes(2).await;
    let id = world.sim.servers()[0].id.clone();
    world.set_ready("n1", "Unknown");
    for status in [
        ServerStatus::Error,
        ServerStatus::Reserved,
        ServerStatus::Rebooting,
        ServerStatus::Reinstating,
        ServerStatus::Other("frozen".to_owned()),
    ] {
        world.sim.set_server_status(&id, status.clone());
        world.pass(SECOND * 20).await;
        assert_eq!(world.taints("n1"), Vec::<String>::new(), "{status:?}");
    }
    world.sim.set_server_status(&id, ServerStatus::PoweredOff);
    let took = world
        .until("the taint", |w| w.taints("n1").contains(&SHUTDOWN.to_owned()))
        .await;
    assert!(took <= SECOND * 60, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn fifty_nodes_among_five_hundred_servers_cost_as_many_lists_as_one_node() {
    let cost = async |nodes: usize| {
        let mut world = World::new();
        world.sim.add_servers("other", 500);
        for index in 0..nodes {
            world.join(&format!("n{index}"));
        }
        let begun = world.since();
        world.start();
        world
            .until("all join", |w| {
                (0..nodes).all(|i| w.is_initialized(&format!("n{i}")))
            })
            .await;
        calls(&world, begun)
    };
    let (one, fifty) = (cost(1).await, cost(50).await);
    assert!(
        fifty.len() <= one.len() + 1 && fifty.len() <= 3,
        "{one:?} {fifty:?}"
    );
    assert!(fifty.iter().all(|call| call == "servers.list"), "{fifty:?}");
}
