//! Objects that are said to be gone: by lists that somebody spoiled on their way, and by watches.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{NodeName, Service, ServiceKey};
use bowline_kube_api::{ApiBody, ApiService, BoxError, Effect, Fault, KubeApi, Status};
use bowline_kube_io::{Body, Kube, KubeError};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Either, Full};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::{Watched, add_nodes, node, options, pass, server, service, until};

type Spoil = Arc<dyn Fn(&str, &mut Value) + Send + Sync>;

/// A way to spoil a list, with its name.
type Case = (&'static str, fn(&mut Value));

fn remove(object: &mut Value, key: &str) {
    object.as_object_mut().unwrap().remove(key).unwrap();
}

/// What stands between the client and the API server, and changes answers to lists. It is told the query.
#[derive(Clone, Default)]
struct Proxy(Arc<Mutex<Option<Spoil>>>);

impl Proxy {
    /// From now on all lists of everything are changed so; questions by name are answered in truth.
    fn spoil_lists(&self, spoil: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.spoil(move |query, list| {
            if !query.contains("fieldSelector") {
                spoil(list);
            }
        });
    }

    fn spoil(&self, spoil: impl Fn(&str, &mut Value) + Send + Sync + 'static) {
        *self.0.lock().unwrap() = Some(Arc::new(spoil));
    }

    fn be_honest(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn before(&self, api: &KubeApi) -> Kube {
        let (service, proxy) = (api.service(), self.clone());
        Kube::with_service(
            tower::service_fn(move |request| answer(service.clone(), proxy.clone(), request)),
            options(),
        )
    }
}

async fn answer(
    service: ApiService,
    proxy: Proxy,
    request: Request<Body>,
) -> Result<Response<Either<ApiBody, Full<Bytes>>>, BoxError> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let answer = service.oneshot(request).await?;
    let spoil = proxy.0.lock().unwrap().clone();
    let (head, body) = answer.into_parts();
    let Some(spoil) = spoil.filter(|_| !query.contains("watch=true") && head.status.is_success()) else {
        return Ok(Response::from_parts(head, Either::Left(body)));
    };
    let mut list: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
    spoil(&query, &mut list);
    Ok(Response::from_parts(
        head,
        Either::Right(Full::from(list.to_string())),
    ))
}

/// An API server with these Services, and a cache that is filled from it.
async fn served(names: &[&str]) -> (KubeApi, Proxy, Watched<Service>) {
    let (api, proxy) = (server(), Proxy::default());
    for name in names {
        api.apply_json(service(name)).unwrap();
    }
    let watched = Watched::services(proxy.before(&api));
    watched.cache.synced().await;
    (api, proxy, watched)
}

/// Has the watches of a kind begin again with a list.
async fn list_again(api: &KubeApi, resource: &str) {
    let lists = || api.journal().of("list", resource).len();
    let before = lists();
    // What is written while no watch is open, and no longer kept when the next one begins, has to be listed.
    api.faults()
        .fail_next(1, "watch", resource, Status::unavailable("restarting"));
    api.close_watches();
    let watches = api.journal().of("watch", resource).len();
    until("the watch broke", || {
        api.journal().of("watch", resource).len() > watches
    })
    .await;
    api.apply_json(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("n{before}")}}),
    )
    .unwrap();
    api.compact();
    until("the next list", || lists() > before).await;
}

