//! Requests under the names of ServiceAccounts, and what is said when a role lacks a rule.

use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_kube_api::{Effect, Fault, KubeApi, Permit, Status, User};
use bowline_kube_io::{Kube, KubeError, KubeOptions, NodeCache, Rate, watch_nodes};
use std::sync::Arc;
use tokio::time::Instant;

use crate::{Switch, client, node, options, server, until};

const SECOND: Duration = Duration::from_secs(1);
const USER: &str = "system:serviceaccount:kube-system:node-controller";

fn account(kube: &Kube) -> Kube {
    kube.identified("node-controller")
        .as_service_account("kube-system", "node-controller")
}

fn tokens(api: &KubeApi) -> usize {
    api.journal()
        .matching(|it| it.subresource == "token" && it.status == 201)
        .len()
}

fn attempts(api: &KubeApi) -> usize {
    api.journal().matching(|it| it.subresource == "token").len()
}

async fn read(kube: &Kube) -> Result<(), KubeError> {
    kube.node(&NodeName::new("a")).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn requests_come_from_the_account_which_is_made_where_it_is_missing() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let kube = account(&client(&api));
    let reads = (0..5).map(|_| read(&kube));
    for result in futures::future::join_all(reads).await {
        result.unwrap();
    }
    assert_eq!(tokens(&api), 1, "asked for once for all who wait");
    assert!(
        api.object("ServiceAccount", "kube-system", "node-controller")
            .is_some()
    );
    let of_nodes = api.journal().of("get", "nodes");
    assert_eq!(of_nodes.len(), 5);
    for exchange in of_nodes {
        assert_eq!(exchange.user, USER);
        assert_eq!(exchange.user_agent, "test/1/node-controller");
    }
    let asked = &api.journal().matching(|it| it.subresource == "token")[0];
    assert_eq!(asked.body.as_ref().unwrap()["spec"]["expirationSeconds"], 3600);
    assert_ne!(asked.user, USER, "with the process's own credentials");
    // The next process finds the account.
    read(&account(&client(&api))).await.unwrap();
    assert_eq!(
        api.journal().of("create", "serviceaccounts").len(),
        1 + tokens(&api)
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_after_four_fifths_of_its_life() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let kube = account(&client(&api));
    read(&kube).await.unwrap();
    tokio::time::sleep(SECOND * 2879).await;
    read(&kube).await.unwrap();
    assert_eq!(tokens(&api), 1);
    tokio::time::sleep(SECOND).await;
    read(&kube).await.unwrap();
    assert_eq!(tokens(&api), 2);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_renewed_is_used_to_its_end() {
    let api = server();
    api.access().require_auth(true);
    api.access().add_token("process", User::new("process", &[]));
    api.access().permit(Permit::new("process", &["*"], "*", &["*"]));
    api.access().permit(Permit::new(USER, &["*"], "*", &["*"]));
    api.apply_json(node("a")).unwrap();
    let service = tower::ServiceBuilder::new()
        .map_request(|mut request: http::Request<bowline_kube_io::Body>| {
            request
                .headers_mut()
                .entry("authorization")
                .or_insert_with(|| "Bearer process".parse().unwrap());
            request
        })
        .service(api.service());
    let kube = account(&Kube::with_service(service, options()));
    read(&kube).await.unwrap();
    let refusal = Status::internal("no tokens today");
    api.faults().inject(
        Fault::new(Effect::Answer(refusal))
            .verb("create")
            .resource("serviceaccounts")
            .subresource("token"),
    );
    tokio::time::sleep(SECOND * 3000).await;
    let begun = Instant::now();
    read(&kube).await.unwrap();
    assert!(begun.elapsed() < SECOND, "one try, and on with the old token");
    tokio::time::sleep(SECOND * 601).await;
    let begun = Instant::now();
    let error = read(&kube).await.unwrap_err();
    assert!(error.to_string().contains("no tokens today"), "{error}");
    assert_eq!(
        begun.elapsed(),
        Duration::from_millis(3500),
        "0.5, 1 and 2 s between four tries"
    );
    let tried = attempts(&api);
    assert!(read(&kube).await.is_err());
    assert_eq!(attempts(&api), tried, "who comes right after is told the same");
    api.faults().clear();
    tokio::time::sleep(SECOND * 6).await;
    read(&kube).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_busy_api_server_is_asked_for_a_token_no_sooner_than_it_says_and_no_sooner_than_a_silent_one() {
    for (said, waited) in [(1, 4.0), (3, 9.0)] {
        let api = server();
        let fault = Fault::new(Effect::Answer(Status::too_many_requests(said)));
        api.faults().inject(
            fault
                .verb("create")
                .resource("serviceaccounts")
                .subresource("token"),
        );
        let begun = Instant::now();
        assert!(read(&account(&client(&api))).await.is_err());
        assert_eq!(begun.elapsed(), Duration::from_secs_f64(waited), "{said}");
        assert_eq!(attempts(&api), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_refused_is_not_used_again() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let kube = account(&client(&api));
    read(&kube).await.unwrap();
    api.faults().inject(
        Fault::new(Effect::Answer(Status::new(401, "Unauthorized", "Unauthorized")))
            .verb("get")
            .resource("nodes")
            .times(1),
    );
    assert!(matches!(read(&kube).await, Err(KubeError::Unauthorized(_))));
    read(&kube).await.unwrap();
    assert_eq!(tokens(&api), 2);
}

#[tokio::test(start_paused = true)]
async fn no_token_is_asked_for_behind_a_closed_gate() {
    let api = server();
    let gate = Switch::open();
    let kube = account(&client(&api).with_gate(gate.clone()));
    gate.close();
    assert_eq!(read(&kube).await.unwrap_err(), KubeError::GateClosed);
    assert!(api.journal().writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_the_rule_for_tokens_the_error_names_account_and_rule() {
    let api = server();
    api.access().permit(Permit::new(
        "system:anonymous",
        &["get", "create"],
        "",
        &["serviceaccounts"],
    ));
    let error = read(&account(&client(&api))).await.unwrap_err();
    assert!(matches!(error, KubeError::Forbidden(_)), "{error:?}");
    let text = error.to_string();
    for part in [
        "token of the service account kube-system/node-controller: ",
        r#"allow it to this user with the rule {apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"]}"#,
        " in the namespace kube-system, without it service accounts: a controller gets no token",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_that_of_each_identity_and_none_without_the_flags() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let paced = |pace| Kube::with_service(api.service(), KubeOptions { pace, ..options() });
    let took = async |kubes: &[Kube]| {
        let begun = Instant::now();
        let reads = kubes.iter().flat_map(|kube| (0..4).map(move |_| read(kube)));
        futures::future::join_all(reads).await;
        begun.elapsed()
    };
    let kube = paced(Some(Rate {
        per_second: 1.0,
        burst: 2,
    }));
    let (one, other) = (kube.identified("one"), kube.identified("other"));
    assert_eq!(
        took(&[one.clone(), one.clone()]).await,
        SECOND * 6,
        "a clone is no other"
    );
    let (one, another) = (kube.identified("one"), other);
    assert_eq!(
        took(&[one, another]).await,
        SECOND * 2,
        "each has a bucket of its own"
    );
    let kube = paced(None);
    assert_eq!(took(&[kube.identified("one"), kube]).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_shows_at_the_cache_until_it_is_allowed() {
    for verbs in [&["list"][..], &["watch"][..], &[][..]] {
        let api = server();
        api.access().forbid_everything();
        if !verbs.is_empty() {
            api.access()
                .permit(Permit::new("system:anonymous", verbs, "", &["nodes"]));
        }
        let cache = Arc::new(NodeCache::new());
        let watch = tokio::spawn(watch_nodes(client(&api), Arc::clone(&cache)));
        until("the refusal", || cache.refusal().is_some()).await;
        let missing = if verbs == ["list"] { "watch" } else { "list" };
        let text = cache.refusal().unwrap().to_string();
        let rule = format!(r#"{{apiGroups: [""], resources: ["nodes"], verbs: ["{missing}"]}}"#);
        assert!(
            text.contains(&rule) && text.contains("informers: no controller knows any Node"),
            "{text}"
        );
        api.access().allow_everything();
        until("it is read", || cache.refusal().is_none() && cache.is_synced()).await;
        watch.abort();
    }
}
