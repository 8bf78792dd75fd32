//! Whose an object of the cloud is: one answer for all clouds, from the same facts whether something is to be adopted, changed, counted
//! as surplus or removed.
//!
//! | what is seen | whose |
//! | --- | --- |
//! | the name of another cluster | another cluster's, whatever else says so: UIDs are copied with a cluster's data |
//! | the name of a cluster, where nobody knows the name of this one | perhaps another cluster's, unless the UID of the Service is on it |
//! | a mark with the UID of the Service that asks | the Service's; if that is gone, and a living one is served by it by now, that one's |
//! | a mark with another UID | another Service's, unless that is gone and this one recorded it, or is in its name: a restore |
//! | living Services in whose name it is, that publish its address or name it | the first of these: by the UID in its name, by the address, by age |
//! | it was kept on purpose | nobody's |
//! | this Service recorded it, or it has the Service's UID or the Service's name as its name | the Service's |
//! | nothing of that | unknown: never taken over, changed or deleted |

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;

use crate::{Service, ServiceKey, ServicesView, facts, spelling};

/// What an object of the cloud shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces<'a> {
    /// Its ID.
    pub id: &'a str,
    /// The addresses that it serves.
    pub addresses: Vec<&'a str>,
    /// The UID in its mark, which was set when it was made.
    pub mark: Option<&'a str>,
    /// The UID in its name, where nobody chose that.
    pub named_after: Option<&'a str>,
    /// Whether it bears the name that the Service that asks has for it.
    pub is_named: bool,
    /// Whether the Service that asks recorded it.
    pub is_recorded: bool,
    /// Whether it stayed on purpose when its Service went.
    pub is_kept: bool,
    /// What it says of its cluster.
    pub cluster: OfCluster<'a>,
}

/// What an object of the cloud says of its cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OfCluster<'a> {
    /// Nothing.
    #[default]
    Untold,
    /// It is this one.
    This,
    /// It is another one, of this name.
    Another(&'a str),
    /// It is the one of this name, and nobody knows the name of this cluster.
    Perhaps(&'a str),
}

/// Whose an object of the cloud is. See the [table](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// That of the Service that asks.
    Ours(Proof),
    /// Another Service's of this cluster.
    AnotherServices,
    /// That of the cluster of this name.
    AnotherClusters(&'a str),
    /// Perhaps that of the cluster of this name: nobody knows the name of this cluster.
    PerhapsAnotherClusters(&'a str),
    /// Nobody's: what an earlier Service kept is a person's to use.
    Persons,
    /// Nothing tells.
    Unknown,
}

impl Whose<'_> {
    /// Whether it is that of the Service that asks.
    #[must_use]
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Ours(_))
    }
}

/// What tells that an object is a Service's. The strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// The Service's UID was put on it when it was made.
    Mark,
    /// The Service names it.
    Record,
    /// It bears the Service's UID or name as its name.
    Name,
}

/// What the Services of a cluster say of objects of the cloud.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// The UIDs of all Services that exist.
    existing: BTreeSet<String>,
    /// The IDs of objects that living Services name, with one of these.
    recorded: BTreeMap<String, ServiceKey>,
    holders: Vec<Holder>,
}

/// A Service that wants a load balancer.
#[derive(Debug, Clone)]
struct Holder {
    uid: String,
    key: ServiceKey,
    created: Option<Timestamp>,
    /// The addresses that the status shows.
    addresses: Vec<String>,
    /// The object that it names.
    recorded: Option<String>,
}

/// Services that have an object that was not made for them.
#[derive(Debug)]
pub(crate) struct Users {
    /// It wants a load balancer, and names this one or is in its name.
    pub(crate) asking: Option<ServiceKey>,
    /// It wants a load balancer, and its status shows the address of this one.
    pub(crate) showing: Option<ServiceKey>,
    /// It lives and names this one, whatever it wants.
    pub(crate) naming: Option<ServiceKey>,
}

impl Holder {
    fn of(service: &Service, recorded: Option<String>) -> Option<Self> {
        let addresses = facts::published_addresses(service);
        Some(Self {
            uid: service.metadata.uid.clone().filter(|uid| !uid.is_empty())?,
            key: ServiceKey::of(service),
            created: service.metadata.creation_timestamp,
            addresses: addresses
                .iter()
                .map(|address| spelling::of_address(address).into_owned())
                .collect(),
            recorded,
        })
    }

    fn holds(&self, traces: &Traces<'_>) -> bool {
        let names_it = self.recorded.as_deref() == Some(traces.id);
        names_it || self.is_named_by(traces) || self.shows(traces)
    }

