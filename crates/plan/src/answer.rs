//! What a provider answers when it is asked what to do next.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The next thing to do, and what should be said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<S, T> {
    /// What to do.
    pub answer: Answer<S, T>,
    /// What a person should be told; becomes events. A note is raised when its text is new for the object, so the same
    /// note may be part of every plan as long as it holds.
    pub notes: Vec<Note>,
    /// When to look again, if nothing is left to do now and something has to be tidied up later. Counts from a plan that is
    /// settled.
    pub again: Option<Duration>,
    /// What to publish although the answer is a refusal: all but what is refused is as it should be.
    pub publishes: Option<T>,
    /// What is not as it is asked for although nothing is left to do now: a write that was refused and is held back, or a part that the
    /// cloud could not make and that is left for a while. A cause that holds, until a plan settles without it.
    pub lacks: Option<Refusal>,
}

impl<S, T> Plan<S, T> {
    /// A plan without notes.
    #[must_use]
    pub fn new(answer: Answer<S, T>) -> Self {
        Self {
            answer,
            notes: Vec::new(),
            again: None,
            publishes: None,
            lacks: None,
        }
    }

    /// The same plan with these notes in front of its own.
    #[must_use]
    pub fn with_notes(mut self, mut notes: Vec<Note>) -> Self {
        notes.append(&mut self.notes);
        self.notes = notes;
        self
    }

    /// The same plan; if it is refused, this is published all the same.
    #[must_use]
    pub fn publishing(mut self, what: T) -> Self {
        self.publishes = Some(what);
        self
    }
}

/// The five things a plan can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<S, T> {
    /// These steps come next; afterwards ask again.
    Apply(Wave<S>),
    /// Nothing is left to do; this is what to publish.
    Settled(T),
    /// The cloud is busy: look again after this time. No error, and no person is needed.
    Wait {
        /// How long to wait before the next look.
        after: Duration,
        /// What is being waited for.
        reason: String,
    },
    /// What comes next has to be read first: look again at once. Nothing is awaited.
    LookAgain {
        /// What has to be read.
        reason: String,
    },
    /// Nothing can be done before a person changes something.
    Refused(Refusal),
}

impl<S, T> Answer<S, T> {
    /// These steps, or `otherwise` if there are none: a wave is never empty.
    pub fn apply_or(steps: Vec<S>, otherwise: impl FnOnce() -> Self) -> Self {
        match Wave::new(steps) {
            Some(wave) => Self::Apply(wave),
            None => otherwise(),
        }
    }
}

/// Steps that depend on nothing unread: at least one, in plan order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wave<S>(Vec<S>);

impl<S> Wave<S> {
    /// The wave of these steps; `None` if there is no step.
    #[must_use]
    pub fn new(steps: Vec<S>) -> Option<Self> {
        (!steps.is_empty()).then_some(Self(steps))
    }

    /// The wave of a single step.
    #[must_use]
    pub fn one(step: S) -> Self {
        Self(vec![step])
    }

    /// The steps in plan order.
    #[must_use]
    pub fn steps(&self) -> &[S] {
        &self.0
    }

    /// Takes the steps out.
    #[must_use]
    pub fn into_steps(self) -> Vec<S> {
        self.0
    }

    /// The same wave with every step translated.
    #[must_use]
    pub fn map<R>(self, translate: impl FnMut(S) -> R) -> Wave<R> {
        Wave(self.0.into_iter().map(translate).collect())
    }
}

/// Why nothing is done, and what would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason, as upstream words it where upstream has the same refusal.
    pub reason: String,
    /// What the operator can do, if the reason does not say it already.
    pub remedy: Option<String>,
    /// Whether it is because a quota or limit of the cloud is reached, or the cloud has no more of what is needed.
    #[serde(skip)]
    pub is_limit: bool,
    /// Who says no.
    #[serde(skip)]
    pub by: RefusedBy,
}

/// Who says no, for whoever counts refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusedBy {
    /// The plan: what is asked for cannot be had.
    #[default]
    Plan,
    /// The cloud: the credentials may not do it.
    Denial,
    /// The cloud: it cannot do what it was asked for.
    Cloud,
    /// The cloud: it took what it was asked for, or not, and failed by itself, which says nothing of what it was asked for.
    Failure,
    /// Nobody: the cloud did not answer for as long as an answer is waited for, and that says nothing of what it was asked for either.
    Silence,
    /// Somebody else: the cloud took what it was asked for each time, and each time it is undone.
    Undone,
}

impl RefusedBy {
    /// Whether it says nothing of what was asked for.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failure | Self::Silence | Self::Undone)
    }
}

/// How many refusals are told in full: more would not fit into an event.
const MOST_TOLD: usize = 5;

/// A text for people. It may quote a value in which something cannot be seen, such as a line end or a blank without a width: that is
/// shown as an escape.
pub(crate) fn visible(text: String) -> String {
    fn is_hidden(letter: char) -> bool {
        !matches!(letter, '"' | '\'' | '\\') && letter.escape_debug().len() > 1
    }
    if !text.contains(is_hidden) {
        return text;
    }
    let mut shown = String::new();
    for letter in text.chars() {
        match is_hidden(letter) {
            true => shown.extend(letter.escape_debug()),
            false => shown.push(letter),
        }
    }
    shown
}

