//! When the routes are listed, and what a slow API server makes of that.

use super::*;

#[tokio::test(start_paused = true)]
async fn one_list_per_period_is_all_that_a_quiet_cluster_costs() {
    let (cluster, table) = start(PERIODIC);
    for n in 0..40 {
        cluster.put(node(&format!("n{n}"), &[&format!("10.200.{n}.0/24")]));
    }
    cluster
        .within(WITHIN, "all routed", |c| {
            (0..40).all(|n| is_routed(c, &format!("n{n}")))
        })
        .await;
    let (lists, writes, conditions, passes) = (
        table.lists(),
        table.writes().len(),
        cluster.writes(),
        syncs(&cluster),
    );
    assert_eq!((writes, conditions), (40, 40));
    cluster.pass(SECOND * 600).await;
    assert_eq!(table.lists() - lists, 60);
    assert_eq!(syncs(&cluster) - passes, 60, "operators watch the rate of passes");
    assert_eq!((table.writes().len(), cluster.writes()), (writes, conditions));
    assert!(cluster.stalled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn with_the_gate_a_quiet_cluster_costs_no_list() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    for n in 0..5 {
        let (name, network) = (format!("n{n}"), format!("10.200.{n}.0/24"));
        table.put(&name, &network, false);
        cluster.put(node(&name, &[&network]));
    }
    cluster.start_route_loop(&table, &settings(RouteTiming::WatchBased));
    cluster.pass(SECOND * 15).await;
    let lists = table.lists();
    assert!((1..=2).contains(&lists), "{lists}");
    cluster.pass(SECOND * 60).await;
    assert_eq!(table.lists(), lists);
    cluster.pass(SECOND * 3600).await;
    let passes = table.lists() - lists;
    assert!((6..=12).contains(&passes), "the safety pass: {passes}");
}

#[tokio::test(start_paused = true)]
async fn with_the_gate_nodes_that_join_together_share_lists() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    for n in 0..20 {
        cluster.put(node(&format!("n{n}"), &[&format!("10.200.{n}.0/24")]));
        cluster.pass(Duration::from_millis(100)).await;
    }
    cluster.pass(SECOND * 23).await;
    assert!(table.lists() <= 3, "{}", table.lists());
    assert_eq!(table.routes().len(), 20);
    assert!((0..20).all(|n| is_routed(&cluster, &format!("n{n}"))));
}

#[tokio::test(start_paused = true)]
async fn with_the_gate_what_failed_once_is_tried_again_without_any_change() {
    let (cluster, table) = start(RouteTiming::WatchBased);
    table.fail("create", Some(CloudError::transient("bad gateway")));
    table.put("gone", "10.200.9.0/24", true);
    table.fail("delete", Some(CloudError::transient("bad gateway")));
    cluster.put(node("n1", &["10.200.1.0/24"]));
    not_routed(&cluster, "n1").await;
    table.fail("create", None);
    table.fail("delete", None);
    cluster
        .within(SECOND * 60, "routed", |c| is_routed(c, "n1"))
        .await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_no_call_begins_and_those_under_way_end() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    for n in 0..30 {
        cluster.put(node(&format!("n{n:02}"), &[&format!("10.200.{n}.0/24")]));
    }
    table.latency(SECOND);
    let controller = cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster
        .within(SECOND * 4, "under way", |_| table.calls("create").len() == 10)
        .await;
    controller.stop();
    cluster.end_of_a_loop().await;
    assert_eq!((table.calls("create").len(), table.routes().len()), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_makes_the_loop_unhealthy() {
    let (cluster, table) = start(PERIODIC);
    table.latency(SECOND * 3600);
    cluster.pass(SECOND * 400).await;
    assert!(cluster.stalled().is_empty());
    cluster.pass(SECOND * 100).await;
    assert_eq!(cluster.stalled(), ["node-route-controller"]);
}

#[tokio::test(start_paused = true)]
async fn many_nodes_at_a_slow_api_server_do_not_look_stuck() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    cluster.slow_writes();
    for n in 0..700 {
        cluster.put(node(
            &format!("n{n:03}"),
            &[&format!("10.200.{}.{}/28", n / 16, n % 16 * 16)],
        ));
    }
    cluster.start_route_loop(&table, &settings(PERIODIC));
    let took = cluster
        .without_a_stall(|c| (0..700).all(|n| is_routed(c, &format!("n{n:03}"))))
        .await;
    assert!(took > SECOND * 600, "{took:?} is no test");
}

/// Each page comes just in time, and there are many.
#[tokio::test(start_paused = true)]
async fn a_long_list_from_a_slow_api_server_does_not_look_stuck() {
    let (mut cluster, table) = (Cluster::new(), RouteTable::default());
    for n in 0..2300 {
        cluster.put(node(&format!("n{n:04}"), &[]));
    }
    cluster.start_route_loop(&table, &settings(PERIODIC));
    cluster.pass(SECOND * 30).await;
    let slow = Fault::new(Effect::Delay(SECOND * 28)).resource("nodes");
    cluster.inject(slow.verb("list"));
    table.put_via("10.1.0.9", "10.200.1.0/24");
    let begun = Instant::now();
    cluster.without_a_stall(|_| begun.elapsed() > SECOND * 1200).await;
    assert_eq!(table.routes(), [" 10.200.1.0/24"], "no answer is no proof");
    cluster.api.faults().clear();
    cluster
        .within(SECOND * 400, "the route is gone", |_| table.routes().is_empty())
        .await;
}
