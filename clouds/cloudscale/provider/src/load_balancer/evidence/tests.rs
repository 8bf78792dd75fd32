use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::Service;
use bowline_cloudscale_client::{LoadBalancerId, LoadBalancerStatus, Slug};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

/// A balancer by number, older ones first.
pub(super) fn balancer(number: u8, name: &str, marked: Option<&str>, cluster: Option<&str>) -> LoadBalancer {
    let tags = [(TAG_SERVICE_UID, marked), (TAG_CLUSTER_NAME, cluster)];
    LoadBalancer {
        uuid: Uuid::from_u128(number.into()).into(),
        name: name.to_owned(),
        created_at: Some(format!("2026-02-03T08:15:{number:02}.000000Z")),
        status: LoadBalancerStatus::Running,
        zone: Slug { slug: "rma1".into() },
        flavor: Slug {
            slug: "lb-standard".into(),
        },
        vip_addresses: Vec::new(),
        tags: tags
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
            .collect(),
    }
}

/// The Service `u1`; `u2` exists beside it, `u3` does not.
pub(super) fn identity(annotated: Option<u8>, cluster: Option<&str>) -> Identity {
    let other = |uid: &str| {
        let mut service = Service::default();
        service.metadata.uid = Some(uid.to_owned());
        Arc::new(service)
    };
    Identity {
        service: "web".into(),
        uid: "u1".into(),
        annotated: annotated.map(|number| Uuid::from_u128(number.into()).into()),
        is_published: true,
        name: "edge".into(),
        adopts_unmarked: true,
        cluster_name: cluster.map(Into::into),
        services: Arc::new(vec![other("u1"), other("u2")]),
    }
}

/// The number of the balancer that is kept and of those that are surplus, or a word.
pub(super) fn outcome(identity: &Identity, balancers: &[LoadBalancer]) -> String {
    let candidates: Vec<LoadBalancer> = balancers
        .iter()
        .filter(|it| is_candidate(identity, it))
        .cloned()
        .collect();
    match resolve(identity, &candidates) {
        Found::None => "none".into(),
        Found::Several { .. } => "several".into(),
        Found::Foreign { balancer, own, .. } => {
            let own = own.map(|own| format!(" beside {}", own.uuid.0.as_u128()));
            format!("foreign {}{}", balancer.uuid.0.as_u128(), own.unwrap_or_default())
        }
        Found::One { balancer, surplus } => {
            let numbers: Vec<String> = surplus.iter().map(|it| it.uuid.0.as_u128().to_string()).collect();
            format!("{} [{}]", balancer.uuid.0.as_u128(), numbers.join(" "))
        }
    }
}

#[test]
fn the_only_one_of_its_own_serves_a_service_that_names_somebody_elses() {
    let identity = identity(Some(1), None);
    let (theirs, own) = (balancer(1, "edge", Some("u2"), None), |number| {
        balancer(number, "x", Some("u1"), None)
    });
    let both = [theirs.clone(), own(2)];
    assert_eq!(outcome(&identity, &both), "foreign 1 beside 2");
    // It goes with the Service.
    assert_eq!(doomed(&identity, &both).own, [&both[1]]);
    assert_eq!(outcome(&identity, &[theirs, own(2), own(3)]), "foreign 1");
}

