//! Calls to the cloud that fail, or are refused.

use super::*;

#[tokio::test(start_paused = true)]
async fn another_error_is_another_event() {
    let (cluster, table) = start(PERIODIC);
    table.fail("create", Some(CloudError::other("quota exceeded")));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.pass(SECOND * 60).await;
    table.fail("create", Some(CloudError::new(ErrorKind::Denied, "denied")));
    cluster.pass(SECOND * 60).await;
    let texts: Vec<bool> = cluster
        .events("n1")
        .iter()
        .map(|(text, _)| text.ends_with(": denied"))
        .collect();
    assert_eq!(texts, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_changes_nothing_and_is_tried_again() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        table.put("gone", "10.200.9.0/24", true);
        table.fail("list", Some(CloudError::transient("bad gateway")));
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster.pass(SECOND * 120).await;
        assert!(table.writes().is_empty() && cluster.writes() == 0);
        assert!(table.lists() <= 16, "{}", table.lists());
        table.fail("list", None);
        cluster
            .within(SECOND * 60, "routed", |c| is_routed(c, "n1"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_that_the_cloud_states_is_kept() {
    let (cluster, table) = start(PERIODIC);
    let after = SECOND * 45;
    table.fail(
        "create",
        Some(CloudError::new(ErrorKind::Throttled { after }, "slow down")),
    );
    cluster.put(node("n1", &["10.200.1.0/24"]));
    not_routed(&cluster, "n1").await;
    table.fail("create", None);
    cluster
        .within(SECOND * 50, "routed", |c| is_routed(c, "n1"))
        .await;
    let calls = table.calls("create");
    assert_eq!(calls.len(), 2);
    assert!(calls[1].at - calls[0].at >= after);
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_refuses_is_held_back_until_the_node_changes() {
    for kind in [ErrorKind::Conflict, ErrorKind::Invalid, ErrorKind::Exhausted] {
        let (cluster, table) = start(PERIODIC);
        table.fail("create", Some(CloudError::new(kind, "no")));
        table.put("gone", "10.200.9.0/24", true);
        table.fail("delete", Some(CloudError::new(kind, "no")));
        cluster.put(node("n1", &["10.200.1.0/24"]));
        not_routed(&cluster, "n1").await;
        cluster.pass(SECOND * 600).await;
        // At once, then 5, 10, 20 ... 320 s later.
        for begin in ["create", "delete"] {
            assert_eq!(table.calls(begin).len(), 7, "{kind:?} {begin}");
        }
        table.fail("create", None);
        cluster.edit("n1", |node| {
            node["status"]["addresses"][0]["address"] = json!("10.1.0.9");
        });
        cluster.soon("routed", |c| is_routed(c, "n1")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_route_that_goes_makes_room_for_those_that_were_refused_for_want_of_it() {
    for (kind, is_made) in [(ErrorKind::Exhausted, true), (ErrorKind::Invalid, false)] {
        let (cluster, table) = start(PERIODIC);
        put_routed(&cluster).await;
        table.fail("create", Some(CloudError::new(kind, "no more")));
        cluster.put(node("n2", &["10.200.2.0/24"]));
        not_routed(&cluster, "n2").await;
        // The next try is 320 s after that at 315 s.
        cluster.pass(SECOND * 330).await;
        table.fail("create", None);
        cluster.delete("n1");
        cluster.pass(SECOND * 30).await;
        assert_eq!(
            is_routed(&cluster, "n2"),
            is_made,
            "{kind:?}: {:?}",
            table.routes()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_with_one_pod_network_one_gets_the_route_and_both_are_told() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        cluster.put(node("n2", &["10.200.1.0/24"]));
        routed(&cluster, "n2").await;
        cluster.put(node("n1", &["10.200.1.2/24"]));
        not_routed(&cluster, "n1").await;
        cluster.pass(SECOND * 600).await;
        assert_eq!(table.writes().len(), 1, "{:?}", table.writes());
        for (name, other) in [("n1", "n2"), ("n2", "n1")] {
            let events = cluster.events(name);
            let told = format!(
                "Warning PodNetworkShared: The pod network 10.200.1.0/24 has addresses in common with that of node {other}:"
            );
            assert!(events.len() == 1 && events[0].0.starts_with(&told), "{events:?}");
        }
        cluster.delete("n2");
        routed(&cluster, "n1").await;
        assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    }
}
