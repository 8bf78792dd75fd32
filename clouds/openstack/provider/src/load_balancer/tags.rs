//! Tags that people ask for, beside the marks that say whose an object is.
//!
//! Octavia has one list of tags per object. What people put there by hand stays, so a tag is taken off again only if an annotation of the
//! Service says that it was added for it. That is written before the tag is.

use std::collections::BTreeSet;

use bowline_openstack_client::NewLoadBalancer;

use crate::load_balancer::names;
use crate::load_balancer::step::PartChange;

/// The most characters of a tag (`TagList` in `octavia/api/v2/types`).
const LONGEST: usize = 255;

/// What a Service asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tags {
    /// On its load balancer.
    pub(crate) balancer: Vec<String>,
    /// On its listeners.
    pub(crate) listener: Vec<String>,
    /// On its pools.
    pub(crate) pool: Vec<String>,
}

/// What is recorded as added for a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// Wherever it is.
    pub(crate) all: BTreeSet<String>,
    /// On listeners and pools: on the load balancer it was before.
    pub(crate) parts: BTreeSet<String>,
}

/// What stands between the two in the annotation: no tag is empty.
const PARTS: &str = ",,";

impl Added {
    /// As it stands in the annotation.
    pub(crate) fn read(text: &str) -> Self {
        let (all, parts) = text.split_once(PARTS).unwrap_or((text, ""));
        let set = |text| listed(text).map(str::to_owned).collect();
        Self {
            all: set(all),
            parts: set(parts),
        }
    }

    fn text(&self) -> String {
        let list = |tags: &BTreeSet<String>| tags.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let (all, parts) = (list(&self.all), list(&self.parts));
        match parts.is_empty() {
            true => all,
            false => format!("{all}{PARTS}{parts}"),
        }
    }
}

impl Tags {
    fn of_parts(&self) -> impl Iterator<Item = &String> {
        self.listener.iter().chain(&self.pool)
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.balancer.iter().chain(&self.listener).chain(&self.pool)
    }

    /// What has to be recorded before these are written; `None` if it is. What is `there` on the load balancer was put there by others,
    /// and only its copies on the parts are the Service's.
    pub(crate) fn to_record(&self, recorded: &Added, there: &[String], written: &[String]) -> Option<String> {
        let unknown = |tag: &&String| !recorded.all.contains(*tag);
        let new = || self.all().filter(unknown).filter(|tag| !there.contains(tag));
        let copied = || self.of_parts().filter(unknown).filter(|tag| there.contains(tag));
        let copied = || copied().filter(|tag| !recorded.parts.contains(*tag));
        let is_due = new().chain(copied()).any(|tag| written.contains(tag));
        is_due.then(|| {
            let mut added = recorded.clone();
            added.all.extend(new().cloned());
            added.parts.extend(copied().cloned());
            added.text()
        })
    }

    /// What is recorded from now on, if something is recorded of which nothing is left: on the load balancer and on the parts.
    pub(crate) fn to_keep(
        &self,
        recorded: &Added,
        balancer: &[String],
        parts: &BTreeSet<&String>,
    ) -> Option<String> {
        let is_on_parts = |tag: &&String| self.of_parts().any(|wanted| wanted == *tag) || parts.contains(tag);
        let is_kept =
            |tag: &&String| is_on_parts(tag) || self.balancer.contains(tag) || balancer.contains(tag);
        let kept = Added {
            all: recorded.all.iter().filter(is_kept).cloned().collect(),
            parts: recorded.parts.iter().filter(is_on_parts).cloned().collect(),
        };
        (kept != *recorded).then(|| kept.text())
    }
}

/// The tags in a list as it is written in annotations.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|tag| !tag.is_empty())
}

/// Why a tag is not put on anything.
pub(crate) fn flaw(tag: &str) -> Option<&'static str> {
    if names::is_mark(tag) {
        return Some("with which a load balancer would be taken for that of another Service or cluster");
    }
    (tag.chars().count() > LONGEST).then_some("which is longer than 255 characters")
}

/// The tags of an object as they are to be, with the Service's `mark` where that is missing; `None` if they are so.
pub(crate) fn to_be(
    there: &[String],
    mark: Option<&String>,
    wanted: &[String],
    removable: &BTreeSet<&String>,
) -> Option<Vec<String>> {
    let stays = |tag: &&String| names::is_mark(tag) || wanted.contains(tag) || !removable.contains(tag);
    let mut now: Vec<String> = there.iter().filter(stays).cloned().collect();
    for tag in mark.into_iter().chain(wanted) {
        if !now.contains(tag) {
            now.push(tag.clone());
        }
    }
    (now != there).then_some(now)
}