#[test]
fn the_rules_of_ownership() {
    let plain = |number, name| balancer(number, name, None, None);
    let marked = |number, name, uid| balancer(number, name, Some(uid), None);
    let tagged = |number, name, cluster| balancer(number, name, None, Some(cluster));
    type Row = (
        &'static str,
        Option<u8>,
        Option<&'static str>,
        Vec<LoadBalancer>,
        &'static str,
    );
    let table: Vec<Row> = vec![
        ("nothing there", None, None, vec![plain(1, "x")], "none"),
        ("annotated and gone", Some(9), None, vec![plain(1, "x")], "none"),
        ("by name", None, None, vec![plain(1, "edge")], "1 []"),
        (
            "by annotation, renamed by hand",
            Some(1),
            None,
            vec![plain(1, "x")],
            "1 []",
        ),
        (
            "annotated is gone, name is adopted",
            Some(9),
            None,
            vec![plain(1, "edge")],
            "1 []",
        ),
        (
            "two of one name",
            None,
            None,
            vec![plain(1, "edge"), plain(2, "edge")],
            "several",
        ),
        (
            "annotation and name disagree",
            Some(1),
            None,
            vec![plain(1, "x"), plain(2, "edge")],
            "several",
        ),
        (
            "by mark, renamed by hand",
            None,
            None,
            vec![marked(1, "x", "u1")],
            "1 []",
        ),
        (
            "two marked, oldest stays",
            None,
            None,
            vec![marked(2, "edge", "u1"), marked(1, "edge", "u1")],
            "1 [2]",
        ),
        (
            "two marked, annotated stays",
            Some(2),
            None,
            vec![marked(1, "edge", "u1"), marked(2, "edge", "u1")],
            "2 [1]",
        ),
        (
            "marked and another by name",
            None,
            None,
            vec![marked(1, "x", "u1"), plain(2, "edge")],
            "several",
        ),
        (
            "annotated and unmarked beside a marked one",
            Some(2),
            None,
            vec![marked(1, "x", "u1"), plain(2, "y")],
            "several",
        ),
        (
            "marked by another, by name",
            None,
            None,
            vec![marked(1, "edge", "u2")],
            "foreign 1",
        ),
        (
            "marked by nobody here, by name",
            None,
            None,
            vec![marked(1, "edge", "u3")],
            "foreign 1",
        ),
        (
            "marked by another, annotated",
            Some(1),
            None,
            vec![marked(1, "edge", "u2")],
            "foreign 1",
        ),
        (
            "marked by nobody here, annotated: a restore",
            Some(1),
            None,
            vec![marked(1, "edge", "u3")],
            "1 []",
        ),
        (
            "cluster agrees",
            None,
            Some("blue"),
            vec![tagged(1, "edge", "blue")],
            "1 []",
        ),
        (
            "cluster differs",
            None,
            Some("blue"),
            vec![tagged(1, "edge", "green")],
            "foreign 1",
        ),
        (
            "cluster differs, annotated",
            Some(1),
            Some("blue"),
            vec![tagged(1, "edge", "green")],
            "foreign 1",
        ),
        (
            "cluster unknown",
            None,
            None,
            vec![tagged(1, "edge", "green")],
            "foreign 1",
        ),
        (
            "cluster unknown, annotated",
            Some(1),
            None,
            vec![tagged(1, "edge", "green")],
            "foreign 1",
        ),
        (
            "cluster unknown, annotated, and the name holds the Service's UID",
            Some(1),
            None,
            vec![tagged(1, "k8s-service-u1", "green")],
            "1 []",
        ),
        (
            "cluster unknown, own mark",
            None,
            None,
            vec![balancer(1, "edge", Some("u1"), Some("green"))],
            "1 []",
        ),
        (
            "own mark and own cluster",
            None,
            Some("blue"),
            vec![balancer(1, "edge", Some("u1"), Some("blue"))],
            "1 []",
        ),
        (
            "own mark and another cluster, as in a copy of a cluster",
            Some(1),
            Some("blue"),
            vec![balancer(1, "edge", Some("u1"), Some("green"))],
            "foreign 1",
        ),
        (
            "a restore in the same cluster",
            Some(1),
            Some("blue"),
            vec![balancer(1, "edge", Some("u3"), Some("blue"))],
            "1 []",
        ),
        (
            "a restore in another cluster",
            Some(1),
            Some("blue"),
            vec![balancer(1, "edge", Some("u3"), Some("green"))],
            "foreign 1",
        ),
        (
            "a restore where the cluster is unknown",
            Some(1),
            None,
            vec![balancer(1, "edge", Some("u3"), Some("green"))],
            "foreign 1",
        ),
    ];
    for (case, annotated, cluster, balancers, expected) in table {
        let identity = identity(annotated, cluster);
        assert_eq!(outcome(&identity, &balancers), expected, "{case}");
        // A removal goes by the same rules.
        let doomed = doomed(&identity, &balancers);
        assert_eq!(
            !doomed.foreign.is_empty(),
            expected.starts_with("foreign"),
            "{case}"
        );
        assert!(doomed.own.iter().all(|it| !doomed.foreign.contains(it)), "{case}");
        let goes = !doomed.own.is_empty();
        assert_eq!(goes, expected.ends_with(']'), "{case}");
    }
}

