//! What a Service tells of an address that it showed before: a condition, written together with the status that shows another one, so
//! that it is known for longer than an event lives. Nothing is written for its sake.

use jiff::{SignedDuration, Timestamp};

use crate::k8s::{Condition, Service};
use crate::load_balancer::{Ingress, LoadBalancerStatus};
use crate::service::facts::{address_changed, published_addresses};
use crate::{keys, reasons};

/// How long it is told. After that, whoever had to follow has followed, and the next write of the status takes the condition away.
const TOLD_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Why a Service shows an address no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressLoss {
    /// Its load balancer was gone.
    LoadBalancerGone,
    /// Its floating IP was gone.
    FloatingIPGone,
    /// Its public IP address was not the account's any more.
    AddressGone,
    /// The Service was changed.
    ServiceChanged,
    /// This process knows no cause.
    Unknown,
}

impl AddressLoss {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::LoadBalancerGone,
        Self::FloatingIPGone,
        Self::AddressGone,
        Self::ServiceChanged,
        Self::Unknown,
    ];

    /// What an event of this reason says about addresses; `None`: nothing.
    #[must_use]
    pub fn of_event(reason: &str) -> Option<Self> {
        [
            (reasons::GONE.0, Self::LoadBalancerGone),
            (reasons::FLOATING_IP_GONE.0, Self::FloatingIPGone),
            (reasons::ADDRESS_GONE.0, Self::AddressGone),
        ]
        .into_iter()
        .find_map(|(of, loss)| (of == reason).then_some(loss))
    }

    /// The reason of the condition.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LoadBalancerGone => "LoadBalancerGone",
            Self::FloatingIPGone => "FloatingIPGone",
            Self::AddressGone => "AddressGone",
            Self::ServiceChanged => "ServiceChanged",
            Self::Unknown => "Unknown",
        }
    }

    /// The same in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::LoadBalancerGone => "the load balancer was gone",
            Self::FloatingIPGone => "the floating IP was deleted or led elsewhere",
            Self::AddressGone => "the public IP address was released, or is another account's",
            Self::ServiceChanged => "the Service was changed, or the cloud no longer had it",
            Self::Unknown => "the load balancer does not have it any more",
        }
    }
}

/// What a write of the status does to the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressNote {
    /// Leaves it as it is.
    Keep,
    /// Takes it away.
    Remove,
    /// Sets it.
    Set(Condition),
}

impl AddressNote {
    /// What goes with the write of this status, now. `before` is what clients used before the Service asked for no load balancer for a while.
    #[must_use]
    pub fn of(
        service: &Service,
        status: &LoadBalancerStatus,
        before: &[String],
        loss: AddressLoss,
        now: Timestamp,
    ) -> Self {
        let told = address_changed(service);
        let is_back = |change: &AddressBefore| {
            let is_shown = |address: &String| status.ingress.iter().any(|it| text(it) == Some(address));
            change.from.iter().all(is_shown)
        };
        let told_change = told.map(AddressBefore::of);
        if told.is_some() && told_change.flatten().is_none_or(|it| is_back(&it)) {
            return Self::Remove;
        }
        let is_shown = |address: &&str| status.ingress.iter().any(|it| text(it) == Some(address));
        let mut lost = lost(service, status);
        let is_new = |it: &&str| !is_shown(it) && !lost.contains(it);
        let unfollowed: Vec<&str> = before.iter().map(String::as_str).filter(is_new).collect();
        lost.splice(0..0, unfollowed);
        // Whoever has not followed yet has the first one.
        let before = told.filter(|it| !is_over(it, now)).and_then(AddressBefore::of);
        let before = before.map_or_else(Vec::new, |it| it.from);
        let earlier = before
            .iter()
            .map(String::as_str)
            .filter(|it| !is_shown(it) && !lost.contains(it));
        let all: Vec<&str> = earlier.chain(lost.iter().copied()).collect();
        match told {
            _ if !lost.is_empty() => Self::Set(said(&all, loss, now)),
            Some(told) if is_over(told, now) => Self::Remove,
            _ => Self::Keep,
        }
    }

    /// What clients of a Service use, or used where they have not followed yet: what it shows, behind what it tells.
    #[must_use]
    pub fn in_use(service: &Service, now: Timestamp) -> Vec<String> {
        let mut all = AddressBefore::told(service, now).map_or_else(Vec::new, |it| it.from);
        all.extend(published_addresses(service));
        all
    }

    /// What goes with the last write of the status of a Service that has no load balancer any more.
    #[must_use]
    pub fn of_removal(service: &Service) -> Self {
        address_changed(service).map_or(Self::Keep, |_| Self::Remove)
    }

    /// What goes with a write that puts the whole status back, with this condition before.
    #[must_use]
    pub fn put_back(service: &Service, before: Option<&Condition>, now: Timestamp) -> Self {
        let lacking = before.filter(|it| address_changed(service).is_none() && !is_over(it, now));
        lacking.map_or(Self::Keep, |it| Self::Set(it.clone()))
    }
}

