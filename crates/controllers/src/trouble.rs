//! What is told of trouble with a load balancer: the message of the condition `LoadBalancerReconciled`. It is written and read here and
//! nowhere else, so whoever reads it back has what failed, what to do and what is tried again as parts.
//!
//! ```text
//! WHAT[. What to do: REMEDY][. It is tried again within 5 minutes, and at once when the Service changes][. Without an answer until now, \
//! and may take effect until TIME: STEP[; STEP ...]]
//! ```
//!
//! Where a question to the cloud failed, and no write, the sentence of the next try is that it is asked again. The last one is the memory of
//! the next process: it knows from here what this one has under way.

use std::borrow::Cow;

use bowline_cloud_provider::facts::{BETWEEN_STEPS, WITHOUT_ANSWER as LATE};
use bowline_kube_io::shortened;
use jiff::{Timestamp, Unit};

use crate::advice;

/// What stands before the remedy.
const DO: &str = ". What to do: ";

/// What stands at the end, by what is tried again: the first of each kind is written, the others are those of earlier releases. The time is
/// the longest one, so that the text stays the same from try to try.
const AGAIN: [(Again, &str); 5] = [
    (
        Again::Question,
        ". It is asked again within 5 minutes, and at once when the Service changes",
    ),
    (
        Again::Write,
        ". It is tried again within 5 minutes, and at once when the Service changes",
    ),
    (
        Again::Refused,
        ". It is tried again within 40 minutes, and at once when the Service changes",
    ),
    (
        Again::Question,
        ". It is asked again by itself, and at once when the Service changes",
    ),
    (
        Again::Write,
        ". It is tried again by itself, and at once when the Service changes",
    ),
];

/// What has happened where nothing else has than that a call has no answer.
pub const NO_ANSWER: &str = "the cloud has not answered a call";

/// Calls to the cloud without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// Until when the last of them may take effect, in whole seconds where it is read back.
    pub until: Timestamp,
    /// The steps that they are of. A message names the first [few](NAMED).
    pub steps: Vec<String>,
}

/// How many steps a message names.
const NAMED: usize = 4;

/// What stands for the others in a message, behind their number.
const MORE: &str = " more";

impl Late {
    /// The steps as a message has them.
    fn named(&self) -> String {
        let mut named: Vec<_> = self.steps.iter().take(NAMED).cloned().collect();
        let left = self.steps.len() - named.len();
        named.extend((left > 0).then(|| format!("{left}{MORE}")));
        named.join(BETWEEN_STEPS)
    }

    /// Whether this stands for several calls that are not named.
    #[must_use]
    pub fn is_of_others(step: &str) -> bool {
        let number = step.strip_suffix(MORE);
        number.is_some_and(|number| number.parse::<usize>().is_ok())
    }
}

/// What is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// A question to the cloud that failed.
    Question,
    /// Anything else.
    Write,
    /// What the cloud refused, or does not do: it is held back for up to 30 minutes, until the look after that, one every ten.
    Refused,
}

/// Trouble with the load balancer of a Service, in parts. All of them are texts for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    what: String,
    remedy: Option<String>,
    again: Option<Again>,
    late: Option<Late>,
}

impl Trouble {
    /// This has happened, and general advice behind a semicolon is what to do. Nothing is said of another try.
    #[must_use]
    pub fn new(what: &str) -> Self {
        let what = part(what);
        let with_advice = |it| Some((what.strip_suffix(it)?.strip_suffix("; ")?, it));
        let (what, remedy) = match advice::ALL.into_iter().find_map(with_advice) {
            Some((what, advice)) => (what, Some(advice)),
            None => (&*what, None),
        };
        Self {
            what: what.to_owned(),
            remedy: remedy.map(str::to_owned),
            again: None,
            late: None,
        }
    }

    /// What to do about it, if that is known.
    #[must_use]
    pub fn with_remedy(mut self, remedy: Option<&str>) -> Self {
        let remedy = remedy.map(part).filter(|it| !it.is_empty());
        self.remedy = remedy.or(self.remedy);
        self
    }

    /// What is tried again.
    #[must_use]
    pub fn tried(mut self, again: Option<Again>) -> Self {
        self.again = again;
        self
    }

    /// Which calls have no answer.
    #[must_use]
    pub fn without_answer(mut self, late: Option<Late>) -> Self {
        self.late = late.map(|late| Late {
            until: up_to_the_second(late.until),
            steps: late.steps.iter().map(|step| named(step)).collect(),
        });
        self
    }

