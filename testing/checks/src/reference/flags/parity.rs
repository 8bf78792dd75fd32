//! Our flags and gates beside those of the Go manager, which `testing/checks/go` prints.

use std::collections::{BTreeMap, BTreeSet};

use bowline::args::features::{GATES, Stage};
use bowline::args::{Flag, Kind, Status, flag_table};

#[derive(serde::Deserialize)]
struct Facts {
    flags: Vec<TheirFlag>,
    gates: Vec<TheirGate>,
}

#[derive(serde::Deserialize)]
struct TheirFlag {
    group: String,
    name: String,
    #[serde(default)]
    letter: String,
    r#type: String,
    default: String,
    #[serde(default)]
    alone: String,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    deprecated: bool,
}

#[derive(serde::Deserialize)]
struct TheirGate {
    name: String,
    default: bool,
    #[serde(default)]
    stage: String,
    #[serde(default)]
    locked: bool,
}

fn facts() -> Facts {
    serde_json::from_str(include_str!("../../../go/facts.json")).unwrap()
}

fn ours() -> BTreeMap<&'static str, (&'static str, &'static Flag)> {
    let groups = flag_table().iter();
    groups
        .flat_map(|group| {
            let title = group.title;
            group.flags.iter().map(move |flag| (flag.name, (title, flag)))
        })
        .collect()
}

/// Their type and default in our words.
fn translated(flag: &TheirFlag) -> (Kind, String) {
    let kind = match (flag.r#type.as_str(), flag.name.as_str()) {
        ("bool", _) => Kind::Bool,
        ("string", _) => Kind::Text,
        ("int" | "int32" | "Level", _) => Kind::Int,
        ("float32", _) => Kind::Float,
        ("duration", _) => Kind::Duration,
        ("quantity", _) => Kind::Quantity,
        ("stringSlice" | "pattern=N,...", _) => Kind::List,
        ("int32Slice", _) => Kind::IntList,
        ("namedCertKey", _) => Kind::Repeated,
        ("mapStringBool", _) => Kind::Gates,
        ("ip", _) => Kind::Ip,
        ("version", _) => Kind::Version,
        (other, name) => panic!("--{name} has the new type {other}"),
    };
    let default = match kind {
        Kind::List | Kind::IntList | Kind::Repeated => flag.default.trim_matches(['[', ']']),
        // Absent is another way to say that no version is asked for.
        Kind::Version => "",
        _ => &flag.default,
    };
    (kind, default.to_owned())
}

#[test]
fn every_flag_of_the_go_manager_is_here_and_is_the_same() {
    let ours = ours();
    for theirs in facts().flags {
        let name = theirs.name.as_str();
        let (group, flag) = ours.get(name).unwrap_or_else(|| panic!("--{name} is missing"));
        assert_eq!(group.to_lowercase(), theirs.group, "group of --{name}");
        let (kind, default) = translated(&theirs);
        assert_eq!(flag.kind, kind, "type of --{name}");
        assert_eq!(flag.default, default, "default of --{name}");
        assert_eq!(
            flag.kind.stands_alone(),
            !theirs.alone.is_empty(),
            "--{name} alone"
        );
        assert_eq!(flag.is_hidden, theirs.hidden, "whether help shows --{name}");
        let letter = flag.short.map(String::from).unwrap_or_default();
        assert_eq!(letter, theirs.letter, "letter of --{name}");
        if theirs.deprecated {
            // One that does nothing there either says so.
            assert!(
                matches!(flag.status, Status::Deprecated | Status::Accepted),
                "--{name}"
            );
        }
    }
}

#[test]
fn help_shows_the_groups_in_the_go_manager_s_order() {
    let mut theirs: Vec<String> = facts().flags.into_iter().map(|flag| flag.group).collect();
    theirs.dedup();
    let ours: Vec<String> = flag_table()
        .iter()
        .map(|group| group.title.to_lowercase())
        .filter(|title| theirs.contains(title))
        .collect();
    assert_eq!(ours, theirs);
}

/// What the log library added to every Go manager until Kubernetes 1.26 (k8s.io/cloud-provider 0.24.17, which CloudStack's is
/// made with).
const OF_KLOG: [&str; 11] = [
    "add-dir-header",
    "alsologtostderr",
    "log-backtrace-at",
    "log-dir",
    "log-file",
    "log-file-max-size",
    "logtostderr",
    "one-output",
    "skip-headers",
    "skip-log-headers",
    "stderrthreshold",
];

#[test]
fn flags_of_the_former_log_library_are_accepted_without_effect_and_not_shown() {
    let ours = ours();
    for name in OF_KLOG {
        let (_, flag) = ours.get(name).unwrap_or_else(|| panic!("--{name} is missing"));
        assert!(flag.is_hidden && flag.status == Status::Accepted, "--{name}");
    }
}

/// A name of our own must not be taken for one of theirs later on: so there are few, and they are listed.
#[test]
fn our_own_flags_are_these() {
    let theirs: BTreeSet<String> = facts().flags.into_iter().map(|flag| flag.name).collect();
    let own: Vec<&str> = ours()
        .into_keys()
        .filter(|name| !theirs.contains(*name) && !OF_KLOG.contains(name))
        .collect();
    assert_eq!(
        own,
        [
            // phoenixNAP's; its Go manager has the setting in a file only.
            "base-url",
            // KEP-5778's, before upstream has them; so has the wait below.
            "cloud-provider-platforms",
            "help-all",
            "leader-recovery-limit",
            "load-balancer-class",
            "load-balancer-without-class",
            // Those of node IPAM belong to kube-controller-manager, and to the framework's example manager.
            "node-cidr-mask-size",
            "node-cidr-mask-size-ipv4",
            "node-cidr-mask-size-ipv6",
            "node-deletion-confirmation",
            "node-deletion-share",
            "node-deletion-window",
            "node-lifecycle-wait-timeout",
            "service-cluster-ip-range",
            // OpenStack's: its Go manager has it too.
            "user-agent",
        ]
    );
}

/// Fixed to their defaults since 1.37. They have no effect here, so a manifest that sets one goes on as it did.
const STILL_FREE: [&str; 2] = [
    "DeclarativeValidationTakeover",
    "WatchCacheInitializationPostStartHook",
];

#[test]
fn the_feature_gates_are_those_of_the_go_manager() {
    let theirs: Vec<_> = facts()
        .gates
        .into_iter()
        .map(|gate| {
            let stage = match gate.stage.as_str() {
                "ALPHA" => Stage::Alpha,
                "BETA" => Stage::Beta,
                "DEPRECATED" => Stage::Deprecated,
                "" => Stage::Stable,
                other => panic!("{} has the new stage {other}", gate.name),
            };
            let is_locked = gate.locked && !STILL_FREE.contains(&gate.name.as_str());
            (gate.name, stage, gate.default, is_locked)
        })
        .collect();
    let ours: Vec<_> = GATES
        .iter()
        .map(|gate| (gate.name.to_owned(), gate.stage, gate.default, gate.is_locked))
        .collect();
    assert_eq!(ours, theirs);
}
