use bowline_cloud_provider::{Taint, TaintEffect};
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A ledger and a clock that the test moves.
struct World {
    ledger: Ledger,
    start: Instant,
    passed: Duration,
}

impl World {
    fn new(settings: &NodeLifecycleSettings) -> Self {
        let start = Instant::now();
        Self {
            ledger: Ledger::new(settings, start),
            start,
            passed: Duration::ZERO,
        }
    }

    fn now(&self) -> Moment {
        Moment {
            instant: self.start + self.passed,
            wall: Timestamp::UNIX_EPOCH + self.passed,
        }
    }

    fn watch(&mut self, node: &Node) -> bool {
        let now = self.now().instant;
        self.ledger.watch(node, now)
    }

    /// Goes on to the next question and gives the answer at once.
    fn answer(&mut self, node: &Node, seen: Seen) -> Verdict {
        self.go_to_next();
        let now = self.now();
        assert_eq!(
            self.ledger.take_due(now.instant),
            std::slice::from_ref(&node.name)
        );
        self.ledger.judge(node, now.instant, now, seen)
    }

    fn go_to_next(&mut self) {
        let due = self.ledger.next_due().expect("nothing is due");
        self.passed = self.passed.max(due - self.start);
    }

    fn rule(&mut self, node: &Arc<Node>, check: CredentialCheck) -> Ruling {
        let now = self.now().instant;
        let all = [Arc::clone(node)];
        let mut rulings = self.ledger.rule(&all, |_| check, &all, now);
        assert_eq!(rulings.len(), 1);
        rulings.remove(0).1
    }

    /// Whole seconds from now to the next question.
    fn seconds_left(&self) -> u64 {
        (self.ledger.next_due().unwrap() - self.now().instant).as_secs()
    }
}

fn world() -> World {
    World::new(&NodeLifecycleSettings::default())
}

/// A Node that is initialised, as old as the clock, and not ready.
fn lost(name: &str) -> Node {
    Node {
        uid: format!("uid-{name}").into(),
        provider_id: Some(format!("fake://{name}").into()),
        readiness: Readiness::Unknown,
        ..Node::named(name)
    }
}

fn ready(node: &Node) -> Node {
    Node {
        readiness: Readiness::Ready,
        ..node.clone()
    }
}

#[test]
fn a_node_goes_after_two_proofs_five_seconds_apart() {
    let mut world = world();
    world.passed = MINUTE;
    let node = Arc::new(lost("a"));
    assert!(world.watch(&node));
    assert_eq!(world.seconds_left(), 0, "asked for at once");
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing);
    assert_eq!(world.seconds_left(), 5);
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
    assert_eq!(
        world.rule(&node, CredentialCheck::Seen),
        Ruling::Delete { is_news: true }
    );
    world.ledger.deleted(&node);
    assert_eq!(
        world.ledger.next_due(),
        None,
        "a finalizer may hold it; nobody asks again"
    );
    assert!(!world.watch(&node));
}

#[test]
fn the_distance_counts_from_the_first_answer_to_the_second_question() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    world.ledger.take_due(world.now().instant);
    let asked = world.now().instant;
    world.passed = SECOND * 20;
    let answered = world.now();
    assert_eq!(
        world.ledger.judge(&node, asked, answered, Seen::Absent),
        Verdict::Nothing
    );
    assert_eq!(
        world.ledger.next_due(),
        Some(answered.instant + SECOND * 5),
        "a slow answer proves the time it came, not the time it was asked for"
    );
}

#[test]
fn one_proof_is_enough_without_a_confirmation_time() {
    let mut world = World::new(&NodeLifecycleSettings {
        node_deletion_confirmation: Duration::ZERO,
        ..NodeLifecycleSettings::default()
    });
    let node = lost("a");
    world.watch(&node);
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
}

#[test]
fn an_instance_that_is_seen_again_takes_the_proof_away() {
    for seen in [Seen::Running, Seen::Off, Seen::Foreign] {
        let mut world = world();
        let node = lost("a");
        world.watch(&node);
        assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing);
        world.answer(&node, seen);
        assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing, "{seen:?}");
        assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone, "{seen:?}");
    }
}

