use std::sync::Arc;

use bowline_cloud_provider::ServiceKey;
use bowline_openstack_client::{OperatingStatus, Pool, Reference};

use super::*;
use crate::config::LoadBalancerOptions;
use crate::load_balancer::observed::Told;
use crate::load_balancer::tags::Added;

fn identity() -> Identity {
    let service = ServiceKey::new("default", "web");
    Identity {
        name: names::balancer("lab", &service),
        elder: None,
        of_namesakes: Vec::new(),
        legacy_name: names::legacy_balancer("u-1"),
        uid: "u-1".into(),
        created: None,
        cluster: "lab".into(),
        cluster_uid: Some("c-1".into()),
        annotated: None,
        recorded_address: None,
        added_tags: Added::default(),
        tagging: Vec::new(),
        is_deleted: false,
        is_told_recorded: false,
        shares_address: false,
        going: Vec::new(),
        is_published: false,
        shown: Vec::new(),
        keeps_floating_ip: false,
        options: Arc::new(LoadBalancerOptions {
            former_clusters: vec!["former".into()],
            ..LoadBalancerOptions::default()
        }),
        service,
    }
}

/// The same, naming a load balancer, and perhaps the address that it was given.
fn naming(id: &str, address: Option<&str>) -> Identity {
    Identity {
        annotated: Some(id.into()),
        recorded_address: address.map(Into::into),
        ..identity()
    }
}

/// A load balancer as Octavia shows it.
fn balancer(id: &str, name: &str, tags: &[&str]) -> LoadBalancer {
    LoadBalancer {
        id: id.into(),
        name: name.into(),
        project_id: None,
        description: "Kubernetes external service default/web from cluster lab".into(),
        provisioning_status: ProvisioningStatus::Active,
        operating_status: OperatingStatus::Online,
        vip_address: "10.0.0.5".into(),
        vip_port_id: None,
        vip_subnet_id: None,
        vip_network_id: None,
        additional_vips: Vec::new(),
        vip_sg_ids: Vec::new(),
        admin_state_up: Some(true),
        tags: tags.iter().map(ToString::to_string).collect(),
        listeners: Vec::new(),
        pools: Vec::new(),
        provider: "amphora".into(),
        flavor_id: None,
        availability_zone: None,
        created_at: Some(format!("2026-01-01T00:00:{id}")),
        updated_at: None,
    }
}

const WEB: &str = "kube_service_lab_default_web";
const API: &str = "kube_service_lab_default_api";
const OTHER: &str = "kube_service_other_default_web";
const OTHER_API: &str = "kube_service_other_default_api";
const FORMER: &str = "kube_service_former_default_web";

/// What was found, in short.
fn found(identity: &Identity, candidates: &[LoadBalancer], gone: &[&str]) -> String {
    let observed = observed(candidates, gone, &[]);
    match resolve(identity, &observed) {
        Found::None => "none".into(),
        Found::Missing(id) => format!("missing {id}"),
        Found::Going(balancer) => format!("going {}", balancer.id),
        Found::OfOtherCluster(balancer) => format!("of another cluster {}", balancer.id),
        Found::Several(several) => format!("several {}", ids(&several)),
        Found::One {
            balancer,
            role,
            twins,
        } => format!("{role:?} {} twins {}", balancer.id, ids(&twins)),
    }
}

fn observed(candidates: &[LoadBalancer], gone: &[&str], marked: &[&str]) -> Observed {
    let those = |ids: &[&str]| ids.iter().map(|id| LoadBalancerId::from(*id)).collect();
    Observed {
        balancers: candidates.to_vec(),
        gone: those(gone),
        marked: those(marked),
        ..Observed::default()
    }
}

#[test]
fn the_annotation_counts_before_any_name() {
    let both = [balancer("01", WEB, &[WEB]), balancer("02", API, &[API])];
    assert_eq!(found(&naming("02", None), &both, &[]), "Guest 02 twins ");
    assert_eq!(found(&naming("01", None), &both, &[]), "Owner 01 twins ");
    assert_eq!(found(&identity(), &both, &[]), "Owner 01 twins ");
}

#[test]
fn what_the_annotation_names_in_vain_is_forgotten_only_beside_an_address() {
    assert_eq!(found(&naming("09", None), &[], &["09"]), "missing 09");
    assert_eq!(found(&naming("09", Some("10.0.0.5")), &[], &["09"]), "none");
    let named = [balancer("01", WEB, &[])];
    assert_eq!(
        found(&naming("09", Some("10.0.0.5")), &named, &["09"]),
        "Owner 01 twins "
    );
}

