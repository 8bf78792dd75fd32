//! The table of flags: names, defaults and meanings are those of the framework's 1.37 line, and a few of our own.
//!
//! Parser, help and the reference page are made from it, so it is the only place where a flag is described.

// A flag a line.
#[rustfmt::skip]
mod generic;
#[rustfmt::skip]
mod serving;

use super::flag::{Flag, Group};

/// All groups in the order in which help shows them.
pub fn flag_table() -> &'static [Group] {
    GROUPS
}

static GROUPS: &[Group] = &[
    group("Debugging", generic::DEBUGGING),
    group("Leader-migration", generic::LEADER_MIGRATION),
    group("Generic", generic::GENERIC),
    group("Cloud-node-controller", generic::CLOUD_NODE),
    group("Cloud-node-lifecycle-controller", generic::CLOUD_NODE_LIFECYCLE),
    group("Service-lb-controller", generic::SERVICE_LB),
    group("Webhook", serving::WEBHOOK),
    group("Webhook serving", serving::WEBHOOK_SERVING),
    group("Secure serving", serving::SECURE_SERVING),
    group("Authentication", serving::AUTHENTICATION),
    group("Authorization", serving::AUTHORIZATION),
    group("OpenStack", generic::OPENSTACK),
    group("phoenixNAP", generic::PHOENIXNAP),
    group("Misc", generic::MISC),
    group("Global", generic::GLOBAL),
];

const fn group(title: &'static str, flags: &'static [Flag]) -> Group {
    Group { title, flags }
}

/// What only the word `plan` takes, besides all the others: so a manifest's arguments can be used as they are.
pub static PLAN: Group = group("Plan", generic::PLAN);

/// What only the word `doctor` takes.
pub static DOCTOR: Group = group("Doctor", generic::DOCTOR);

/// What only the word `explain` takes.
pub static EXPLAIN: Group = group("Explain", generic::EXPLAIN);

/// What only the word `orphans` takes.
pub static ORPHANS: Group = group("Orphans", generic::ORPHANS);

/// What only the word `check` takes.
pub static CHECK: Group = group("Check", generic::CHECK);

/// What only the word `support-bundle` takes.
pub static SUPPORT_BUNDLE: Group = group("Support bundle", generic::SUPPORT_BUNDLE);

/// What only the word `version` takes.
pub static VERSION: Group = group("Version", generic::VERSION);

/// All flags of the manager.
pub(super) fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|group| group.flags)
}

/// Looks a flag up by name.
pub(super) fn find<'a>(groups: impl IntoIterator<Item = &'a Group>, name: &str) -> Option<&'static Flag> {
    groups
        .into_iter()
        .flat_map(|group| group.flags)
        .find(|flag| flag.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::value::{self, Kind};
    use super::*;

    /// The flags that single commands take.
    static OWN: [&Group; 7] = [
        &PLAN,
        &DOCTOR,
        &EXPLAIN,
        &ORPHANS,
        &CHECK,
        &SUPPORT_BUNDLE,
        &VERSION,
    ];

    fn flags() -> impl Iterator<Item = &'static Flag> {
        all().chain(OWN.iter().flat_map(|group| group.flags))
    }

    #[test]
    fn every_name_and_letter_occurs_once() {
        for own in OWN {
            let mut names = BTreeSet::new();
            for flag in all().chain(own.flags) {
                assert!(names.insert(format!("--{}", flag.name)), "{}", flag.name);
                if let Some(short) = flag.short {
                    assert!(names.insert(format!("-{short}")), "{short}");
                }
            }
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for flag in flags() {
            if flag.default.is_empty() {
                assert!(
                    !matches!(flag.kind, Kind::Bool | Kind::Int | Kind::Float | Kind::Duration),
                    "--{} has no default",
                    flag.name
                );
            } else if let Err(error) = value::read(flag.kind, flag.default) {
                panic!("--{}: {error}", flag.name);
            }
        }
    }

    #[test]
    fn groups_are_sorted_and_texts_are_sentences() {
        for group in flag_table() {
            assert!(group.flags.is_sorted_by_key(|flag| flag.name), "{}", group.title);
        }
        for flag in flags() {
            assert!(flag.help.ends_with('.'), "--{}", flag.name);
        }
    }
}