#[test]
fn an_error_is_no_proof_and_takes_none_away() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    for _ in 0..20 {
        assert_eq!(
            world.answer(&node, Seen::Unknown { after: None }),
            Verdict::Nothing
        );
    }
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing);
    assert_eq!(
        world.answer(&node, Seen::Unknown { after: None }),
        Verdict::Nothing
    );
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
}

#[test]
fn power_decides_about_the_taint() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    assert_eq!(world.answer(&node, Seen::Off), Verdict::SetTaint(true));
    assert_eq!(
        world.answer(&node, Seen::Running),
        Verdict::SetTaint(false),
        "it runs, ready or not"
    );
    assert_eq!(world.answer(&node, Seen::Foreign), Verdict::Nothing);
}

#[test]
fn a_node_that_is_new_to_its_cloud_is_not_deleted_before_it_is_five_minutes_old() {
    let uninitialized = Node {
        taints: vec![Taint {
            key: keys::TAINT_UNINITIALIZED.into(),
            value: None,
            effect: TaintEffect::NoSchedule,
            time_added: None,
        }],
        ..lost("a")
    };
    let nameless = Node {
        provider_id: None,
        ..lost("a")
    };
    for node in [uninitialized, nameless] {
        let mut world = world();
        world.passed = SECOND * 7;
        world.watch(&node);
        let mut verdict = Verdict::Nothing;
        let mut questions = 0;
        while verdict == Verdict::Nothing {
            verdict = world.answer(&node, Seen::Absent);
            questions += 1;
        }
        assert_eq!(verdict, Verdict::Gone);
        assert_eq!(world.passed, suspect::GRACE, "neither earlier nor later");
        assert!(questions < 35, "{questions}");
    }
}

#[test]
fn questions_grow_apart_when_the_answer_was_the_same_for_two_minutes() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    let mut distances = Vec::new();
    for _ in 0..31 {
        world.answer(&node, Seen::Running);
        distances.push(world.seconds_left());
    }
    let news_is_waited_for = [5; 24];
    assert_eq!(distances[..24], news_is_waited_for);
    assert_eq!(distances[24..], [10, 20, 40, 60, 60, 60, 60]);
    world.answer(&node, Seen::Off);
    assert_eq!(world.seconds_left(), 5, "another answer");
}

#[test]
fn questions_in_no_hurry_fall_on_one_tick() {
    let mut world = world();
    for (second, name) in [(1, "a"), (2, "b"), (4, "c")] {
        world.passed = SECOND * second;
        let node = lost(name);
        world.watch(&node);
        world.answer(&node, Seen::Running);
    }
    world.passed = SECOND * 10;
    assert_eq!(world.ledger.take_due(world.now().instant).len(), 3);
}

#[test]
fn a_node_is_asked_about_at_every_tick_though_answers_take_a_moment() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    let mut asked = Vec::new();
    while world.passed < MINUTE {
        world.go_to_next();
        asked.push(world.passed.as_secs());
        let now = world.now();
        world.ledger.take_due(now.instant);
        world.passed += Duration::from_millis(900);
        let answered = world.now();
        world.ledger.judge(&node, now.instant, answered, Seen::Running);
    }
    assert_eq!(asked, (0..=12).map(|tick| tick * 5).collect::<Vec<_>>());
}

#[test]
fn the_delay_that_a_cloud_states_is_kept() {
    // Also between the ticks.
    for seconds in [3, 90, 92] {
        let mut world = world();
        let node = lost("a");
        world.watch(&node);
        let after = Some(Duration::from_secs(seconds));
        world.answer(&node, Seen::Unknown { after });
        assert_eq!(world.seconds_left(), seconds);
    }
}

#[test]
fn a_node_that_comes_back_is_forgotten_and_late_answers_count_for_nothing() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    world.answer(&node, Seen::Absent);
    world.go_to_next();
    let now = world.now();
    assert_eq!(world.ledger.take_due(now.instant).len(), 1);
    assert!(!world.watch(&ready(&node)));
    assert_eq!(
        world.ledger.judge(&node, now.instant, now, Seen::Absent),
        Verdict::Nothing
    );
    assert_eq!(world.ledger.next_due(), None);

    assert!(world.watch(&node), "lost again: from the beginning");
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing);
}