#[test]
fn of_several_the_oldest_is_kept_if_all_were_surely_made_for_the_service() {
    let twins = [balancer("02", WEB, &[WEB]), balancer("01", WEB, &[WEB])];
    assert_eq!(found(&identity(), &twins, &[]), "Owner 01 twins 02");
    // The annotation counts before the age.
    let mut three = vec![balancer("03", WEB, &[WEB])];
    three.extend(twins.clone());
    assert_eq!(found(&naming("02", None), &three, &[]), "Owner 02 twins 01, 03");
    // Only what bears the Service's mark is superfluous, and that counts before the age.
    let seen = observed(&three, &[], &["02", "03"]);
    let web = identity();
    let Found::One {
        balancer: used,
        twins,
        ..
    } = resolve(&web, &seen)
    else {
        panic!("{three:?}")
    };
    let (superfluous, kept) = surplus(&seen, twins);
    assert_eq!(
        (used.id.as_str(), ids(&superfluous), ids(&kept)),
        ("02", "03".into(), "01".into())
    );
}

#[test]
fn of_several_none_is_chosen_if_one_of_them_is_shared_or_was_made_by_hand() {
    let twins = [balancer("02", WEB, &[WEB]), balancer("01", WEB, &[WEB])];
    let shared = [balancer("01", WEB, &[WEB]), balancer("02", WEB, &[WEB, API])];
    assert_eq!(found(&identity(), &shared, &[]), "several 01, 02");
    let mut by_hand = twins.clone();
    by_hand[0].description = "mine".into();
    assert_eq!(found(&identity(), &by_hand, &[]), "several 01, 02");
}

#[test]
fn an_own_load_balancer_is_not_removed_because_the_service_uses_another_one_now() {
    let both = [balancer("01", WEB, &[WEB]), balancer("02", API, &[API, WEB])];
    assert_eq!(
        found(&naming("02", Some("10.0.0.5")), &both, &[]),
        "Guest 02 twins "
    );
}

#[test]
fn names_are_compared_exactly_and_in_their_order() {
    let old = balancer("01", &identity().legacy_name, &[]);
    let former = balancer("02", FORMER, &[FORMER]);
    let other_case = balancer("03", "KUBE_SERVICE_LAB_DEFAULT_WEB", &[]);
    let all = [old, former, other_case];
    assert_eq!(found(&identity(), &all, &[]), "Owner 02 twins ");
    assert_eq!(found(&identity(), &all[..1], &[]), "Owner 01 twins ");
    assert_eq!(found(&identity(), &all[2..], &[]), "none");
}

#[test]
fn what_is_being_deleted_is_waited_for() {
    let mut going = balancer("01", WEB, &[WEB]);
    going.provisioning_status = ProvisioningStatus::PendingDelete;
    assert_eq!(found(&identity(), std::slice::from_ref(&going), &[]), "going 01");
    assert_eq!(
        found(&naming("01", None), std::slice::from_ref(&going), &[]),
        "going 01"
    );
    going.provisioning_status = ProvisioningStatus::Deleted;
    assert_eq!(found(&identity(), &[going], &[]), "none");
}

#[test]
fn only_a_former_name_or_the_services_own_annotations_say_that_it_was_used_before_a_renaming() {
    let claimed =
        |identity: &Identity, balancer: &LoadBalancer| claimed_tag(identity, balancer).map(str::to_owned);
    let other = balancer("01", OTHER, &[OTHER]);
    let web = naming("01", Some("203.0.113.9"));
    // What is configured needs no annotation.
    let former = balancer("01", FORMER, &[FORMER]);
    assert!(is_our_tag(&identity(), &former, FORMER));
    assert_eq!(claimed(&web, &former), None);
    assert_eq!(claimed(&identity(), &other), None);
    assert_eq!(claimed(&naming("01", None), &other), None);
    assert_eq!(claimed(&web, &other).as_deref(), Some(OTHER));
    // Another Service, a guest that left its tag.
    assert_eq!(claimed(&web, &balancer("01", OTHER_API, &[OTHER_API])), None);
    assert_eq!(claimed(&web, &balancer("01", OTHER, &[OTHER, WEB])), None);
    // A guest was told the address.
    let host = balancer("01", OTHER_API, &[OTHER_API, OTHER]);
    assert_eq!(claimed(&web, &host), None);
    let told = Identity {
        is_told_recorded: true,
        ..web
    };
    assert_eq!(claimed(&told, &host).as_deref(), Some(OTHER));
    // Of two namesakes nobody can tell.
    let namesakes = ["kube_service_third_default_web", OTHER];
    assert_eq!(claimed(&told, &balancer("01", OTHER_API, &namesakes)), None);
}

