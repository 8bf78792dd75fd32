use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName, ServiceKey};
use bowline_kube_api::{Effect, KubeApi, Status};
use bowline_kube_io::{Body, Kube, NodeCache, ServiceCache, watch_config_map, watch_nodes, watch_services};
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::{Watched, add_nodes, client, fault, node, options, pass, scripted, server, service, until};

impl Watched<Node> {
    fn start(api: &KubeApi) -> Self {
        Self::nodes(client(api))
    }

    /// An API server with the Node `a`, and a cache that is filled from it.
    async fn filled() -> (KubeApi, Self) {
        let api = server();
        api.apply_json(node("a")).unwrap();
        let watched = Self::start(&api);
        watched.cache.synced().await;
        (api, watched)
    }

    /// Waits until a Node is seen that was made at `since`, which is not for ever.
    async fn sees(&self, name: &str, since: Instant, what: &str) {
        until("the change is seen", || {
            self.cache.get(&NodeName::new(name)).is_some()
        })
        .await;
        assert!(since.elapsed() <= AT_MOST, "{:?}: {what}", since.elapsed());
    }
}

/// A change is seen after this time at the latest, whatever watches do.
const AT_MOST: Duration = Duration::from_secs(45);

/// From now on this happens to each watch of Nodes.
fn spoil_watches(api: &KubeApi, effect: Effect) {
    api.faults().inject(fault(effect, "watch", "nodes"));
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
async fn huge_objects_make_pages_smaller_and_keep_none_from_being_listed() {
    let api = server();
    for number in 0..20 {
        let mut huge = node(&format!("n{number:02}"));
        api.apply_json(huge.clone()).unwrap();
        huge["status"]["images"] = json!([{"names": ["x".repeat(1 << 20)], "sizeBytes": 1}]);
        api.apply_json(huge).unwrap();
    }
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    assert_eq!(watched.cache.len(), 20);
    let lists = api.journal().of("list", "nodes");
    let limit = |number: usize| lists[number].query.split('&').next().unwrap_or_default();
    let limits = [0, 1, 2, 3, 4].map(limit);
    assert_eq!(limits, ["limit=100", "limit=12", "limit=1", "limit=2", "limit=4"]);
    assert!(lists.len() <= 14, "{lists:?}");
}

/// A process that lived through a restore of etcd knows what is newer than anything that it is told from then on.
#[tokio::test(start_paused = true)]
async fn a_watch_ends_where_the_api_server_has_gone_back_in_time_and_not_where_it_lags() {
    let (today, backup) = (server(), server());
    backup.apply_json(node("a")).unwrap();
    for number in 0..50 {
        today.apply_json(node(&format!("n{number}"))).unwrap();
    }
    let is_restored = Arc::new(AtomicBool::new(false));
    let (asks_backup, both) = (Arc::clone(&is_restored), [today.clone(), backup]);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        both[usize::from(asks_backup.load(Ordering::Relaxed))]
            .service()
            .oneshot(request)
    });
    let cache = Arc::new(NodeCache::new());
    let watch = tokio::spawn(watch_nodes(
        Kube::with_service(service, options()),
        Arc::clone(&cache),
    ));
    cache.synced().await;
    let lag = async |seconds| {
        is_restored.store(true, Ordering::Relaxed);
        today.close_watches();
        today.compact();
        pass(seconds).await;
    };
    lag(25).await;
    is_restored.store(false, Ordering::Relaxed);
    pass(60).await;
    assert!(!watch.is_finished());
    lag(120).await;
    assert!(
        watch.is_finished(),
        "nothing of what is known can be compared with it"
    );
    watch.abort();
    assert_eq!(cache.all().len(), 50, "and nobody was told that Nodes are gone");
}

