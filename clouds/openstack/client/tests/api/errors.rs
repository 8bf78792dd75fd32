use bowline_openstack_client::{Class, Deleted};

use crate::cloud::{Answer, client, neutron, octavia, refusal};

const UNKNOWN: &str = include_str!("recorded/server-unknown.json");
const ID: &str = "00000000-0000-0000-0000-00000000dead";

#[tokio::test(start_paused = true)]
async fn only_novas_own_word_about_this_very_server_is_an_absence() {
    let (known, _) = client([refusal(404, UNKNOWN)]);
    assert_eq!(known.server(ID).await.unwrap(), None);
    let elsewhere = r#"{"itemNotFound": {"code": 404, "message": "The resource could not be found."}}"#;
    for body in [
        "",
        "<html>Not Found</html>",
        "{}",
        r#"{"message": "no"}"#,
        elsewhere,
        UNKNOWN,
    ] {
        let (client, _) = client([refusal(404, body)]);
        assert!(client.server("another").await.is_err(), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_does_not_know_the_way_proves_no_absence() {
    for body in [
        r#"{"message": "no Route matched with those values"}"#.to_owned(),
        format!(r#"{{"error": {{"code": 404, "message": "GET /v2.1/servers/{ID} is not routed"}}}}"#),
        format!(r#"{{"code": "404", "description": "no API for /v2.1/servers/{ID}"}}"#),
        format!("<html>/v2.1/servers/{ID} was not found</html>"),
    ] {
        let (client, _) = client([refusal(404, &body)]);
        assert!(client.server(ID).await.is_err(), "{body}");
    }
    let gone = format!(r#"{{"faultcode": "Client", "faultstring": "Load Balancer {ID} not found."}}"#);
    let (client, _) = octavia([
        refusal(404, &gone),
        refusal(404, r#"{"code": "404", "description": "no such API"}"#),
    ]);
    let id = ID.into();
    assert_eq!(client.load_balancer(&id).await.unwrap(), None);
    assert!(client.load_balancer(&id).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_named() {
    let (client, _) = client([Answer::NoConnection]);
    let text = client.servers().await.unwrap_err().to_string();
    assert!(
        text.starts_with("servers.list: GET /v2.1/servers/detail: cannot connect"),
        "{text}"
    );
    assert!(text.ends_with("(host 127.0.0.1:18774)"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn each_service_is_understood() {
    let in_use = include_str!("recorded/security-group-in-use.json");
    let (client, _) = neutron([refusal(409, in_use)]);
    let error = client.delete_security_group(&"g".into()).await.unwrap_err();
    assert_eq!(
        (error.class, error.word.as_deref()),
        (Class::Conflict, Some("SecurityGroupInUse"))
    );
    assert_eq!(
        error.to_string(),
        "security-groups.delete: DELETE /v2.0/security-groups/g: 409 Conflict: Security Group \
         c5c5119b-1387-4bd6-8cab-8a4371379e28 in use."
    );
    let (client, _) = neutron([refusal(403, include_str!("recorded/floating-ip-denied.json"))]);
    let error = client.floating_ips().await.unwrap_err();
    assert_eq!(
        (error.class, error.word.as_deref()),
        (Class::Denied, Some("PolicyNotAuthorized"))
    );
    let immutable = r#"{"faultcode": "Client", "faultstring": "Load Balancer L is immutable and cannot be updated.", "debuginfo": null}"#;
    let (client, _) = octavia([refusal(409, immutable)]);
    let error = client.delete_load_balancer(&"L".into(), true).await.unwrap_err();
    assert!(error.is_busy());
    assert_eq!(error.class, Class::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_neither_a_conflict_nor_a_lack_of_rights() {
    for (status, body) in [
        (
            409,
            r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}"#,
        ),
        (
            409,
            r#"{"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses available.", "detail": ""}}"#,
        ),
        (
            403,
            r#"{"faultcode": "Client", "faultstring": "Quota has been met for resources: Load Balancer", "debuginfo": null}"#,
        ),
        (
            409,
            r#"{"faultcode": "Client", "faultstring": "The VIP IP address is already in use: No more IP addresses available on network n.", "debuginfo": null}"#,
        ),
        (
            500,
            r#"{"faultcode": "Server", "faultstring": "Provider 'ovn' reports error: No more IP addresses available on network n.", "debuginfo": null}"#,
        ),
        (
            500,
            r#"{"faultcode": "Server", "faultstring": "Provider 'ovn' reports error: Quota exceeded for resources: ['port'].", "debuginfo": null}"#,
        ),
        (
            413,
            r#"{"overLimit": {"code": 413, "message": "Quota exceeded"}}"#,
        ),
    ] {
        let (client, _) = neutron([refusal(status, body)]);
        let error = client.networks().await.unwrap_err();
        assert_eq!(error.class, Class::Exhausted, "{body}");
        assert!(!error.is_busy());
    }
    let (client, _) = neutron([refusal(
        412,
        r#"{"NeutronError": {"type": "RevisionNumberConstraintFailed", "message": "m", "detail": ""}}"#,
    )]);
    let error = client.networks().await.unwrap_err();
    assert!(error.is_outdated());
    assert_eq!(error.class, Class::Conflict);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_already_is_deleted() {
    let gone = r#"{"NeutronError": {"type": "FloatingIPNotFound", "message": "Floating IP f could not be found", "detail": ""}}"#;
    let (client, _) = neutron([
        Answer::Body(204, String::new()),
        refusal(404, gone),
        refusal(404, "<html/>"),
    ]);
    let id = "f".into();
    assert_eq!(client.delete_floating_ip(&id).await.unwrap(), Deleted::Accepted);
    assert_eq!(
        client.delete_floating_ip(&id).await.unwrap(),
        Deleted::AlreadyGone
    );
    assert!(client.delete_floating_ip(&id).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_may_have_had_its_effect_and_a_login_that_is_lost_has_none() {
    let (lost, _) = neutron([refusal(502, "")]);
    let error = lost.delete_floating_ip(&"f".into()).await.unwrap_err();
    assert!(error.maybe_applied());
    let (client, _) = crate::cloud::client_with(crate::cloud::settings(), [refusal(502, "")]);
    let error = client.delete_floating_ip(&"f".into()).await.unwrap_err();
    assert!(!error.maybe_applied());
}