#[test]
fn a_load_balancer_goes_only_with_the_last_service_that_uses_it() {
    let goes =
        |identity: &Identity, role, balancer: &LoadBalancer| is_to_be_deleted(identity, role, balancer);
    let web = identity();
    assert!(goes(&web, Role::Owner, &balancer("01", WEB, &[])));
    assert!(goes(&web, Role::Owner, &balancer("01", WEB, &[WEB, "note"])));
    assert!(!goes(&web, Role::Owner, &balancer("01", WEB, &[WEB, API])));
    assert!(goes(&web, Role::Guest, &balancer("01", API, &[WEB])));
    assert!(!goes(&web, Role::Guest, &balancer("01", API, &[])));
    assert!(!goes(&web, Role::Guest, &balancer("01", API, &[API])));
    assert!(!goes(&web, Role::Guest, &balancer("01", "by-hand", &[WEB])));
    // Renamed cluster, and the Service goes before anything was renamed.
    assert!(goes(&web, Role::Owner, &balancer("01", FORMER, &[FORMER])));
    assert!(goes(
        &naming("01", Some("10.0.0.5")),
        Role::Owner,
        &balancer("01", OTHER, &[OTHER])
    ));
}

/// As a backup that was restored into another cluster has: the annotations came along, and the load balancer serves the first one.
#[test]
fn a_copied_service_proves_no_renaming() {
    let made = balancer(
        "00",
        "kube_service_other_default_web",
        &["kube_service_other_default_web"],
    );
    for (created, is_ours) in [
        (None, true),
        (Some("2025-12-31T23:59:58Z"), true),
        (Some("2026-01-01T00:00:09Z"), true),
        (Some("2026-01-01T00:00:11Z"), false),
    ] {
        let identity = Identity {
            created: created.map(|created| created.parse().unwrap()),
            ..naming("00", Some("10.0.0.5"))
        };
        let claimed = claimed_tag(&identity, &made);
        assert_eq!(claimed, is_ours.then_some(OTHER), "{created:?}");
        let observed = observed(std::slice::from_ref(&made), &[], &[]);
        let found = resolve(&identity, &observed);
        let Found::One { role, .. } = found else {
            panic!("{found:?}")
        };
        assert_eq!(role == Role::Owner, is_ours, "{created:?}");
        assert_eq!(is_to_be_deleted(&identity, role, &made), is_ours, "{created:?}");
    }
}

/// A pool as Octavia shows it, with what is written on it.
fn pool(name: &str, description: &str) -> Pool {
    serde_json::from_value(serde_json::json!({
        "id": format!("{name}{description}"), "name": name, "description": description, "protocol": "TCP",
    }))
    .unwrap()
}

#[test]
fn pools_tell_whether_a_load_balancer_serves_another_service_of_the_name() {
    let web = |uid: &str| {
        pool(
            &names::pool(0, WEB),
            &format!("Kubernetes Service default/web, uid {uid}"),
        )
    };
    let ours = web("u-1");
    let other = web("u-2");
    let third = web("u-3");
    let (anew, elsewhere) = (web("u-7, cluster c-1"), web("u-8, cluster c-2"));
    let unmarked = pool(&names::pool(1, WEB), "");
    let guest = pool(&names::pool(0, API), "Kubernetes Service default/api, uid u-4");
    let other_cluster = pool(&names::pool(0, OTHER), "Kubernetes Service default/web, uid u-5");
    let former = pool(&names::pool(0, FORMER), "Kubernetes Service default/web, uid u-6");
    let of_another = |uid: &str| Told::OfAnother(uid.to_owned());
    for (pools, told) in [
        (vec![], Told::Nothing),
        (vec![&unmarked], Told::Nothing),
        (vec![&ours], Told::Ours),
        (vec![&ours, &guest], Told::Ours),
        (vec![&ours, &unmarked], Told::Nothing),
        (vec![&other], of_another("u-2")),
        (vec![&unmarked, &other], of_another("u-2")),
        (vec![&third, &other], of_another("u-2")),
        (vec![&other, &ours], Told::Nothing),
        (vec![&guest], Told::Nothing),
        (vec![&guest, &other], of_another("u-2")),
        (vec![&other_cluster], Told::Nothing),
        (vec![&former], of_another("u-6")),
        (vec![&anew], Told::Nothing),
        (vec![&elsewhere], of_another("u-8")),
        (vec![&elsewhere, &anew], Told::Nothing),
    ] {
        assert_eq!(marks::told(&identity(), pools.clone()), told, "{pools:?}");
    }
    let unknown = Identity {
        cluster_uid: None,
        ..identity()
    };
    assert_eq!(marks::told(&unknown, [&anew]), of_another("u-7"));
    assert_eq!(marks::told(&unknown, [&other]), of_another("u-2"));
}

