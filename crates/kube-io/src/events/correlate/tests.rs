use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::Node;

use super::super::ObjectRef;
use super::*;

fn occurrence(node: &str, message: &str, second: i64) -> Occurrence {
    Occurrence {
        component: "cloud-node-controller",
        object: ObjectRef::from(&Node {
            uid: Arc::from("u"),
            ..Node::named(node)
        }),
        kind: NoteKind::Warning,
        reason: "Broken",
        message: message.into(),
        at: Timestamp::from_second(1_700_000_000 + second).unwrap(),
        writer: None,
    }
}

#[test]
fn the_same_event_is_counted_up() {
    let mut correlator = Correlator::default();
    let first = correlator.correlate(&occurrence("a", "m", 0)).unwrap();
    assert!(!first.is_repetition());
    assert_eq!(first.name, "a.17979cfe362a0000");
    let second = correlator.correlate(&occurrence("a", "m", 3600)).unwrap();
    assert!(second.is_repetition());
    assert_eq!(
        (second.count, &second.name, second.first),
        (2, &first.name, first.first)
    );
    assert_eq!(
        second.last.duration_since(first.last),
        SignedDuration::from_hours(1)
    );
}

#[test]
fn the_longest_name_of_an_object_leaves_room_for_the_time() {
    let node = "a-".repeat(126) + "a";
    let entry = Correlator::default().correlate(&occurrence(&node, "m", 0));
    let name = entry.unwrap().name;
    assert!(name.len() <= 253 && name.starts_with("a-a-"), "{name}");
    assert!(name.ends_with("a.17979cfe362a0000"), "{name}");
}

#[test]
fn another_object_or_message_is_another_event() {
    let mut correlator = Correlator::default();
    let mut names = BTreeSet::new();
    for (node, message) in [("a", "m"), ("b", "m"), ("a", "n")] {
        let entry = correlator.correlate(&occurrence(node, message, 0)).unwrap();
        assert!(!entry.is_repetition());
        names.insert(entry.name);
    }
    assert_eq!(names.len(), 3, "events of one moment have names of their own");
}

#[test]
fn more_than_ten_messages_are_folded_into_one() {
    let mut correlator = Correlator::default();
    let mut written = |number: i64| {
        correlator
            .correlate(&occurrence("a", &format!("took {number} s"), number))
            .unwrap()
    };
    for number in 0..10 {
        assert_eq!(written(number).message, format!("took {number} s"));
    }
    let folded = written(10);
    assert_eq!(folded.message, "(combined from similar events): took 10 s");
    assert!(!folded.is_repetition());
    let more = written(11);
    assert_eq!(more.message, "(combined from similar events): took 11 s");
    assert_eq!((more.count, more.name), (2, folded.name));
}

#[test]
fn folding_ends_after_ten_quiet_minutes() {
    let mut correlator = Correlator::default();
    for number in 0..12 {
        correlator.correlate(&occurrence("a", &format!("took {number} s"), number));
    }
    let later = correlator
        .correlate(&occurrence("a", "took 12 s", 12 + 601))
        .unwrap();
    assert_eq!(later.message, "took 12 s");
}

#[test]
fn one_object_gets_25_events_and_then_one_each_five_minutes() {
    let mut correlator = Correlator::default();
    correlator.correlate(&occurrence("a", "m", 0));
    let mut passed = |second| usize::from(correlator.correlate(&occurrence("a", "m", second)).is_some());
    assert_eq!((0..40).map(|_| passed(0)).sum::<usize>(), 25);
    assert_eq!(passed(299), 0);
    assert_eq!(passed(300), 1);
    assert_eq!(passed(301), 0);
    assert!(
        correlator.correlate(&occurrence("b", "m", 301)).is_some(),
        "others are not concerned"
    );
}

#[test]
fn what_is_said_again_and_again_keeps_no_warning_from_being_heard() {
    let normal = |message: &str| Occurrence {
        kind: NoteKind::Normal,
        ..occurrence("a", message, 0)
    };
    let mut correlator = Correlator::default();
    let mut passed = |it: &Occurrence| correlator.correlate(it).is_some();
    let chatter = (0..20)
        .map(|_| normal("synced"))
        .chain((0..20).map(|_| occurrence("a", "refused", 0)));
    assert_eq!(chatter.filter(|it| passed(it)).count(), 25 + 1);
    assert!(passed(&occurrence("a", "another quota is met", 0)));
    assert!(
        !passed(&occurrence("a", "another quota is met", 1)),
        "said already"
    );
    assert!(!passed(&normal("synced otherwise")), "nobody has to act");
    // Nor are there more warnings than a bucket holds.
    let more = (0..40).map(|number| occurrence("a", &format!("m{number}"), 0));
    assert_eq!(more.filter(|it| passed(it)).count(), 25 - 2);
}

#[test]
fn a_series_whose_object_is_gone_begins_again_under_another_name() {
    let mut correlator = Correlator::default();
    let first = correlator.correlate(&occurrence("a", "m", 0)).unwrap();
    let repeated = occurrence("a", "m", 1);
    let second = correlator.correlate(&repeated).unwrap();
    let renamed = correlator.renamed(second, &repeated);
    assert!(!renamed.is_repetition());
    assert_ne!(renamed.name, first.name);
    let third = correlator.correlate(&occurrence("a", "m", 2)).unwrap();
    assert_eq!((third.count, third.name), (3, renamed.name));
}

#[test]
fn what_was_used_longest_ago_makes_room() {
    let at = |second: usize| Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
    // A use per second, and all of them in one second.
    for pace in [1, 0] {
        let mut table = Table::default();
        for key in 0..=REMEMBERED {
            table.put(key as u64, at(key * pace), ());
        }
        let kept: Vec<u64> = table.0.into_keys().collect();
        let newest: Vec<u64> = (FORGOTTEN as u64..=REMEMBERED as u64).collect();
        assert_eq!(kept, newest, "pace {pace}");
    }
}

#[test]
fn what_is_used_again_stays_in_a_full_table() {
    let mut table = Table::default();
    for key in 0..REMEMBERED as u64 {
        table.put(key, Timestamp::from_second(1).unwrap(), ());
    }
    table.put(0, Timestamp::from_second(2).unwrap(), ());
    assert_eq!(table.0.len(), REMEMBERED, "it needs no room");
    table.put(REMEMBERED as u64, Timestamp::from_second(3).unwrap(), ());
    assert!(table.0.contains_key(&0) && !table.0.contains_key(&1));
    assert_eq!(table.0.len(), REMEMBERED - FORGOTTEN + 1);
}
