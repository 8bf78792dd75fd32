//! What is told of many objects at once: those with one cause are one entry with their names.

use std::cmp::Reverse;

use bowline_cloud_provider::{Service, facts};
use jiff::{SignedDuration, Timestamp};

use super::{Cause, Why};
use crate::outcome::Outcome;

/// How many names are told; the rest is counted.
const NAMES: usize = 5;

/// The first names and how many more there are.
pub(crate) fn some_of(names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter();
    let mut text = names.by_ref().take(NAMES).collect::<Vec<_>>().join(", ");
    let rest = names.count();
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}

/// What the users of a Service lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Loss {
    /// Nothing that is seen in the object.
    #[default]
    Unseen,
    /// It has no address.
    NoAddress,
    /// It is being deleted for longer than that takes.
    Stays,
}

impl Loss {
    pub(super) fn of(service: &Service, now: Timestamp) -> Self {
        match &service.metadata.deletion_timestamp {
            Some(since) if now.duration_since(*since) > DELETED_WITHIN => Self::Stays,
            _ if facts::published_addresses(service).is_empty() => Self::NoAddress,
            _ => Self::Unseen,
        }
    }
}

/// What a load balancer takes to be deleted, and some more.
const DELETED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// A cause, and who has it.
struct Entry<'a> {
    cause: Option<&'a Cause>,
    /// The reason, without namespace and name.
    same: String,
    /// The same without the name alone, which is often a word of the text anyway.
    bare: String,
    /// Which cause of them it is: the lowest of all places.
    place: usize,
    /// What users lack for it.
    loss: Loss,
    all: Vec<&'a Why>,
}

/// The causes of these objects in entries of one or two lines: first those of Services that do not go or have no address, then what keeps
/// the others from their use, of these the causes that stand first with their objects.
pub(crate) fn of_many<'a>(whys: impl IntoIterator<Item = &'a Why>, most: usize) -> Vec<String> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for why in whys {
        if why.causes.is_empty() {
            entries.push(Entry::new(why, None, 0));
        }
        for (place, cause) in why.causes.iter().enumerate() {
            let new = Entry::new(why, Some(cause), place);
            match entries.iter_mut().find(|it| it.is_like(&new)) {
                Some(entry) => entry.take(new),
                None => entries.push(new),
            }
        }
    }
    entries.sort_by_key(|it| {
        let outcome = it.cause.map(|cause| cause.outcome);
        (Reverse(it.loss), Reverse(outcome), it.place)
    });
    let more = entries.len().saturating_sub(most);
    let mut lines: Vec<String> = entries.iter().take(most).flat_map(lines).collect();
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

impl<'a> Entry<'a> {
    fn new(why: &'a Why, cause: Option<&'a Cause>, place: usize) -> Self {
        let text = cause.map_or("", |it| match it.timeless.is_empty() {
            true => &it.text,
            false => &it.timeless,
        });
        let key = why.object.split_once('/').map_or("", |(_, key)| key);
        let same = match key {
            "" => text.to_owned(),
            key => text.replace(key, NAME),
        };
        let bare = without(&same, key.rsplit('/').next().unwrap_or_default());
        let is_first = |it: &Cause| it.outcome == Outcome::Failed || place == 0 && why.loss == Loss::Stays;
        Self {
            cause,
            same,
            bare,
            place,
            loss: cause.filter(|it| is_first(it)).map_or(Loss::Unseen, |_| why.loss),
            all: vec![why],
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let (Some(cause), Some(its)) = (self.cause, other.cause) else {
            return false;
        };
        let is_same = self.same == other.same || self.bare == other.bare;
        is_same && cause.id == its.id && cause.remedy == its.remedy
    }

    fn take(&mut self, other: Self) {
        if self.same != other.same {
            self.same.clone_from(&self.bare);
        }
        self.place = self.place.min(other.place);
        self.loss = self.loss.max(other.loss);
        self.all.extend(other.all);
    }
}

/// What stands for the name of each.
const NAME: &str = "NAME";

/// The text with a name replaced where it is a word of its own, or the end of a longer name.
fn without(text: &str, name: &str) -> String {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut rest = text;
    let mut shown = String::new();
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        shown.push_str(if word == name && !name.is_empty() {
            NAME
        } else {
            word
        });
        let other = tail.find(is_of_word).unwrap_or(tail.len());
        shown.push_str(&tail[..other]);
        rest = &tail[other..];
    }
    shown
}

