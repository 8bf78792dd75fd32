use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use proptest::prelude::*;
use tokio::time::{advance, timeout};

use super::*;

fn queue() -> Arc<WorkQueue<&'static str>> {
    WorkQueue::new("Nodes", of_services(), &QueueMetrics::default())
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn keys_come_out_once_each_in_the_order_they_became_due() {
    let queue = queue();
    queue.add_after("late", SECOND * 2);
    queue.add("b");
    queue.add("a");
    queue.add("b");
    assert_eq!(queue.take_due(9), ["b", "a"]);
    assert!(queue.take_due(9).is_empty());
    assert_eq!(timeout(SECOND * 3, queue.next()).await, Ok("late"));
}

#[tokio::test(start_paused = true)]
async fn the_earliest_deadline_wins() {
    let queue = queue();
    let begin = Instant::now();
    queue.add_after("a", SECOND * 5);
    queue.add_after("a", SECOND * 2);
    queue.add_after("a", SECOND * 9);
    assert_eq!(queue.next().await, "a");
    assert_eq!(begin.elapsed(), SECOND * 2);
    queue.done(&"a");
    advance(SECOND * 20).await;
    assert!(queue.take_due(9).is_empty(), "one entry per key");
}

#[tokio::test(start_paused = true)]
async fn a_key_under_work_is_held_and_comes_back_when_done() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    queue.add("a");
    queue.add_after("a", SECOND);
    assert!(queue.longest_busy().is_some());
    advance(SECOND).await;
    assert!(queue.take_due(9).is_empty(), "held, not doubled");
    queue.done(&"a");
    assert_eq!(queue.take_due(9), ["a"]);
    queue.done(&"a");
    assert!(queue.take_due(9).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delay_given_while_held_counts_from_when_it_was_given() {
    let queue = queue();
    queue.add("a");
    assert_eq!(queue.next().await, "a");
    let begin = Instant::now();
    queue.add_after("a", SECOND * 4);
    advance(SECOND).await;
    queue.done(&"a");
    assert_eq!(queue.next().await, "a");
    assert_eq!(begin.elapsed(), SECOND * 4);
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_per_key_until_forgotten() {
    let queue = queue();
    let mut waited = Vec::new();
    for forget in [false, false, true, false] {
        if forget {
            queue.forget(&"a");
        }
        let begin = Instant::now();
        queue.retry("a");
        assert_eq!(queue.next().await, "a");
        waited.push(begin.elapsed().as_secs());
        queue.done(&"a");
    }
    assert_eq!(waited, [5, 10, 5, 10]);
    assert_eq!(queue.failures(&"a"), 2);
    assert_eq!(queue.failures(&"b"), 0, "each key has its own");
}

#[tokio::test(start_paused = true)]
async fn keys_that_failed_together_come_back_together() {
    let queue = WorkQueue::new("Nodes", of_nodes(Jitter::seeded(3)), &QueueMetrics::default());
    for _ in 0..4 {
        queue.retry_together(["a", "b", "c"]);
        assert_eq!(queue.next_batch(9).await, ["a", "b", "c"]);
        for key in ["a", "b", "c"] {
            queue.done(&key);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stated_delay_holds_whoever_asks_for_the_key_before_and_after() {
    for retry_after in [RetryAfter::Exactly(SECOND * 30), RetryAfter::AtLeast(SECOND * 30)] {
        let queue = queue();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        let begin = Instant::now();
        queue.add("a"); // an edit while it is worked on
        queue.retry_after("a", retry_after);
        queue.done(&"a");
        advance(SECOND * 10).await;
        queue.forget(&"a");
        queue.add("a"); // and one later
        assert!(queue.take_due(9).is_empty());
        assert_eq!(queue.next().await, "a");
        assert_eq!(begin.elapsed(), SECOND * 30);
        queue.done(&"a");
        queue.add("a");
        assert_eq!(queue.take_due(9), ["a"], "it has had its time");
    }
}

#[tokio::test(start_paused = true)]
async fn what_would_be_refused_sooner_waits_for_the_back_off_or_a_longer_stated_delay() {
    for (stated, due) in [(1, 5), (0, 5), (30, 30)] {
        let queue = WorkQueue::new("Services", of_services(), &QueueMetrics::default());
        let begin = Instant::now();
        queue.retry_after("a", RetryAfter::NotSooner(SECOND * stated));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(begin.elapsed(), SECOND * due);
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_leaves_nothing_behind() {
    let queue = queue();
    queue.retry("a");
    queue.remove(&"a");
    assert!(queue.lock().entries.is_empty());
    assert!(queue.lock().order.is_empty());

    queue.add("b");
    assert_eq!(queue.next().await, "b");
    queue.add("b");
    queue.remove(&"b");
    queue.done(&"b");
    assert!(queue.lock().entries.is_empty());
    assert!(queue.lock().order.is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_waiter_is_woken_when_several_keys_are_added_at_once() {
    let queue = queue();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.next().await })
        })
        .collect();
    tokio::task::yield_now().await;
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let mut taken = Vec::new();
    for waiter in waiters {
        taken.push(timeout(SECOND, waiter).await.unwrap().unwrap());
    }
    taken.sort_unstable();
    assert_eq!(taken, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_has_taken_nothing() {
    let queue = queue();
    assert!(timeout(SECOND, queue.next()).await.is_err());
    queue.add("a");
    assert_eq!(timeout(SECOND, queue.next()).await, Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn the_series_have_the_names_of_the_go_managers() {
    let metrics = QueueMetrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let queue = WorkQueue::new("Nodes", of_services(), &metrics);
    queue.add("a");
    queue.add("b");
    queue.add("c");
    assert_eq!(queue.take_due(2), ["a", "b"]);
    advance(SECOND * 3).await;
    queue.done(&"a");
    queue.retry("a");

    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        "workqueue_depth{name=\"Nodes\"} 1.0",
        "workqueue_adds_total{name=\"Nodes\"} 4",
        "workqueue_retries_total{name=\"Nodes\"} 1",
        "workqueue_queue_duration_seconds_bucket{le=\"1e-8\",name=\"Nodes\"} 2",
        "workqueue_work_duration_seconds_sum{name=\"Nodes\"} 3.0",
        "workqueue_unfinished_work_seconds{name=\"Nodes\"} 3.0",
        "workqueue_longest_running_processor_seconds{name=\"Nodes\"} 3.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    drop(queue);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(
        !text.contains("workqueue_depth{"),
        "a queue that is gone has no gauges\n{text}"
    );
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddAfter(u8, u64),
    Retry(u8),
    Forget(u8),
    Take,
    Done(u8),
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..4_u8;
    prop_oneof![
        key.clone().prop_map(Step::Add),
        (key.clone(), 1..30_u64).prop_map(|(key, seconds)| Step::AddAfter(key, seconds)),
        key.clone().prop_map(Step::Retry),
        key.clone().prop_map(Step::Forget),
        Just(Step::Take),
        key.prop_map(Step::Done),
        (1..20_u64).prop_map(Step::Advance),
    ]
}

proptest! {
    #[test]
    fn no_key_is_lost_or_doubled(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let queue = WorkQueue::new("Nodes", of_services(), &QueueMetrics::default());
            let mut wanted = std::collections::BTreeSet::new();
            let mut held = std::collections::BTreeSet::new();
            for step in steps {
                match step {
                    Step::Add(key) => {
                        queue.add(key);
                        wanted.insert(key);
                    }
                    Step::AddAfter(key, seconds) => {
                        queue.add_after(key, SECOND * u32::try_from(seconds).unwrap());
                        wanted.insert(key);
                    }
                    Step::Retry(key) => {
                        queue.retry(key);
                        wanted.insert(key);
                    }
                    Step::Forget(key) => queue.forget(&key),
                    Step::Take => {
                        for key in queue.take_due(usize::MAX) {
                            assert!(held.insert(key), "given out twice: {key}");
                            assert!(wanted.remove(&key), "not asked for: {key}");
                        }
                    }
                    Step::Done(key) => {
                        queue.done(&key);
                        held.remove(&key);
                    }
                    Step::Advance(seconds) => advance(Duration::from_secs(seconds)).await,
                }
            }
            for key in &held {
                queue.done(key);
            }
            advance(Duration::from_secs(60 * 60)).await;
            let rest: std::collections::BTreeSet<u8> = queue.take_due(usize::MAX).into_iter().collect();
            assert_eq!(rest, wanted);
        });
    }
}
