//! What this program writes into Kubernetes and others change back: when it is written again, and how that is told.
//!
//! One rule for all of it. So many times in a row may be a person, and are answered at once. Who goes on will do it as often as we
//! write, and is answered less and less often. One event in a row names the other writer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_kube_io::ObjectRef;
use bowline_plan::EventSpec;
use tokio::time::Instant;

use crate::controller::Context;
use crate::events;
use crate::queue::of_services;

/// The name of the one entry of a Service that this program writes and that is no annotation.
pub(crate) const ADDRESS: &str = "spec.loadBalancerIP";

/// What happens again within this time happens in a row.
pub(crate) const ROW: Duration = Duration::from_secs(10 * 60);

/// How often in a row something is put back at once: people try several values of a label.
const AT_ONCE: u32 = 5;

/// A part of an object that this program writes. Provider ID and pod networks of a Node are none: nobody can change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Annotations of a Service or a Node.
    Annotations,
    /// The finalizer of a Service.
    Finalizer,
    /// `status.loadBalancer` of a Service.
    Status,
    /// The condition of a Service that tells its trouble.
    Reconciled,
    /// The taint that a Node waits with.
    Taint,
    /// The taint of a Node whose instance is shut down.
    ShutdownTaint,
    /// Type, zone and region of a Node, under both names.
    Labels,
    /// `status.addresses` of a Node.
    Addresses,
    /// The condition `NetworkUnavailable` of a Node.
    NetworkUnavailable,
}

impl Part {
    /// For people.
    const fn name(self) -> &'static str {
        match self {
            Self::Annotations => "annotations",
            Self::Finalizer => "the finalizer service.kubernetes.io/load-balancer-cleanup",
            Self::Status => "status.loadBalancer",
            Self::Reconciled => "the condition LoadBalancerReconciled",
            Self::Taint => "the taint node.cloudprovider.kubernetes.io/uninitialized",
            Self::ShutdownTaint => "the taint node.cloudprovider.kubernetes.io/shutdown",
            Self::Labels => "the labels of type, zone and region",
            Self::Addresses => "status.addresses",
            Self::NetworkUnavailable => "the condition NetworkUnavailable",
        }
    }

    /// The same of single annotations or labels.
    fn name_of(self, keys: &BTreeSet<String>) -> String {
        let kind = match self {
            Self::Annotations => "annotation ",
            _ => "label ",
        };
        let names = keys.iter().map(|key| match key.as_str() {
            ADDRESS => key.clone(),
            key => format!("{kind}{key}"),
        });
        match keys.is_empty() {
            true => self.name().to_owned(),
            false => names.collect::<Vec<_>>().join(", "),
        }
    }

    /// How it is told.
    const fn event(self) -> EventSpec {
        match self {
            Self::Finalizer => events::FINALIZER_REMOVED,
            _ => events::CHANGED_BACK,
        }
    }

    /// Its path, as managed fields spell it.
    const fn path(self) -> &'static [&'static str] {
        match self {
            Self::Annotations => &["f:metadata", "f:annotations"],
            Self::Finalizer => &[
                "f:metadata",
                "f:finalizers",
                "v:\"service.kubernetes.io/load-balancer-cleanup\"",
            ],
            Self::Status => &["f:status", "f:loadBalancer", "f:ingress"],
            Self::Reconciled => &[
                "f:status",
                "f:conditions",
                "k:{\"type\":\"LoadBalancerReconciled\"}",
            ],
            Self::Taint | Self::ShutdownTaint => &["f:spec", "f:taints"],
            Self::Labels => &["f:metadata", "f:labels"],
            Self::Addresses => &["f:status", "f:addresses"],
            Self::NetworkUnavailable => &["f:status", "f:conditions", "k:{\"type\":\"NetworkUnavailable\"}"],
        }
    }
}

