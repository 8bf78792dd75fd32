//! Every case: what the policy says, what the reader says, and that the two agree.

use bowline_checks::admission::Part;
use serde_json::json;

use crate::admission::apiserver::{ApiServer, complaints, policy, service};
use crate::admission::cases::{Verdict, all};

#[tokio::test]
async fn every_bad_value_is_caught_or_listed_and_no_good_one_is() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    let mut faults = Vec::new();
    for case in all() {
        let answer = server.create(case.cloud, &case.service).await;
        let said = answer.said();
        let is_caught = !said.trim().is_empty();
        let read = complaints(case.cloud, &case.service);
        let is_right = match case.verdict {
            Verdict::Good => !is_caught && read.is_empty(),
            Verdict::Caught => is_caught && said.contains(case.names) && !read.is_empty(),
            Verdict::CaughtBeforeTheCloud => is_caught && said.contains(case.names) && read.is_empty(),
            Verdict::Beyond => !is_caught && !read.is_empty(),
        };
        if !is_right {
            faults.push(format!(
                "{:?} {}: {said:?}, reader: {read:?}",
                case.verdict, case.service
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn what_is_said_names_the_key_the_value_and_what_is_allowed() {
    let Some(server) = ApiServer::start("Deny").await else {
        return;
    };
    let said = |annotations: Vec<(&'static str, &'static str)>| {
        let server = &server;
        async move {
            let answer = server.create("cloudscale", &service(&annotations)).await;
            assert_eq!(answer.status, 422, "{answer:?}");
            answer.said()
        }
    };
    let mode = said(vec![("k8s.cloudscale.ch/loadbalancer-pool-protocol", "proxy-v2")]).await;
    let expected =
        "k8s.cloudscale.ch/loadbalancer-pool-protocol is `proxy-v2` and must be one of: tcp, proxy, proxyv2";
    assert!(mode.contains(expected), "{mode}");
    for (wrong, right) in [
        ("flavour", "flavor"),
        ("floating-ip", "floating-ips"),
        ("timeout-client-data", "timeout-client-data-ms"),
        ("healthmonitor-type", "health-monitor-type"),
        ("Node-Selector", "node-selector"),
        ("nmae", "name"),
    ] {
        let wrong = format!("k8s.cloudscale.ch/loadbalancer-{wrong}");
        let answer = server
            .create("cloudscale", &service(&[(&wrong, "x")]))
            .await
            .said();
        let expected = format!("{wrong} (is it k8s.cloudscale.ch/loadbalancer-{right}?)");
        assert!(answer.contains(&expected), "{answer}");
    }
    // What many keys begin with: no more than the three nearest.
    let bare = said(vec![("k8s.cloudscale.ch/loadbalancer", "x")]).await;
    assert!(
        bare.contains(
            "k8s.cloudscale.ch/loadbalancer (is it k8s.cloudscale.ch/loadbalancer-name or \
             k8s.cloudscale.ch/loadbalancer-flavor or k8s.cloudscale.ch/loadbalancer-zone?)"
        ),
        "{bare}"
    );
    // A prefix of its own, and a key that is like no other.
    let elsewhere = said(vec![("k8s.cloudscale.ch/load-balancer-zone", "rma1")]).await;
    assert!(
        elsewhere.contains("(is it k8s.cloudscale.ch/loadbalancer-zone?)"),
        "{elsewhere}"
    );
    let strange = said(vec![("k8s.cloudscale.ch/loadbalancer-nonsense", "x")]).await;
    assert!(
        strange.contains("loadbalancer-nonsense") && !strange.contains("is it"),
        "{strange}"
    );
    // A value of several lines cannot be repeated; the key and what is allowed are said all the same.
    let lines = said(vec![("k8s.cloudscale.ch/loadbalancer-ip-mode", "a\nb")]).await;
    assert!(
        lines.contains("k8s.cloudscale.ch/loadbalancer-ip-mode must be one of: Proxy, VIP"),
        "{lines}"
    );
}

#[tokio::test]
async fn large_services_cost_no_more_than_the_api_server_allows() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    // The most that annotations may be: 256 KiB.
    let mut many = service(&[]);
    for number in 0..2_000 {
        many["metadata"]["annotations"][format!("example.org/annotation-{number}")] = "x".repeat(100).into();
    }
    for cloud in ["cloudscale", "phoenixnap", "cloudstack", "openstack"] {
        server.create(cloud, &many).await.is_silent();
        // All annotations of the table at once, with values of usual length, and a few misspelt ones.
        let mut all = service(&[]);
        for (_, text) in policy(cloud, Part::Values)
            .variables
            .iter()
            .filter(|it| it.0 == "known")
        {
            for key in text.split('\'').filter(|part| part.contains('/')) {
                all["metadata"]["annotations"][key] = json!("nonsense [\"192.0.2.0/24\", \"192.0.2.0/24\"]");
                all["metadata"]["annotations"][format!("{key}x")] = json!("nonsense");
            }
        }
        let said = server.create(cloud, &all).await.said();
        assert!(
            !said.contains("cost") && !said.contains("budget") && !said.contains("expression"),
            "{said}"
        );
    }
    let cidrs: Vec<String> = (0..250).map(|number| format!("192.0.{number}.0/24")).collect();
    let text = serde_json::to_string(&cidrs).unwrap();
    let key = "k8s.cloudscale.ch/loadbalancer-listener-allowed-cidrs";
    server
        .create("cloudscale", &service(&[(key, &text)]))
        .await
        .is_silent();
}