    /// What a message of this release or of an earlier one says. Those had the general advice behind a semicolon, and all else in one.
    #[must_use]
    pub fn read(message: &str) -> Self {
        let late = message.rsplit_once(LATE).and_then(|(before, late)| {
            let (until, steps) = late.split_once(": ")?;
            let until = until.parse().ok()?;
            // No more than are written: others may write it too.
            let steps = steps.split(BETWEEN_STEPS).take(NAMED + 1);
            let steps = steps.map(str::to_owned).collect();
            Some((before, Late { until, steps }))
        });
        match late {
            Some((message, late)) => Self {
                late: Some(late),
                ..Self::read_settled(message)
            },
            None => Self::read_settled(message),
        }
    }

    /// The same of a message that tells of no call.
    fn read_settled(message: &str) -> Self {
        let ends = |(again, text): &(Again, &str)| Some((Some(*again), message.strip_suffix(text)?));
        let (again, rest) = AGAIN.iter().find_map(ends).unwrap_or((None, message));
        let Some((what, remedy)) = rest.split_once(DO) else {
            return Self::new(rest).tried(again);
        };
        Self {
            what: what.to_owned(),
            remedy: Some(remedy.to_owned()),
            again,
            late: None,
        }
    }

    /// The calls that have no answer.
    #[must_use]
    pub fn late(&self) -> Option<&Late> {
        self.late.as_ref()
    }

    /// What has happened.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Whether a question to the cloud failed, and no write.
    #[must_use]
    pub fn is_of_question(&self) -> bool {
        self.again == Some(Again::Question)
    }

    /// When it is tried again at the latest; `None` if nothing is said of that.
    #[must_use]
    pub fn within(&self) -> Option<&'static str> {
        Some(match self.again? {
            Again::Question | Again::Write => "5 minutes",
            Again::Refused => "40 minutes",
        })
    }

    /// Whether the cloud did not take the manager's credentials.
    #[must_use]
    pub fn is_unauthenticated(&self) -> bool {
        self.remedy.as_deref() == Some(advice::UNAUTHENTICATED)
    }

    /// What to do about this in particular.
    #[must_use]
    pub fn own_remedy(&self) -> Option<&str> {
        self.remedy().filter(|it| !advice::ALL.contains(it))
    }

    /// What has happened, with the advice that is given about all of its kind; its own remedy is left out.
    #[must_use]
    pub fn in_general(&self) -> Cow<'_, str> {
        let what = match &self.late {
            Some(late) => Cow::Owned(format!(
                "{} ({}; may take effect until {})",
                self.what,
                late.named(),
                late.until
            )),
            None => Cow::Borrowed(&*self.what),
        };
        match self.remedy().filter(|it| advice::ALL.contains(it)) {
            Some(advice) => Cow::Owned(format!("{what}; {advice}")),
            None => what,
        }
    }

    fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

/// The message of the condition.
impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "{DO}{remedy}")?;
        }
        if let Some((_, text)) = AGAIN.iter().find(|(again, _)| Some(*again) == self.again) {
            f.write_str(text)?;
        }
        match &self.late {
            Some(late) => write!(f, "{LATE}{}: {}", late.until, late.named()),
            None => Ok(()),
        }
    }
}

/// A time that is read back as it was written. What may take effect until then is expected a moment longer.
fn up_to_the_second(time: Timestamp) -> Timestamp {
    let second = time.round(Unit::Second).unwrap_or(time);
    if second < time {
        second
            .checked_add(jiff::SignedDuration::from_secs(1))
            .unwrap_or(second)
    } else {
        second
    }
}

/// The most bytes of one part: all of them together stay below what the API server takes, which is 32,768.
const LONGEST: usize = 8_192;

/// A step as it stands among others.
fn named(step: &str) -> String {
    part(&shortened(step.to_owned(), LONGEST / 8)).replace(BETWEEN_STEPS, ", ")
}

