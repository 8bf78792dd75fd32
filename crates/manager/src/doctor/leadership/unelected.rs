//! Processes that work and hold no lease: they run without an election (`--leader-elect=false`). No lease and no pod need tell of one, but
//! what it writes does: its events, which name it as a lease would, and the managed fields of Services and Nodes.

use bowline_cloud_provider::facts;
use bowline_controllers::events::EVENTS;
use bowline_kube_io::{Kube, ObjectRef, SeenEvent, SeenLease};
use jiff::{SignedDuration, Timestamp};

use super::LEASE;
use crate::deployed::is_of_manager;
use crate::doctor::{Check, Objects, Outcome, timed};
use crate::why::{RECENT, span};

/// Within this time after a change of leaders the one before has ended, whatever it had under way and whatever its clock says.
const HANDED_OVER: SignedDuration = SignedDuration::from_secs(60);

/// The length of the random part in the name of a process.
const UUID: usize = 36;

/// The most Services, and Nodes, whose managed fields are looked at.
const LOOKED_AT: usize = 5;

/// What shows that a process works.
pub(super) struct Sign {
    /// The process; else the program.
    who: String,
    /// What it wrote.
    what: String,
    at: Timestamp,
}

/// The events of processes that hold none of these leases, after a time, the newest first.
fn events_without<'a>(
    events: &'a [SeenEvent],
    held: &'a [SeenLease],
    since: Option<Timestamp>,
) -> impl Iterator<Item = &'a SeenEvent> {
    let is_process = |name: &str| {
        name.rsplit_once('_')
            .is_some_and(|(_, random)| random.len() == UUID)
    };
    let is_holder = |name: &str| held.iter().any(|it| it.record.holder == name);
    // The newest stand last.
    events.iter().rev().filter(move |it| {
        is_process(&it.process)
            && !is_holder(&it.process)
            && since.is_none_or(|since| it.last > since)
            && EVENTS.iter().any(|known| known.reason == it.reason)
    })
}

/// Whether one works beside the one that leads.
pub(super) fn beside(
    check: Check,
    lease: &SeenLease,
    held: &[SeenLease],
    events: &[SeenEvent],
    now: Timestamp,
) -> Check {
    let since = lease.record.acquire_time.unwrap_or(now) + HANDED_OVER;
    let mut last: Vec<&SeenEvent> = Vec::new();
    let recent = |it: &&SeenEvent| now.duration_since(it.last) < RECENT;
    for event in events_without(events, held, Some(since)).filter(recent) {
        if !last.iter().any(|it| it.process == event.process) {
            last.push(event);
        }
    }
    if last.is_empty() {
        return check;
    }
    let lines = last.iter().map(|it| {
        let age = now.duration_since(it.last).as_secs().max(0);
        format!(
            "process {}: {} of {}, {age} s ago",
            it.process, it.reason, it.object
        )
    });
    let seen = format!(
        "{}; another process works besides, and holds no lease",
        check.seen
    );
    let remedy = "stop it: it runs with --leader-elect=false, on the computer whose name stands before the last _, in a pod or outside of the cluster. Two \
                  managers undo each other's work. If it was stopped since, wait: events are judged for 20 min";
    LEASE.failed(seen, remedy).with(lines.collect())
}

/// The last thing that a process without a lease wrote, where nobody leads; `ended`: when the one that led before was heard of last.
pub(super) async fn find(
    kube: &Kube,
    objects: &Objects,
    (held, ended): (&[SeenLease], Option<Timestamp>),
    events: &[SeenEvent],
) -> Option<Sign> {
    let since = ended.map(|ended| ended + HANDED_OVER);
    if let Some(event) = events_without(events, held, since).next() {
        return Some(Sign {
            who: format!("process {}", event.process),
            what: format!("{} of {}", event.reason, event.object),
            at: event.last,
        });
    }
    let path = |path: &[&str]| path.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let served = objects.services().iter().filter(|it| facts::has_finalizer(it));
    let served = served.map(|it| ObjectRef::from(&**it)).take(LOOKED_AT);
    let of_services = [
        path(&["f:metadata", "f:finalizers"]),
        path(&["f:status", "f:loadBalancer", "f:ingress"]),
        path(&["f:status", "f:conditions"]),
    ];
    let nodes = objects
        .nodes()
        .iter()
        .map(|it| ObjectRef::from(&**it))
        .take(LOOKED_AT);
    let of_nodes = [path(&["f:spec", "f:providerID"])];
    let looks = served.map(|it| (it, &of_services[..]));
    let mut last: Option<Sign> = None;
    for (object, fields) in looks.chain(nodes.map(|it| (it, &of_nodes[..]))) {
        let Some((Ok(Some((who, at))), _)) = timed(kube.last_writer(&object, fields)).await else {
            continue;
        };
        let is_later = since.is_none_or(|since| at > since) && last.as_ref().is_none_or(|last| at > last.at);
        if is_of_manager(&who) && is_later {
            let name = [&*object.namespace, &*object.name].join("/");
            let what = format!("a write to {} {}", object.kind, name.trim_start_matches('/'));
            last = Some(Sign { who, what, at });
        }
    }
    last
}

