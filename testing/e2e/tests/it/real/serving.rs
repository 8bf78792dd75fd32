//! The secure port and clients about whom only the real API server can tell.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::config::AuthInfo;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::Value;

use super::cloudscale::Site;
use super::rbac::manifest;
use super::scenarios::SCRAPER;
use crate::process::cluster::{ask, ask_showing, free_port};

/// Splits the shipped manifest into what it grants and the binding that lets the manager read what kube-apiserver
/// publishes about its clients.
fn without_reader() -> (String, String) {
    let text = manifest("config.yml");
    let is_reader = |document: &&str| {
        document.contains("kind: RoleBinding") && document.contains("-authentication-reader")
    };
    let (reader, rest): (Vec<&str>, Vec<&str>) = text.split("\n---\n").partition(is_reader);
    assert_eq!(reader.len(), 1);
    (rest.join("\n---\n"), reader.join(""))
}

fn flags(site: &Site, port: u16) -> Vec<String> {
    let own = site.kubeconfig().display();
    vec![
        format!("--authentication-kubeconfig={own}"),
        format!("--authorization-kubeconfig={own}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
    ]
}

fn words(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// The requests for reviews so far.
fn reviews(site: &Site) -> usize {
    let requests = site.requests();
    requests.iter().filter(|it| it.uri.contains("reviews")).count()
}

#[tokio::test]
async fn what_cannot_be_looked_up_ends_the_start_unless_it_is_tolerated() {
    let (rest, reader) = without_reader();
    let Some(site) = Site::start_with(&rest).await else {
        return;
    };
    let port = free_port();
    let mut flags = flags(&site, port);

    let mut refused = site.manager_with(&words(&flags));
    assert_eq!(refused.ended().await.0.code(), Some(1));
    let log = refused.log().join("\n");
    assert!(
        log.contains("unable to load configmap based request-header-client-ca-file: "),
        "{log}"
    );
    assert!(log.contains("extension-apiserver-authentication-reader"), "{log}");

    flags.push("--authentication-tolerate-lookup-failure".to_owned());
    let manager = site.manager_with(&words(&flags));
    let admin = site.certificate("root", Some("system:masters"));
    manager
        .until("it serves", async || ask(port, None, "/healthz").await.is_some())
        .await;
    assert_eq!(
        ask_showing(port, &admin, "/configz").await.unwrap().0,
        403,
        "nobody vouches for the certificate yet"
    );
    // It keeps looking, so that the right that was missing helps without a restart.
    site.apply(&reader).await;
    manager
        .until("the cluster's administrator is known", async || {
            matches!(ask_showing(port, &admin, "/configz").await, Some((200, _)))
        })
        .await;
}

#[tokio::test]
async fn the_api_server_s_word_decides_about_tokens_and_certificates() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.may_look_clients_up().await;
    site.apply(SCRAPER).await;
    let (scraper, stranger) = (site.token("scraper").await, site.token("stranger").await);
    let port = free_port();
    let manager = site.manager_with(&words(&flags(&site, port)));
    manager
        .until("the scraper is let in", async || {
            matches!(ask(port, Some(&scraper), "/metrics").await, Some((200, _)))
        })
        .await;
    let before = reviews(&site);
    assert!(before >= 2, "a token and an access were reviewed");
    assert_eq!(ask(port, Some(&scraper), "/metrics").await.unwrap().0, 200);
    assert_eq!(reviews(&site), before, "the second request asks nobody");

    for (token, user) in [
        (None, "system:anonymous"),
        (Some(stranger.as_str()), "system:serviceaccount:default:stranger"),
    ] {
        let (code, body) = ask(port, token, "/metrics").await.unwrap();
        assert_eq!(code, 403, "{user}");
        let status: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status["kind"], "Status");
        assert_eq!(
            status["message"],
            format!("forbidden: User \"{user}\" cannot get path \"/metrics\"")
        );
    }
    assert_eq!(ask(port, Some("nonsense"), "/metrics").await.unwrap().0, 401);

    let before = reviews(&site);
    let admin = site.certificate("root", Some("system:masters"));
    let (code, body) = ask_showing(port, &admin, "/configz").await.unwrap();
    assert_eq!(code, 200, "{body}");
    let configuration: Value = serde_json::from_str(&body).unwrap();
    let parts = &configuration["cloudcontrollermanager.config.k8s.io"];
    assert_eq!(parts.as_object().map(serde_json::Map::len), Some(9), "{body}");
    assert_eq!(reviews(&site), before, "masters are not reviewed");

    let alice = site.certificate("alice", None);
    let (code, body) = ask_showing(port, &alice, "/configz").await.unwrap();
    assert_eq!(code, 403, "{body}");
    assert!(body.contains("alice"), "{body}");
    assert_eq!(reviews(&site), before + 1, "others are");
    site.assert_nothing_forbidden();
}

#[tokio::test]
async fn an_authority_that_the_cluster_adds_is_trusted_without_a_restart() {
    let Some(site) = Site::start_with(&manifest("config.yml")).await else {
        return;
    };
    site.may_look_clients_up().await;
    let (authority, identity) = foreign_admin();
    let port = free_port();
    let manager = site.manager_with(&words(&flags(&site, port)));
    manager
        .until("it serves", async || ask(port, None, "/healthz").await.is_some())
        .await;
    assert_eq!(ask_showing(port, &identity, "/configz").await.unwrap().0, 401);
    site.also_vouch_for(&authority).await;
    manager
        .until("the new authority vouches", async || {
            matches!(ask_showing(port, &identity, "/configz").await, Some((200, _)))
        })
        .await;
    let old = site.certificate("root", Some("system:masters"));
    assert_eq!(ask_showing(port, &old, "/configz").await.unwrap().0, 200);
}

/// An authority that the cluster does not know, and a member of `system:masters` by its word.
fn foreign_admin() -> (String, AuthInfo) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "new-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);

    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "root");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let text = serde_json::json!({
        "client-certificate-data": BASE64.encode(&certificate),
        "client-key-data": BASE64.encode(key.serialize_pem()),
    });
    (authority, serde_json::from_value(text).unwrap())
}
