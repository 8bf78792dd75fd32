//! What happens to a Node while it is initialised, and what a slow API server makes of that.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_node_that_changes_meanwhile_is_read_again_and_keeps_the_others_change() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.instances.latency(SECOND);
    cluster.inject(
        // The taint patch is late, and somebody adds a taint before it arrives.
        node_patch(Effect::Delay(SECOND)).subresource("").times(1),
    );
    cluster.put(new_node("n1"));
    cluster
        .soon("the addresses", |c| !c.addresses("n1").is_empty())
        .await;
    cluster.edit("n1", |node| {
        let taints = node["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({"key": "late", "effect": "NoExecute"}));
    });
    cluster.initialized("n1").await;
    assert_eq!(cluster.taints("n1"), ["late"]);
    let conflicts = cluster
        .node_writes()
        .iter()
        .filter(|write| write.status == 409)
        .count();
    assert_eq!(conflicts, 1);
    assert_eq!(cluster.asked("n1"), 1, "no second question");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tainted_anew_while_the_watch_is_away_is_initialised_again() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.instances.latency(SECOND);
    cluster.put(new_node("n1"));
    cluster.initialized("n1").await;
    cluster.pass(SECOND * 5).await;
    // But for the taint, the Node is already as it will be.
    let taint = |cluster: &Cluster| {
        let taints = new_node("n1")["spec"]["taints"].clone();
        cluster.edit("n1", |node| node["spec"]["taints"] = taints);
    };
    taint(&cluster);
    cluster.soon("asked", |c| c.asked("n1") == 2).await;
    // The watch sees neither how the taint goes nor how it comes back, only the Node as it is then.
    for verb in ["list", "watch"] {
        let away = Fault::new(Effect::Delay(SECOND * 20))
            .verb(verb)
            .resource("nodes");
        cluster.inject(away.times(1));
    }
    cluster.api.close_watches();
    cluster.initialized("n1").await;
    taint(&cluster);
    cluster.api.compact();
    cluster.pass(SECOND * 60).await;
    assert_eq!(cluster.taints("n1"), Vec::<String>::new());
    assert_eq!(cluster.asked("n1"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_somebody_adds_before_the_addresses_arrive_is_kept() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.inject(node_patch(Effect::Delay(SECOND)).subresource("status").times(1));
    cluster.put(new_node("n1"));
    cluster.soon("asked", |c| c.questions() > 0).await;
    cluster.edit("n1", |node| {
        let taints = node["spec"]["taints"].as_array_mut().unwrap();
        taints.push(json!({"key": "late", "effect": "NoExecute"}));
    });
    cluster.initialized("n1").await;
    assert_eq!(cluster.taints("n1"), ["late"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_anew_under_the_same_name_is_not_written_to_by_the_old_answer() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.instances.latency(SECOND);
    cluster.put(new_node("n1"));
    cluster.soon("asked", |c| c.questions() == 1).await;
    cluster.delete("n1");
    cluster.put(new_node("n1"));
    cluster.pass(SECOND).await;
    assert!(cluster.writes() == 0);
    cluster.initialized("n1").await;
    assert_eq!(cluster.asked("n1"), 2);
}

#[tokio::test(start_paused = true)]
async fn stopped_between_its_two_writes_the_next_run_finishes_and_repeats_none() {
    let cluster = cluster();
    cluster.instances.run("n1", metadata(&["10.1.0.1"]));
    cluster.inject(node_patch(Effect::Delay(SECOND)).subresource("").times(1));
    cluster.put(new_node("n1"));
    cluster
        .soon("the addresses", |c| !c.addresses("n1").is_empty())
        .await;
    let cluster = cluster.after_a_crash();
    cluster.pass(SECOND * 2).await;
    assert!(!cluster.is_initialized("n1"), "the second write was never made");
    let cluster = cluster.with_node_loop(NodeSettings::default());
    cluster.initialized("n1").await;
    let of_addresses = cluster
        .api
        .journal()
        .matching(|e| e.verb == "patch" && e.subresource == "status");
    assert_eq!(of_addresses.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_no_failure() {
    for subresource in ["status", ""] {
        let cluster = cluster();
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster.inject(node_patch(Effect::DropAfter).subresource(subresource).times(1));
        cluster.put(new_node("n1"));
        cluster.initialized("n1").await;
        cluster.soon("the event", |c| c.count_events("Synced") == 1).await;
        cluster.pass(SECOND * 10).await;
        assert_eq!(cluster.count_events("NodeInitFailed"), 0);
        assert_eq!(cluster.questions(), 1, "{subresource:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_nodes_at_a_slow_api_server_do_not_look_stuck() {
    let cluster = Cluster::new();
    cluster.slow_writes();
    for n in 0..350 {
        let name = format!("n{n:03}");
        cluster.begin(&name);
        let mut labelled = node_of(&format!("l{n:03}"), Some("True"));
        labelled["metadata"]["labels"] = json!({"failure-domain.beta.kubernetes.io/zone": "z1"});
        cluster.put(labelled);
    }
    let cluster = cluster.with_node_loop(NodeSettings::default());
    let took = cluster
        .without_a_stall(|c| {
            (0..350).all(|n| {
                c.is_initialized(&format!("n{n:03}")) && c.label(&format!("l{n:03}"), ZONE).is_some()
            })
        })
        .await;
    assert!(took > SECOND * 600, "{took:?} is no test");
}

#[tokio::test(start_paused = true)]
async fn many_nodes_whose_writes_hang_do_not_look_stuck() {
    let cluster = Cluster::new();
    let hangs = node_patch(Effect::Silence);
    cluster.inject(hangs);
    for n in 0..40 {
        let name = format!("n{n:02}");
        cluster.begin(&name);
    }
    let cluster = cluster.with_node_loop(NodeSettings::default());
    let begun = Instant::now();
    cluster.without_a_stall(|_| begun.elapsed() > SECOND * 3600).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_or_kept_of_a_node_that_goes_while_its_cloud_is_asked() {
    for outage in [Some(CloudError::transient("bad gateway")), None] {
        let cluster = cluster();
        cluster.instances.run("n1", metadata(&["10.1.0.1"]));
        cluster.instances.latency(SECOND * 5);
        cluster.outage(outage);
        cluster.put(new_node("n1"));
        cluster.soon("asked", |c| c.asked("n1") == 1).await;
        cluster.delete("n1");
        cluster.pass(SECOND * 600).await;
        assert_eq!(cluster.asked("n1"), 1);
        assert!(cluster.events("n1").is_empty(), "{:?}", cluster.events("n1"));
    }
}
