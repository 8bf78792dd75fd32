//! What a cloud refuses holds up nothing else, and is repeated after longer and longer pauses only.

use std::collections::BTreeSet;

use bowline_cloud_provider::{Asker, ErrorKind, RefusalBook};
use bowline_plan::RefusedBy;
use jiff::Timestamp;

use super::*;

/// What is to be made in one lane, part by part; after that, what was there before is deleted. Parts that begin with `bad` are refused, and somebody
/// takes away those that begin with `undone`.
#[derive(Default)]
struct Shop {
    parts: Vec<&'static str>,
    made: Mutex<BTreeSet<&'static str>>,
    asked: Mutex<Vec<&'static str>>,
    /// How many seconds the plans asked to wait.
    waited: Mutex<Vec<u64>>,
    book: RefusalBook<Make>,
}

#[derive(Debug, Clone, PartialEq)]
struct Make(&'static str);

impl Step for Make {
    fn label(&self) -> String {
        format!("make({})", self.0)
    }

    fn object(&self) -> String {
        self.0.to_owned()
    }

    fn impact(&self) -> Impact {
        match self.0 {
            "removal" => Impact::Considerable,
            _ => Impact::None,
        }
    }

    fn lanes(&self) -> Vec<Lane> {
        vec![Lane::new("shop")]
    }
}

impl Reconciler for Shop {
    /// What is asked for, and when.
    type Facts = (u64, i64);
    type Intent = ();
    type Observed = BTreeSet<&'static str>;
    type Remembered = ();
    type Step = Make;
    type Learned = ();

    fn intent(&self, _: &(u64, i64)) -> Result<(), Refusal> {
        Ok(())
    }

    async fn observe(
        &self,
        (): &(),
        _: Option<Self::Observed>,
        _: &mut Memory<(), Make>,
    ) -> Result<Self::Observed, CloudError> {
        Ok(self.made.lock().unwrap().clone())
    }

    fn plan(&self, (): &(), seen: &Seen<Self::Observed, (), Make>) -> LoadBalancerPlan<Make> {
        let missing = self.parts.iter().filter(|part| !seen.contains(*part));
        let steps = missing.map(|part| LoadBalancerStep::Cloud(Make(part)));
        let settled = || Answer::Settled(LoadBalancerStatus::empty());
        Plan::new(Answer::apply_or(steps.collect(), settled)).publishing(LoadBalancerStatus::empty())
    }

    fn book(&self, (asked, second): &(u64, i64)) -> Option<(&RefusalBook<Make>, Asker)> {
        let asker = Asker {
            has_begun: false,
            is_unanswered: false,
            uid: "u-1".to_owned(),
            asked: *asked,
            is_removal: false,
            now: Timestamp::from_second(*second).unwrap(),
        };
        Some((&self.book, asker))
    }

    async fn apply(
        &self,
        (): &(),
        _: &Seen<Self::Observed, (), Make>,
        step: &Make,
    ) -> Result<(), CloudError> {
        self.asked.lock().unwrap().push(step.0);
        match step.0 {
            busy if busy.starts_with("busy") => Err(CloudError::transient("busy")),
            undone if undone.starts_with("undone") => Ok(()),
            bad if bad.starts_with("bad") => Err(CloudError::new(ErrorKind::Exhausted, "quota")),
            part => {
                self.made.lock().unwrap().insert(part);
                Ok(())
            }
        }
    }

    fn learn(&self, seen: &mut Seen<Self::Observed, (), Make>, step: &Make, (): ()) {
        seen.observed.insert(step.0);
    }
}

impl Shop {
    fn of(parts: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            parts: parts.to_vec(),
            ..Self::default()
        })
    }

    /// One reconcile: how it ended, and what it asked for.
    async fn reconcile(
        self: &Arc<Self>,
        asked: u64,
        second: i64,
    ) -> (Result<Driven, String>, Vec<&'static str>) {
        let mut session = Arc::clone(self).begin((asked, second)).unwrap();
        let driven = loop {
            match drive(&mut *session, Mode::Apply(&Lanes::default()), &Nobody, &mut false).await {
                Ok(Driven::Wait { after, .. }) => self.waited.lock().unwrap().push(after.as_secs()),
                driven => break driven,
            }
        };
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        (driven.map_err(|error| error.to_string()), asked)
    }
}

