//! Services and the blocks that are bought for them.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_first_service_costs_nine_calls_and_the_second_three() {
    let world = idle().await;
    let begun = world.since();
    world.apply(web());
    world.settled("web").await;
    let mut expected = vec!["ip-blocks.list", "tags.list"];
    expected.extend(["tags.create"; 5]);
    expected.extend(["ip-blocks.create", "public-networks.attach"]);
    assert_eq!(calls(&world, begun), expected);
    assert_eq!(field(&world, "web"), json!(world.addresses("web")[0]));
    world.assert_served();

    let begun = world.since();
    world.apply(service("search", &[("", 80, 30080)]));
    world.settled("search").await;
    assert_eq!(
        calls(&world, begun),
        ["ip-blocks.list", "ip-blocks.create", "public-networks.attach"]
    );
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_service_without_location_says_so_and_is_served_when_it_has_one() {
    let mut world = world_with(&[("PNAP_LOCATION", "")]);
    world.start();
    world.rest().await;
    world.apply(web());
    world.pass(SECOND * 30).await;
    let event = last_event(&world, "web");
    for word in ["PNAP_LOCATION", "phoenixnap.com/ip-location"] {
        assert!(event.contains(word), "{event}");
    }
    assert!(world.sim.blocks().is_empty() && world.sim.tags().is_empty());
    world.edit_service("web", |it| {
        it["metadata"]["annotations"]["phoenixnap.com/ip-location"] = json!("NLD");
    });
    world.settled("web").await;
    world.assert_served();
}

const PLACE: [&str; 2] = ["PNAP_LOCATION", "PNAP_LOAD_BALANCER"];

/// The Service `web` with annotations, served by a manager around this cloud.
async fn served(sim: Phoenixnap, annotations: &Value) -> World {
    let mut world = World::over(sim, 7);
    world.start();
    world.rest().await;
    let mut service = web();
    service["metadata"]["annotations"] = annotations.clone();
    world.apply(service);
    world.settled("web").await;
    world
}

/// Where the one block was bought, and the network that it is on.
fn place(world: &World) -> (String, Option<String>) {
    let blocks = world.sim.blocks();
    assert_eq!(blocks.len(), 1);
    let assignment = blocks[0].assignment.clone();
    (
        blocks[0].location.clone(),
        assignment.and_then(|it| it.resource_id),
    )
}

#[tokio::test(start_paused = true)]
async fn the_file_gives_the_location_annotation_another_name() {
    let mut sim = Phoenixnap::new(7);
    let network = sim.add_network(NetworkSpec::located("AUS", "aus"));
    let file = json!({
        "annotationIPLocation": "acme.io/site",
        "loadbalancer": format!("kube-vip://{network}"),
    });
    sim.set_file(&file, &PLACE);
    let annotations = json!({ "acme.io/site": "AUS", "phoenixnap.com/ip-location": "PHX" });
    let world = served(sim, &annotations).await;
    assert_eq!(place(&world), ("AUS".to_owned(), Some(network)));
}

#[tokio::test(start_paused = true)]
async fn the_environment_beats_the_file() {
    let mut sim = Phoenixnap::new(7);
    let [a, b] = ["CHI", "AUS"].map(|it| sim.add_network(NetworkSpec::located(it, it)));
    // No other client than this one gets a token.
    sim.set_credentials("e", Phoenixnap::SECRET, Scope::ALL);
    let file = json!({
        "clientID": "f",
        "clientSecret": Phoenixnap::SECRET,
        "location": "CHI",
        "loadbalancer": format!("kube-vip://{a}"),
    });
    sim.set_file(&file, &["PNAP_CLIENT_SECRET"]);
    sim.set("PNAP_CLIENT_ID", "e");
    sim.set("PNAP_LOCATION", "AUS");
    sim.set("PNAP_LOAD_BALANCER", &format!("kube-vip://{b}"));
    let world = served(sim, &json!({})).await;
    assert_eq!(place(&world), ("AUS".to_owned(), Some(b)));
}