/// An API server with three pages of Nodes whose lists meet this effect, so often, from the second page on.
fn with_a_spoilt_page(effect: Effect, times: u32) -> KubeApi {
    let api = server();
    add_nodes(&api, 250);
    let spoilt = fault(effect, "list", "nodes");
    api.faults().inject(spoilt.after(1).times(times));
    api
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_refused_for_a_while_is_asked_for_again() {
    for (effect, times) in [
        (Effect::Answer(Status::too_many_requests(7)), 3),
        (Effect::Answer(Status::unavailable("overloaded")), 5),
        (Effect::Answer(Status::internal("etcd")), 1),
        (Effect::Text(502, "bad gateway"), 1),
        (Effect::DropBefore, 4),
        (Effect::Silence, 1),
    ] {
        let api = with_a_spoilt_page(effect.clone(), times);
        let begun = Instant::now();
        assert_eq!(client(&api).list_nodes().await.unwrap().len(), 250, "{effect:?}");
        assert_eq!(lists(&api), 1, "{effect:?}: it was not begun anew");
        if let Effect::Answer(Status { code: 429, .. }) = effect {
            assert!(begun.elapsed() >= Duration::from_secs(21), "as asked for");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_refused_for_more_than_a_minute_or_for_good_ends_the_list() {
    let forbidden = Status::new(403, "Forbidden", "no");
    for (status, requests) in [(Status::unavailable("overloaded"), 8), (forbidden, 2)] {
        let api = with_a_spoilt_page(Effect::Answer(status), 100);
        let begun = Instant::now();
        client(&api).list_nodes().await.unwrap_err();
        assert!(
            begun.elapsed() <= Duration::from_secs(60),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(api.journal().of("list", "nodes").len(), requests);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_arrive_in_order() {
    let (api, watched) = Watched::filled().await;
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
    let (api, watched) = Watched::filled().await;
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
    until("it is opened again", || {
        api.journal().of("watch", "nodes").len() == 2
    })
    .await;
    api.apply_json(node("c")).unwrap();
    until("c seen", || watched.seen() == "+a +b +c").await;
    assert_eq!(lists(&api), 1);
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
async fn a_quiet_hour_costs_two_watches_a_minute_and_no_list() {
    let (api, watched) = Watched::filled().await;
    pass(3600).await;
    assert_eq!(watched.seen(), "+a");
    assert_eq!(lists(&api), 1);
    let watches = api.journal().of("watch", "nodes").len();
    assert!(
        (119..=121).contains(&watches),
        "{watches} watches in an hour, each of half a minute"
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
    assert_eq!(listed, cache.all());
    watch.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_found_out_within_45_s() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    // At any moment of its life, also before it has shown anything.
    for age in [0, 1, 15, 29, 31, 100] {
        let watched = Watched::start(&api);
        watched.cache.synced().await;
        tokio::time::sleep(Duration::from_millis(age * 1000 + 10)).await;
        api.silence_watches();
        let name = format!("after-{age}");
        api.apply_json(node(&name)).unwrap();
        watched.sees(&name, Instant::now(), &name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_late_watch_has_not_shown_is_asked_for_and_neither_ends_it_nor_lists() {
    let (api, watched) = Watched::filled().await;
    until("the watch began", || {
        api.journal().of("watch", "nodes").len() == 1
    })
    .await;
    api.silence_watches();
    for round in 0..5 {
        let known = watched.cache.get(&NodeName::new("a")).unwrap();
        let mut changed = node("a");
        changed["metadata"]["labels"] = json!({"round": round.to_string()});
        api.apply_json(changed).unwrap();
        // As after a conflict.
        watched.cache.ask_about(&known);
        let asked = Instant::now();
        until("the change is known", || {
            watched.cache.newer_than(&known).is_some()
        })
        .await;
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    }
    assert_eq!((lists(&api), api.journal().of("watch", "nodes").len()), (1, 1));
    let questions = api.journal().of("list", "nodes").len() - 2; // the list, and its count
    assert_eq!(questions, 5);
}

#[tokio::test(start_paused = true)]
async fn watches_that_open_and_never_show_a_byte_are_not_believed() {
    let (api, watched) = Watched::filled().await;
    spoil_watches(&api, Effect::Silence);
    api.silence_watches();
    for round in 0..10 {
        let name = format!("n{round}");
        api.apply_json(node(&name)).unwrap();
        watched.sees(&name, Instant::now(), &name).await;
    }
    let heard = watched.cache.heard().unwrap();
    assert!(heard.elapsed() < Duration::from_secs(1));
    // So is every simple server that ends no watch and sends no bookmarks.
    let before = lists(&api);
    pass(600).await;
    let lists = lists(&api) - before;
    assert!(lists <= 15, "{lists} lists in ten minutes");
}

/// Changes something time and again, and looks whether the cache follows and what that costs.
async fn follows(api: &KubeApi, watched: &Watched<Node>, what: &str) {
    for round in 0..10_u64 {
        let name = format!("n{round}");
        api.apply_json(node(&name)).unwrap();
        let changed = Instant::now();
        until("the change is seen", || {
            let unheard = watched.cache.heard().unwrap().elapsed();
            assert!(unheard <= AT_MOST, "{unheard:?}: {what}");
            watched.cache.get(&NodeName::new(&*name)).is_some()
        })
        .await;
        assert!(changed.elapsed() <= AT_MOST, "{:?}: {what}", changed.elapsed());
        // So that it is changed at different moments of what the watch does.
        pass(round * 7).await;
    }
    let before = (lists(api), api.journal().of("watch", "nodes").len());
    pass(600).await;
    let asked = (
        lists(api) - before.0,
        api.journal().of("watch", "nodes").len() - before.1,
    );
    assert!(asked.0 <= 30 && asked.1 <= 30, "{asked:?} in ten minutes: {what}");
}

#[tokio::test(start_paused = true)]
async fn a_cache_whose_watches_cannot_be_had_is_listed_time_and_again() {
    let old = r#"{"type":"ADDED","object":{"metadata":{"name":"x","uid":"u","resourceVersion":"1"}}}"#;
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    for effect in [
        Effect::Answer(Status::too_many_requests(1)),
        Effect::Answer(Status::unavailable("restarting")),
        Effect::Answer(Status::new(504, "Timeout", "no")),
        Effect::DropBefore,
        Effect::Delay(Duration::from_secs(3600)),
        Effect::Silence,
        Effect::Text(200, ""),
        Effect::Text(200, "<html>welcome</html>"),
        Effect::Text(200, "<html>\n"),
        Effect::Text(502, "<html>"),
        Effect::Text(200, leak(format!("{old}\n"))),
        Effect::Text(
            200,
            "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}\n",
        ),
        Effect::Answer(Status::new(410, "Expired", "too old")),
    ] {
        let api = server();
        api.apply_json(node("a")).unwrap();
        let what = format!("{effect:?}");
        let watched = Watched::start(&api);
        watched.cache.synced().await;
        pass(100).await;
        spoil_watches(&api, effect);
        api.close_watches();
        follows(&api, &watched, &what).await;
        // The first watch that can be had again ends it.
        api.faults().clear();
        pass(60).await;
        let before = lists(&api);
        pass(600).await;
        assert_eq!(lists(&api), before, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stated_delay_is_kept_between_lists_too() {
    let api = server();
    let watched = Watched::start(&api);
    watched.cache.synced().await;
    spoil_watches(&api, Effect::Answer(Status::too_many_requests(60)));
    api.close_watches();
    pass(600).await;
    let lists = lists(&api);
    assert!((9..=12).contains(&lists), "{lists}");
}

#[tokio::test(start_paused = true)]
async fn whatever_watches_do_after_a_freeze_it_is_found_out_within_45_s_of_it() {
    for age in [0, 10, 27, 29] {
        for cut_after in [1, 5, 12, 19, 21] {
            let (api, watched) = Watched::filled().await;
            tokio::time::sleep(Duration::from_millis(age * 1000 + 10)).await;
            api.silence_watches();
            api.apply_json(node("b")).unwrap();
            let frozen = Instant::now();
            spoil_watches(&api, Effect::Silence);
            pass(cut_after).await;
            api.close_watches();
            watched
                .sees("b", frozen, &format!("{age} s, {cut_after} s"))
                .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_lists_fail_a_watch_goes_on_where_it_was() {
    let (api, watched) = Watched::filled().await;
    pass(10).await;
    let ill = Effect::Answer(Status::internal("etcd"));
    api.faults().inject(fault(ill, "list", "nodes"));
    for round in 0..3 {
        api.silence_watches();
        let name = format!("n{round}");
        api.apply_json(node(&name)).unwrap();
        watched.sees(&name, Instant::now(), &name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_ended_and_show_nothing_prove_nothing_the_sooner_the_less() {
    let in_time = Duration::from_secs(240);
    for (ends_after, known_within, most_lists) in [
        (3, AT_MOST, 31),
        (11, AT_MOST, 31),
        (15, AT_MOST, 31),
        (25, AT_MOST, 31),
        // As asked for, but that there was no bookmark.
        (29, in_time, 5),
    ] {
        let began = Instant::now();
        let asked = Arc::new(Mutex::new(0));
        let count = Arc::clone(&asked);
        // It has a new object every minute, and does not show it to a watch.
        let kube = scripted(move |uri| {
            let query = uri.query().unwrap_or_default();
            *count.lock().unwrap() += usize::from(query == "limit=100");
            if query.contains("watch=true") {
                return (String::new(), Some(Duration::from_secs(ends_after)));
            }
            let minute = 1 + began.elapsed().as_secs() / 60;
            let object = |n: u64| json!({"metadata": {"name": format!("n{n}"), "uid": format!("u{n}"), "resourceVersion": n.to_string()}, "spec": {}});
            let items: Vec<_> = (1..=minute).map(object).collect();
            let version = json!({"resourceVersion": minute.to_string()});
            let list = json!({"kind": "NodeList", "apiVersion": "v1", "metadata": version, "items": items});
            (list.to_string(), Some(Duration::ZERO))
        });
        let watched = Watched::nodes(kube);
        let cache = &watched.cache;
        cache.synced().await;
        while began.elapsed() < Duration::from_secs(600) {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let unheard = cache.heard().unwrap().elapsed();
            assert!(unheard <= AT_MOST, "{ends_after} s: {unheard:?}");
            let known_since = began.elapsed().saturating_sub(known_within).as_secs() / 60;
            assert!(cache.len() as u64 > known_since, "{ends_after} s");
        }
        let lists = *asked.lock().unwrap();
        assert!(
            lists <= most_lists,
            "{ends_after} s: {lists} lists in ten minutes"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_or_break_at_once_are_not_opened_without_a_pause() {
    let node_line = r#"{"type":"ADDED","object":{"metadata":{"name":"x","uid":"u","resourceVersion":"1"}}}"#;
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    for effect in [
        Effect::Text(200, ""),
        Effect::Text(200, leak(format!("{node_line}\n"))),
        Effect::Text(200, leak(format!("{node_line}\ngarbage\n"))),
        Effect::Text(
            200,
            "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n",
        ),
        Effect::Text(
            200,
            "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}\n",
        ),
        Effect::Text(200, "<html>\n"),
        Effect::Text(502, "<html>"),
        Effect::DropBefore,
    ] {
        let api = server();
        let what = format!("{effect:?}");
        spoil_watches(&api, effect);
        let watched = Watched::start(&api);
        watched.cache.synced().await;
        pass(120).await;
        let requests = || (api.journal().of("watch", "nodes").len(), lists(&api));
        let before = requests();
        pass(60).await;
        let after = requests();
        let in_a_minute = (after.0 - before.0, after.1 - before.1);
        assert!(
            (1..=3).contains(&in_a_minute.0) && in_a_minute.1 <= 3,
            "{in_a_minute:?}: {what}"
        );
    }
}

/// What a server says to the watch of a ConfigMap, and whether it ends the watch then, and after how long.
type Script = fn(version: u64, from: Option<u64>) -> (String, Option<Duration>);

/// A watch of a ConfigMap at a server that keeps to a script, for some time: what was told, and how often it was opened.
async fn config_map_watched(script: Script, minutes: u64) -> (Vec<String>, usize) {
    let opened = Arc::new(Mutex::new(0));
    let count = Arc::clone(&opened);
    let begun = Instant::now();
    let kube = scripted(move |uri| {
        *count.lock().unwrap() += 1;
        let query = uri.query().unwrap_or_default();
        assert!(
            query.contains("watch=true") && query.contains("metadata.name%3Dca"),
            "{query}"
        );
        let mut pairs = query.split('&');
        let from = pairs.find_map(|pair| pair.strip_prefix("resourceVersion="));
        // It changes in the fifth minute.
        let version = 1 + u64::from(begun.elapsed().as_secs() >= 270);
        script(version, from.map(|version| version.parse().unwrap()))
    });
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let watch = watch_config_map(kube, "kube-system", "ca", |data| {
        log.lock().unwrap().push(data["ca"].clone());
    });
    let _ = tokio::time::timeout(Duration::from_secs(60 * minutes), watch).await;
    let told = told.lock().unwrap().clone();
    let opened = *opened.lock().unwrap();
    (told, opened)
}

fn config_map(version: u64) -> String {
    let object = json!({"metadata": {"name": "ca", "resourceVersion": version.to_string()}, "data": {"ca": format!("{version}")}});
    format!("{}\n", json!({"type": "ADDED", "object": object}))
}

#[tokio::test(start_paused = true)]
async fn a_config_map_is_told_once_and_again_when_it_changes() {
    let well: Script = |version, from| {
        let is_news = from.is_none_or(|from| from < version);
        let text = if is_news {
            config_map(version)
        } else {
            String::new()
        };
        (text, Some(Duration::from_secs(30)))
    };
    let (told, opened) = config_map_watched(well, 10).await;
    assert_eq!(told, ["1", "2"]);
    assert!((19..=21).contains(&opened), "{opened}");
    // It shows what there is, and falls silent.
    let silent: Script = |version, _| (config_map(version), None);
    let (told, opened) = config_map_watched(silent, 10).await;
    assert_eq!(told.last().unwrap(), "2");
    assert!(opened <= 15, "{opened}");
}

#[tokio::test(start_paused = true)]
async fn what_is_odd_in_a_config_map_ends_no_watch_and_takes_nothing_away() {
    let script: Script = |version, _| {
        let odd = |data| {
            let object =
                json!({"metadata": {"name": "ca", "resourceVersion": "1", "labels": 7}, "data": data});
            format!("{}\n", json!({"type": "MODIFIED", "object": object}))
        };
        let text = [json!([]), json!(7), json!({"ca": "x", "odd": null})]
            .map(odd)
            .concat();
        (text + &config_map(version), Some(Duration::from_secs(30)))
    };
    let (told, opened) = config_map_watched(script, 2).await;
    assert_eq!(told, ["x", "1"].repeat(opened));
    assert!((4..=5).contains(&opened), "{opened}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_api_server_is_asked_for_a_config_map_again() {
    let (api, begun) = (server(), Instant::now());
    let busy = Status::unavailable("starting").retry_after(5);
    api.faults().fail_next(3, "get", "configmaps", busy);
    let found = client(&api).config_map("kube-system", "ca").await;
    assert_eq!(found, Ok(None));
    assert_eq!(begun.elapsed().as_secs(), 15);
    let ill = Status::unavailable("no etcd");
    api.faults().fail_next(1, "get", "configmaps", ill);
    client(&api).config_map("kube-system", "ca").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_config_map_that_ends_at_once_is_not_opened_all_the_time() {
    let scripts: [Script; 4] = [
        |version, _| (config_map(version), Some(Duration::ZERO)),
        |version, _| (config_map(version), Some(Duration::from_secs(2))),
        |_, _| (String::new(), Some(Duration::ZERO)),
        |_, _| ("<html>\n".to_owned(), None),
    ];
    for script in scripts {
        let (_, opened) = config_map_watched(script, 10).await;
        assert!(opened <= 12, "{opened}");
    }
}