/// The fields of a part, or of these of its keys, as managed fields spell them.
fn fields(part: Part, keys: &BTreeSet<String>) -> Vec<Vec<String>> {
    let base: Vec<String> = part.path().iter().map(|&step| step.to_owned()).collect();
    let of_key = |key: &String| match key.as_str() {
        ADDRESS => ["f:spec", "f:loadBalancerIP"].map(str::to_owned).into(),
        key => [&base[..], &[format!("f:{key}")]].concat(),
    };
    match keys.is_empty() {
        true => vec![base],
        false => keys.iter().map(of_key).collect(),
    }
}

/// What others changed back on one object, and how often in a row. Most objects have nothing of that.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PutBack(BTreeMap<Part, Row>);

/// How often in a row something happened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    count: u32,
    last: Option<Instant>,
}

/// When a part is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Again {
    /// After this time.
    pub(crate) after: Duration,
    /// It is the first time in a row that it is not written at once: [tell it](Context::tell_changed_back).
    pub(crate) is_news: bool,
}

impl PutBack {
    /// Somebody changed this part back once more. Call it once for each time that it was written: not while it waits to be.
    pub(crate) fn again(&mut self, part: Part) -> Again {
        self.0.entry(part).or_default().again()
    }

    /// Whether the next time would be in a row.
    pub(crate) fn is_in_row(&self, part: Part) -> bool {
        self.0.get(&part).is_some_and(|row| row.goes_on(Instant::now()))
    }
}

impl Row {
    /// It happened once more: when to act on it.
    pub(crate) fn again(&mut self) -> Again {
        let now = Instant::now();
        self.count = if self.goes_on(now) {
            self.count.saturating_add(1)
        } else {
            1
        };
        self.last = Some(now);
        let after = match self.count.checked_sub(AT_ONCE + 1) {
            None => Duration::ZERO,
            Some(doublings) => of_services().delay(doublings, 1.0),
        };
        Again {
            after,
            is_news: self.count == AT_ONCE + 1,
        }
    }

    fn goes_on(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now < last + ROW)
    }
}

impl Context {
    /// Records that somebody changes a part of an object back again and again, and who that is; where it has `keys`, these of it. The
    /// API server is asked for that, so do it where something may be awaited, beside the write that puts it back. The answer is the text.
    pub(crate) async fn tell_changed_back<'a, T>(
        &self,
        object: &'a T,
        part: Part,
        keys: &BTreeSet<String>,
    ) -> String
    where
        ObjectRef: From<&'a T>,
    {
        let reference = ObjectRef::from(object);
        let what = part.name_of(keys);
        let who = match self.kube.other_writer(&reference, &fields(part, keys)).await {
            Ok(Some(writer)) => writer,
            Ok(None) => "another program (a removal leaves no trace of who did it)".to_owned(),
            Err(error) => {
                tracing::debug!(object = %reference, err = %error, "Cannot read who else writes an object");
                "another program".to_owned()
            }
        };
        tracing::warn!(object = %reference, part = what, writer = who, "Somebody changes back what this manager writes; it is written less and less often");
        let text =
            format!("{what}: changed back again and again, by {who}; put back after 5, 10, 20 ... 300 s");
        self.event(object, part.event().note(text.clone()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_put_back_five_times_at_once_and_then_less_and_less_often() {
        let mut put_back = PutBack::default();
        let mut again = async |pause: u64| {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            let again = put_back.again(Part::Status);
            (again.after.as_secs(), again.is_news)
        };
        for _ in 0..5 {
            assert_eq!(again(1).await, (0, false));
        }
        for (after, is_news) in [
            (5, true),
            (10, false),
            (20, false),
            (40, false),
            (80, false),
            (160, false),
            (300, false),
            (300, false),
        ] {
            assert_eq!(again(300).await, (after, is_news));
        }
        assert_eq!(again(600).await, (0, false), "a new row");
    }

    #[tokio::test(start_paused = true)]
    async fn each_part_has_a_row_of_its_own() {
        let mut put_back = PutBack::default();
        for _ in 0..9 {
            put_back.again(Part::Status);
        }
        assert_eq!(put_back.again(Part::Finalizer).after, Duration::ZERO);
    }
}