/// A text that cannot be taken for one with other parts: that of a cloud may hold anything, even such a message.
fn part(text: &str) -> String {
    let mut text = shortened(text.trim_end_matches('.').to_owned(), LONGEST);
    for between in AGAIN.iter().map(|(_, text)| *text).chain([DO, LATE]) {
        // What is left around what was taken out may be one again.
        while text.contains(between) {
            text = text.replace(between, &between.replacen('.', ";", 1));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts() -> impl Strategy<Value = String> {
        let of_ours = AGAIN.iter().map(|(_, text)| *text).chain([DO, LATE]);
        let of_ours = of_ours.chain(advice::ALL);
        let pieces: Vec<&str> = of_ours.chain([". ", "; ", "403 Forbidden", ".", "é"]).collect();
        let pieces = prop_oneof![prop::sample::select(pieces).prop_map(str::to_owned), "[ -~]{0,9}"];
        prop::collection::vec(pieces, 0..6).prop_map(|it| it.concat())
    }

    fn troubles() -> impl Strategy<Value = Trouble> {
        let general = prop::sample::select(advice::ALL.to_vec()).prop_map(str::to_owned);
        let remedy = prop::option::of(prop_oneof![texts(), general]);
        let again = [Again::Question, Again::Write, Again::Refused];
        let again = prop::option::of(prop::sample::select(again.to_vec()));
        let steps = prop::collection::vec(texts(), 1..=NAMED);
        let late = prop::option::of((0..2_000_000_000_i64, steps));
        (texts(), remedy, again, late).prop_map(|(what, remedy, again, late)| {
            let late = late.map(|(until, steps)| Late {
                until: Timestamp::from_second(until).unwrap(),
                steps,
            });
            Trouble::new(&what)
                .with_remedy(remedy.as_deref())
                .tried(again)
                .without_answer(late)
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(trouble in troubles()) {
            prop_assert_eq!(Trouble::read(&trouble.to_string()), trouble);
        }
    }

    #[test]
    fn the_parts_stand_in_their_order() {
        let trouble = Trouble::new("port 80 is taken.")
            .with_remedy(Some("choose another one"))
            .tried(Some(Again::Write));
        assert_eq!(
            trouble.to_string(),
            "port 80 is taken. What to do: choose another one. It is tried again within 5 minutes, and at once when the Service changes"
        );
        assert_eq!(trouble.own_remedy(), Some("choose another one"));
        assert_eq!(trouble.in_general(), "port 80 is taken");
    }

    /// Somebody else's text may be as long as an annotation.
    #[test]
    fn however_long_its_parts_are_the_api_server_takes_it_with_cause_and_remedy() {
        let long = |start: &str, end: &str| format!("{start}{}{end}", "x".repeat(200_000));
        let trouble = Trouble::new(&long("port 80 is taken", " What to do: nothing"))
            .with_remedy(Some(&long("choose another one", ".")))
            .tried(Some(Again::Write))
            .without_answer(Some(Late {
                until: Timestamp::UNIX_EPOCH,
                steps: vec![long("create", "pool"); NAMED],
            }));
        let text = trouble.to_string();
        assert!(text.len() <= 32_768, "{}", text.len());
        assert!(text.starts_with("port 80 is taken") && text.contains(". What to do: choose another one"));
        assert_eq!(Trouble::read(&text), trouble);
    }

    #[test]
    fn the_first_calls_are_named_and_the_others_counted() {
        let steps: Vec<String> = (1..=6).map(|n| format!("step {n}")).collect();
        let late = Late {
            until: Timestamp::UNIX_EPOCH,
            steps,
        };
        let text = Trouble::new(NO_ANSWER).without_answer(Some(late)).to_string();
        assert!(
            text.ends_with("00:00Z: step 1; step 2; step 3; step 4; 2 more"),
            "{text}"
        );
        let read = Trouble::read(&text);
        let steps = &read.late().unwrap().steps;
        assert!(Late::is_of_others(&steps[4]) && !Late::is_of_others(&steps[3]));
    }

    #[test]
    fn messages_of_earlier_releases_are_read() {
        let old = format!(
            "401 Unauthorized; {}. It is tried again by itself, and at once when the Service changes",
            advice::UNAUTHENTICATED
        );
        let trouble = Trouble::read(&old);
        assert!(trouble.is_unauthenticated() && !trouble.is_of_question());
        assert_eq!((trouble.what(), trouble.own_remedy()), ("401 Unauthorized", None));
        let trouble = Trouble::read("port 80 is taken; choose another one");
        assert_eq!(trouble, Trouble::new("port 80 is taken; choose another one"));
    }

    /// Who may write the status of a Service may write anything there, and each step that is read is compared with all calls.
    #[test]
    fn of_a_forged_message_no_more_is_read_than_is_written() {
        let steps = vec!["step"; 100_000].join(BETWEEN_STEPS);
        let message = format!("x{LATE}2099-01-01T00:00:00Z: {steps}");
        assert_eq!(Trouble::read(&message).late().unwrap().steps.len(), NAMED + 1);
    }
}