    /// Whether the object has its UID in the name.
    fn is_named_by(&self, traces: &Traces<'_>) -> bool {
        traces.named_after == Some(&self.uid)
    }

    /// Whether its status shows the object's address.
    fn shows(&self, traces: &Traces<'_>) -> bool {
        // Another private network may have the same address: whoever names another object has it from that one.
        let names_another = self.recorded.as_deref().is_some_and(|id| id != traces.id);
        let shows = |address: &&str| {
            let mut shown = self.addresses.iter();
            shown.any(|shown| *shown == spelling::of_address(address))
                && !(names_another && is_private(address))
        };
        traces.addresses.iter().any(shows)
    }

    /// Which of several has it: a copy of a manifest names it too, but is younger, and no object bears its UID.
    fn rank(&self, traces: &Traces<'_>) -> (bool, bool, Option<Timestamp>, &str) {
        let is_shown = self.shows(traces);
        (!self.is_named_by(traces), !is_shown, self.created, &self.uid)
    }
}

/// Whether an address is of a range that any private network may have (RFC 1918, RFC 6598, RFC 4193).
fn is_private(address: &str) -> bool {
    address.parse().is_ok_and(|address| match address {
        IpAddr::V4(v4) => v4.is_private() || matches!(v4.octets(), [100, 64..=127, ..]),
        IpAddr::V6(v6) => v6.is_unique_local(),
    })
}

impl Claims {
    /// What these Services say. `recorded` is the ID of the object that a Service names.
    pub fn of(services: &dyn ServicesView, recorded: impl Fn(&Service) -> Option<String>) -> Self {
        let (classes, services) = (services.classes(), services.services());
        let living = services
            .iter()
            .filter(|service| service.metadata.deletion_timestamp.is_none());
        let wanting = services.iter().filter(|service| classes.is_wanted(service));
        Self {
            existing: services
                .iter()
                .filter_map(|service| service.metadata.uid.clone())
                .collect(),
            recorded: living
                .filter_map(|service| Some((recorded(service)?, ServiceKey::of(service))))
                .collect(),
            holders: wanting
                .filter_map(|service| Holder::of(service, recorded(service)))
                .collect(),
        }
    }

    /// Whether a living Service names the object: it is that Service's as soon as the one that it is marked for is gone.
    #[must_use]
    pub fn is_recorded(&self, id: &str) -> bool {
        self.recorded.contains_key(id)
    }

    /// Which living Services have the object, of those that it was not made for.
    #[must_use]
    pub(crate) fn users(&self, traces: &Traces<'_>) -> Users {
        let of = |has: &dyn Fn(&Holder) -> bool| {
            let first = self.holders.iter().find(|holder| has(holder));
            first.map(|holder| holder.key.clone())
        };
        Users {
            asking: of(&|it| it.recorded.as_deref() == Some(traces.id) || it.is_named_by(traces)),
            showing: of(&|it| it.shows(traces)),
            naming: self.recorded.get(traces.id).cloned(),
        }
    }

    /// The UID of another living Service that has the object: the object has that UID in its name, or the Service's status shows the
    /// object's address, a private one only if that Service names no other object; or the Service names it. The Service that the object is
    /// marked for does not count, nor one that has it with less right than `asking`, the UID of the one that the question is about.
    #[must_use]
    pub fn holder(&self, traces: &Traces<'_>, asking: &str) -> Option<&str> {
        let is_marked = |holder: &&Holder| traces.mark == Some(&holder.uid);
        let holders = self.holders.iter().filter(|holder| holder.holds(traces));
        let first = holders
            .filter(|holder| holder.uid == asking || !is_marked(holder))
            .min_by(|a, b| a.rank(traces).cmp(&b.rank(traces)))?;
        (first.uid != asking).then_some(&first.uid)
    }

    /// Whether there is such a one.
    #[must_use]
    pub fn is_held(&self, traces: &Traces<'_>, asking: &str) -> bool {
        self.holder(traces, asking).is_some()
    }