fn by_name(api: &KubeApi, resource: &str) -> usize {
    let lists = api.journal().of("list", resource);
    lists
        .iter()
        .filter(|list| list.query.contains("fieldSelector"))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_none_takes_nothing_away_and_is_asked_for_again() {
    let spoilt: Vec<Case> = vec![
        ("no version", |list| list["metadata"] = json!({})),
        ("another kind", |list| list["kind"] = json!("ConfigMapList")),
        ("no kind", |list| list["kind"] = Value::Null),
        ("no items", |list| remove(list, "items")),
        ("null items", |list| list["items"] = Value::Null),
        ("an object", |list| *list = json!({})),
        ("a promise", |list| {
            list["items"] = json!([]);
            list["metadata"]["remainingItemCount"] = json!(2);
        }),
    ];
    for (case, spoil) in spoilt {
        let (api, proxy, watched) = served(&["a", "b"]).await;
        proxy.spoil_lists(spoil);
        list_again(&api, "services").await;
        pass(120).await;
        assert_eq!(watched.cache.len(), 3, "{case}");
        proxy.be_honest();
        api.apply_json(service("c")).unwrap();
        until("the truth", || watched.cache.len() == 4).await;
        assert_eq!(
            by_name(&api, "services"),
            0,
            "{case}: it is no list, so nothing is missing from it"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_from_a_list_stays_known_while_the_api_server_shows_it_by_name() {
    let (api, proxy) = (server(), Proxy::default());
    add_nodes(&api, 60);
    let watched = Watched::nodes(proxy.before(&api));
    watched.cache.synced().await;
    // Nor does it let the number through by which a gap would show.
    proxy.spoil_lists(|list| {
        list["items"].as_array_mut().unwrap().truncate(10);
        let version = list["metadata"]["resourceVersion"].clone();
        list["metadata"] = json!({"resourceVersion": version});
    });
    list_again(&api, "nodes").await;
    pass(600).await;
    assert!(watched.cache.len() == 60 && !watched.seen().contains('-'));
    let (asked, all) = (by_name(&api, "nodes"), api.journal().of("list", "nodes").len());
    let lists = all - asked;
    // One question that is answered tells that the list is untrue; those under way with it are answered too.
    assert!(
        lists <= 40 && asked <= 8 * lists,
        "{asked} questions, {lists} lists"
    );
    proxy.be_honest();
    api.delete("Node", "", "n059");
    until("the truth", || watched.cache.len() == 59).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_from_a_list_goes_when_nobody_bears_its_name() {
    let (api, proxy) = (server(), Proxy::default());
    add_nodes(&api, 300);
    let watched = Watched::nodes(proxy.before(&api));
    watched.cache.synced().await;
    api.faults()
        .fail_next(1, "watch", "nodes", Status::unavailable("restarting"));
    api.close_watches();
    until("the watch broke", || api.journal().of("watch", "nodes").len() > 1).await;
    for number in 0..200 {
        api.delete("Node", "", &format!("n{number:03}"));
    }
    api.compact();
    until("they are gone", || watched.cache.len() == 100).await;
    assert_eq!(by_name(&api, "nodes"), 200, "each is asked for once");
}

#[tokio::test(start_paused = true)]
async fn no_answer_and_an_odd_one_prove_nothing() {
    let odd: Vec<Case> = vec![
        ("no kind", |list| remove(list, "kind")),
        ("no items", |list| remove(list, "items")),
        ("no version", |list| list["metadata"] = json!({})),
        ("an old version", |list| {
            list["metadata"]["resourceVersion"] = json!("1")
        }),
        ("no number", |list| {
            list["metadata"]["resourceVersion"] = json!("x7")
        }),
        ("others", |list| {
            list["items"] = json!([{
                "metadata": {"name": "other", "namespace": "default", "uid": "u", "resourceVersion": "2"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
            }]);
        }),
        ("another of its name without a spec", |list| {
            list["items"] = json!([{"metadata": {
                "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "2",
            }}]);
        }),
    ];
    for (case, spoil) in odd {
        let (api, proxy, watched) = served(&["web"]).await;
        proxy.spoil(move |query, list| {
            if query.contains("fieldSelector") {
                spoil(list);
            }
        });
        let is_known = || watched.knows("web");
        api.delete("Service", "default", "web");
        pass(300).await;
        assert!(is_known(), "{case}");
        let asked = by_name(&api, "services");
        assert!(
            (5..=20).contains(&asked),
            "{case}: asked {asked} times in five minutes"
        );
        proxy.be_honest();
        until("it is proved gone", || !is_known()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_fails_is_asked_again_and_keeps_no_other_waiting() {
    let (api, proxy, watched) = served(&["a", "b"]).await;
    proxy.spoil(|query, list| {
        if query.contains("metadata.name%3Da") {
            list["items"] = Value::Null;
        }
    });
    api.delete("Service", "default", "a");
    pass(300).await;
    api.delete("Service", "default", "b");
    let begun = Instant::now();
    until("b is gone", || !watched.knows("b")).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(watched.knows("a"));
}

#[tokio::test(start_paused = true)]
async fn while_questions_fail_a_new_one_does_not_ask_the_others_again() {
    for status in [
        Status::internal("etcd"),
        Status::new(403, "Forbidden", "no"),
        Status::too_many_requests(1),
    ] {
        let (api, proxy) = (server(), Proxy::default());
        let name = |number| format!("n{number:03}");
        add_nodes(&api, 60);
        let watched = Watched::nodes(proxy.before(&api));
        watched.cache.synced().await;
        let what = format!("{status:?}");
        api.faults()
            .inject(Fault::new(Effect::Answer(status)).verb("list").resource("nodes"));
        for number in 0..50 {
            api.delete("Node", "", &name(number));
            pass(1).await;
        }
        // Each for itself at most, and eight after each wait.
        let asked = by_name(&api, "nodes");
        assert!(asked <= 50 + 8 * 8, "{asked}: {what}");
        assert_eq!(watched.cache.len(), 60, "{what}");
        api.faults().clear();
        until("they are proved gone", || watched.cache.len() == 10).await;
        let asked_since = by_name(&api, "nodes") - asked;
        assert!(asked_since <= 60, "{asked_since}: {what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_the_same_name_proves_that_the_one_before_is_gone() {
    let (api, proxy, watched) = served(&["web"]).await;
    let key = ServiceKey::new("default", "web");
    let uid = || {
        let service = watched.cache.get(&key);
        service.map(|service| service.metadata.uid.clone().unwrap_or_default())
    };
    let first = uid().unwrap();
    // A list that gives it another UID is a doubt, no proof.
    proxy.spoil_lists(|list| list["items"][0]["metadata"]["uid"] = json!("another"));
    list_again(&api, "services").await;
    pass(60).await;
    assert_eq!(uid().as_ref(), Some(&first));
    proxy.be_honest();
    api.delete("Service", "default", "web");
    api.apply_json(service("web")).unwrap();
    let mut annotated = api.object("Service", "default", "web").unwrap();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    api.apply_json(annotated).unwrap();
    until("the successor as it is now", || {
        watched.cache.get(&key).is_some_and(|service| {
            service.metadata.uid.as_ref() != Some(&first) && service.metadata.annotations.is_some()
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn services_that_lost_a_part_on_their_way_stay_as_they_were_known() {
    let spoilt: Vec<Case> = vec![
        ("no spec", |item| remove(item, "spec")),
        ("null spec", |item| item["spec"] = Value::Null),
        ("empty spec", |item| item["spec"] = json!({})),
        ("no type", |item| remove(&mut item["spec"], "type")),
        ("null type", |item| item["spec"]["type"] = Value::Null),
        ("empty type", |item| item["spec"]["type"] = json!("")),
        ("no ports", |item| remove(&mut item["spec"], "ports")),
        ("no UID", |item| remove(&mut item["metadata"], "uid")),
    ];
    for (case, spoil) in spoilt {
        let (api, proxy, watched) = served(&["a", "b"]).await;
        let known = watched.cache.all();
        // Also the answers to questions by name. With a version that is news to the cache.
        proxy.spoil(move |_, list| {
            for item in list["items"].as_array_mut().unwrap() {
                item["metadata"]["resourceVersion"] = json!("900");
                spoil(item);
            }
        });
        list_again(&api, "services").await;
        pass(300).await;
        let now = watched.cache.all();
        assert_eq!(now.len(), known.len(), "{case}");
        let mut pairs = now.iter().zip(&known);
        assert!(pairs.all(|(now, known)| Arc::ptr_eq(now, known)), "{case}");
        assert!(
            watched.cache.is_synced() && watched.cache.refusal().is_none(),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_future_that_lacks_objects_is_read_again() {
    let (api, proxy, watched) = served(&["web"]).await;
    // No answer would ever be as new as it, and a watch from there would show nothing.
    proxy.spoil_lists(|list| {
        list["metadata"]["resourceVersion"] = json!("1000000");
        list["items"] = json!([]);
    });
    list_again(&api, "services").await;
    pass(60).await;
    proxy.be_honest();
    api.apply_json(service("next")).unwrap();
    until("the next one", || watched.knows("next")).await;
    assert!(watched.knows("web"));
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_lacks_objects_is_not_believed() {
    let (api, proxy) = (server(), Proxy::default());
    for name in ["a", "b", "c"] {
        api.apply_json(node(name)).unwrap();
    }
    proxy.spoil_lists(|list| list["items"].as_array_mut().unwrap().truncate(1));
    let watched = Watched::nodes(proxy.before(&api));
    pass(60).await;
    assert!(!watched.cache.is_synced());
    let error = proxy.before(&api).list_nodes().await.unwrap_err();
    assert!(
        matches!(&error, KubeError::Decode(text) if text.contains("1 of 3 objects")),
        "{error}"
    );
    proxy.be_honest();
    watched.cache.synced().await;
    assert_eq!(watched.cache.len(), 3);
    assert!(watched.cache.get(&NodeName::new("c")).is_some());
}