/// An address that a Service showed before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressBefore {
    /// What was shown.
    pub from: Vec<String>,
    /// Until when.
    pub until: Timestamp,
    /// Why, in words.
    pub why: String,
}

impl AddressBefore {
    /// What the Service tells, as long as that is worth telling.
    #[must_use]
    pub fn told(service: &Service, now: Timestamp) -> Option<Self> {
        address_changed(service)
            .filter(|it| !is_over(it, now))
            .and_then(Self::of)
    }

    /// What the message says: `was ADDRESSES until TIME: WHY. DNS and firewalls ...`. What follows is for people.
    fn of(condition: &Condition) -> Option<Self> {
        let rest = condition.message.strip_prefix(WAS)?;
        let (addresses, rest) = rest.split_once(UNTIL)?;
        let (_, why) = rest.split_once(": ")?;
        let why = why.split_once(FOLLOW).map_or(why, |(why, _)| why);
        Some(Self {
            from: addresses.split(", ").map(str::to_owned).collect(),
            until: condition.last_transition_time,
            why: why.to_owned(),
        })
    }

    /// The message that says so.
    fn message(&self) -> String {
        let from = self.from.join(", ");
        format!("{WAS}{from}{UNTIL}{}: {}{FOLLOW}{ENDS}", self.until, self.why)
    }
}

const WAS: &str = "was ";
const UNTIL: &str = " until ";
const FOLLOW: &str = ". DNS and firewalls that name it have to follow";
const ENDS: &str = ". This condition stays for 7 days, or until it is removed";

fn said(lost: &[&str], loss: AddressLoss, now: Timestamp) -> Condition {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let before = AddressBefore {
        from: lost.iter().map(|it| (*it).to_owned()).collect(),
        until: now,
        why: loss.text().to_owned(),
    };
    Condition {
        type_: keys::CONDITION_ADDRESS_CHANGED.to_owned(),
        status: "True".to_owned(),
        reason: loss.name().to_owned(),
        message: before.message(),
        last_transition_time: now,
    }
}

fn is_over(condition: &Condition, now: Timestamp) -> bool {
    now.duration_since(condition.last_transition_time) > TOLD_FOR
}

fn text(entry: &Ingress) -> Option<&str> {
    entry.ip.as_deref().or(entry.hostname.as_deref())
}