#[test]
fn a_service_of_another_class_owns_only_what_bears_its_mark() {
    let identity = Identity {
        adopts_unmarked: false,
        ..identity(Some(1), None)
    };
    let there = [
        balancer(1, "edge", None, None),
        balancer(2, "x", Some("u1"), None),
    ];
    let doomed = doomed(&identity, &there);
    assert_eq!((doomed.own, doomed.ambiguous), (vec![&there[1]], Vec::new()));
}

/// The API server's own Service, and one that names balancer 4 by its UUID.
fn a_cluster(uid: &str) -> Vec<Arc<Service>> {
    let services = serde_json::json!([
        { "metadata": { "namespace": "default", "name": "kubernetes", "uid": uid } },
        { "metadata": { "namespace": "shop", "name": "restored", "uid": "u4", "annotations": {
            "k8s.cloudscale.ch/loadbalancer-uuid": Uuid::from_u128(4).to_string(),
        } } },
    ]);
    serde_json::from_value(services).unwrap()
}

fn made(number: u8, tags: &[(&str, &str)]) -> LoadBalancer {
    let tags = tags
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    LoadBalancer {
        tags: tags.collect(),
        ..balancer(number, "edge", None, None)
    }
}

#[test]
fn only_all_three_marks_tell_whom_a_balancer_of_this_cluster_was_made_for() {
    let (cluster, service, uid) = (
        (TAG_CLUSTER_UID, "c1"),
        (TAG_SERVICE_NAME, "shop/web"),
        (TAG_SERVICE_UID, "u1"),
    );
    let there = [
        made(1, &[cluster, service, uid]),
        made(2, &[(TAG_CLUSTER_UID, "c2"), service, uid]),
        made(3, &[service, uid]),
        // A Service names it: it is a restore, and the balancer is to live on.
        made(4, &[cluster, service, uid]),
        made(5, &[cluster, uid]),
        made(6, &[cluster, service]),
        made(7, &[cluster, (TAG_SERVICE_NAME, "web"), uid]),
    ];
    let expected = [MadeFor {
        key: ServiceKey::new("shop", "web"),
        uid: "u1".into(),
        balancer: format!("load balancer {} ({})", there[0].name, there[0].uuid),
    }];
    assert_eq!(made_by_cluster(&there, &a_cluster("c1")), expected);
    assert_eq!(made_by_cluster(&there, &Vec::new()), []);
}

#[test]
fn what_another_service_takes_over_does_not_go_with_one_that_is_gone() {
    let there = [
        balancer(4, "x", Some("u1"), None),
        balancer(5, "x", Some("u1"), None),
    ];
    let mut services = a_cluster("c1");
    let gone = Identity {
        services: Arc::new(services.clone()),
        ..identity(None, None)
    };
    assert_eq!(doomed(&gone, &there).own, [&there[1]]);
    // While it is here, both are its own.
    services.push(Arc::new(
        serde_json::from_value(serde_json::json!({ "metadata": { "uid": "u1" } })).unwrap(),
    ));
    let here = Identity {
        services: Arc::new(services),
        ..identity(None, None)
    };
    assert_eq!(doomed(&here, &there).own, [&there[0], &there[1]]);
}