/// A refusal: its reason, and after the semicolon what the operator can do, both in the words of `format!`.
///
/// ```
/// let refusal = bowline_plan::refusal!("port {} is taken", 80; "choose another one in {}", "spec.ports");
/// assert_eq!(refusal.to_string(), "port 80 is taken; choose another one in spec.ports");
/// ```
#[macro_export]
macro_rules! refusal {
    ($reason:literal $(, $of:expr)*; $remedy:literal $(, $by:expr)*) => {
        $crate::Refusal::new(format!($reason $(, $of)*)).with_remedy(format!($remedy $(, $by)*))
    };
}

impl Refusal {
    /// A refusal whose reason says all.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: visible(reason.into()),
            remedy: None,
            is_limit: false,
            by: RefusedBy::Plan,
        }
    }

    /// Says whether it is because a quota or limit of the cloud is reached, or the cloud has no more of what is needed.
    #[must_use]
    pub fn of_limit(mut self, is_limit: bool) -> Self {
        self.is_limit = is_limit;
        self
    }

    /// Says who says no.
    #[must_use]
    pub fn by(mut self, who: RefusedBy) -> Self {
        self.by = who;
        self
    }

    /// Adds what the operator can do.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// All of these, the worst first, to be told as one; of many the first few, and how many more there are.
    pub fn all<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let told = all.by_ref().take(MOST_TOLD).cloned();
        let mut told = told.reduce(|told, next| told.and(&next))?;
        let more = all.count();
        if more > 0 {
            told.reason = format!("{}; and {more} more", told.reason);
        }
        Some(told)
    }

    /// This refusal and another one, to be told as one. What both say is said once.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        if !self.reason.contains(&other.reason) {
            self.reason = format!("{}; {}", self.reason, other.reason);
        }
        self.remedy = match (self.remedy, &other.remedy) {
            (Some(one), Some(other)) if !one.contains(other) => Some(format!("{one}; {other}")),
            (one, other) => one.or_else(|| other.clone()),
        };
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// How loud a note is. The names are those of Kubernetes event types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NoteKind {
    /// Good to know.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Something a person should be told; becomes an event on the object that the plan is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Note {
    /// How loud.
    pub kind: NoteKind,
    /// The event's reason: one CamelCase word from the table of reasons.
    pub reason: &'static str,
    /// The event's message.
    pub text: String,
    /// Whether it is said although it held before the process started, when the process before is taken to have said it.
    #[serde(skip)]
    pub is_said_at_start: bool,
    /// Which time it is told of, where it happened and does not hold: the same text is news with another number.
    #[serde(skip)]
    pub occasion: u64,
    /// The Service that it is about, as `namespace/name`, in a plan that is for no object: it becomes an event of that one too.
    #[serde(skip)]
    pub about: Option<String>,
}

impl Note {
    /// The same, of something that happened this time. The number is another one each time that it happens.
    #[must_use]
    pub fn on_occasion(mut self, occasion: u64) -> Self {
        self.occasion = occasion;
        self
    }

    /// The same, about a Service, as `namespace/name`.
    #[must_use]
    pub fn about(mut self, service: impl Into<String>) -> Self {
        self.about = Some(service.into());
        self
    }

    /// The same, said at the first look after a start too: for what another manager leaves and never said.
    #[must_use]
    pub fn even_at_start(mut self) -> Self {
        self.is_said_at_start = true;
        self
    }

    /// A note that somebody should look at.
    #[must_use]
    pub fn warning(reason: &'static str, text: impl Into<String>) -> Self {
        Self {
            kind: NoteKind::Warning,
            reason,
            text: visible(text.into()),
            is_said_at_start: false,
            occasion: 0,
            about: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_in_a_text_is_shown() {
        let hidden = "`7\n\t\u{a0}\u{200b}` is \"no\" number\\, Zürich";
        let shown = "`7\\n\\t\\u{a0}\\u{200b}` is \"no\" number\\, Zürich";
        assert_eq!(Refusal::new(hidden).reason, shown);
        assert_eq!(Note::warning("Reason", hidden).text, shown);
    }

    #[test]
    fn a_wave_without_steps_does_not_exist() {
        assert!(Wave::<u8>::new(Vec::new()).is_none());
        let answer: Answer<u8, &str> = Answer::apply_or(Vec::new(), || Answer::Settled("done"));
        assert_eq!(answer, Answer::Settled("done"));
    }

    #[test]
    fn several_refusals_are_told_as_one_and_what_is_beyond_a_few_is_counted() {
        assert_eq!(Refusal::all([]), None);
        let all: Vec<Refusal> = (1..=7)
            .map(|port| Refusal::new(format!("port {port}: no")))
            .collect();
        let told = |all| Refusal::all(all).unwrap().reason;
        assert_eq!(told(&all[..2]), "port 1: no; port 2: no");
        assert_eq!(told(&all[..]).split("; ").last(), Some("and 2 more"));
    }

    #[test]
    fn a_refusal_shows_its_remedy_after_its_reason() {
        let refusal = Refusal::new("zone changed").with_remedy("re-create the service");
        assert_eq!(refusal.to_string(), "zone changed; re-create the service");
    }
}
