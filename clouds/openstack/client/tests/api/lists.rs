use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_openstack_client::{CallObserver, Class, PortFilter};

use crate::cloud::{Answer, client, lines, neutron, octavia, refusal};

#[tokio::test(start_paused = true)]
async fn all_pages_are_read_and_the_token_stays_with_the_host() {
    let page = |id: &str, next: &str| {
        Answer::ok(&format!(
            r#"{{"servers": [{{"id": "{id}"}}], "servers_links": [{{"rel": "next", "href": "{next}"}}]}}"#
        ))
    };
    let (client, api) = client([
        page("a", "http://elsewhere/v2.1/servers/detail?limit=1&marker=a"),
        page("b", "/v2.1/servers/detail?limit=1&marker=b"),
        Answer::ok(r#"{"servers": [{"id": "c"}]}"#),
    ]);
    let servers = client.servers().await.unwrap();
    let ids: Vec<_> = servers.iter().map(|server| server.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(
        lines(&api, 1),
        [
            "GET http://127.0.0.1:18774/v2.1/servers/detail",
            "GET http://127.0.0.1:18774/v2.1/servers/detail?limit=1&marker=a",
            "GET http://127.0.0.1:18774/v2.1/servers/detail?limit=1&marker=b",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_pages_always_begin_anew_is_an_error() {
    let page =
        r#"{"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": "http://h/?marker=a"}]}"#;
    let (client, api) = client([(); 8].map(|()| Answer::ok(page)));
    let error = client.servers().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "servers.list: the list is not whole: each time it was read, a page began anew or after an object that was gone by then"
    );
    assert!(matches!(error.class, Class::Unavailable { .. }), "{error:?}");
    assert_eq!(lines(&api, 1).len(), 8);
}

/// A page of Neutron's security groups.
fn groups(ids: &[&str], has_next: bool) -> Answer {
    let listed: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"id": "{id}", "security_group_rules": []}}"#))
        .collect();
    let marker = ids.last().filter(|_| has_next);
    let links = marker.map_or(String::new(), |marker| {
        format!(r#", "security_groups_links": [{{"rel": "next", "href": "http://h/?marker={marker}"}}]"#)
    });
    Answer::ok(&format!(
        r#"{{"security_groups": [{}]{links}}}"#,
        listed.join(", ")
    ))
}

/// The object after which the second page was to begin was deleted in between.
#[tokio::test(start_paused = true)]
async fn a_list_that_begins_anew_between_two_pages_shows_nothing_twice() {
    let refused = |status| {
        refusal(
            status,
            r#"{"NeutronError": {"type": "X", "message": "no b", "detail": ""}}"#,
        )
    };
    for second in [
        groups(&["a", "c"], true),
        groups(&["c", "a"], false),
        refused(404),
        refused(400),
    ] {
        let (client, api) = neutron([
            groups(&["a", "b"], true),
            second,
            groups(&["a", "c"], true),
            groups(&["d"], false),
        ]);
        let all = client.security_groups().await.unwrap();
        let ids: Vec<_> = all.iter().map(|group| group.id.as_str()).collect();
        assert_eq!(ids, ["a", "c", "d"]);
        assert!(!lines(&api, 2)[2].contains("marker"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_page_shows_twice_is_one() {
    let (client, _) = neutron([groups(&["a", "b", "a"], false)]);
    assert_eq!(client.security_groups().await.unwrap().len(), 2);
}

/// Only a page after the first has something to begin after.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_is_asked_for_once() {
    let (client, api) = neutron([refusal(400, "")]);
    assert!(client.security_groups().await.is_err());
    assert_eq!(lines(&api, 2).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_costs_the_whole_list() {
    let page =
        r#"{"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": "http://h/?marker=a"}]}"#;
    let (client, _) = client([Answer::ok(page), refusal(500, "")]);
    assert!(client.servers().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_next_page_that_cannot_be_asked_for_is_no_end_of_the_list() {
    for href in ["", "http://h/v2.1/servers/detail", "http://[broken"] {
        let page = format!(
            r#"{{"servers": [{{"id": "a"}}], "servers_links": [{{"rel": "next", "href": "{href}"}}]}}"#
        );
        let (client, _) = client([Answer::ok(&page)]);
        let error = client.servers().await.unwrap_err();
        assert_eq!(error.class, Class::Unusable, "{href}");
        assert_eq!(
            error.to_string(),
            "servers.list: the list is not whole: its next page has no usable URL"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn conditions_stand_in_the_query() {
    let empty = || Answer::ok(r#"{"ports": [], "subnets": [], "floatingips": []}"#);
    let (client, api) = neutron([empty(), empty(), empty()]);
    let by_address = PortFilter {
        address: Some("10.0.0.11"),
        network_id: Some(&"n".into()),
        ..PortFilter::default()
    };
    client.ports(&by_address).await.unwrap();
    client.subnets().await.unwrap();
    client.floating_ips_of(&"p".into()).await.unwrap();
    assert_eq!(
        lines(&api, 2),
        [
            "GET http://127.0.0.1:19696/v2.0/ports?fixed_ips=ip_address%3D10.0.0.11&network_id=n",
            "GET http://127.0.0.1:19696/v2.0/subnets?limit=1000",
            "GET http://127.0.0.1:19696/v2.0/floatingips?port_id=p&limit=1000",
        ]
    );
}

/// Writes down what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<(&'static str, bool)>>);

impl CallObserver for Told {
    fn observe(&self, request: &'static str, _: Duration, has_failed: bool) {
        self.0.lock().unwrap().push((request, has_failed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_pages_is_one_call_and_an_absence_no_failure() {
    let page = r#"{"servers": [], "servers_links": [{"rel": "next", "href": "http://h/?marker=a"}]}"#;
    let absent = r#"{"itemNotFound": {"code": 404, "message": "Instance x could not be found."}}"#;
    let (client, _) = client([
        Answer::ok(page),
        Answer::ok(r#"{"servers": []}"#),
        refusal(404, absent),
        refusal(500, ""),
    ]);
    let told = Arc::new(Told::default());
    let client = client.observed_by(Arc::clone(&told) as Arc<_>);
    client.servers().await.unwrap();
    client.server("x").await.unwrap();
    client.server("x").await.unwrap_err();
    assert_eq!(
        *told.0.lock().unwrap(),
        [
            ("server_list", false),
            ("server_get", false),
            ("server_get", true)
        ]
    );
}

/// The project of the recorded token.
const PROJECT: &str = "b8f9c18b13ea451bac416e604134cbaf";

/// Octavia leaves the filters out of its links, and writes a limit that it would refuse where it has none.
#[tokio::test(start_paused = true)]
async fn filters_hold_on_every_page() {
    let page = |id: &str, project: &str, next: &str| {
        Answer::ok(&format!(
            r#"{{"loadbalancers": [{{"id": "{id}", "project_id": "{project}"}}], "loadbalancers_links": [{{"rel": "next", "href": "http://h/v2.0/lbaas/loadbalancers?{next}"}}]}}"#
        ))
    };
    let (client, api) = octavia([
        page("a", "", "limit=None&marker=a"),
        page("b", "somebody-elses", "limit=500&marker=b"),
        Answer::ok(r#"{"loadbalancers": [{"id": "c"}]}"#),
    ]);
    let balancers = client.load_balancers().await.unwrap();
    let ids: Vec<_> = balancers.iter().map(|there| there.id.as_str()).collect();
    assert_eq!(ids, ["a", "c"], "what names no project is nobody else's");
    let queries: Vec<String> = lines(&api, 2)
        .iter()
        .map(|line| line.split_once('?').unwrap().1.to_owned())
        .collect();
    let own = format!("project_id={PROJECT}");
    assert_eq!(
        queries,
        [
            format!("{own}&limit=1000"),
            format!("{own}&limit=1000&marker=a"),
            format!("{own}&limit=500&marker=b"),
        ]
    );
}
