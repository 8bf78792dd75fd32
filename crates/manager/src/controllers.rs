//! The controllers by name, and which of them are to run.

use std::fmt;

use bowline_controllers::{node, node_ipam, node_lifecycle, route, service};
use bowline_kube_io::rbac::Account;

/// A controller of the framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControllerName {
    /// Initialises Nodes and keeps their addresses in step.
    Node,
    /// Taints and deletes Nodes whose instances are shut down or gone.
    NodeLifecycle,
    /// Keeps load balancers.
    Service,
    /// Keeps routes to pod networks.
    Route,
    /// Gives Nodes their pod networks.
    NodeIpam,
}

/// What is fixed about a controller: its name in health checks, events and logs; its short name; the component that its
/// events name; and who it is to the API server.
type Names = (&'static str, &'static str, &'static str, Account);

impl ControllerName {
    /// All of them, in the order in which they are started.
    pub const ALL: [Self; 5] = [
        Self::Node,
        Self::NodeLifecycle,
        Self::Service,
        Self::Route,
        Self::NodeIpam,
    ];

    fn names(self) -> Names {
        match self {
            Self::Node => (node::NAME, "cloud-node", node::NAME, Account::Node),
            Self::NodeLifecycle => {
                let name = node_lifecycle::NAME;
                (name, "cloud-node-lifecycle", name, Account::Node)
            }
            Self::Service => (service::NAME, "service", service::COMPONENT, Account::Service),
            Self::Route => (route::NAME, "route", route::COMPONENT, Account::Route),
            Self::NodeIpam => (node_ipam::NAME, "nodeipam", node_ipam::COMPONENT, Account::Node),
        }
    }

    /// The name in health checks and logs.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The short name, which `--controllers` also takes and `running_managed_controllers` carries.
    pub fn alias(self) -> &'static str {
        self.names().1
    }

    /// The component that its events name, as the Go managers have it.
    pub(crate) fn component(self) -> &'static str {
        self.names().2
    }

    /// Who it is to the API server.
    pub(crate) fn account(self) -> Account {
        self.names().3
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|one| one.name() == name || one.alias() == name)
    }
}

impl fmt::Display for ControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which controllers run, as `--controllers` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSelection {
    /// In the order given: the first entry that matches decides.
    entries: Vec<(ControllerName, bool)>,
    /// Whether the others run.
    others: bool,
}

impl ControllerSelection {
    /// All controllers.
    pub fn all() -> Self {
        Self {
            entries: Vec::new(),
            others: true,
        }
    }

    /// Reads the entries `*`, `NAME` and `-NAME`.
    ///
    /// # Errors
    ///
    /// A text for each name that no controller has.
    pub fn parse<'a>(list: impl IntoIterator<Item = &'a str>) -> Result<Self, Vec<String>> {
        let mut selection = Self {
            entries: Vec::new(),
            others: false,
        };
        let mut errors = Vec::new();
        for entry in list {
            if entry == "*" {
                selection.others = true;
                continue;
            }
            let (name, runs) = entry
                .strip_prefix('-')
                .map_or((entry, true), |name| (name, false));
            match ControllerName::named(name) {
                Some(one) => selection.entries.push((one, runs)),
                None => errors.push(format!("{name:?} is not in the list of known controllers")),
            }
        }
        if errors.is_empty() {
            Ok(selection)
        } else {
            Err(errors)
        }
    }

    /// Whether a controller is asked for by its name, in any entry.
    pub fn names(&self, wanted: ControllerName) -> bool {
        self.entries.contains(&(wanted, true))
    }

    /// Whether a controller is to run.
    pub fn includes(&self, wanted: ControllerName) -> bool {
        self.entries
            .iter()
            .find(|(one, _)| *one == wanted)
            .map_or(self.others, |(_, runs)| *runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(list: &[&str]) -> Vec<&'static str> {
        let selection = ControllerSelection::parse(list.iter().copied()).unwrap();
        ControllerName::ALL
            .into_iter()
            .filter(|one| selection.includes(*one))
            .map(ControllerName::alias)
            .collect()
    }

    #[test]
    fn the_first_entry_that_matches_decides() {
        assert_eq!(
            running(&["*"]),
            [
                "cloud-node",
                "cloud-node-lifecycle",
                "service",
                "route",
                "nodeipam"
            ]
        );
        assert_eq!(
            running(&["*", "-route", "-node-ipam-controller"]),
            ["cloud-node", "cloud-node-lifecycle", "service"]
        );
        assert_eq!(
            running(&["cloud-node", "service-lb-controller"]),
            ["cloud-node", "service"]
        );
        assert_eq!(
            running(&["-service", "service", "*"]),
            ["cloud-node", "cloud-node-lifecycle", "route", "nodeipam"]
        );
        assert_eq!(running(&[]), Vec::<&str>::new());
    }

    #[test]
    fn a_controller_is_named_by_an_entry_of_its_own_only() {
        for (list, is_named) in [
            (&["route"][..], true),
            (&["*", "node-route-controller"], true),
            (&["-route", "route"], true),
            (&["*", "-route"], false),
            (&["*"], false),
        ] {
            let selection = ControllerSelection::parse(list.iter().copied()).unwrap();
            assert_eq!(selection.names(ControllerName::Route), is_named, "{list:?}");
        }
    }

    #[test]
    fn unknown_names_are_all_named() {
        assert_eq!(
            ControllerSelection::parse(["nonsense", "*", "-nothing"]).unwrap_err(),
            [
                r#""nonsense" is not in the list of known controllers"#,
                r#""nothing" is not in the list of known controllers"#
            ]
        );
    }
}
