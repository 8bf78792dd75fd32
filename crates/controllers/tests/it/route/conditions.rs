//! The condition `NetworkUnavailable`.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_condition_is_written_again_until_it_is_there() {
    for (status, times) in [
        (Status::new(403, "Forbidden", "no"), 3),
        (Status::new(409, "Conflict", "the object has been modified"), 6),
    ] {
        let (cluster, _table) = start(RouteTiming::WatchBased);
        cluster.api.faults().fail_next(times, "patch", "nodes", status);
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster
            .within(SECOND * 60, "routed", |c| is_routed(c, "n1"))
            .await;
        assert_eq!(cluster.writes(), 1 + times as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_busy_for_minutes_does_not_have_the_routes_listed_each_second() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    let fault = Fault::new(Effect::Answer(Status::too_many_requests(1)));
    cluster.inject(fault.verb("patch").resource("nodes"));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.pass(SECOND * 200).await;
    assert!(table.lists() <= 10, "{}", table.lists());
    cluster.api.faults().clear();
    cluster
        .within(SECOND * 51, "routed", |c| is_routed(c, "n1"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn who_sets_the_condition_too_is_named_and_met_less_and_less_often() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, _table) = start(timing);
        for name in ["n1", "n2"] {
            cluster.put(node(name, &[&format!("10.200.{}.0/24", &name[1..])]));
        }
        cluster
            .within(WITHIN, "routed", |c| is_routed(c, "n1") && is_routed(c, "n2"))
            .await;
        let begun = Instant::now();
        while begun.elapsed() < SECOND * 1200 {
            if is_routed(&cluster, "n1") {
                cluster.edit("n1", |node| {
                    let condition = &mut node["status"]["conditions"][0];
                    (condition["reason"], condition["message"]) = (json!("CiliumIsUp"), json!("up"));
                });
            }
            cluster.edit("n1", |node| {
                node["status"]["addresses"][0]["address"] =
                    json!(format!("10.1.0.{}", begun.elapsed().as_secs() % 200));
            });
            cluster.pass(SECOND).await;
        }
        // Two at first, five at once, then after 5, 10, 20, 40, 80, 160, 300 and 300 s.
        let writes = cluster.writes();
        assert!((13..=16).contains(&writes), "{writes} {timing:?}");
        assert_eq!(cluster.count_events("ChangedBack"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_says_so_already_is_not_written() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    table.put("n1", "10.200.1.0/24", false);
    let mut known = node("n1", &["10.200.1.0/24"]);
    known["status"]["conditions"] = json!([{
        "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "in other words",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }]);
    cluster.put(known);
    cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster.pass(SECOND * 30).await;
    assert!(cluster.writes() == 0 && table.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_created_again_under_its_name_gets_its_own_condition() {
    let (cluster, table) = start(PERIODIC);
    put_routed(&cluster).await;
    cluster.delete("n1");
    cluster.put(node("n1", &["10.200.1.0/24"]));
    assert_eq!(condition(&cluster, "n1"), None);
    routed(&cluster, "n1").await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
}
