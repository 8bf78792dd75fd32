use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::ServiceKey;
use bowline_kube_io::watch_config_map;
use serde_json::json;
use tokio::time::Instant;

use crate::{Watched, client, scripted, server, service};

/// A change is seen after this time at the latest, whatever watches do.
const AT_MOST: Duration = Duration::from_secs(45);

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
    let watched = Watched::services(client(&api));
    let cache = &watched.cache;
    cache.synced().await;
    let found = cache.get(&ServiceKey::new("default", "front")).unwrap();
    assert_eq!(found.metadata.annotations.as_ref().unwrap().len(), 2);
    assert!(cache.has_uid(&uid) && !cache.has_uid("other"));
    let listed = client(&api).list_services().await.unwrap();
    assert_eq!(listed, cache.all());
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