#[test]
fn a_new_node_under_the_same_name_begins_anew() {
    let mut world = world();
    let old = lost("a");
    let new = Node {
        uid: "another".into(),
        ..old.clone()
    };
    world.watch(&old);
    world.answer(&old, Seen::Absent);
    assert!(world.watch(&new));
    world.ledger.forget(&old);
    let now = world.now();
    assert_eq!(
        world.ledger.judge(&old, now.instant, now, Seen::Absent),
        Verdict::Nothing
    );
    assert_eq!(world.answer(&new, Seen::Absent), Verdict::Nothing);
    assert_eq!(world.answer(&new, Seen::Absent), Verdict::Gone);
}

#[test]
fn nobody_asks_for_a_node_under_deletion() {
    let mut world = world();
    let node = lost("a");
    world.watch(&node);
    assert!(!world.watch(&Node {
        deleting: true,
        ..node
    }));
    assert_eq!(world.ledger.next_due(), None);
}

#[test]
fn a_ready_node_is_looked_at_only_while_it_carries_the_shutdown_taint() {
    let mut world = world();
    let node = ready(&lost("a"));
    assert!(!world.watch(&node));
    let tainted = Node {
        taints: vec![Taint::shutdown()],
        ..node.clone()
    };
    assert!(world.watch(&tainted));
    assert_eq!(world.ledger.take_due(world.now().instant).len(), 1);
    world.ledger.rest(&tainted, world.now().instant);
    assert_eq!(world.seconds_left(), 5, "looked at again if the write failed");
    assert!(!world.watch(&node));
    assert_eq!(world.ledger.next_due(), None);
}

#[test]
fn a_blind_cloud_freezes_deletions_until_it_sees_again() {
    let mut world = world();
    let node = Arc::new(lost("a"));
    world.watch(&node);
    world.answer(&node, Seen::Absent);
    for is_news in [true, false, false] {
        assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
        let ruling = world.rule(&node, CredentialCheck::Blind { missing: 3 });
        let is_proved = true;
        assert_eq!(
            ruling,
            Ruling::Frozen {
                ready: 3,
                is_proved,
                begins: is_news,
                is_news
            }
        );
        assert_eq!(
            world.ledger.held(),
            Held {
                frozen: 1,
                throttled: 0
            }
        );
    }
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
    assert_eq!(world.rule(&node, CredentialCheck::Unclear), Ruling::Wait);
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
    assert_eq!(
        world.rule(&node, CredentialCheck::NoWitness),
        Ruling::Delete { is_news: true }
    );
    assert_eq!(world.ledger.held(), Held::default());
}

#[test]
fn an_instance_that_is_not_seen_is_told_of_if_no_ready_one_is_and_its_node_never_goes() {
    let mut world = world();
    let node = Arc::new(lost("a"));
    world.watch(&node);
    assert_eq!(world.answer(&node, Seen::Unseen), Verdict::Nothing);
    for is_news in [true, false] {
        assert_eq!(world.answer(&node, Seen::Unseen), Verdict::Doubt);
        let ruling = world.rule(&node, CredentialCheck::Blind { missing: 2 });
        let is_proved = false;
        assert_eq!(
            ruling,
            Ruling::Frozen {
                ready: 2,
                is_proved,
                begins: is_news,
                is_news
            }
        );
    }
    assert_eq!(world.ledger.held().frozen, 1);
    for check in [
        CredentialCheck::Seen,
        CredentialCheck::NoWitness,
        CredentialCheck::Unclear,
    ] {
        assert_eq!(world.answer(&node, Seen::Unseen), Verdict::Doubt);
        assert_eq!(world.rule(&node, check), Ruling::Wait, "{check:?}");
        assert_eq!(world.ledger.held(), Held::default(), "{check:?}");
    }
    // An answer that proves nothing does not contradict a proof either.
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing);
    assert_eq!(world.answer(&node, Seen::Unseen), Verdict::Doubt);
    assert_eq!(world.rule(&node, CredentialCheck::Seen), Ruling::Wait);
    assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
}