/// Whether something waits that a process which works would have done.
pub(super) fn is_waited_for(objects: &Objects) -> bool {
    let is_begun = |service: &_| facts::has_finalizer(service) || !objects.classes.is_wanted(service);
    objects.nodes().iter().any(|it| it.is_uninitialized())
        || !objects.services().iter().all(|it| is_begun(it))
}

/// Nobody leads: whether a process works all the same, well or in doubt.
pub(super) fn instead(
    check: Check,
    sign: Option<Sign>,
    is_waited_for: bool,
    now: Timestamp,
) -> (Check, Option<Outcome>) {
    let Some(Sign { who, what, at }) = sign else {
        return (check, None);
    };
    let seen = &check.seen;
    let told = format!("{who}, {what}, {} ago", span(now, at));
    if now.duration_since(at) < RECENT {
        let seen = format!("{seen}; a process works without an election (--leader-elect=false): {told}");
        return (LEASE.ok(seen), Some(Outcome::Ok));
    }
    if is_waited_for || check.outcome == Outcome::Ok {
        return (check, None);
    }
    let seen = format!(
        "{seen}; whether a process works without an election (--leader-elect=false) is not known: the last that one wrote is {told}"
    );
    let remedy = "if one is to work, look whether it runs, on the computer where it was started; else start one. Nothing waits for it now";
    (LEASE.warning(seen, remedy), Some(Outcome::Warning))
}

#[cfg(test)]
mod tests {
    use bowline_kube_io::LeaseRecord;

    use super::*;

    fn process(number: u8) -> String {
        format!("vm_00000000-0000-4000-8000-00000000000{number}")
    }

    fn event(process: &str, reason: &str, last: &str) -> SeenEvent {
        SeenEvent {
            object: "default/two".to_owned(),
            is_warning: false,
            reason: reason.to_owned(),
            message: String::new(),
            count: 1,
            last: last.parse().unwrap(),
            process: process.to_owned(),
        }
    }

    const DONE: &str = "EnsuredLoadBalancer";
    const LATE: &str = "2026-01-01T00:29:15Z";

    fn lease() -> SeenLease {
        SeenLease {
            name: "ours".to_owned(),
            record: LeaseRecord {
                holder: process(1),
                acquire_time: Some("2026-01-01T00:20:00Z".parse().unwrap()),
                ..LeaseRecord::default()
            },
            writer: None,
            written: None,
        }
    }

    #[test]
    fn a_process_that_works_and_holds_no_lease_is_told_by_its_events() {
        let now: Timestamp = "2026-01-01T00:30:00Z".parse().unwrap();
        let lease = lease();
        let judged = |events: &[SeenEvent]| {
            let held = std::slice::from_ref(&lease);
            beside(LEASE.ok("it is held"), &lease, held, events, now)
        };
        let quiet = [
            event(&process(1), DONE, LATE),
            event("vm", DONE, LATE),
            event(&process(2), "ScalingReplicaSet", LATE),
            event(&process(2), DONE, "2026-01-01T00:20:05Z"),
        ];
        assert_eq!(judged(&quiet), LEASE.ok("it is held"));
        let check = judged(&[event(&process(2), DONE, LATE)]);
        assert_eq!(check.outcome, Outcome::Failed);
        let line = format!("process {}: {DONE} of default/two, 45 s ago", process(2));
        assert_eq!(check.details, [line]);
    }

    #[test]
    fn where_nobody_leads_what_was_written_last_tells_of_a_process_without_an_election() {
        let now: Timestamp = "2026-01-01T00:30:00Z".parse().unwrap();
        let none = LEASE.failed("lease s/c is not there", "x");
        let judged = |at: &str, is_waited_for| {
            let (who, what) = ("process vm_1".to_owned(), "EnsuredLoadBalancer of a/b".to_owned());
            let sign = Sign {
                who,
                what,
                at: at.parse().unwrap(),
            };
            instead(none.clone(), Some(sign), is_waited_for, now)
        };
        assert_eq!(instead(none.clone(), None, false, now), (none.clone(), None));
        let (check, outcome) = judged(LATE, true);
        assert_eq!(
            (check.outcome, outcome),
            (Outcome::Ok, Some(Outcome::Ok)),
            "{check:?}"
        );
        assert!(
            check.seen.ends_with("vm_1, EnsuredLoadBalancer of a/b, 45 s ago"),
            "{check:?}"
        );
        let long_ago = "2026-01-01T00:00:00Z";
        assert_eq!(
            judged(long_ago, true),
            (none.clone(), None),
            "it would have done what waits"
        );
        let (check, outcome) = judged(long_ago, false);
        assert_eq!(
            (check.outcome, outcome),
            (Outcome::Warning, Some(Outcome::Warning))
        );
        assert!(check.seen.contains("is not known"), "{check:?}");
    }

    #[test]
    fn the_one_that_led_before_is_no_process_without_an_election() {
        let lease = lease();
        let events = [
            event(&process(2), DONE, "2026-01-01T00:10:00Z"),
            event(&process(1), DONE, LATE),
        ];
        let ended = "2026-01-01T00:20:00Z".parse().ok();
        let held = std::slice::from_ref(&lease);
        assert!(events_without(&events, held, ended).next().is_none());
        // There never was a lease.
        let last = events_without(&events, &[], None).next().unwrap();
        assert_eq!(last.process, process(1));
    }
}
