//! The table of flags: names, defaults and meanings are those of the framework's 1.37 line, and a few of our own.
//!
//! Parser, help and the reference page are made from it, so it is the only place where a flag is described.

mod generic;
mod serving;

use super::flag::{Flag, Group};

/// All groups in the order in which help shows them.
#[must_use]
pub fn flag_table() -> &'static [Group] {
    GROUPS
}

static GROUPS: &[Group] = &[
    Group {
        title: "Debugging",
        flags: generic::DEBUGGING,
    },
    Group {
        title: "Leader-migration",
        flags: generic::LEADER_MIGRATION,
    },
    Group {
        title: "Generic",
        flags: generic::GENERIC,
    },
    Group {
        title: "Cloud-node-controller",
        flags: generic::CLOUD_NODE,
    },
    Group {
        title: "Cloud-node-lifecycle-controller",
        flags: generic::CLOUD_NODE_LIFECYCLE,
    },
    Group {
        title: "Service-lb-controller",
        flags: generic::SERVICE_LB,
    },
    Group {
        title: "Webhook",
        flags: serving::WEBHOOK,
    },
    Group {
        title: "Webhook serving",
        flags: serving::WEBHOOK_SERVING,
    },
    Group {
        title: "Secure serving",
        flags: serving::SECURE_SERVING,
    },
    Group {
        title: "Authentication",
        flags: serving::AUTHENTICATION,
    },
    Group {
        title: "Authorization",
        flags: serving::AUTHORIZATION,
    },
    Group {
        title: "OpenStack",
        flags: generic::OPENSTACK,
    },
    Group {
        title: "phoenixNAP",
        flags: generic::PHOENIXNAP,
    },
    Group {
        title: "Misc",
        flags: generic::MISC,
    },
    Group {
        title: "Global",
        flags: generic::GLOBAL,
    },
];

/// What only the word `plan` takes, besides all the others: so a manifest's arguments can be used as they are.
pub static PLAN: Group = Group {
    title: "Plan",
    flags: generic::PLAN,
};

/// What only the word `doctor` takes.
pub static DOCTOR: Group = Group {
    title: "Doctor",
    flags: generic::DOCTOR,
};

/// What only the word `explain` takes.
pub static EXPLAIN: Group = Group {
    title: "Explain",
    flags: generic::EXPLAIN,
};

/// What only the word `orphans` takes.
pub static ORPHANS: Group = Group {
    title: "Orphans",
    flags: generic::ORPHANS,
};

/// What only the word `check` takes.
pub static CHECK: Group = Group {
    title: "Check",
    flags: generic::CHECK,
};

/// What only the word `support-bundle` takes.
pub static SUPPORT_BUNDLE: Group = Group {
    title: "Support bundle",
    flags: generic::SUPPORT_BUNDLE,
};

/// What only the word `version` takes.
pub static VERSION: Group = Group {
    title: "Version",
    flags: generic::VERSION,
};

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
