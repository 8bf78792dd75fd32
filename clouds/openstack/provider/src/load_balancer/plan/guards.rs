//! What is refused, and what is told of wishes that this cloud cannot keep.

use std::collections::BTreeSet;

use bowline_openstack_client::{LoadBalancer, Port};
use bowline_plan::{Note, Refusal, refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::settings::{Bars, Flaw};
use crate::load_balancer::intent::{Identity, Protocol, Wanted};
use crate::load_balancer::names;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::{KeyAnswer, Observed};
use crate::messages::{DUPLICATE_KEPT, GONE, PORT_LEFT, SOURCE_RANGES_IGNORED};

/// Several load balancers could be meant.
pub(super) fn several(identity: &Identity, balancers: &[&LoadBalancer]) -> Refusal {
    refusal!(
        "multiple results where only one expected: load balancers {} bear the name {}",
        evidence::ids(balancers), identity.name;
        "delete those that are not needed, or name the right one in {}", keys::ID.key
    )
}

/// Why no load balancer is made beside another Service's of its name: of two of one name, no controller could tell which is whose
/// where the annotation is lost.
pub(super) fn of_another(identity: &Identity, observed: &Observed) -> Option<Refusal> {
    let others = observed.of_others.iter();
    let other = others
        .filter(|other| other.balancer.name == identity.name)
        .min_by_key(|other| &other.balancer.id)?;
    let (id, service) = (&other.balancer.id, &identity.service);
    Some(refusal!(
        "load balancer {id} ({}) serves another Service {service}, uid {}, and is left alone",
        other.balancer.name, other.uid;
        "another cluster in this project has, or had, the same --cluster-name ({}): give one of the clusters another --cluster-name; or, if that cluster is gone and this Service is to take the load balancer over, set {}: {id}",
        identity.cluster, keys::ID.key
    ))
}

/// Why a load balancer of another cluster is not shared whose parts have the same names and tags as this Service's would have.
pub(super) fn of_other_cluster(identity: &Identity, balancer: &LoadBalancer) -> Refusal {
    let (id, name) = (&balancer.id, &balancer.name);
    let marks = balancer
        .tags
        .iter()
        .filter(|tag| names::cluster_in_mark(tag).is_some());
    let marks: Vec<&str> = marks.map(String::as_str).collect();
    refusal!(
        "load balancer {id} ({name}) belongs to another cluster by its tag {}, and is left alone", marks.join(", ");
        "take {} off Service {} to get a load balancer of its own; or, if that cluster is gone, take the tag off the load balancer",
        keys::ID.key, identity.service
    )
}

/// Why the address of a given port may lead elsewhere: another load balancer, not the Service's `own`, is on the port too.
pub(super) fn port_of_another(
    wanted: &Wanted,
    seen: &View<'_>,
    own: Option<&LoadBalancer>,
) -> Option<Refusal> {
    let port = own.map_or(&wanted.vip.port, |own| &own.vip_port_id).as_ref()?;
    let other = seen.other_on(port, own.map(|own| &own.id))?;
    Some(refusal!(
        "port {port} of Service {} has another load balancer, {} ({}, {:?}): both would answer at one address",
        wanted.identity.service, other.id, other.name, other.description;
        "give each load balancer a port of its own: name another one in {0} of one of the Services, or take {0} off",
        keys::PORT.key
    ))
}

/// What is told of load balancers of the Service's name of which no pool says that they were made for it.
pub(super) fn kept_note(
    identity: &Identity,
    balancer: &LoadBalancer,
    kept: &[&LoadBalancer],
) -> Option<Note> {
    (!kept.is_empty()).then(|| {
        DUPLICATE_KEPT.note(format!(
            "Service {} uses load balancer {}, and there are others of the same name, of which nothing tells for whom they were made: {}; Bowline leaves them until the Service is deleted: if nothing uses them, delete them by hand",
            identity.service,
            balancer.id,
            evidence::ids(kept)
        ))
        .even_at_start()
    })
}

/// What is told of the load balancer that was made for a Service which a person sent to another one.
pub(super) fn own_note(
    identity: &Identity,
    seen: &View<'_>,
    (balancer, role): (&LoadBalancer, Role),
) -> Option<Note> {
    let own = evidence::own_beside(identity, &seen.balancers, balancer);
    let own = own.filter(|own| role == Role::Guest && !evidence::is_going(own))?;
    let (id, service, key) = (&balancer.id, &identity.service, keys::ID.key);
    let note = DUPLICATE_KEPT.note(format!(
        "Service {service} uses load balancer {id}, which {key} names, and its own one {} is there too, with members that follow the Nodes only as long as the status shows its address; Bowline leaves it until the Service is deleted: take {key} off to go back to it, or, if nothing uses it, delete it and its floating IP by hand",
        own.id
    ));
    Some(note.even_at_start())
}

/// What is told when the load balancer that a Service uses was deleted by somebody else, and another one takes its place.
pub(super) fn gone_note(identity: &Identity, seen: &View<'_>) -> Option<Note> {
    let own = &seen.memory.own;
    let id = identity.annotated.as_ref().filter(|id| seen.gone.contains(id))?;
    if !identity.is_told_recorded {
        return None; // it goes with the status where a Service is of another type for a while
    }
    if own.vacated.is_some() || own.failed.is_some() {
        return None; // Bowline deleted it, and said so
    }
    let (shared, at) = if identity.shares_address {
        (", which it shared with others", "of its own, at another address")
    } else {
        (
            "",
            "in its place, at the address that it had if nobody else has it by now",
        )
    };
    let note = GONE.note(format!(
        "load balancer {id} of Service {}{shared} is gone: it gets one {at}",
        identity.service
    ));
    Some(note.even_at_start())
}

/// What is told of load balancers that Octavia does not get rid of: another one takes their place.
pub(super) fn left_alone_note(identity: &Identity, seen: &View<'_>) -> Option<Note> {
    let ids: Vec<&str> = seen.left_alone.iter().map(|id| id.as_str()).collect();
    (!ids.is_empty()).then(|| {
        GONE.note(format!(
            "load balancer {} of Service {} stays PENDING_DELETE: Bowline leaves it alone and makes another one in its place; ask the operator of the cloud to look at Octavia's workers",
            ids.join(", "),
            identity.service
        ))
        .even_at_start()
    })
}

/// What is told of ports that may be the Service's, and that nothing proves to be so: another cluster may have left them.
pub(super) fn left_port_note<'a>(identity: &Identity, ports: impl Iterator<Item = &'a Port>) -> Option<Note> {
    let ids: BTreeSet<&str> = ports.map(|port| port.id.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    (!ids.is_empty()).then(|| {
        PORT_LEFT.note(format!(
            "Octavia made port {} for a load balancer that does not exist, as it does where it refuses the creation. That may have been one for Service {}, or one of another cluster, so the port stays",
            ids.join(", "),
            identity.service
        ))
    })
}

/// Why the certificate cannot be used. No load balancer is made without it. One that is there keeps its listeners as they are,
/// and its members follow the nodes.
pub(super) fn certificate(wanted: &Wanted, seen: &View<'_>) -> Option<Refusal> {
    let tls = wanted.listener.tls.as_ref()?;
    match seen.key(tls.key.as_ref()?)? {
        KeyAnswer::Present => None,
        KeyAnswer::Absent => Some(refusal!(
            "failed to get the certificate for TLS: {} does not exist", tls.reference;
            "correct {}", wanted.origins(&[keys::TLS.key])
        )),
        KeyAnswer::NoStore => Some(refusal!(
            "failed to create a TLS Terminated loadbalancer because openstack keymanager client is not initialized and default-tls-container-ref {:?} is set",
            tls.reference;
            "the catalog names no key manager (Barbican): where certificates are kept elsewhere, set container-store = external in [LoadBalancer] of cloud.conf; else take {} off",
            keys::TLS.key
        )),
        KeyAnswer::Unknown(why) => Some(refusal!(
            "failed to get the certificate for TLS: {}: {why}", tls.reference;
            "correct {}, or look at the key manager; until then listeners stay as they are and only members change",
            wanted.origins(&[keys::TLS.key])
        )),
    }
}

/// What is wrong with the settings, as far as it stands in the way of one of these. With any flaw no load balancer is made.
pub(super) fn flaw(wanted: &Wanted, features: Features, bars: &[Bars]) -> Option<Refusal> {
    let timeouts = [
        keys::TIMEOUT_CLIENT_DATA.key,
        keys::TIMEOUT_MEMBER_CONNECT.key,
        keys::TIMEOUT_MEMBER_DATA.key,
        keys::TIMEOUT_TCP_INSPECT.key,
    ];
    // What is not sent is not refused.
    let counts =
        |flaw: &&Flaw| bars.contains(&flaw.bars) && (features.timeouts || !timeouts.contains(&flaw.what));
    let texts: Vec<&str> = wanted
        .flaws
        .iter()
        .filter(counts)
        .map(|flaw| flaw.text.as_str())
        .collect();
    (!texts.is_empty()).then(|| Refusal::new(texts.join("; ")))
}

/// Why a load balancer that is there keeps its parts as they are, but for the members, which follow the nodes.
pub(super) fn held(wanted: &Wanted, features: Features, seen: &View<'_>) -> Option<Refusal> {
    flaw(wanted, features, &[Bars::All, Bars::Parts])
        .or_else(|| certificate(wanted, seen))
        .or_else(|| beyond_provider(&layer_7(wanted), features))
        .or_else(|| {
            features
                .is_unknown
                .then(|| unread_version("parts of load balancers stay as they are, and only members change"))
        })
}

/// Why no load balancer is made of a service whose version could not be read: it could be without what it cannot get later.
pub(super) fn unsure(wanted: &Wanted, features: Features) -> Option<Refusal> {
    let asks_for_version = wanted.vip.flavor.is_some()
        || wanted.vip.zone.is_some()
        || wanted.second_family().is_some()
        || wanted.listener.sources.is_asked;
    (features.is_unknown && asks_for_version).then(|| {
        unread_version(
            "a load balancer with a flavor, a zone, two addresses or source ranges is made when it is known",
        )
    })
}

fn unread_version(meanwhile: &str) -> Refusal {
    refusal!(
        "the version of Octavia's API could not be read: {meanwhile}";
        "look at the log for the reason, and at the root of Octavia's endpoint, which lists its versions; Bowline asks again at the next try"
    )
}

/// Why no load balancer is made of a provider that does not do all of what is asked for. Octavia asks it only when the load balancer's
/// port is there, and leaves that behind.
pub(super) fn unmakeable(wanted: &Wanted, features: Features) -> Option<Refusal> {
    let mut beyond = layer_7(wanted);
    let method = wanted.pool.method.as_str();
    if features.is_amphora && method == "SOURCE_IP_PORT" {
        // `_validate_pool_algorithm` in `octavia/api/drivers/amphora_driver/v2/driver.py`
        let origin = wanted.origins(&[keys::LB_METHOD.key]);
        return Some(refusal!(
            "no load balancer of the provider amphora balances by {method}";
            "set {origin} to SOURCE_IP, LEAST_CONNECTIONS or ROUND_ROBIN"
        ));
    }
    if !["", "SOURCE_IP_PORT", "SOURCE_IP"].contains(&method) {
        let origin = wanted.origins(&[keys::LB_METHOD.key]);
        beyond.push((
            format!("balances by {method}"),
            format!(
                "set {origin} to SOURCE_IP_PORT, or to SOURCE_IP where the release of the provider has that"
            ),
        ));
    }
    if wanted.monitor.is_some() && wanted.ports.iter().any(|port| port.protocol == Protocol::Sctp) {
        let remedy = format!("switch {} off", keys::MONITOR.key);
        beyond.push(("checks members of SCTP ports".to_owned(), remedy));
    }
    beyond_provider(&beyond, features)
}

/// What asks for more than connections that are passed on, each with what to do where that cannot be had.
fn layer_7(wanted: &Wanted) -> Vec<(String, String)> {
    let tls = wanted
        .listener
        .tls
        .is_some()
        .then_some(("ends TLS", keys::TLS.key));
    let http = wanted
        .listener
        .forwards_for
        .then_some(("speaks HTTP", keys::X_FORWARDED_FOR.key));
    let proxy = wanted
        .pool
        .proxy
        .is_some()
        .then_some(("writes PROXY headers", keys::PROXY_PROTOCOL.key));
    let asked = [tls, http, proxy].into_iter().flatten();
    asked
        .map(|(what, key)| (what.to_owned(), format!("take {key} off")))
        .collect()
}

/// What the provider `ovn` does not do (`OvnProviderDriver` of ovn-octavia-provider).
fn beyond_provider(beyond: &[(String, String)], features: Features) -> Option<Refusal> {
    let (what, remedy) = beyond.first().filter(|_| features.is_ovn)?;
    Some(refusal!("no load balancer of the provider ovn {what}"; "{remedy}"))
}

/// What is told as long as sources are asked for that cannot be kept to.
pub(super) fn source_ranges_note(wanted: &Wanted, features: Features) -> Option<Note> {
    let options = &wanted.identity.options;
    let are_kept = features.allowed_cidrs || features.is_ovn && options.manages_security_groups;
    let why = match features.has_vip_groups {
        true => {
            "security groups are set on the address of its load balancer (vip_sg_ids), and these say who may connect"
        }
        false => "Octavia provider does not support it",
    };
    (wanted.listener.sources.is_asked && !are_kept).then(|| {
        SOURCE_RANGES_IGNORED.note(format!(
            "LoadBalancerSourceRanges are ignored for Service {} because {why}",
            wanted.identity.service
        ))
    })
}

/// What helps where a place is taken by what looks like this Service in a cluster of another name; otherwise `else_helps`.
pub(super) fn of_namesake(identity: &Identity, tags: &[String], else_helps: String) -> String {
    evidence::namesake(identity, tags).map_or(else_helps, |cluster| format!(
        "a Service of this name in a cluster `{cluster}` uses it: if that is a former name of this cluster, set former-cluster-name = {cluster} in [LoadBalancer] of cloud.conf"
    ))
}
