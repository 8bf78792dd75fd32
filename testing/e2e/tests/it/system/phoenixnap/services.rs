//! Nodes, Services, and the blocks that come and go with them.

use super::*;

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
async fn a_new_node_is_told_to_services_and_costs_them_no_call() {
    let world = World::with_nodes(2).await;
    for (name, port) in ["a", "b", "c"].into_iter().zip(30080..) {
        world.apply(service(name, &[("", 80, port)]));
        world.settled(name).await;
    }
    world.pass(SECOND * 30).await; // with the second look at what was attached
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
    world.pass(SECOND * 30).await; // with the second look at what was attached
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

#[tokio::test(start_paused = true)]
async fn five_at_once_are_gone_in_time_and_nothing_is_refused() {
    let world = idle().await;
    let names: Vec<String> = (0..5).map(|index| format!("s{index}")).collect();
    for (name, port) in names.iter().zip(30080..) {
        world.apply(service(name, &[("", 80, port)]));
    }
    world
        .until("all addresses", |w| {
            names.iter().all(|name| !w.addresses(name).is_empty())
        })
        .await;
    world.rest().await;
    world.sim.set_behaviour(|it| it.detach_time = SECOND * 5);
    let mark = world.cloud().journal().mark();
    for name in &names {
        world.delete_service(name);
    }
    let took = world
        .until("all blocks are gone", |w| w.sim.blocks().is_empty())
        .await;
    assert!(took < SECOND * 100, "{took:?}");
    for entry in world.cloud().journal().since(mark) {
        assert!(entry.status().is_some_and(|status| status < 300), "{entry:?}");
    }
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn an_idle_sweeper_lists_twice_a_minute_and_nothing_else() {
    let world = settled().await;
    world.pass(SECOND * 45).await;
    let mark = world.cloud().journal().mark();
    world.pass(SECOND * 590).await;
    let calls = world.cloud().journal().since(mark);
    let of_cluster = calls
        .iter()
        .filter(|call| call.operation == "ip-blocks.list" && call.query.len() == 2);
    assert!((19..=20).contains(&of_cluster.count()), "{calls:#?}");
    assert!(calls.iter().all(|call| !call.write), "{calls:#?}");
}
