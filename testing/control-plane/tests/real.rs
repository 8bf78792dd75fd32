//! The real thing: starts servers. Needs the built programs; says so when they are missing.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_control_plane::{ControlPlane, Options, Version, binaries_or_skip};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, Config};

async fn client(kubeconfig: &bowline_control_plane::Kubeconfig) -> Client {
    let parsed = kube::config::Kubeconfig::read_from(kubeconfig.path()).unwrap();
    let config = Config::from_custom_kubeconfig(parsed, &Default::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

/// One start for all that is asked of a control plane: a start is most of what each question would cost.
#[tokio::test]
async fn a_control_plane_is_a_real_one_and_leaves_nothing() {
    let version = Version::wanted().unwrap();
    if binaries_or_skip(version).is_none() {
        return;
    }
    let options = Options {
        version,
        audit: true,
        ..Options::default()
    };
    let plane = ControlPlane::start(options).await.unwrap();
    it_keeps_what_it_is_given_and_tells_its_version(&plane).await;
    a_service_account_may_do_what_its_role_says_and_no_more(&plane).await;
    a_user_without_a_role_may_not_read_nodes(&plane).await;
    a_dropped_one_leaves_no_process_and_no_file(plane);
}

async fn it_keeps_what_it_is_given_and_tells_its_version(plane: &ControlPlane) {
    let admin = client(plane.admin()).await;

    let version = admin.apiserver_version().await.unwrap();
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(version.git_version, plane.version().release());
        assert_eq!(
            format!("{}.{}", version.major, version.minor),
            plane.version().minor()
        );
    }

    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let wanted = Namespace {
        metadata: ObjectMeta {
            name: Some("harbour".to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let created = namespaces.create(&PostParams::default(), &wanted).await.unwrap();
    let read = namespaces.get("harbour").await.unwrap();
    assert_eq!(read.metadata.uid, created.metadata.uid);
    assert!(read.metadata.uid.is_some());

    let maps: Api<ConfigMap> = Api::namespaced(admin, "kube-system");
    let data = published(&maps, "extension-apiserver-authentication").await;
    assert_eq!(data["client-ca-file"], plane.authority());
    assert!(data.contains_key("requestheader-client-ca-file"), "{data:?}");
}

/// The server writes this map in the background, a moment after it is ready.
async fn published(maps: &Api<ConfigMap>, name: &str) -> BTreeMap<String, String> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(data) = maps.get_opt(name).await.unwrap().and_then(|map| map.data) {
            return data;
        }
        assert!(tokio::time::Instant::now() < deadline, "no {name} within 30 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn a_service_account_may_do_what_its_role_says_and_no_more(plane: &ControlPlane) {
    plane
        .apply(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: watchman}
rules:
- {apiGroups: [''], resources: [nodes], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: watchman}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: watchman}
subjects:
- {kind: ServiceAccount, name: watchman, namespace: tower}
",
        )
        .await
        .unwrap();
    let kubeconfig = plane
        .kubeconfig_for_service_account("tower", "watchman")
        .await
        .unwrap();
    assert!(
        kubeconfig
            .token()
            .is_some_and(|token| token.matches('.').count() == 2),
        "not a signed token"
    );
    let nodes: Api<Node> = Api::all(client(&kubeconfig).await);

    eventually_allowed(&nodes).await;
    let refused = nodes.get("anything").await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403),
        "{refused:?}"
    );

    let forbidden = plane.forbidden().unwrap();
    let last = forbidden.last().unwrap();
    assert_eq!(last.user, "system:serviceaccount:tower:watchman");
    assert_eq!(
        (last.verb.as_str(), last.uri.as_str()),
        ("get", "/api/v1/nodes/anything")
    );
    assert_eq!(last.code, Some(403));
}

/// The authorizer sees a new binding through a watch, so a moment after it was written.
async fn eventually_allowed(nodes: &Api<Node>) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while let Err(error) = nodes.list(&ListParams::default()).await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the role does not work within 30 s: {error}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn a_user_without_a_role_may_not_read_nodes(plane: &ControlPlane) {
    let stranger = plane.kubeconfig_for_user("stranger", Some("visitors")).unwrap();
    let nodes: Api<Node> = Api::all(client(&stranger).await);
    let refused = nodes.list(&ListParams::default()).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("stranger"), "{refused}");
}

fn a_dropped_one_leaves_no_process_and_no_file(plane: ControlPlane) {
    let directory = plane.admin().path().parent().unwrap().to_owned();
    let ids = plane.process_ids();
    assert!(ids.iter().all(|id| is_running(*id)), "{ids:?}");
    drop(plane);
    assert!(!directory.exists());
    assert!(!ids.iter().any(|id| is_running(*id)), "{ids:?}");
}

fn is_running(id: u32) -> bool {
    std::path::Path::new("/proc").join(id.to_string()).exists()
}