fn lines(entry: &Entry<'_>) -> Vec<String> {
    let Entry { cause, same, all, .. } = entry;
    let of_one = |why: &Why| {
        let is = why.is.first().map_or("", String::as_str);
        let since = cause.map_or("", |cause| &cause.since);
        let dash = if since.is_empty() { "" } else { ", " };
        let text = cause.map_or(String::new(), |cause| format!(": {}", cause.text));
        format!("{}: {is}{dash}{since}{text}", why.object)
    };
    let head = match all[..] {
        [why] => of_one(why),
        _ => format!("{}: {same}", some_of(all.iter().map(|why| why.object.clone()))),
    };
    let remedy = cause
        .map(|cause| cause.remedy.as_str())
        .filter(|it| !it.is_empty());
    let remedy = remedy.map(|remedy| format!("  do: {remedy}"));
    [head].into_iter().chain(remedy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(name: &str, causes: &[(Outcome, &str)]) -> Why {
        let mut why = Why::new(format!("service/default/{name}"));
        why.is.push("no address".to_owned());
        let causes = causes.iter();
        let causes = causes.map(|(outcome, text)| Cause::new("service.refused", *outcome, *text, "do it"));
        why.causes.extend(causes);
        why
    }

    #[test]
    fn names_are_told_up_to_five_and_the_rest_is_counted() {
        let names = |count: usize| (1..=count).map(|index| format!("n{index}"));
        assert_eq!(some_of(names(2)), "n1, n2");
        assert!(some_of(names(5)).ends_with("n4, n5"));
        assert!(some_of(names(7)).ends_with("n4, n5 and 2 more"));
    }

    #[test]
    fn one_cause_of_many_is_one_entry_and_causes_stand_before_what_follows() {
        let mut all: Vec<Why> = (1..8)
            .map(|index| {
                let quota = format!("no room for service default/s{index}");
                why(&format!("s{index}"), &[(Outcome::Failed, &quota)])
            })
            .collect();
        all[6]
            .causes
            .push(Cause::new("service.differs", Outcome::Warning, "it differs", ""));
        all.insert(0, why("odd", &[(Outcome::Warning, "it is odd")]));
        assert_eq!(
            of_many(&all, 10),
            [
                "service/default/s1, service/default/s2, service/default/s3, service/default/s4, service/default/s5 and 2 more: no room for service NAME",
                "  do: do it",
                "service/default/odd: no address: it is odd",
                "  do: do it",
                "service/default/s7: no address: it differs",
            ]
        );
        assert_eq!(of_many(&all, 1).last().unwrap(), "and 2 more");
        let later = |last: &str| {
            let mut why = why("a", &[(Outcome::Failed, last)]);
            why.causes[0].timeless = "quota".to_owned();
            why.object = format!("service/default/{}", last.len());
            why
        };
        let lines = of_many(&[later("40 s ago: quota"), later("7 s ago: quota")], 10);
        assert_eq!(lines[0], "service/default/15, service/default/14: quota");
    }

    /// The text of a provider bears the name without its namespace.
    #[test]
    fn one_cause_of_many_is_one_entry_whatever_name_its_text_bears() {
        let all = ["web", "shop-1"].map(|name| {
            let text = format!(
                "unable to get load balancer for {name}: kube_service_prod_default_{name}: 401, as of webs"
            );
            why(name, &[(Outcome::Failed, &text)])
        });
        assert_eq!(
            of_many(&all, 10)[0],
            "service/default/web, service/default/shop-1: unable to get load balancer for NAME: kube_service_prod_default_NAME: 401, as of webs"
        );
        let all =
            ["web", "load"].map(|name| why(name, &[(Outcome::Failed, "the load balancer of web is full")]));
        assert_eq!(
            of_many(&all, 10)[0],
            "service/default/web, service/default/load: the load balancer of web is full"
        );
    }

    #[test]
    fn what_has_no_address_or_does_not_go_stands_before_what_is_served() {
        let mut all =
            ["served", "out", "going"].map(|name| why(name, &[(Outcome::Failed, &format!("as-{name}"))]));
        (all[1].loss, all[2].loss) = (Loss::NoAddress, Loss::Stays);
        all[2].causes[0].outcome = Outcome::Warning;
        let lines = of_many(&all, 2);
        let first: Vec<&str> = lines
            .iter()
            .filter(|it| !it.starts_with(' '))
            .map(String::as_str)
            .collect();
        assert_eq!(
            first,
            [
                "service/default/going: no address: as-going",
                "service/default/out: no address: as-out",
                "and 1 more"
            ]
        );
    }
}