/// The tags that a creation writes on the load balancer and its parts.
pub(crate) fn of_creation(new: &NewLoadBalancer) -> Vec<String> {
    let listeners = new.listeners.iter().flat_map(|listener| {
        let pool = listener.default_pool.as_ref();
        let of_pool = pool.and_then(|pool| pool.tags.as_ref());
        listener.attributes.tags.iter().chain(of_pool)
    });
    new.tags.iter().chain(listeners).flatten().cloned().collect()
}

/// The list of tags that a change writes.
pub(crate) fn written(change: &PartChange) -> &[String] {
    let tags = match change {
        PartChange::UpdateBalancer { update, .. } => &update.tags,
        PartChange::CreateListener { new } => &new.attributes.tags,
        PartChange::UpdateListener { update, .. } => &update.attributes.tags,
        PartChange::CreatePool { new } => &new.tags,
        PartChange::UpdatePool { update, .. } => &update.tags,
        _ => &None,
    };
    tags.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tags_of_people_and_marks_stay_and_what_was_added_goes_with_its_wish() {
        let there = texts(&[
            "kube_service_lab_default_web",
            "by-hand",
            "kube_cluster_id_c1",
            "old",
        ]);
        let recorded = texts(&["old", "kube_cluster_id_c1"]);
        let recorded = recorded.iter().collect();
        let mark = "kube_service_lab_default_web".to_owned();
        let now = |wanted: &[&str]| to_be(&there, Some(&mark), &texts(wanted), &recorded);
        assert_eq!(now(&["old"]), None);
        assert_eq!(
            now(&["new"]),
            Some(texts(&[&mark, "by-hand", "kube_cluster_id_c1", "new"]))
        );
        assert_eq!(to_be(&there, None, &[], &BTreeSet::new()), None);
        assert_eq!(to_be(&[], Some(&mark), &[], &recorded), Some(texts(&[&mark])));
    }

    #[test]
    fn what_is_added_is_recorded_before_and_forgotten_after() {
        let tags = Tags {
            balancer: texts(&["b"]),
            pool: texts(&["a"]),
            ..Tags::default()
        };
        let recorded = Added::read("old");
        let written = |list: &[&str]| tags.to_record(&recorded, &[], &texts(list));
        assert_eq!(written(&["x", "b"]).as_deref(), Some("a,b,old"));
        assert_eq!(written(&["x"]), None, "nothing of it is the Service's wish");
        let beside = tags.to_record(&recorded, &texts(&["b"]), &texts(&["a", "b"]));
        assert_eq!(beside.as_deref(), Some("a,old"), "somebody else put it there");
        let old = "old".to_owned();
        assert_eq!(
            tags.to_keep(&recorded, &[], &BTreeSet::from([&old])),
            None,
            "it is there still"
        );
        assert_eq!(
            tags.to_keep(&recorded, &[], &BTreeSet::new()).as_deref(),
            Some("")
        );
    }

    #[test]
    fn the_copy_of_a_persons_tag_is_recorded_for_the_parts_alone() {
        let tags = Tags {
            pool: texts(&["a"]),
            ..Tags::default()
        };
        let there = texts(&["a"]);
        let record = tags.to_record(&Added::read("old"), &there, &there);
        assert_eq!(record.as_deref(), Some("old,,a"));
        let recorded = Added::read(",,a");
        assert_eq!(recorded.text(), ",,a");
        assert_eq!(tags.to_record(&recorded, &there, &there), None);
        let gone = Tags::default().to_keep(&recorded, &there, &BTreeSet::new());
        assert_eq!(gone.as_deref(), Some(""), "the person's own is not the Service's");
    }

    #[test]
    fn marks_and_what_octavia_refuses_are_no_tags_to_ask_for() {
        for (tag, is_good) in [
            ("env=prod", true),
            ("kube_service", true),
            ("kube_service_lab_default_api", false),
            ("kube_cluster_id_7c9e", false),
            (&"ä".repeat(255), true),
            (&"a".repeat(256), false),
        ] {
            assert_eq!(flaw(tag).is_none(), is_good, "{tag}");
        }
        assert_eq!(listed(" a, ,b,").collect::<Vec<_>>(), ["a", "b"]);
    }
}