#[test]
fn a_held_node_is_asked_for_at_growing_distance_at_once() {
    for check in [CredentialCheck::Blind { missing: 1 }, CredentialCheck::Seen] {
        let mut world = world();
        let node = Arc::new(lost("held"));
        world.watch(&node);
        // The window is spent: with a credible answer the Node has to wait as well.
        for n in 0..3 {
            let now = world.now().instant;
            world.ledger.throttle.take(&lost(&format!("gone-{n}")), now);
        }
        assert_eq!(world.answer(&node, Seen::Absent), Verdict::Nothing);
        let mut distances = Vec::new();
        for _ in 0..5 {
            assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
            world.rule(&node, check);
            let due = world.ledger.suspects.by_name[&node.name].due().unwrap();
            distances.push((due - world.now().instant).as_secs());
        }
        assert!(distances.is_sorted() && distances[4] >= 55, "{distances:?}");
    }
}

#[test]
fn a_frozen_node_whose_instance_is_seen_again_is_no_longer_held() {
    let mut world = world();
    let node = Arc::new(lost("a"));
    world.watch(&node);
    world.answer(&node, Seen::Absent);
    world.answer(&node, Seen::Absent);
    world.rule(&node, CredentialCheck::Blind { missing: 1 });
    world.answer(&node, Seen::Running);
    assert_eq!(world.ledger.held(), Held::default());
}

#[test]
fn a_failed_deletion_is_tried_again_and_told_once_per_text() {
    let mut world = world();
    let node = Arc::new(lost("a"));
    world.watch(&node);
    world.answer(&node, Seen::Absent);
    for (is_first, text, is_news) in [
        (true, "forbidden", true),
        (false, "forbidden", false),
        (false, "busy", true),
    ] {
        assert_eq!(world.answer(&node, Seen::Absent), Verdict::Gone);
        assert_eq!(
            world.rule(&node, CredentialCheck::Seen),
            Ruling::Delete { is_news: is_first }
        );
        let now = world.now().instant;
        assert_eq!(
            world.ledger.deletion_failed(&node, text, false, now),
            is_news,
            "{text}"
        );
        assert_eq!(world.ledger.throttle.recent(), 0, "its turn is given back");
    }
}

/// The names of the Nodes that may go now, of these that are all proved gone.
fn let_go(world: &mut World, all: &[Arc<Node>]) -> Vec<NodeName> {
    world.go_to_next();
    let now = world.now();
    let due = world.ledger.take_due(now.instant);
    let asked = all.iter().filter(|node| due.contains(&node.name)).cloned();
    let doomed: Vec<Arc<Node>> = asked
        .filter(|node| world.ledger.judge(node, now.instant, now, Seen::Absent) == Verdict::Gone)
        .collect();
    let rulings = world
        .ledger
        .rule(&doomed, |_| CredentialCheck::NoWitness, all, now.instant);
    rulings
        .into_iter()
        .filter(|(_, ruling)| matches!(ruling, Ruling::Delete { .. }))
        .map(|(node, _)| node.name.clone())
        .collect()
}

#[test]
fn a_deletion_without_an_answer_counts_and_is_tried_again_before_others_go() {
    let mut world = world();
    let all: Vec<Arc<Node>> = (0..6).map(|n| Arc::new(lost(&format!("n{n}")))).collect();
    for node in &all {
        world.watch(node);
    }
    let fail = |world: &mut World, which: &[Arc<Node>]| {
        let now = world.now().instant;
        for node in which {
            world.ledger.deletion_failed(node, "no answer", true, now);
        }
    };
    assert!(let_go(&mut world, &all).is_empty(), "the first proof");
    assert_eq!(let_go(&mut world, &all), ["n0", "n1", "n2"].map(NodeName::new));
    fail(&mut world, &all[..3]);
    assert_eq!(world.ledger.throttle.recent(), 3);
    let then = world.passed;
    assert_eq!(let_go(&mut world, &all), ["n0", "n1", "n2"].map(NodeName::new));
    world.ledger.not_deleted(&all[0]);
    let now = world.now().instant;
    world.ledger.deletion_failed(&all[1], "forbidden", false, now);
    fail(&mut world, &all[2..3]);
    assert_eq!(
        world.ledger.throttle.recent(),
        3,
        "the first try may have been made, whatever the second met"
    );
    // Two of them fail for ever, which keeps the others for two windows at most.
    let mut went = Vec::new();
    while went.is_empty() {
        let names = let_go(&mut world, &all);
        went = names
            .into_iter()
            .filter(|name| !["n1", "n2"].map(NodeName::new).contains(name))
            .collect();
        fail(&mut world, &all[1..3]);
    }
    assert_eq!(went, ["n3"].map(NodeName::new));
    assert!(
        world.passed >= then + MINUTE * 10,
        "the turn of n0 counts from its last try"
    );
}