/// The addresses that the Service shows, and the new status does not. An address that is shown by a host name from now on leads where it
/// led; so does a host name that was asked for before.
fn lost<'a>(service: &'a Service, status: &LoadBalancerStatus) -> Vec<&'a str> {
    let shown = service.status.as_ref().and_then(|it| it.load_balancer.as_ref());
    let shown = shown.and_then(|it| it.ingress.as_deref()).unwrap_or_default();
    let has_no = |kind: fn(&Ingress) -> Option<&str>| status.ingress.iter().all(|it| kind(it).is_none());
    let is_empty = status.ingress.is_empty();
    let is_lost = |address: &str, is_renamed: bool| {
        !address.is_empty() && !is_renamed && status.ingress.iter().all(|it| text(it) != Some(address))
    };
    let (no_ip, no_name) = (has_no(|it| it.ip.as_deref()), has_no(|it| it.hostname.as_deref()));
    let lost = shown.iter().filter_map(|it| match (&it.ip, &it.hostname) {
        (Some(ip), _) => Some(ip.as_str()).filter(|ip| is_lost(ip, no_ip && !is_empty)),
        (None, Some(name)) => Some(name.as_str()).filter(|name| is_lost(name, no_name && !is_empty)),
        (None, None) => None,
    });
    lost.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-30T07:04:05.6Z".parse().unwrap()
    }

    fn service(ingress: serde_json::Value, condition: Option<&Condition>) -> Service {
        let conditions: Vec<&Condition> = condition.into_iter().collect();
        let status = json!({ "loadBalancer": { "ingress": ingress }, "conditions": conditions });
        serde_json::from_value(json!({ "status": status })).unwrap()
    }

    fn status(entries: &[(&str, &str)]) -> LoadBalancerStatus {
        let text = |text: &str| Some(text.to_owned()).filter(|it| !it.is_empty());
        let entry = |(ip, hostname): &(&str, &str)| Ingress {
            ip: text(ip),
            hostname: text(hostname),
            ..Ingress::default()
        };
        LoadBalancerStatus {
            ingress: entries.iter().map(entry).collect(),
        }
    }

    fn told(service: &Service, entries: &[(&str, &str)]) -> AddressNote {
        AddressNote::of(service, &status(entries), &[], AddressLoss::FloatingIPGone, now())
    }

    #[test]
    fn an_address_that_is_lost_is_told_and_read_back() {
        let AddressNote::Set(condition) = told(
            &service(json!([{ "ip": "203.0.113.108" }]), None),
            &[("203.0.113.111", "")],
        ) else {
            panic!("it is told");
        };
        assert_eq!(
            (condition.reason.as_str(), condition.message.as_str()),
            (
                "FloatingIPGone",
                "was 203.0.113.108 until 2026-11-30T07:04:05Z: the floating IP was deleted or led elsewhere. DNS and firewalls that name it have to follow. This condition stays for 7 days, or until it is removed"
            )
        );
        let service = service(json!([{ "ip": "203.0.113.111" }]), Some(&condition));
        let change = AddressBefore::told(&service, now()).unwrap();
        assert_eq!(change.from, ["203.0.113.108"]);
        assert_eq!(change.until.to_string(), "2026-11-30T07:04:05Z");
        assert_eq!(change.why, AddressLoss::FloatingIPGone.text());
        assert_eq!(told(&service, &[("203.0.113.111", "")]), AddressNote::Keep);
        let later = now() + SignedDuration::from_hours(8 * 24);
        assert_eq!(AddressBefore::told(&service, later), None);
        let note = AddressNote::of(
            &service,
            &status(&[("203.0.113.111", "")]),
            &[],
            AddressLoss::Unknown,
            later,
        );
        assert_eq!(note, AddressNote::Remove);
        assert_eq!(told(&service, &[("203.0.113.108", "")]), AddressNote::Remove);
        let AddressNote::Set(twice) = told(&service, &[("203.0.113.112", "")]) else {
            panic!("it is told");
        };
        assert!(
            twice
                .message
                .starts_with("was 203.0.113.108, 203.0.113.111 until"),
            "{}",
            twice.message
        );
        assert_eq!(AddressNote::of_removal(&service), AddressNote::Remove);
        // It was no load balancer for a while.
        let used = AddressNote::in_use(&service, now());
        assert_eq!(used, ["203.0.113.108", "203.0.113.111"]);
        let back = |entries| {
            let loss = AddressLoss::ServiceChanged;
            AddressNote::of(
                &self::service(json!([]), None),
                &status(entries),
                &used,
                loss,
                now(),
            )
        };
        let AddressNote::Set(other) = back(&[("203.0.113.116", "")]) else {
            panic!("it is told");
        };
        let was = "was 203.0.113.108, 203.0.113.111 until";
        assert!(other.message.starts_with(was), "{}", other.message);
        let both = [("203.0.113.108", ""), ("203.0.113.111", "")];
        assert_eq!(back(&both), AddressNote::Keep);
        let cleared = self::service(json!([]), None);
        assert_eq!(
            AddressNote::put_back(&cleared, Some(&condition), now()),
            AddressNote::Set(condition.clone())
        );
        assert_eq!(
            AddressNote::put_back(&service, Some(&condition), now()),
            AddressNote::Keep
        );
        assert_eq!(
            AddressNote::put_back(&cleared, Some(&condition), later),
            AddressNote::Keep
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            from in prop::collection::vec("[0-9a-f:.]{1,39}|[a-z0-9.-]{1,60}", 1..4),
            loss in prop::sample::select(AddressLoss::ALL.to_vec()),
        ) {
            let lost: Vec<&str> = from.iter().map(String::as_str).collect();
            let mut condition = said(&lost, loss, now());
            let read = AddressBefore::of(&condition).unwrap();
            prop_assert_eq!((&read.from, read.why.as_str()), (&from, loss.text()));
            prop_assert_eq!(read.until, condition.last_transition_time);
            // As an earlier release wrote it.
            condition.message.truncate(condition.message.len() - ENDS.len());
            prop_assert_eq!(AddressBefore::of(&condition).unwrap(), read);
        }
    }

    #[test]
    fn what_leads_where_it_led_is_not_lost() {
        let by_ip = json!([{ "ip": "192.0.2.1" }]);
        for (before, after) in [
            (json!([]), &[("192.0.2.1", "")][..]),
            (by_ip.clone(), &[("192.0.2.1", ""), ("2001:db8::1", "")]),
            (by_ip.clone(), &[("", "a.example")]),
            (json!([{ "hostname": "a.example" }]), &[("192.0.2.1", "")]),
        ] {
            assert_eq!(
                told(&service(before.clone(), None), after),
                AddressNote::Keep,
                "{before}"
            );
        }
        let both = json!([{ "ip": "192.0.2.1" }, { "ip": "2001:db8::1" }]);
        for (before, after, lost) in [
            (by_ip, &[][..], "was 192.0.2.1 until"),
            (both, &[("192.0.2.1", "")], "was 2001:db8::1 until"),
            (
                json!([{ "hostname": "192.0.2.1.nip.io" }]),
                &[("", "192.0.2.2.nip.io")],
                "was 192.0.2.1.nip.io until",
            ),
        ] {
            let AddressNote::Set(condition) = told(&service(before, None), after) else {
                panic!("{lost}");
            };
            assert!(condition.message.starts_with(lost), "{}", condition.message);
        }
    }

    #[test]
    fn each_loss_has_a_reason_that_the_api_server_takes() {
        for loss in AddressLoss::ALL {
            assert!(loss.name().chars().all(|it| it.is_ascii_alphanumeric()));
        }
        assert_eq!(
            AddressLoss::of_event("LoadBalancerGone"),
            Some(AddressLoss::LoadBalancerGone)
        );
        assert_eq!(AddressLoss::of_event("LoadBalancerQuotaMet"), None);
    }
}