#[tokio::test(start_paused = true)]
async fn an_empty_variable_does_not_blank_out_the_file() {
    let mut sim = Phoenixnap::new(7);
    let network = sim.add_network(NetworkSpec::located("SGP", "sgp"));
    let file = json!({ "location": "SGP", "loadbalancer": format!("kube-vip://{network}") });
    sim.set_file(&file, &PLACE);
    sim.set("PNAP_LOCATION", "");
    let world = served(sim, &json!({})).await;
    assert_eq!(place(&world), ("SGP".to_owned(), Some(network)));
}

#[tokio::test(start_paused = true)]
async fn two_at_once_on_a_busy_network_both_get_their_block() {
    let world = idle().await;
    world.sim.set_behaviour(|it| it.attach_time = SECOND * 20);
    let names = ["one", "two"];
    for (name, port) in names.into_iter().zip([30080, 30081]) {
        world.apply(service(name, &[("", 80, port)]));
    }
    let took = world
        .until("both addresses", |w| {
            names.iter().all(|name| !w.addresses(name).is_empty())
        })
        .await;
    assert!(took < SECOND * 120, "{took:?}");
    world.pass(SECOND * 30).await;
    let blocks = world.sim.blocks();
    assert_eq!(blocks.len(), 2);
    assert!(blocks.iter().all(|block| block.status == BlockStatus::Assigned));
    let accepted = world
        .cloud()
        .journal()
        .filter(|entry| entry.operation == "public-networks.attach" && entry.status() == Some(202));
    assert_eq!(accepted.len(), 2, "none is attached twice");
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_failed_is_made_good_within_a_minute() {
    let world = idle().await;
    world.sim.set_behaviour(|it| {
        it.attach_time = SECOND * 5;
        it.failing_attachments = 1;
    });
    world.apply(web());
    let took = world
        .until("it is attached", |w| {
            w.sim
                .blocks()
                .iter()
                .any(|block| block.status == BlockStatus::Assigned)
        })
        .await;
    assert!(took <= SECOND * 65, "{took:?}");
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_preset_address_buys_nothing_and_a_cleared_one_a_block() {
    let world = idle().await;
    let mut preset = web();
    preset["spec"]["loadBalancerIP"] = json!("203.0.113.200");
    world.apply(preset.clone());
    world.pass(SECOND * 30).await;
    let event = last_event(&world, "web");
    assert!(
        event.contains("203.0.113.200") && event.contains("clear the field"),
        "{event}"
    );
    assert!(world.sim.blocks().is_empty() && world.sim.tags().is_empty());
    assert_eq!(field(&world, "web"), "203.0.113.200");
    world.delete_service("web");
    let took = world.until("it is gone", |w| w.service("web").is_none()).await;
    assert!(took < SECOND, "{took:?}");

    world.apply(preset);
    world.pass(SECOND * 30).await;
    world.edit_service("web", |it| it["spec"]["loadBalancerIP"] = Value::Null);
    world.settled("web").await;
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn another_address_of_the_own_block_is_kept() {
    let world = settled().await;
    let third: std::net::Ipv4Addr = world.addresses("web")[0].parse().unwrap();
    let other = std::net::Ipv4Addr::from_bits(third.to_bits() + 2).to_string();
    world.edit_service("web", |it| it["spec"]["loadBalancerIP"] = json!(other));
    world
        .until("the status follows", |w| w.addresses("web") == [other.as_str()])
        .await;
    world.rest().await;
    assert_eq!(field(&world, "web"), json!(other));
    assert_eq!(world.sim.blocks().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_block_on_a_former_network_is_told_of_and_released_from_there() {
    let mut world = settled().await;
    let other = world.sim.add_network(NetworkSpec::new("new"));
    world.kill().await;
    world
        .sim
        .set("PNAP_LOAD_BALANCER", &format!("kube-vip://{other}"));
    let before = world.sim.state();
    world.start();
    world.pass(SECOND * 60).await;
    let event = last_event(&world, "web");
    assert!(event.contains(NETWORK) && event.contains(&other), "{event}");
    assert_eq!(world.sim.state(), before);
    let begun = world.since();
    world.delete_service("web");
    world.gone("web").await;
    let detached = world.calls(begun);
    let detached: Vec<_> = detached
        .iter()
        .filter(|call| call.operation == "public-networks.detach")
        .collect();
    assert!(
        detached.len() == 1 && detached[0].path.contains(NETWORK),
        "{detached:?}"
    );
    assert!(world.sim.blocks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_type_serves_nodes_and_costs_services_no_call() {
    let mut world = world_with(&[("PNAP_LOAD_BALANCER", "metallb://abc")]);
    world.join("n1");
    world.start();
    world.until("it joins", |w| w.is_initialized("n1")).await;
    world.rest().await;
    let mark = world.cloud().journal().mark();
    world.apply(web());
    world.pass(SECOND * 120).await;
    assert_eq!(world.cloud().journal().since(mark).len(), 0);
    assert!(!world.has_finalizer("web"));
}

#[tokio::test(start_paused = true)]
async fn what_the_api_says_about_a_sold_out_pool_is_in_the_event() {
    let world = idle().await;
    world.sim.set_behaviour(|it| it.quota.blocks = Some(0));
    let begun = world.since();
    world.apply(web());
    world.pass(SECOND * 60).await;
    let refused = world
        .cloud()
        .journal()
        .filter(|entry| entry.status() == Some(406));
    assert!((3..=5).contains(&refused.len()), "{} tries", refused.len());
    let event = last_event(&world, "web");
    assert!(event.contains("406"), "{event}");
    assert!(!calls(&world, begun).contains(&"public-networks.attach".to_owned()));
    world.sim.set_behaviour(|it| it.quota.blocks = None);
    world.settled("web").await;
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_new_node_is_told_to_services_and_costs_them_no_call() {
    let world = World::with_nodes(2).await;
    for (name, port) in ["a", "b", "c"].into_iter().zip(30080..) {
        world.apply(service(name, &[("", 80, port)]));
        world.settled(name).await;
    }
    let id = world.sim.add_server(ServerSpec::new("late"));
    let begun = world.since();
    let mut node = tainted_node("late");
    node["spec"] = json!({ "taints": [], "providerID": format!("phoenixnap://{id}") });
    world.apply(node);
    world.pass(SECOND * 10).await;
    for name in ["a", "b", "c"] {
        assert!(last_event(&world, name).contains("Updated load balancer with new hosts"));
    }
    let late = world.node("late").unwrap();
    assert_eq!(late["metadata"]["annotations"]["phoenixnap.com/server-id"], id);
    world.pass(SECOND * 190).await;
    let of_blocks = calls(&world, begun);
    assert!(
        !of_blocks.iter().any(|call| !call.starts_with("servers.")),
        "{of_blocks:?}"
    );
    for name in ["a", "b", "c"] {
        assert!(
            !world
                .reasons(name)
                .contains(&"UpdateLoadBalancerFailed".to_owned())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_kube_vip_wrote_into_the_status_stays() {
    let world = settled().await;
    let address = world.addresses("web")[0].clone();
    let completed = json!([{
        "ip": address, "ipMode": "VIP",
        "ports": [{ "port": 8080, "protocol": "TCP" }, { "port": 9000, "protocol": "TCP" }],
    }]);
    world.edit_service("web", |it| {
        it["status"]["loadBalancer"]["ingress"] = completed.clone()
    });
    world.rest().await;
    let begun = world.since();
    world.annotate_idly("web");
    world.rest().await;
    assert_eq!(calls(&world, begun), ["ip-blocks.list"]);
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
    assert_eq!(
        world.service("web").unwrap()["status"]["loadBalancer"]["ingress"],
        completed
    );
}