/// As where a webhook strips the note from the lease: none is deleted, and nobody is told that some were.
#[test]
fn deletions_that_come_to_nothing_are_not_said_to_have_used_up_the_share() {
    let mut world = world();
    let all: Vec<Arc<Node>> = (0..5).map(|n| Arc::new(lost(&format!("n{n}")))).collect();
    for node in &all {
        world.watch(node);
    }
    for _ in 0..5 {
        world.go_to_next();
        let now = world.now();
        let due = world.ledger.take_due(now.instant);
        let asked = all.iter().filter(|node| due.contains(&node.name)).cloned();
        let doomed: Vec<Arc<Node>> = asked
            .filter(|node| world.ledger.judge(node, now.instant, now, Seen::Absent) == Verdict::Gone)
            .collect();
        let rulings = world
            .ledger
            .rule(&doomed, |_| CredentialCheck::NoWitness, &all, now.instant);
        for (node, ruling) in rulings {
            match ruling {
                Ruling::Delete { .. } => {
                    world.ledger.deletion_failed(&node, "no note", false, now.instant);
                }
                Ruling::Throttled { is_news, .. } => assert!(!is_news, "{node:?}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Answer(Seen),
    Back,
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Answer(Seen::Absent)),
        1 => Just(Event::Answer(Seen::Running)),
        1 => Just(Event::Answer(Seen::Off)),
        1 => Just(Event::Answer(Seen::Foreign)),
        2 => Just(Event::Answer(Seen::Unknown { after: None })),
        1 => Just(Event::Answer(Seen::Unknown { after: Some(SECOND) })),
        1 => Just(Event::Back),
        2 => (0..40_u64).prop_map(Event::Wait),
    ]
}

proptest! {
    /// Whatever the cloud says and however Ready flaps: a Node only goes if its last two answers that said anything
    /// were proofs, far enough apart, with Ready lost all the while, and it is old enough.
    #[test]
    fn deletion_is_earned(
        events in proptest::collection::vec(event(), 1..60),
        is_named: bool,
        confirmation in 0..12_u64,
    ) {
        let confirmation = SECOND * u32::try_from(confirmation).unwrap();
        let mut world = World::new(&NodeLifecycleSettings {
            node_deletion_confirmation: confirmation,
            ..NodeLifecycleSettings::default()
        });
        let node = Arc::new(Node { provider_id: is_named.then(|| "fake://a".into()), ..lost("a") });
        world.watch(&node);
        let mut first_proof = None;
        for event in events {
            match event {
                Event::Wait(seconds) => world.passed += Duration::from_secs(seconds),
                Event::Back => {
                    world.watch(&ready(&node));
                    world.watch(&node);
                    first_proof = None;
                }
                Event::Answer(seen) => {
                    let verdict = world.answer(&node, seen);
                    let now = world.passed;
                    match seen {
                        Seen::Absent => {
                            let first = *first_proof.get_or_insert(now);
                            let is_earned = now >= first + confirmation && (is_named || now >= suspect::GRACE);
                            prop_assert_eq!(verdict == Verdict::Gone, is_earned);
                        }
                        Seen::Unknown { .. } => prop_assert_eq!(verdict, Verdict::Nothing),
                        _ => {
                            prop_assert_ne!(verdict, Verdict::Gone);
                            first_proof = None;
                        }
                    }
                    if verdict == Verdict::Gone {
                        // The API server refuses, so that the history goes on.
                        world.rule(&node, CredentialCheck::Seen);
                        let now = world.now().instant;
                        world.ledger.deletion_failed(&node, "no", false, now);
                    }
                }
            }
            let left = world.ledger.next_due().map(|due| due.saturating_duration_since(world.now().instant));
            prop_assert!(left.is_some_and(|left| left <= MINUTE + SECOND * 5), "forgotten: {:?}", left);
        }
    }
}