#[test]
fn pools_have_to_be_seen_of_what_the_annotation_does_not_name() {
    let with_pool = |name: &str, tags: &[&str]| LoadBalancer {
        pools: vec![Reference { id: "p".into() }],
        ..balancer("01", name, tags)
    };
    let named = with_pool(WEB, &[WEB]);
    assert!(marks::is_in_doubt(&identity(), &named));
    assert!(marks::is_in_doubt(&naming("02", None), &named));
    assert!(!marks::is_in_doubt(&naming("01", None), &named));
    assert!(marks::is_in_doubt(&identity(), &with_pool(API, &[API, WEB])));
    assert!(!marks::is_in_doubt(&identity(), &with_pool(API, &[API])));
    assert!(!marks::is_in_doubt(&identity(), &balancer("01", WEB, &[WEB])));
    let going = LoadBalancer {
        provisioning_status: ProvisioningStatus::PendingDelete,
        ..named
    };
    assert!(!marks::is_in_doubt(&identity(), &going));
}

#[test]
fn a_mark_of_another_cluster_is_proof_where_our_own_is_known() {
    let (ours, theirs) = ("kube_cluster_id_c1", "kube_cluster_id_c2");
    let knowing = |identity: Identity| Identity {
        options: Arc::new(LoadBalancerOptions {
            cluster_uid: Some("c1".into()),
            ..(*identity.options).clone()
        }),
        ..identity
    };
    let named = |tags: &[&str]| [balancer("01", WEB, tags)];
    for (tags, is_seen) in [
        (&[WEB][..], true),
        (&[WEB, ours], true),
        (&[WEB, theirs, ours], true),
        (&[WEB, theirs], false),
        (&[WEB, "kube_cluster_id_"], true),
    ] {
        let [there] = named(tags);
        assert_eq!(is_candidate(&knowing(identity()), &there), is_seen, "{tags:?}");
        let expected = if is_seen { "Owner 01 twins " } else { "none" };
        assert_eq!(found(&knowing(identity()), &[there], &[]), expected, "{tags:?}");
    }
    // Whose the mark is cannot be told, as today.
    assert_eq!(found(&identity(), &named(&[WEB, theirs]), &[]), "Owner 01 twins ");
    // One that a person names is shared, and stays; unless nobody could tell the parts of both apart.
    let shared = balancer("02", API, &[API, WEB, theirs]);
    let guest = knowing(naming("02", Some("10.0.0.5")));
    assert_eq!(
        found(&guest, std::slice::from_ref(&shared), &[]),
        "Guest 02 twins "
    );
    assert!(!is_to_be_deleted(
        &guest,
        Role::Guest,
        &balancer("02", API, &[WEB, theirs])
    ));
    let same = knowing(naming("01", Some("10.0.0.5")));
    assert_eq!(found(&same, &named(&[WEB, theirs]), &[]), "of another cluster 01");
    // A guest that was sent elsewhere takes its parts along.
    let sent_elsewhere = knowing(identity());
    let mut left = left_behind(&sent_elsewhere, std::slice::from_ref(&shared), None);
    assert_eq!(left.next(), Some((&shared, Role::Guest)));
    // Nor is it a former name of ours.
    let former = balancer("03", FORMER, &[FORMER, theirs]);
    let claiming = knowing(naming("03", Some("10.0.0.5")));
    assert_eq!(claimed_tag(&claiming, &former), None);
    assert_eq!(found(&claiming, &[former], &[]), "Guest 03 twins ");
}

#[test]
fn nothing_is_renamed_where_that_is_switched_off() {
    let other = balancer("01", OTHER, &[OTHER]);
    let naming = naming("01", Some("10.0.0.5"));
    assert_eq!(claimed_tag(&naming, &other), Some(OTHER));
    let without = Identity {
        options: Arc::new(LoadBalancerOptions {
            renames: false,
            ..LoadBalancerOptions::default()
        }),
        ..naming
    };
    assert_eq!(claimed_tag(&without, &other), None);
    assert_eq!(found(&without, &[other], &[]), "Guest 01 twins ");
}
