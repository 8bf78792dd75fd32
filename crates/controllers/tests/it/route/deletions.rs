//! Which routes are deleted, and which are kept.

use bowline_base::log::Log;
use tracing::Level;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_route_of_a_node_that_is_gone_is_deleted() {
    for timing in [PERIODIC, RouteTiming::WatchBased] {
        let (cluster, table) = start(timing);
        cluster.put(node("n1", &["10.200.1.0/24"]));
        cluster.put(node("n2", &["10.200.2.0/24"]));
        cluster
            .within(WITHIN, "routed", |c| is_routed(c, "n1") && is_routed(c, "n2"))
            .await;
        cluster.delete("n1");
        cluster
            .within(WITHIN, "gone", |_| table.routes() == ["n2 10.200.2.0/24"])
            .await;
        assert_eq!(table.calls("delete").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn only_routes_of_the_cluster_are_ever_deleted() {
    let (cluster, table) = start(PERIODIC);
    table.put("", "192.168.0.0/24", false);
    table.put("elsewhere", "172.16.0.0/12", true);
    table.put("", "0.0.0.0/0", false);
    table.put("n1", "10.200.1.0/24", true);
    table.put("", "10.200.7.0/24", false);
    table.put("gone", "10.200.8.0/24", true);
    put_routed(&cluster).await;
    cluster.pass(SECOND * 60).await;
    assert_eq!(
        table.routes(),
        [
            " 192.168.0.0/24",
            "elsewhere 172.16.0.0/12",
            " 0.0.0.0/0",
            "n1 10.200.1.0/24"
        ]
    );
    assert_eq!(table.calls("delete").len(), 3);
    assert_eq!(table.calls("create").len(), 1, "the dead route was replaced");
}

/// As with the Go managers: it may be anybody's. Nobody else tells of it any more.
#[tokio::test(start_paused = true)]
async fn a_route_outside_of_the_cluster_s_networks_stays_when_its_node_goes_which_is_said_once() {
    let (cluster, table) = start(PERIODIC);
    table.put("", "192.168.0.0/24", false);
    cluster.put(node("n1", &["172.20.0.0/24"]));
    routed(&cluster, "n1").await;
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    cluster.pass(SECOND * 60).await;
    assert_eq!(log.text(), "");
    cluster.delete("n1");
    cluster.pass(SECOND * 600).await;
    assert_eq!(table.routes(), [" 192.168.0.0/24", "n1 172.20.0.0/24"]);
    let told = log.take();
    assert!(told.len() == 1 && told[0].contains("172.20.0.0/24"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_network_that_moved_to_another_node_is_freed_before_it_is_routed_there() {
    let (cluster, table) = start(PERIODIC);
    table.latency(Duration::from_millis(200));
    table.put("gone", "10.200.1.0/24", false);
    table.put("gone", "10.200.9.0/24", true);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    cluster.put(node("n2", &["10.200.2.0/24"]));
    cluster
        .within(WITHIN, "routed", |c| is_routed(c, "n1") && is_routed(c, "n2"))
        .await;
    let begun = |begin: &str| table.calls(begin)[0].at;
    let of = |name: &str| {
        let calls = table.calls("create");
        calls.iter().find(|call| call.what.contains(name)).unwrap().at
    };
    assert!(of(" n1 ") >= begun("delete r-gone-10.200.1.0/24") + Duration::from_millis(200));
    assert_eq!(
        of(" n2 "),
        begun("delete r-gone-10.200.9.0/24"),
        "all else side by side"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_failed_once_and_whose_node_is_there_after_all_calls_for_no_pass_each_second() {
    let (cluster, table) = start(PERIODIC);
    let name = bowline_cloud_provider::NodeName::new("n1");
    put_routed(&cluster).await;
    cluster.nodes.delete(&name);
    let no_answer = Status::unavailable("starting");
    cluster.api.faults().fail_next(2, "list", "nodes", no_answer);
    cluster.pass(SECOND * 30).await;
    let lists = table.lists();
    cluster.pass(SECOND * 120).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    assert!(table.lists() - lists <= 16, "{}", table.lists() - lists);
}

#[tokio::test(start_paused = true)]
async fn a_route_whose_node_is_merely_not_known_is_kept() {
    let (cluster, table) = start(PERIODIC);
    put_routed(&cluster).await;
    // As after a start with a list that lacked it.
    let name = bowline_cloud_provider::NodeName::new("n1");
    cluster.nodes.delete(&name);
    cluster.pass(SECOND * 120).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"]);
    let no_answer = Status::unavailable("starting");
    cluster.delete("n1");
    cluster.api.faults().fail_next(5, "list", "nodes", no_answer);
    cluster.pass(SECOND * 15).await;
    assert_eq!(table.routes(), ["n1 10.200.1.0/24"], "no answer is no proof");
    cluster
        .within(SECOND * 120, "the route is gone", |_| table.routes().is_empty())
        .await;
}

/// A copy of the cluster has the names and credentials of the original, and not the Nodes that joined it later.
#[tokio::test(start_paused = true)]
async fn a_route_whose_node_this_process_never_saw_goes_only_if_it_leads_to_nothing() {
    let (cluster, table) = start(PERIODIC);
    table.put("later", "10.200.8.0/24", false);
    table.put("dead", "10.200.9.0/24", true);
    table.put("n1", "10.200.7.0/24", false);
    put_routed(&cluster).await;
    cluster.pass(SECOND * 4_000).await;
    assert_eq!(table.routes(), ["later 10.200.8.0/24", "n1 10.200.1.0/24"]);
    let failing = cluster.series("routes_failing");
    assert!(
        failing
            .iter()
            .any(|line| line.contains("delete") && line.ends_with(" 1.0")),
        "{failing:?}"
    );
    // Whoever sees its Node join, and go, deletes it.
    cluster.put(node("later", &["10.200.8.0/24"]));
    routed(&cluster, "later").await;
    cluster.delete("later");
    cluster
        .within(WITHIN, "gone", |_| table.routes() == ["n1 10.200.1.0/24"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_route_to_an_address_goes_only_when_surely_no_node_has_it() {
    let (cluster, table) = start(PERIODIC);
    cluster.put(node("n1", &["10.200.1.0/24"]));
    table.put_via("10.1.0.1", "10.200.1.0/24");
    routed(&cluster, "n1").await;
    // As after a start with a list that lacked it.
    cluster.nodes.delete(&bowline_cloud_provider::NodeName::new("n1"));
    cluster.pass(SECOND * 120).await;
    assert_eq!(table.routes(), [" 10.200.1.0/24"]);
    cluster.delete("n1");
    let no_answer = Status::unavailable("starting");
    cluster.api.faults().fail_next(5, "list", "nodes", no_answer);
    cluster.pass(SECOND * 15).await;
    assert_eq!(table.routes(), [" 10.200.1.0/24"], "no answer is no proof");
    cluster
        .within(SECOND * 120, "the route is gone", |_| table.routes().is_empty())
        .await;
}