struct Nobody;

impl Hooks<(u64, i64), Infallible> for Nobody {
    fn planned(&self, _: &(u64, i64), _: &DynPlan) {}

    fn write<'a>(
        &'a self,
        _: &'a Mutex<(u64, i64)>,
        _: &'a KubeWrite,
    ) -> BoxFuture<'a, Result<(), Infallible>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn object(&self) -> String {
        "shop".to_owned()
    }
}

#[tokio::test]
async fn a_part_that_is_refused_holds_up_no_other_part_and_the_rest_is_published() {
    let shop = Shop::of(&["a", "bad-b", "c"]);
    let (driven, asked) = shop.reconcile(1, 100).await;
    assert_eq!(asked, ["a", "bad-b", "c"]);
    let Ok(Driven::Refused(refusal, Some(_))) = driven else {
        panic!("{driven:?}");
    };
    assert_eq!(
        refusal,
        Refusal::new("error during make(bad-b): quota")
            .of_limit(true)
            .by(RefusedBy::Cloud)
    );
}

/// What was there before serves, and nothing has come in its place.
#[tokio::test]
async fn what_traffic_would_notice_does_not_follow_a_refused_part_in_its_lane() {
    let shop = Shop::of(&["bad-successor", "removal", "other"]);
    let (_, asked) = shop.reconcile(1, 100).await;
    assert_eq!(asked, ["bad-successor", "other"]);
}

#[tokio::test]
async fn a_refused_part_is_asked_for_again_after_its_pause_or_when_something_else_is_asked_for() {
    let shop = Shop::of(&["bad"]);
    for (asked, second, is_asked) in [
        (1, 100, true),
        (1, 104, false),
        (1, 105, true),
        (1, 114, false),
        (2, 114, true),
        (2, 118, false),
        (2, 119, true),
    ] {
        let (driven, asked) = shop.reconcile(asked, second).await;
        assert_eq!(asked, ["bad"][..usize::from(is_asked)], "at {second}");
        assert!(matches!(driven, Ok(Driven::Refused(..))), "{driven:?}");
    }
}

#[tokio::test]
async fn a_failure_that_is_no_refusal_ends_the_reconcile_and_is_not_held_back() {
    let shop = Shop::of(&["busy", "c"]);
    for _ in 0..2 {
        let (driven, asked) = shop.reconcile(1, 100).await;
        assert_eq!(driven.unwrap_err(), "error during make(busy): busy");
        assert_eq!(asked, ["busy"]);
    }
}

#[tokio::test]
async fn what_is_undone_each_time_holds_up_nothing_and_is_made_once_after_longer_and_longer_pauses() {
    let shop = Shop::of(&["a", "undone", "c"]);
    let (driven, asked) = shop.reconcile(1, 100).await;
    assert_eq!(
        asked,
        ["a", "undone", "c", "undone", "undone", "undone", "undone"]
    );
    let Ok(Driven::Refused(refusal, Some(_))) = driven else {
        panic!("{driven:?}");
    };
    assert_eq!(refusal.by, RefusedBy::Undone);
    assert_eq!(*shop.waited.lock().unwrap(), [1, 4, 10], "lists may be late");
    for (second, is_asked) in [
        (104, false),
        (105, true),
        (114, false),
        (115, true),
        (134, false),
        (135, true),
    ] {
        let (driven, asked) = shop.reconcile(1, second).await;
        assert_eq!(asked, ["undone"][..usize::from(is_asked)], "at {second}");
        assert!(matches!(driven, Ok(Driven::Refused(..))), "{driven:?}");
    }
}
