//! One step of a plan: what it is called, what it touches, what it costs the traffic, what it may not run beside.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a step does to traffic that flows through the balancer now.
///
/// The words are those of the cloudscale.ch impact tables; ordered from harmless to harmful, so the impact of a wave is
/// the maximum of its steps'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Impact {
    /// Traffic does not notice.
    #[default]
    None,
    /// Some new connections may time out for seconds (at most about 15 s), or only some clients are concerned.
    Minimal,
    /// Connections break and new ones fail for up to one or two minutes.
    Considerable,
    /// The balancer or its address goes away.
    Major,
}

impl fmt::Display for Impact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Considerable => "considerable",
            Self::Major => "major",
        })
    }
}

/// Something of the cloud that takes one write at a time, such as a load balancer or a public network.
///
/// A lane is process-wide: it runs one step at a time, in plan order, whichever Service the step belongs to. Steps
/// without a common lane run side by side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    name: Arc<str>,
    is_courtesy: bool,
}

impl Lane {
    /// Names a lane. Two lanes are the same if their names are.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            is_courtesy: false,
        }
    }

    /// A lane that only spares the cloud writes that it would refuse: no step waits for a write in it that has no answer for a while. No
    /// lane that is [`new`](Self::new) may have its name.
    #[must_use]
    pub fn courtesy(name: impl Into<Arc<str>>) -> Self {
        Self {
            is_courtesy: true,
            ..Self::new(name)
        }
    }

    /// Whether it is one of those.
    #[must_use]
    pub fn is_courtesy(&self) -> bool {
        self.is_courtesy
    }

    /// The lane's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// What kind of thing it is: the first two parts of a name such as `nimbus/volume/7`, because a third one tells things of
    /// one kind apart. There are only a few kinds, so this is fit for a label.
    #[must_use]
    pub fn kind(&self) -> &str {
        let slash = self.name.match_indices('/').nth(1);
        slash.map_or("other", |(at, _)| &self.name[..at])
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// One write, as plain data of a provider's own type.
pub trait Step {
    /// The step in one line, for logs, error texts and printed plans, such as `create-pool(<lb>/tcp/http)`.
    fn label(&self) -> String;

    /// The object that the step touches, in words a person would use for it.
    fn object(&self) -> String;

    /// What the step does to present traffic.
    fn impact(&self) -> Impact;

    /// The lanes that the step needs, all of them at once. Empty: it waits for nobody.
    fn lanes(&self) -> Vec<Lane>;

    /// Whether it changes what others may go by too, such as an address that moves from one Service to another. Should it take effect
    /// late, they are looked at again as well.
    fn concerns_others(&self) -> bool {
        false
    }

    /// Whether something may be left of it that nobody looks for, should it take effect after what it is for was removed: it makes something
    /// that stands by itself, or writes to what others have as well. Then a removal waits for it.
    fn may_be_left(&self) -> bool {
        true
    }

    /// Whether the step removes a part that nobody wants any more, alone or in a list that replaces another one: nothing leans on it, so one
    /// that fails stops nothing else.
    fn removes(&self) -> bool {
        false
    }
}

/// A step erased to what a person or a scheduler needs of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepView {
    /// See [`Step::label`].
    pub label: String,
    /// See [`Step::object`].
    pub object: String,
    /// See [`Step::impact`].
    pub impact: Impact,
    /// See [`Step::lanes`].
    pub lanes: Vec<Lane>,
}

impl StepView {
    /// Reads what is to be shown of a step.
    #[must_use]
    pub fn of(step: &impl Step) -> Self {
        Self {
            label: step.label(),
            object: step.object(),
            impact: step.impact(),
            lanes: step.lanes(),
        }
    }
}
