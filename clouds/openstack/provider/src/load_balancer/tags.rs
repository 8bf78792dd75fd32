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

impl Tags {
    fn all(&self) -> impl Iterator<Item = &String> {
        self.balancer.iter().chain(&self.listener).chain(&self.pool)
    }

    /// What has to be recorded before these are written; `None` if it is. What is `there` on the load balancer was put there by others.
    pub(crate) fn to_record(
        &self,
        recorded: &BTreeSet<String>,
        there: &[String],
        written: &[String],
    ) -> Option<String> {
        let new = || {
            self.all()
                .filter(|tag| !recorded.contains(*tag) && !there.contains(tag))
        };
        let is_due = new().any(|tag| written.contains(tag));
        is_due.then(|| text(recorded.iter().chain(new())))
    }

    /// What is recorded from now on, if something is recorded of which nothing is left: `there` are the tags of all that is the
    /// Service's.
    pub(crate) fn to_keep(&self, recorded: &BTreeSet<String>, there: &BTreeSet<&String>) -> Option<String> {
        let is_kept = |tag: &&String| self.all().any(|wanted| wanted == *tag) || there.contains(tag);
        let kept: BTreeSet<&String> = recorded.iter().filter(is_kept).collect();
        (kept.len() < recorded.len()).then(|| text(kept.into_iter()))
    }
}

/// The tags in a list as it is written in annotations.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|tag| !tag.is_empty())
}

fn text<'a>(tags: impl Iterator<Item = &'a String>) -> String {
    let tags: BTreeSet<&str> = tags.map(String::as_str).collect();
    tags.into_iter().collect::<Vec<_>>().join(",")
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
        let recorded = BTreeSet::from_iter(texts(&["old"]));
        let written = |list: &[&str]| tags.to_record(&recorded, &[], &texts(list));
        assert_eq!(written(&["x", "b"]).as_deref(), Some("a,b,old"));
        assert_eq!(written(&["x"]), None, "nothing of it is the Service's wish");
        let beside = tags.to_record(&recorded, &texts(&["b"]), &texts(&["a", "b"]));
        assert_eq!(beside.as_deref(), Some("a,old"), "somebody else put it there");
        let old = "old".to_owned();
        assert_eq!(
            tags.to_keep(&recorded, &BTreeSet::from([&old])),
            None,
            "it is there still"
        );
        assert_eq!(tags.to_keep(&recorded, &BTreeSet::new()).as_deref(), Some(""));
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