    /// Whose an object is, as the Service with the UID `asking` asks. See the [table](self).
    #[must_use]
    pub fn whose<'a>(&self, traces: &Traces<'a>, asking: &str) -> Whose<'a> {
        let is_asking = |uid: Option<&str>| !asking.is_empty() && uid == Some(asking);
        let (is_marked, is_named_after) = (is_asking(traces.mark), is_asking(traces.named_after));
        match traces.cluster {
            OfCluster::Another(theirs) => return Whose::AnotherClusters(theirs),
            // What the Service recorded may have been copied from anywhere: only its own UID tells that it is ours.
            OfCluster::Perhaps(theirs) if !is_marked && !is_named_after => {
                return Whose::PerhapsAnotherClusters(theirs);
            }
            _ => {}
        }
        let is_held = self.is_held(traces, asking);
        if is_marked {
            let is_left = !self.existing.contains(asking) && is_held;
            return if is_left {
                Whose::AnotherServices
            } else {
                Whose::Ours(Proof::Mark)
            };
        }
        let is_known = traces.is_recorded || is_named_after;
        let is_marked_for_other = traces
            .mark
            .is_some_and(|other| !is_known || self.existing.contains(other));
        if is_marked_for_other || is_held {
            Whose::AnotherServices
        } else if traces.is_kept {
            Whose::Persons
        } else if traces.is_recorded {
            Whose::Ours(Proof::Record)
        } else if is_named_after || traces.is_named {
            Whose::Ours(Proof::Name)
        } else {
            Whose::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    /// The Services `here` (which asks), `other` with the address 192.0.2.7, and `going`, which is being deleted.
    fn claims(patch: &Value) -> Claims {
        let mut services = json!({
            "here": { "spec": { "type": "LoadBalancer" } },
            "other": {
                "spec": { "type": "LoadBalancer" },
                "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }, { "ip": "10.0.0.7" }] } },
            },
            "going": {
                "metadata": { "deletionTimestamp": "2026-02-03T08:15:00Z" },
                "spec": { "type": "LoadBalancer" },
                "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] } },
            },
        });
        for (uid, service) in patch.as_object().unwrap() {
            services[uid] = service.clone();
        }
        let services = services
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, service)| !service.is_null());
        let services: Vec<Arc<Service>> = services
            .map(|(uid, service)| {
                let mut service = service.clone();
                service["metadata"]["uid"] = json!(uid);
                Arc::new(serde_json::from_value(service).unwrap())
            })
            .collect();
        Claims::of(&services, |service| {
            facts::annotation(service, "id").map(ToOwned::to_owned)
        })
    }

    #[test]
    fn one_table_tells_whose_an_object_is() {
        use Whose::{AnotherClusters, AnotherServices, Ours, PerhapsAnotherClusters, Persons, Unknown};
        let bare = Traces {
            id: "lb-1",
            ..Traces::default()
        };
        let recorded = Traces {
            is_recorded: true,
            ..bare.clone()
        };
        let named = Traces {
            is_named: true,
            ..bare.clone()
        };
        let after = |uid| Traces {
            named_after: Some(uid),
            ..bare.clone()
        };
        let marked = |uid| Traces {
            mark: Some(uid),
            ..bare.clone()
        };
        let restored = |uid| Traces {
            mark: Some(uid),
            ..recorded.clone()
        };
        let serving = |traces: &Traces<'static>, address| Traces {
            addresses: vec![address],
            ..traces.clone()
        };
        let of = |traces: &Traces<'static>, cluster| Traces {
            cluster,
            ..traces.clone()
        };
        for (traces, expected) in [
            (bare.clone(), Unknown),
            // Upstream's rules, where nothing says otherwise.
            (recorded.clone(), Ours(Proof::Record)),
            (named.clone(), Ours(Proof::Name)),
            (after("here"), Ours(Proof::Name)),
            // A mark goes before them.
            (marked("here"), Ours(Proof::Mark)),
            (serving(&marked("here"), "192.0.2.7"), Ours(Proof::Mark)),
            (marked("other"), AnotherServices),
            (restored("other"), AnotherServices),
            (marked("gone"), AnotherServices),
            (
                Traces {
                    mark: Some("gone"),
                    ..named.clone()
                },
                AnotherServices,
            ),
            // A restore.
            (restored("gone"), Ours(Proof::Record)),
            (
                Traces {
                    mark: Some("gone"),
                    ..after("here")
                },
                Ours(Proof::Name),
            ),
            // A copied manifest: whom it serves keeps it.
            (after("other"), AnotherServices),
            (
                Traces {
                    is_recorded: true,
                    ..after("other")
                },
                AnotherServices,
            ),
            (serving(&recorded, "192.0.2.7"), AnotherServices),
            (serving(&named, "192.0.2.7"), AnotherServices),
            (serving(&restored("gone"), "192.0.2.7"), AnotherServices),
            // Nobody living shows that.
            (serving(&recorded, "192.0.2.9"), Ours(Proof::Record)),
            // What was kept is nobody's, but what bears the mark is ours.
            (
                Traces {
                    is_kept: true,
                    ..named.clone()
                },
                Persons,
            ),
            (
                Traces {
                    is_kept: true,
                    ..recorded.clone()
                },
                Persons,
            ),
            (
                Traces {
                    is_kept: true,
                    ..marked("here")
                },
                Ours(Proof::Mark),
            ),
            // Clusters.
            (
                of(&marked("here"), OfCluster::Another("green")),
                AnotherClusters("green"),
            ),
            (
                of(&recorded, OfCluster::Another("green")),
                AnotherClusters("green"),
            ),
            (
                of(&recorded, OfCluster::Perhaps("green")),
                PerhapsAnotherClusters("green"),
            ),
            (
                of(&marked("here"), OfCluster::Perhaps("green")),
                Ours(Proof::Mark),
            ),
            (of(&after("here"), OfCluster::Perhaps("green")), Ours(Proof::Name)),
            (of(&recorded, OfCluster::This), Ours(Proof::Record)),
        ] {
            assert_eq!(claims(&json!({})).whose(&traces, "here"), expected, "{traces:?}");
        }
    }

    #[test]
    fn what_was_made_for_a_service_that_is_gone_is_that_of_the_one_it_serves() {
        let claims = claims(&json!({ "here": null }));
        let marked = Traces {
            mark: Some("here"),
            ..Traces::default()
        };
        assert_eq!(claims.whose(&marked, "here"), Whose::Ours(Proof::Mark));
        let serving = Traces {
            addresses: vec!["192.0.2.7"],
            ..marked
        };
        assert_eq!(claims.whose(&serving, "here"), Whose::AnotherServices);
    }

    /// As a Go manager may have left them, which lets both take it.
    #[test]
    fn of_several_that_one_object_serves_the_eldest_has_it_or_the_one_in_whose_name_it_is() {
        let served = |created: &str| {
            json!({
                "metadata": { "creationTimestamp": created },
                "spec": { "type": "LoadBalancer" },
                "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } },
            })
        };
        let (first, then) = ("2026-02-03T08:15:00Z", "2026-02-03T08:16:00Z");
        for (here, other, named_after, is_held) in [
            (first, then, None, false),
            (then, first, None, true),
            (then, first, Some("here"), false),
            (first, then, Some("other"), true),
            // It is only named by this one.
            ("", first, None, true),
            (first, "", None, false),
        ] {
            let named = json!({
                "metadata": { "annotations": { "id": "lb-1" } },
                "spec": { "type": "LoadBalancer" },
            });
            let service = |created: &str| match created {
                "" => named.clone(),
                created => served(created),
            };
            let claims = claims(&json!({ "here": service(here), "other": service(other) }));
            let traces = Traces {
                id: "lb-1",
                addresses: vec!["192.0.2.7"],
                named_after,
                ..Traces::default()
            };
            assert_eq!(claims.is_held(&traces, "here"), is_held, "{here} {named_after:?}");
            assert_eq!(
                claims.is_held(&traces, "other"),
                !is_held,
                "{here} {named_after:?}"
            );
        }
    }

    /// Any private network may have it.
    #[test]
    fn a_private_address_holds_nothing_for_a_service_that_names_another_object() {
        for (address, named, is_held) in [
            ("10.0.0.7", "lb-2", false),
            ("10.0.0.7", "lb-1", true),
            ("192.0.2.7", "lb-2", true),
            ("192.000.2.7", "lb-2", false),
        ] {
            let mut other = json!({
                "spec": { "type": "LoadBalancer" },
                "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }, { "ip": "10.0.0.7" }] } },
            });
            other["metadata"]["annotations"]["id"] = json!(named);
            let claims = claims(&json!({ "other": other }));
            assert!(claims.is_recorded(named));
            let traces = Traces {
                id: "lb-1",
                addresses: vec![address],
                ..Traces::default()
            };
            assert_eq!(claims.is_held(&traces, "here"), is_held, "{address} {named}");
            assert!(!claims.is_held(&traces, "other"), "nobody takes it from itself");
        }
    }

    #[test]
    fn a_service_that_wants_no_balancer_of_ours_holds_nothing() {
        for spec in [
            json!({ "type": "ClusterIP" }),
            json!({ "type": "LoadBalancer", "loadBalancerClass": "x" }),
        ] {
            let status = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } });
            let claims = claims(&json!({ "other": { "spec": spec, "status": status } }));
            let traces = Traces {
                is_recorded: true,
                addresses: vec!["192.0.2.7"],
                ..Traces::default()
            };
            assert_eq!(claims.whose(&traces, "here"), Whose::Ours(Proof::Record));
        }
    }
}
