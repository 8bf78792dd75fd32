//! Who shares a read, and when reads start.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_transport::patience::{Patience, SHORTEST};
use futures::future::join_all;
use proptest::prelude::*;
use tokio::time::{Instant, sleep, sleep_until, timeout};

const MILLIS: fn(u64) -> Duration = Duration::from_millis;

type Answer = Result<u32, Arc<str>>;
type Reading = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A read that takes a while; its answer is its number, from 1, and the second one fails. Failures are answers like others.
fn numbered(takes: Duration) -> impl Fn(Arc<AtomicU32>) -> Reading + Send + Sync + 'static {
    move |started| {
        let number = started.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move {
            sleep(takes).await;
            if number == 2 {
                Err(Arc::from("read 2 failed"))
            } else {
                Ok(number)
            }
        })
    }
}

fn counted(takes: Duration) -> (SharedRead<Answer>, Arc<AtomicU32>) {
    let started = Arc::default();
    (SharedRead::new(MILLIS(500), &started, numbered(takes)), started)
}

#[tokio::test(start_paused = true)]
async fn the_first_question_starts_a_read_at_once() {
    let (shared, _) = counted(Duration::ZERO);
    let begun = Instant::now();
    assert_eq!(shared.ask().await, Ok(1));
    assert!(begun.elapsed() < MILLIS(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn questions_that_arrive_together_share_one_read() {
    let (shared, started) = counted(MILLIS(100));
    let answers = join_all((0..100).map(|_| shared.ask())).await;
    assert!(answers.iter().all(|answer| *answer == Ok(1)));
    assert_eq!(started.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_gathers_answers_a_burst_at_once() {
    let began = Arc::new(Mutex::new(Vec::new()));
    let origin = Instant::now();
    let shared = SharedRead::listing(MILLIS(25), &began, move |began: Arc<Mutex<Vec<_>>>| {
        began.lock().unwrap().push(origin.elapsed().as_millis());
        async {}
    });
    join_all([0, 10, 20, 40].map(|delay| {
        let shared = shared.clone();
        async move {
            sleep(MILLIS(delay)).await;
            shared.ask().await;
        }
    }))
    .await;
    let began = began.lock().unwrap().clone();
    assert_eq!(began.len(), 2, "{began:?}");
    assert!((25..30).contains(&began[0]), "{began:?}");
    assert!((525..530).contains(&began[1]), "{began:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_asked_after_a_read_began_waits_for_the_next_one() {
    let (shared, _) = counted(MILLIS(2000));
    let begun = Instant::now();
    let later = |delay| {
        let shared = shared.clone();
        async move {
            sleep(MILLIS(delay)).await;
            (shared.ask().await, begun.elapsed().as_millis())
        }
    };
    let (first, second, third) = tokio::join!(later(0), later(100), later(400));
    assert_eq!(first.0, Ok(1));
    let failed: Result<u32, Arc<str>> = Err(Arc::from("read 2 failed"));
    assert_eq!(second.0, failed);
    assert_eq!(third.0, failed);
    // Started when the first one had ended: they are never under way side by side.
    assert!((4000..4010).contains(&second.1), "{}", second.1);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_a_look_takes_the_read_from_nobody_who_shares_it() {
    let (shared, started) = counted(MILLIS(30_000));
    let (hurried, calm) = (Patience::of_look(), Patience::of_look());
    hurried.is_over(SHORTEST);
    let begun = Instant::now();
    let look = async |patience: &Patience| {
        let answer = tokio::select! {
            biased;
            answer = patience.with(shared.ask()) => Some(answer),
            () = patience.has_given_up() => None,
        };
        (answer, begun.elapsed().as_secs())
    };
    // Whoever comes first runs the read.
    let ends = tokio::join!(look(&hurried), look(&calm));
    assert_eq!(ends, ((None, 5), (Some(Ok(1)), 30)));
    assert_eq!(started.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_dropped_under_way_makes_room_for_the_next_one() {
    let (shared, started) = counted(MILLIS(60_000));
    let later = async {
        sleep(MILLIS(1000)).await;
        timeout(MILLIS(1001), shared.ask()).await
    };
    let (impatient, _) = tokio::join!(timeout(MILLIS(2000), shared.ask()), later);
    assert!(impatient.is_err());
    assert_eq!(started.load(Ordering::Relaxed), 2);
}

/// The same, of which there is one at a time.
fn counted_single(takes: Duration) -> (SharedRead<Answer>, Arc<AtomicU32>) {
    let started = Arc::default();
    (
        SharedRead::single(MILLIS(500), &started, numbered(takes)),
        started,
    )
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_while_a_single_read_is_under_way_gets_its_answer_good_or_bad() {
    let (shared, started) = counted_single(MILLIS(2000));
    let begun = Instant::now();
    let later = |delay| {
        let shared = shared.clone();
        async move {
            sleep_until(begun + MILLIS(delay)).await;
            shared.ask().await
        }
    };
    assert_eq!(
        join_all([0, 100, 1000, 1900].map(later)).await,
        [const { Ok(1) }; 4]
    );
    assert_eq!(started.load(Ordering::Relaxed), 1);
    let failed: Result<u32, Arc<str>> = Err(Arc::from("read 2 failed"));
    let answers = join_all([2100, 3000, 4000].map(later)).await;
    assert!(answers.iter().all(|answer| *answer == failed), "{answers:?}");
    assert_eq!(later(4200).await, Ok(3), "a read that has ended answers nobody");
}

#[tokio::test(start_paused = true)]
async fn a_single_read_outlives_who_started_it_and_no_longer_than_all_who_wait() {
    let (shared, started) = counted_single(MILLIS(1000));
    let patient = async {
        sleep(MILLIS(100)).await;
        shared.ask().await
    };
    let (impatient, patient) = tokio::join!(timeout(MILLIS(300), shared.ask()), patient);
    assert!(impatient.is_err());
    assert_eq!(patient, Ok(1));
    assert!(timeout(MILLIS(300), shared.ask()).await.is_err());
    assert_eq!(shared.ask().await, Ok(3), "the second one was dropped");
    assert_eq!(started.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_answers_those_who_waited_and_nobody_else() {
    let (shared, _) = counted(Duration::ZERO);
    assert!(shared.ask().await.is_ok());
    assert!(shared.ask().await.is_err());
    assert_eq!(shared.ask().await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_away_does_not_take_the_read_from_the_others() {
    let (shared, started) = counted(MILLIS(1000));
    let impatient = timeout(MILLIS(300), shared.ask());
    let (impatient, patient) = tokio::join!(impatient, shared.ask());
    assert!(impatient.is_err());
    assert_eq!(patient, Ok(1));
    assert_eq!(started.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_nobody_waits_for_is_dropped_and_the_interval_still_holds() {
    let dropped = Arc::new(AtomicU32::new(0));
    struct Flag(Arc<AtomicU32>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let shared = SharedRead::new(MILLIS(500), &dropped, |dropped| async move {
        let flag = Flag(dropped);
        sleep(MILLIS(1000)).await;
        drop(flag);
    });
    let begun = Instant::now();
    assert!(timeout(MILLIS(200), shared.ask()).await.is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    // This one had not begun when it was given up.
    assert!(timeout(MILLIS(100), shared.ask()).await.is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    shared.ask().await;
    assert!(
        (1500..1510).contains(&begun.elapsed().as_millis()),
        "{:?}",
        begun.elapsed()
    );
}

/// One question: when it is asked, and how long its asker waits.
#[derive(Debug, Clone)]
struct Question {
    at: u64,
    patience: u64,
}

fn questions() -> impl Strategy<Value = Vec<Question>> {
    let question = (0u64..4000, 1u64..6000).prop_map(|(at, patience)| Question { at, patience });
    prop::collection::vec(question, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_answer_is_younger_than_its_question_and_reads_keep_their_distance(
        questions in questions(),
        takes in prop::collection::vec(0u64..1500, 8),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let begun = Instant::now();
            let starts: Arc<Mutex<Vec<Duration>>> = Arc::default();
            let ends: Arc<Mutex<Vec<Duration>>> = Arc::default();
            struct Under(Arc<Mutex<Vec<Duration>>>, Instant);
            impl Drop for Under {
                fn drop(&mut self) {
                    self.0.lock().unwrap().push(self.1.elapsed());
                }
            }
            // The answer is the time at which its read began.
            let source = (Arc::clone(&starts), Arc::clone(&ends));
            let shared = SharedRead::new(MILLIS(500), &source, move |(starts, ends)| {
                let start = begun.elapsed();
                let mut starts = starts.lock().unwrap();
                let takes = takes[starts.len() % takes.len()];
                starts.push(start);
                let under_way = Under(ends, begun);
                async move {
                    sleep(MILLIS(takes)).await;
                    drop(under_way);
                    start
                }
            });
            let answers = join_all(questions.iter().map(|question| {
                let shared = shared.clone();
                async move {
                    sleep_until(begun + MILLIS(question.at)).await;
                    let asked = begun.elapsed();
                    (asked, timeout(MILLIS(question.patience), shared.ask()).await)
                }
            }))
            .await;
            let starts = starts.lock().unwrap().clone();
            let ends = ends.lock().unwrap().clone();
            for pair in starts.windows(2) {
                assert!(pair[1] - pair[0] >= MILLIS(500), "{starts:?}");
            }
            for (end, next) in std::iter::zip(&ends, starts.iter().skip(1)) {
                assert!(next >= end, "a read began at {next:?}, before the one that ended at {end:?}");
            }
            for (asked, answer) in answers {
                let Ok(start) = answer else { continue };
                assert!(start >= asked, "a question at {asked:?} was answered by a read of {start:?}");
                // The first read that began after the question answers it. Of one that began within the same
                // millisecond the times do not tell which came first.
                let mut later = starts.iter().filter(|start| **start >= asked);
                let next = later.next();
                assert!(next == Some(&start) || next == Some(&asked) && later.next() == Some(&start));
                // The timer of tokio counts whole milliseconds. The longest read takes three times the distance.
                assert!(start - asked <= MILLIS(1502), "{asked:?} waited until {start:?}");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_between_two_reads_may_change() {
    let began = Arc::new(Mutex::new(Vec::new()));
    let between = Arc::new(Mutex::new(MILLIS(1000)));
    let (asked, origin) = (Arc::clone(&between), Instant::now());
    let pace = move || *asked.lock().unwrap();
    let read = move |began: Arc<Mutex<Vec<_>>>| {
        began.lock().unwrap().push(origin.elapsed().as_secs());
        async {}
    };
    let shared = SharedRead::paced(Duration::ZERO, pace, &began, read);
    for seconds in [1, 4, 1] {
        *between.lock().unwrap() = Duration::from_secs(seconds);
        shared.ask().await;
    }
    assert_eq!(*began.lock().unwrap(), [0, 4, 5]);
}
