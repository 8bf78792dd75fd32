use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{NodeName, ServiceKey, ServicesView};
use bowline_kube_api::{KubeApi, Status};
use bowline_kube_io::{Change, NodeCache, ServiceCache, watch_nodes, watch_services};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::{client, node, server, service, until};

/// A cache with its watch, and what its listeners were told.
struct Watched {
    cache: Arc<NodeCache>,
    seen: Arc<Mutex<Vec<String>>>,
    watch: JoinHandle<()>,
}

impl Watched {
    fn start(api: &KubeApi) -> Self {
        let cache = Arc::new(NodeCache::new());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        cache.subscribe(Arc::new(move |change| {
            let text = match change {
                Change::Added(node) => format!("+{}", node.name),
                Change::Updated { new, .. } => format!("~{}", new.name),
                Change::Deleted(node) => format!("-{}", node.name),
            };
            log.lock().unwrap().push(text);
        }));
        let watch = tokio::spawn(watch_nodes(client(api), Arc::clone(&cache)));
        Self { cache, seen, watch }
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().join(" ")
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// Lists of all Nodes; neither a question by name nor a count is one.
fn lists(api: &KubeApi) -> usize {
    let mut lists = api.journal().of("list", "nodes");
    lists.retain(|list| list.query == "limit=100");
    lists.len()
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_of_100_from_no_cache() {
    let api = server();
    for number in (0..250).rev() {
        api.apply_json(node(&format!("n{number:03}"))).unwrap();
    }
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    let names: Vec<_> = watched
        .cache
        .all()
        .iter()
        .map(|node| node.name.to_string())
        .collect();
    assert_eq!(names.len(), 250);
    assert!(names.is_sorted());
    let lists = api.journal().of("list", "nodes");
    assert_eq!(lists.len(), 3);
    for list in lists {
        assert!(list.query.contains("limit=100"), "{}", list.query);
        assert!(!list.query.contains("resourceVersion"), "{}", list.query);
    }
    assert_eq!(client(&api).list_nodes().await.unwrap().len(), 250);
}

#[tokio::test(start_paused = true)]
async fn changes_arrive_in_order() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    api.apply_json(node("b")).unwrap();
    let mut labelled = node("a");
    labelled["metadata"]["labels"] = json!({"zone": "z1"});
    api.apply_json(labelled).unwrap();
    api.delete("Node", "", "b");
    until("all changes seen", || watched.seen() == "+a +b ~a -b").await;
    let a = watched.cache.get(&NodeName::new("a")).unwrap();
    assert_eq!(a.labels.value("zone"), Some("z1"));
}

#[tokio::test(start_paused = true)]
async fn a_node_made_again_is_deleted_and_added() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    api.delete("Node", "", "a");
    api.apply_json(node("a")).unwrap();
    until("all changes seen", || watched.seen() == "+a -a +a").await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_goes_on_where_it_was() {
    let api = server();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    api.apply_json(node("a")).unwrap();
    until("a seen", || watched.seen() == "+a").await;
    api.close_watches();
    api.apply_json(node("b")).unwrap();
    until("b seen", || watched.seen() == "+a +b").await;
    assert_eq!(lists(&api), 1, "nothing was listed again");
    assert!(api.journal().of("watch", "nodes").len() >= 2);
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_again_and_announces_differences() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    api.apply_json(node("b")).unwrap();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    let watches = || api.journal().of("watch", "nodes").len();
    until("the watch began", || watches() == 1).await;
    api.faults()
        .fail_next(1, "watch", "nodes", Status::unavailable("restarting"));
    api.close_watches();
    until("the watch broke", || watches() == 2).await;
    api.delete("Node", "", "a");
    api.apply_json(node("c")).unwrap();
    api.compact();
    let broken = Instant::now();
    until("differences seen", || watched.seen() == "+a +b +c -a").await;
    assert!(
        broken.elapsed() < Duration::from_secs(2),
        "what expired is listed again at once after the wait for the watch"
    );
    assert_eq!(lists(&api), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_are_waited_out_longer_each_time() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    api.faults()
        .fail_next(3, "list", "nodes", Status::unavailable("starting"));
    let begun = Instant::now();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    assert_eq!(begun.elapsed(), Duration::from_millis(800 + 1600 + 3200));
}

#[tokio::test(start_paused = true)]
async fn a_stated_delay_is_kept() {
    let api = server();
    api.faults()
        .fail_next(1, "list", "nodes", Status::too_many_requests(9));
    let begun = Instant::now();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_costs_a_few_watches_and_no_list() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(watched.seen(), "+a");
    assert_eq!(lists(&api), 1);
    let watches = api.journal().of("watch", "nodes").len();
    assert!(
        (8..=10).contains(&watches),
        "{watches} watches in an hour, each of seven minutes"
    );
}

#[tokio::test(start_paused = true)]
async fn services_keep_their_annotations_and_are_found_by_uid() {
    let api = server();
    let mut front = service("front");
    front["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "1"});
    let uid = api.apply_json(front).unwrap()["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned();
    let cache = Arc::new(ServiceCache::new());
    let watch = tokio::spawn(watch_services(client(&api), Arc::clone(&cache)));
    cache.synced().await;
    let found = cache.get(&ServiceKey::new("default", "front")).unwrap();
    assert_eq!(found.metadata.annotations.as_ref().unwrap().len(), 2);
    assert!(cache.has_uid(&uid) && !cache.has_uid("other"));
    let listed = client(&api).list_services().await.unwrap();
    assert_eq!(listed, cache.services());
    watch.abort();
}