#[test]
fn the_name_that_holds_the_service_s_uid_proves_a_restore_like_the_annotation() {
    for (marked, theirs, ours, expected) in [
        // `u3` is not here.
        ("u3", None, None, "1 []"),
        ("u3", Some("blue"), Some("blue"), "1 []"),
        ("u2", None, None, "foreign 1"),
        ("u3", Some("green"), Some("blue"), "foreign 1"),
    ] {
        let identity = Identity {
            name: names::balancer("u1"),
            ..identity(None, ours)
        };
        let there = balancer(1, "k8s-service-u1", Some(marked), theirs);
        assert_eq!(outcome(&identity, &[there]), expected, "{marked} {theirs:?}");
    }
}

#[test]
fn what_another_living_service_is_served_by_stays_when_one_goes_that_names_it() {
    let (named, edge) = (
        balancer(1, "k8s-service-u2", None, None),
        balancer(1, "edge", None, None),
    );
    let wanting = serde_json::json!([
        { "metadata": { "uid": "u1" }, "spec": { "type": "LoadBalancer" } },
        { "metadata": { "uid": "u2" }, "spec": { "type": "LoadBalancer" } },
    ]);
    let services: Vec<Arc<Service>> = serde_json::from_value(wanting).unwrap();
    let going = Identity {
        services: Arc::new(services),
        ..identity(Some(1), None)
    };
    let (named, edge) = ([named], [edge]);
    let doomed = |there| {
        let doomed = super::doomed(&going, there);
        (doomed.own.len(), doomed.foreign.len())
    };
    // As with an annotation that was copied from the other Service.
    assert_eq!(doomed(&named), (0, 1));
    assert_eq!(doomed(&edge), (1, 0));
    // What bears the mark of the one that goes was made for it.
    let marked = [balancer(1, "k8s-service-u2", Some("u1"), None)];
    assert_eq!(doomed(&marked), (1, 0));
}

proptest! {
    #[test]
    fn nothing_that_bears_the_mark_of_a_living_service_is_kept_or_doomed(
        annotated in prop::option::of(0u8..6),
        cluster in prop::option::of(Just("blue")),
        kinds in prop::collection::vec((0u8..3, 0u8..4, 0u8..3), 0..6),
    ) {
        let identity = identity(annotated, cluster);
        let there: Vec<LoadBalancer> = kinds
            .iter()
            .zip(0u8..)
            .map(|((name, mark, cluster), number)| {
                let name = ["edge", "x", "k8s-service-u1"][usize::from(*name)];
                let mark = [None, Some("u1"), Some("u2"), Some("u3")][usize::from(*mark)];
                balancer(number, name, mark, [None, Some("blue"), Some("green")][usize::from(*cluster)])
            })
            .collect();
        let theirs: BTreeMap<LoadBalancerId, Option<&str>> =
            there.iter().map(|it| (it.uuid, it.tags.text(TAG_CLUSTER_NAME))).collect();
        let marks: BTreeMap<LoadBalancerId, Option<&str>> =
            there.iter().map(|it| (it.uuid, it.tags.text(TAG_SERVICE_UID))).collect();
        let candidates: Vec<LoadBalancer> = there.iter().filter(|it| is_candidate(&identity, it)).cloned().collect();
        let mut touched = doomed(&identity, &candidates).own;
        if let Found::One { balancer, surplus } = resolve(&identity, &candidates) {
            prop_assert!(surplus.iter().all(|it| marks[&it.uuid].is_some_and(|mark| mark == "u1")));
            touched.push(balancer);
        }
        for it in touched {
            prop_assert!(marks[&it.uuid].is_none_or(|mark| mark != "u2"));
            let is_of_cluster = theirs[&it.uuid].is_none_or(|theirs| match &identity.cluster_name {
                Some(ours) => theirs == ours,
                None => marks[&it.uuid].is_some_and(|mark| mark == "u1") || it.name == "k8s-service-u1",
            });
            prop_assert!(is_of_cluster);
            let is_told = identity.annotated == Some(it.uuid) || it.name == "k8s-service-u1";
            prop_assert!(marks[&it.uuid].is_none_or(|mark| mark == "u1" || is_told));
        }
    }
}
