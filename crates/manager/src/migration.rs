//! Leader migration: which controllers wait for a second lease, which both kube-controller-manager and this program stand
//! for while controllers move from the one to the other.

use std::collections::BTreeMap;

use bowline_transport::shown_name;

use crate::controllers::ControllerName;

/// The lease of the built-in assignment.
pub const BUILT_IN_LEASE: &str = "cloud-provider-extraction-migration";

/// The entries of the built-in assignment, controller and component, in the words in which `/configz` shows them.
pub const BUILT_IN_ENTRIES: [(&str, &str); 3] = [
    ("route-controller", ANY),
    ("service-controller", ANY),
    ("cloud-node-lifecycle-controller", ANY),
];

/// The name of this program among components.
const COMPONENT: &str = "cloud-controller-manager";

/// The other component that controllers may be assigned to.
const KUBE_CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// Stands for any component.
const ANY: &str = "*";

/// Names of Kubernetes' older releases, which its own built-in list still has.
const OLD_NAMES: [(&str, ControllerName); 2] = [
    ("service-controller", ControllerName::Service),
    ("route-controller", ControllerName::Route),
];

/// Which controllers run under which lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The name of the second lease. Namespace, identity and timings are those of the first.
    pub lease: String,
    listed: BTreeMap<ControllerName, Assigned>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Assigned {
    Here,
    Elsewhere(String),
}

/// Where a controller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment<'a> {
    /// Here, under the main lease: it is not listed.
    Main,
    /// Here, under the second lease.
    Migrated,
    /// In another component.
    Elsewhere(&'a str),
}

impl Migration {
    /// The assignment that holds without a file: the controllers that kube-controller-manager once had run wherever the
    /// second lease is held.
    pub fn built_in() -> Self {
        let controllers = [
            ControllerName::Route,
            ControllerName::Service,
            ControllerName::NodeLifecycle,
        ];
        Self {
            lease: BUILT_IN_LEASE.to_owned(),
            listed: controllers.map(|one| (one, Assigned::Here)).into(),
        }
    }

    /// Reads entries of controller and component. Controllers may be named as `--controllers` names them, or by their old names.
    ///
    /// # Errors
    ///
    /// A text for each name that no controller has, for each component that there is not, and for each controller that is listed more than once. Upstream compares names
    /// literally, and so runs a controller that it does not recognise under the main lease while another component may run
    /// it under the second one.
    pub fn new<'a>(
        lease: impl Into<String>,
        entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Vec<String>> {
        let mut listed = BTreeMap::new();
        let mut faults = Vec::new();
        for (index, (name, component)) in entries.into_iter().enumerate() {
            let Some(one) = named(name) else {
                faults.push(format!(
                    "controllerLeaders[{index}].name: {} is not in the list of known controllers",
                    shown_name(name)
                ));
                continue;
            };
            let assigned = match component {
                COMPONENT | ANY => Assigned::Here,
                KUBE_CONTROLLER_MANAGER => Assigned::Elsewhere(component.to_owned()),
                other => {
                    faults.push(format!(
                        "controllerLeaders[{index}].component: {} is none of {COMPONENT}, {KUBE_CONTROLLER_MANAGER} and {ANY}",
                        shown_name(other)
                    ));
                    continue;
                }
            };
            if listed.insert(one, assigned).is_some() {
                faults.push(format!(
                    "controllerLeaders[{index}].name: {name:?} is {one}, which is listed already"
                ));
            }
        }
        if faults.is_empty() {
            let lease = lease.into();
            Ok(Self { lease, listed })
        } else {
            Err(faults)
        }
    }

    /// Where a controller runs.
    pub fn of(&self, which: ControllerName) -> Assignment<'_> {
        match self.listed.get(&which) {
            None => Assignment::Main,
            Some(Assigned::Here) => Assignment::Migrated,
            Some(Assigned::Elsewhere(component)) => Assignment::Elsewhere(component),
        }
    }
}

fn named(name: &str) -> Option<ControllerName> {
    let old = OLD_NAMES.into_iter().find(|(old, _)| *old == name);
    ControllerName::named(name).or(old.map(|(_, one)| one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_list_means_the_loops_and_not_their_old_names() {
        let migration = Migration::built_in();
        assert_eq!(migration.lease, "cloud-provider-extraction-migration");
        assert_eq!(migration.of(ControllerName::Node), Assignment::Main);
        for which in [
            ControllerName::Service,
            ControllerName::Route,
            ControllerName::NodeLifecycle,
        ] {
            assert_eq!(migration.of(which), Assignment::Migrated);
        }
        let read = Migration::new(BUILT_IN_LEASE, BUILT_IN_ENTRIES).unwrap();
        assert_eq!(read, migration);
    }

    #[test]
    fn canonical_names_aliases_and_old_names_are_the_same() {
        for name in ["service-lb-controller", "service", "service-controller"] {
            let migration = Migration::new("m", [(name, "kube-controller-manager")]).unwrap();
            assert_eq!(
                migration.of(ControllerName::Service),
                Assignment::Elsewhere("kube-controller-manager")
            );
            let migration = Migration::new("m", [(name, "cloud-controller-manager")]).unwrap();
            assert_eq!(migration.of(ControllerName::Service), Assignment::Migrated);
        }
    }

    #[test]
    fn unknown_names_and_second_entries_are_refused() {
        let entries = [
            ("service", "*"),
            ("node-ipam-controller", "kube-controller-manager"),
            ("srevice", "kube-controller-manager"),
            ("service-controller", "kube-controller-manager"),
        ];
        assert_eq!(
            Migration::new("m", entries).unwrap_err(),
            [
                "controllerLeaders[2].name: \"srevice\" is not in the list of known controllers",
                "controllerLeaders[3].name: \"service-controller\" is service-lb-controller, which is listed already",
            ]
        );
    }
}
