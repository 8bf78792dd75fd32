//! Nodes: whose they are, whether they are initialised, and whether the cloud has instances for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{
    Instance, InstanceAnswer, InstanceResult, Node, PowerState, Readiness, keys, reasons,
};
use bowline_controllers::node_lifecycle::NodeLifecycleSettings;
use bowline_kube_io::{FoundNote, KubeError};
use jiff::{SignedDuration, Timestamp};

use super::answers::{Answered, Answers, is_foreign, is_missing};
use super::{Check, some_lines, some_of, unread};
use crate::why::node::{
    KEEP_NODES, REBUILT, THROTTLED, TWINS, UNPROVED, WRONG_CHOICE, is_unready, of_autoscaler,
    remedy_of_state, unreached, without_cloud,
};
use crate::why::{Shown, of_answer, remedy_of};

topics! { pub(super) Nodes:
    READ = "nodes.read", "Nodes are read", "docs/reference/rbac.md";
    OWNERS = "nodes.cloud", "Nodes are of this cloud", "docs/guides/troubleshoot.md#nodes";
    INSTANCES = "nodes.instances", "Nodes have their instances", "docs/guides/troubleshoot.md#nodes";
    INITIALIZED = "nodes.initialized", "Nodes are initialised", "docs/runbooks/BowlineNodeNotInitialized.md";
    BALANCED = "nodes.balanced", "Nodes that may be members are members", "docs/guides/troubleshoot.md#nodes";
}

/// After this time a Node does not wait any more: something is wrong. The alert has the same.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// The checks of this category.
pub(super) fn checks(
    is_manager: bool,
    nodes: Option<&Result<Vec<Arc<Node>>, KubeError>>,
    answers: Option<&Answers>,
    now: Option<Timestamp>,
    is_initialised_here: bool,
    throttled: impl Fn(&Node, &[Arc<Node>]) -> Option<String>,
) -> Vec<Check> {
    let skipped = |read: Check, because: &str| {
        let rest = [&OWNERS, &INSTANCES, &INITIALIZED].map(|topic| topic.skipped(because));
        [read].into_iter().chain(rest).collect()
    };
    let (nodes, now) = match (nodes, now) {
        (None, _) | (_, None) => {
            return skipped(
                READ.skipped("the API server does not answer"),
                "Nodes are not read",
            );
        }
        (Some(Err(error)), _) => {
            return skipped(unread(is_manager, &READ, error), "Nodes are not read");
        }
        (Some(Ok(nodes)), _) if nodes.is_empty() => {
            let remedy =
                "look at the kubelets: they register their Nodes, and need --cloud-provider=external";
            return skipped(READ.warning("there is none", remedy), "there is no Node");
        }
        (Some(Ok(nodes)), Some(now)) => (nodes, now),
    };
    let known = answers.filter(|answers| answers.listing.is_ok());
    let (owners, instances) = match known {
        Some(answers) => {
            let held = |node: &Node| throttled(node, nodes);
            (judge_owners(&answers.of_nodes), judge_instances(answers, held))
        }
        None => {
            let because = "the cloud does not list its instances";
            (OWNERS.skipped(because), INSTANCES.skipped(because))
        }
    };
    let waiting: Vec<(&Node, Shown<'_>)> = nodes
        .iter()
        .filter(|node| node.is_uninitialized())
        .map(|node| {
            let shown = known.map(|answers| answers.shown(node));
            (&**node, shown.unwrap_or_default())
        })
        .collect();
    vec![
        READ.ok(format!("{}", nodes.len())),
        owners,
        instances,
        judge_waiting(&waiting, now, is_initialised_here),
    ]
}

/// Which Nodes no load balancer leads to, by the plans of Services: told here once, and not with each of them.
pub(super) fn left_out(
    plans: Option<&[PlanReport]>,
    is_unserved: bool,
    nodes: &[Arc<Node>],
    now: Option<Timestamp>,
) -> Check {
    let of_autoscaler = |node: &Arc<Node>| Some((node.name.to_string(), of_autoscaler(node, now?)?));
    let tainted: Vec<_> = nodes.iter().filter_map(of_autoscaler).collect();
    if let Some((_, first)) = tainted.first().filter(|_| !is_unserved) {
        let names = some_of(tainted.iter().map(|(name, _)| name.clone()));
        let seen = format!("the taint {} keeps out: {names}", keys::TAINT_TO_BE_DELETED);
        return BALANCED.warning(seen, first.remedy.clone());
    }
    let Some(plans) = plans.filter(|_| !is_unserved) else {
        return BALANCED.skipped("no plan of a Service is made");
    };
    let of_plan = |plan: &PlanReport| {
        let notes = plan.notes.iter().filter(|note| {
            // Whose the Nodes are tells of several with one provider ID.
            reasons::is_of_nodes(note.reason) && !reasons::is_of_one_instance(note.reason)
        });
        let texts = notes.map(|note| note.text.replace(&plan.object, "NAMESPACE/NAME"));
        texts.collect::<Vec<_>>()
    };
    let texts: BTreeSet<String> = plans.iter().flat_map(of_plan).collect();
    if texts.is_empty() {
        return BALANCED.ok("as far as plans of Services were made");
    }
    let lines = texts.into_iter().collect();
    let remedy = "the Services that have their addresses are served by the other Nodes. What keeps these out, `explain node/NAME` and the checks above say";
    BALANCED.warning("not all", remedy).with(some_lines(lines))
}

/// Whether the Node is one that the manager deletes because its instance is proved gone.
pub(super) fn is_to_go(node: &Node, answer: Option<&InstanceResult>) -> bool {
    let is_proved = matches!(answer, Some(Ok(InstanceAnswer::Absent(_))));
    is_proved && is_unready(node) && !node.is_excluded_from_lifecycle()
}

/// Why a Node that may go is not deleted yet, and when the next one is.
pub(super) fn throttled(
    settings: &NodeLifecycleSettings,
    node: &Node,
    noted: &FoundNote,
    all: &[Arc<Node>],
) -> Option<String> {
    let (text, left) = settings.throttled(node, noted, all)?;
    let next = noted.wall.checked_add(left).ok()?.strftime("%H:%M:%SZ");
    Some(format!("{text}. The next one may go at {next}"))
}

/// Whose the Nodes are, by their provider IDs.
fn judge_owners(answers: &[Answered]) -> Check {
    let mut clouds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let (mut ours, mut without) = (0, 0);
    // Nobody waits for what these need, so no controller ever looks at them.
    let mut unasked = Vec::new();
    let mut with_id: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (node, answer) in answers {
        match node.provider_id.as_deref() {
            None => {
                without += 1;
                if !node.is_uninitialized() {
                    unasked.push(node.name.to_string());
                }
            }
            Some(id) if is_foreign(answer) => {
                let cloud = id.split_once("://").map_or("?", |(cloud, _)| cloud);
                clouds.entry(cloud).or_default().push(node.name.to_string());
            }
            Some(id) => {
                ours += 1;
                with_id.entry(id).or_default().push(node.name.to_string());
            }
        }
    }
    with_id.retain(|_, names| names.len() > 1);
    let seen = format!(
        "{ours} of this cloud, {} of another, {without} without provider ID",
        clouds.values().map(Vec::len).sum::<usize>()
    );
    let of_others = clouds.iter();
    let mut lines: Vec<String> = of_others
        .map(|(cloud, names)| format!("of {cloud}: {}", some_of(names.iter().cloned())))
        .collect();
    let shared = with_id.iter();
    lines.extend(shared.map(|(id, names)| format!("with {id}: {}", some_of(names.iter().cloned()))));
    let has_unasked = !unasked.is_empty();
    if has_unasked {
        lines.push(format!(
            "without provider ID and without the taint: {}",
            some_of(unasked)
        ));
    }
    let check = if ours + without == 0 && !clouds.is_empty() {
        OWNERS.failed(
            seen,
            "give --cloud-provider the cloud of these Nodes: those of another cloud are left alone",
        )
    } else if !with_id.is_empty() {
        OWNERS.warning(seen, TWINS)
    } else if has_unasked {
        OWNERS.warning(seen, without_cloud())
    } else {
        OWNERS.ok(seen)
    };
    check.with(lines)
}

/// Whether the cloud knows the instances.
fn judge_instances(answers: &Answers, throttled: impl Fn(&Node) -> Option<String>) -> Check {
    let of_ours = || answers.of_nodes.iter().filter(|(_, answer)| !is_foreign(answer));
    let count = of_ours().count();
    let names_of = |is: &dyn Fn(&Answered) -> bool| -> Vec<String> {
        of_ours()
            .filter(|one| is(one))
            .map(|(node, _)| node.name.to_string())
            .collect()
    };
    let other_id = |(node, answer): &Answered| {
        let shown = answers.about(node, Some(answer));
        shown.other_id(node).map(str::to_owned)
    };
    let power_of = |answer: &InstanceResult| match answer {
        Ok(InstanceAnswer::Present(one)) => Some(one.power),
        _ => None,
    };
    let there = names_of(&|one| power_of(&one.1).is_some() && other_id(one).is_none());
    let off = names_of(&|(_, answer)| power_of(answer) == Some(PowerState::Off));
    let seen = format!("{} of {count}", there.len());
    let missing = names_of(&|one| is_missing(&one.1) && other_id(one).is_none());
    let mut rebuilt = Vec::new();
    let (mut unready, mut of_states) = (Vec::new(), BTreeSet::new());
    let mut errors = Vec::new();
    for one @ (node, answer) in of_ours() {
        if let Some(id) = other_id(one) {
            rebuilt.push(format!("{} (now {id})", node.name));
        }
        match answer {
            Ok(InstanceAnswer::Present(one)) if is_unready(node) && one.power == PowerState::On => {
                of_states.insert(remedy_of_state(one));
                unready.push(format!("{} ({})", node.name, one.state.word));
            }
            Err(error) if !is_missing(answer) => errors.push(format!("{}: {error}", node.name)),
            _ => {}
        }
    }
    let named = [
        ("not listed", &missing),
        ("rebuilt under their names", &rebuilt),
        ("switched off", &off),
        ("not ready, with the state of the instance", &unready),
    ];
    let named = named.into_iter().filter(|(_, names)| !names.is_empty());
    let to_go = of_ours().find(|(node, answer)| is_to_go(node, Some(answer)));
    let held = to_go.and_then(|(node, _)| throttled(node));
    let mut lines: Vec<String> = named
        .map(|(what, names)| format!("{what}: {}", some_of(names.iter().cloned())))
        .collect();
    let waits = of_ours()
        .any(|(node, answer)| node.is_uninitialized() && !matches!(answer, Ok(InstanceAnswer::Present(_))));
    let unchosen = nobody_has(answers);
    let is_unchosen = unchosen.is_some();
    lines.extend(unchosen);
    let (unreached, of_unreached) = without_address(answers);
    lines.extend(unreached);
    if lines.is_empty() && errors.is_empty() {
        return INSTANCES.ok(seen);
    }
    let has_only_errors = lines.is_empty();
    lines.extend(some_lines(errors));
    let is_held = held.is_some();
    lines.extend(held);
    let kept = of_ours().filter(|(node, _)| answers.unproved.contains(&node.name));
    let kept = kept.filter_map(|(node, answer)| Some(format!("{}: {}", node.name, answer.as_ref().err()?)));
    let kept = some_lines(kept.collect());
    let is_unproved = !kept.is_empty();
    lines.extend(kept);
    if answers.is_blind {
        let remedy = format!(
            "the credentials see none of the instances: are they of another project, account, zone or region? {KEEP_NODES}"
        );
        return INSTANCES.failed(seen, remedy).with(lines);
    }
    if waits {
        let remedy = "an instance is found by the provider ID of its Node, else by the name, which no other may bear: compare them, and the project \
                      of the credentials";
        return INSTANCES.failed(seen, remedy).with(lines);
    }
    let is_kept = |(node, answer): &Answered| is_missing(answer) && node.readiness == Readiness::Ready;
    let is_kept = of_ours().any(|one| is_kept(one) && other_id(one).is_none());
    let remedies = [
        (has_only_errors, "follow what stands behind the name"),
        (
            is_kept,
            "a Node that is ready is never deleted: look for its instance, also in other projects; if it is gone, drain the Node and delete it",
        ),
        (
            !missing.is_empty() && !is_kept && !is_held && !is_unproved,
            "a Node that is not ready is deleted when its cloud has proved that its instance is gone",
        ),
        (is_held, THROTTLED),
        (is_unproved, UNPROVED),
        (!rebuilt.is_empty(), remedy_of(REBUILT)),
        (!off.is_empty(), "start what is switched off"),
        (is_unchosen && of_unreached.is_empty(), WRONG_CHOICE),
    ];
    let remedies = remedies.into_iter().filter(|(holds, _)| *holds);
    let remedies = remedies.map(|(_, remedy)| remedy).chain(of_states);
    let remedies = remedies.chain(of_unreached.iter().map(String::as_str));
    let remedies: Vec<&str> = remedies.map(|remedy| remedy.trim_end_matches('.')).collect();
    INSTANCES.warning(seen, remedies.join(". ")).with(lines)
}

/// The instances that are there, each with its Node.
fn instances(answers: &Answers) -> impl Iterator<Item = (&Node, &Instance)> {
    answers.of_nodes.iter().filter_map(|(node, answer)| match answer {
        Ok(InstanceAnswer::Present(one)) => Some((&**node, &**one)),
        _ => None,
    })
}

/// Which Nodes have no internal address and why, those with one cause in one line, and what to do about it.
fn without_address(answers: &Answers) -> (Vec<String>, BTreeSet<String>) {
    let nodes = || answers.of_nodes.iter().map(|(node, _)| &**node);
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut remedies = BTreeSet::new();
    for (node, one) in instances(answers) {
        if let Some(cause) = unreached(node, one, nodes()) {
            lines.entry(cause.text).or_default().push(node.name.to_string());
            remedies.insert(cause.remedy);
        }
    }
    let lines = lines
        .into_iter()
        .map(|(text, names)| format!("{}: {text}", some_of(names)));
    (lines.collect(), remedies)
}

/// What the settings choose addresses by and no instance has.
fn nobody_has(answers: &Answers) -> Option<String> {
    let all = || instances(answers).map(|(_, one)| &one.metadata.unmatched);
    let lacks = all().next()?.lacks.iter();
    let lacks = lacks.filter(|lacks| all().all(|it| it.lacks.contains(lacks)));
    let lacks: Vec<&str> = lacks.map(String::as_str).collect();
    let networks: BTreeSet<&str> = all().flat_map(|it| &it.networks).map(String::as_str).collect();
    let networks = networks.into_iter().collect::<Vec<_>>().join(", ");
    (!lacks.is_empty()).then(|| format!("no instance has {}: they are in {networks}", lacks.join(", nor ")))
}

/// Which Nodes wait for their cloud, and why.
fn judge_waiting(waiting: &[(&Node, Shown<'_>)], now: Timestamp, is_initialised_here: bool) -> Check {
    if waiting.is_empty() {
        return INITIALIZED.ok("all");
    }
    let age = |node: &Node| now.duration_since(node.created);
    let is_late =
        |(node, shown): &&(&Node, Shown<'_>)| age(node) > PATIENCE && !shown.answer.is_some_and(is_foreign);
    let late = waiting.iter().filter(is_late).count();
    let mut oldest = waiting.to_vec();
    oldest.sort_by_key(|(node, _)| node.created);
    // Those that wait for one reason are one line, with the time of the first.
    let mut reasons: Vec<(String, Vec<&Node>)> = Vec::new();
    for (node, shown) in &oldest {
        let why = of_answer(node, shown).map_or(String::new(), |cause| cause.text);
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, nodes)) => nodes.push(node),
            None => reasons.push((why, vec![node])),
        }
    }
    let lines = reasons.iter().map(|(why, nodes)| {
        let names = some_of(nodes.iter().map(|node| node.name.to_string()));
        format!("{names}, for {} min: {why}", age(nodes[0]).as_mins().max(0))
    });
    let lines = some_lines(lines.collect());
    let seen = format!(
        "{} with the taint {}, {late} for more than {} min",
        waiting.len(),
        keys::TAINT_UNINITIALIZED,
        PATIENCE.as_mins()
    );
    let remedy = match is_initialised_here {
        true => {
            "follow what stands behind the name; see the events of the Node with `kubectl describe node NAME`"
        }
        false => "this manager initialises no Nodes: --controllers switches cloud-node-controller off",
    };
    let check = match late {
        0 => INITIALIZED.warning(seen, remedy),
        _ => INITIALIZED.failed(seen, remedy),
    };
    check.with(lines)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bowline_cloud_provider::plan::Note;
    use bowline_cloud_provider::{
        AbsenceProof, AddressType, CloudError, FoundBy, InstanceMetadata, InstanceState, NodeAddress,
        NodeName, Taint, TaintEffect, Unmatched,
    };

    use super::*;
    use crate::doctor::{Outcome, answers};

    const NOW: &str = "2026-01-01T00:30:00Z";

    fn instance(power: PowerState, word: &str) -> Instance {
        Instance {
            metadata: InstanceMetadata::default(),
            power,
            state: InstanceState::new(word, "running", &[("moving", InstanceState::AT_WORK)]),
            found_by: FoundBy::Id,
        }
    }

    fn present(power: PowerState) -> InstanceResult {
        Ok(InstanceAnswer::Present(Box::new(instance(power, "running"))))
    }

    /// These answers, of a cloud that was asked for nothing else.
    fn answered(of_nodes: Vec<Answered>) -> Answers {
        Answers {
            listing: Ok(Duration::ZERO),
            refused: None,
            unborne: Vec::new(),
            namesakes: BTreeMap::new(),
            is_blind: answers::sees_none(&of_nodes),
            unproved: BTreeSet::new(),
            of_nodes,
        }
    }

    fn with_answers(answers: &Answers) -> Check {
        judge_instances(answers, |_| None)
    }

    fn node(name: &str, id: &str, waits_since: Option<&str>) -> Arc<Node> {
        let taint = waits_since.map(|_| Taint {
            key: keys::TAINT_UNINITIALIZED.to_owned(),
            effect: TaintEffect::NoSchedule,
            ..Taint::shutdown()
        });
        Arc::new(Node {
            provider_id: Some(id).filter(|id| !id.is_empty()).map(Into::into),
            taints: taint.into_iter().collect(),
            created: waits_since.unwrap_or("2025-01-01T00:00:00Z").parse().unwrap(),
            ..Node::named(name)
        })
    }

    fn missing() -> InstanceResult {
        Err(CloudError::not_found("no such instance"))
    }

    #[test]
    fn owners_are_told_by_provider_id() {
        let answers = [
            (node("a", "toy://1", None), present(PowerState::On)),
            (node("b", "aws:///eu/i-1", None), Ok(InstanceAnswer::Foreign)),
            (node("c", "", Some(NOW)), missing()),
        ];
        let check = judge_owners(&answers);
        assert_eq!(
            (check.outcome, check.seen.as_str()),
            (
                Outcome::Ok,
                "1 of this cloud, 1 of another, 1 without provider ID"
            )
        );
        assert_eq!(check.details, ["of aws: b"]);
        let unasked = [(node("d", "", None), missing())];
        let check = judge_owners(&unasked);
        assert_eq!(check.outcome, Outcome::Warning);
        assert_eq!(check.details, ["without provider ID and without the taint: d"]);
        assert_eq!(judge_owners(&answers[1..2]).outcome, Outcome::Failed);
        let twins = ["e", "f"].map(|name| (node(name, "toy://1", None), present(PowerState::On)));
        let check = judge_owners(&twins);
        assert_eq!(check.outcome, Outcome::Warning);
        assert_eq!(check.details, ["with toy://1: e, f"]);
    }

    #[test]
    fn instances_are_judged_by_what_the_cloud_lists() {
        let well = (node("a", "toy://1", None), present(PowerState::On));
        let gone = (node("b", "toy://2", None), missing());
        let mut ready = node("h", "toy://7", None);
        Arc::make_mut(&mut ready).readiness = Readiness::Ready;
        let off = (node("c", "toy://3", None), present(PowerState::Off));
        let fresh = (node("d", "", Some(NOW)), missing());
        let torn = (node("e", "toy://5", None), Err(CloudError::invalid("unreadable")));
        let other = (node("f", "aws://6", None), Ok(InstanceAnswer::Foreign));
        for (answers, outcome, seen, details) in [
            (vec![well.clone()], Outcome::Ok, "1 of 1", vec![]),
            (vec![well.clone(), other], Outcome::Ok, "1 of 1", vec![]),
            (
                vec![well.clone(), gone.clone()],
                Outcome::Warning,
                "1 of 2",
                vec!["not listed: b"],
            ),
            (
                vec![well.clone(), off],
                Outcome::Warning,
                "2 of 2",
                vec!["switched off: c"],
            ),
            (
                vec![gone.clone()],
                Outcome::Failed,
                "0 of 1",
                vec!["not listed: b"],
            ),
            (
                vec![gone.clone(), (node("g", "", Some(NOW)), present(PowerState::On))],
                Outcome::Warning,
                "1 of 2",
                vec!["not listed: b"],
            ),
            (
                vec![
                    gone.clone(),
                    (ready, missing()),
                    (node("g", "", Some(NOW)), present(PowerState::On)),
                ],
                Outcome::Failed,
                "1 of 3",
                vec!["not listed: b, h"],
            ),
            (
                vec![well.clone(), fresh],
                Outcome::Failed,
                "1 of 2",
                vec!["not listed: d"],
            ),
            (
                vec![well, torn],
                Outcome::Warning,
                "1 of 2",
                vec!["e: unreadable"],
            ),
        ] {
            let check = with_answers(&answered(answers));
            assert_eq!((check.outcome, check.seen.as_str()), (outcome, seen));
            assert_eq!(check.details, details);
            let is_about_one = details.first().is_some_and(|it| it.starts_with("e: "));
            assert_eq!(check.remedy.contains("stands behind the name"), is_about_one);
        }
    }

    #[test]
    fn a_rebuilt_instance_is_counted_apart_and_named_with_its_new_id() {
        let well = (node("a", "toy://1", None), present(PowerState::On));
        let gone = (node("reb", "toy://2", None), missing());
        let renewed = |id: &str| Instance {
            metadata: InstanceMetadata {
                provider_id: Some(id.to_owned()),
                ..InstanceMetadata::default()
            },
            found_by: FoundBy::Name,
            ..instance(PowerState::On, "running")
        };
        // One cloud finds the new one by its name by itself, another one is asked for it.
        let by_name = (
            node("reb2", "toy://3", None),
            Ok(InstanceAnswer::Present(Box::new(renewed("toy://33")))),
        );
        let answers = Answers {
            namesakes: [(gone.0.name.clone(), renewed("toy://22"))].into(),
            ..answered(vec![well, gone, by_name])
        };
        let check = with_answers(&answers);
        assert_eq!((check.outcome, &*check.seen), (Outcome::Warning, "1 of 3"));
        assert_eq!(
            check.details,
            ["rebuilt under their names: reb (now toy://22), reb2 (now toy://33)"]
        );
        assert!(check.remedy.contains("drain the Node and delete it"), "{check:?}");
    }

    #[test]
    fn a_node_that_is_not_ready_is_told_with_the_state_of_its_instance() {
        let unready = |word: &str| {
            let mut node = node("mig", "toy://1", None);
            Arc::make_mut(&mut node).readiness = Readiness::Unknown;
            let one = instance(PowerState::On, word);
            with_answers(&answered(vec![(
                node,
                Ok(InstanceAnswer::Present(Box::new(one))),
            )]))
        };
        let check = unready("ERROR");
        assert_eq!((check.outcome, &*check.seen), (Outcome::Warning, "1 of 1"));
        assert_eq!(
            check.details,
            ["not ready, with the state of the instance: mig (ERROR)"]
        );
        assert!(check.remedy.contains("in the cloud"), "{check:?}");
        let check = unready("running");
        assert!(check.remedy.contains("kubelet"), "{check:?}");
    }

    #[test]
    fn a_setting_that_chooses_nothing_is_told_with_the_networks_that_there_are() {
        let with = |name: &str, lacks: &[&str], kind: AddressType| {
            let mut one = instance(PowerState::On, "running");
            one.metadata.addresses = vec![NodeAddress::new(kind, "192.0.2.7")];
            one.metadata.unmatched = Unmatched {
                lacks: lacks.iter().map(|it| (*it).to_owned()).collect(),
                networks: vec!["private".to_owned()],
            };
            let answer = Ok(InstanceAnswer::Present(Box::new(one)));
            (node(name, &format!("toy://{name}"), None), answer)
        };
        let internal = AddressType::InternalIp;
        let (a, b) = ("network a", "network b");
        // Each name is that of a network of some instance.
        let all = vec![
            with("n", &[a], internal.clone()),
            with("m", &[b], internal.clone()),
        ];
        assert_eq!(with_answers(&answered(all)).outcome, Outcome::Ok);
        let all = vec![
            with("n", &[a, b], internal.clone()),
            with("m", &[b], AddressType::ExternalIp),
        ];
        let check = with_answers(&answered(all));
        assert_eq!((check.outcome, &*check.seen), (Outcome::Warning, "2 of 2"));
        assert_eq!(
            check.details,
            [
                "no instance has network b: they are in private",
                "m: the cloud names no internal address of its instance, which lacks network b and is in: private",
            ]
        );
        assert!(check.remedy.starts_with("whoever runs the manager"), "{check:?}");
    }

    /// At night such a sentence has every Node of the cluster in its list.
    #[test]
    fn credentials_that_see_nothing_never_invite_to_delete_nodes() {
        let check = with_answers(&answered(vec![
            (node("a", "toy://1", None), missing()),
            (node("b", "toy://2", None), missing()),
        ]));
        assert_eq!(check.outcome, Outcome::Failed);
        assert!(check.remedy.starts_with("the credentials see none"), "{check:?}");
        assert!(!check.remedy.contains("delete"), "{check:?}");
    }

    #[test]
    fn what_holds_a_deletion_is_told_with_the_nodes_that_wait() {
        let lost = |name: &str| {
            let mut node = node(name, "toy://1", None);
            Arc::make_mut(&mut node).readiness = Readiness::Unknown;
            node
        };
        let well = (node("a", "toy://0", None), present(PowerState::On));
        let gone = (lost("n9"), Ok(InstanceAnswer::Absent(AbsenceProof::new("404"))));
        let answers = answered(vec![well.clone(), gone]);
        let check = judge_instances(&answers, |node| Some(format!("held back: {}", node.name)));
        assert_eq!(check.details, ["not listed: n9", "held back: n9"]);
        assert!(check.remedy.contains("when its turn comes"), "{check:?}");
        let kept = CloudError::not_found("SKIP_NODE_DELETION keeps the node");
        let answers = Answers {
            unproved: [NodeName::new("n8")].into(),
            ..answered(vec![well, (lost("n8"), Err(kept))])
        };
        let check = with_answers(&answers);
        assert_eq!(
            check.details,
            ["not listed: n8", "n8: SKIP_NODE_DELETION keeps the node"]
        );
        assert!(!check.remedy.contains("is deleted when"), "{check:?}");
    }

    #[test]
    fn nodes_that_are_left_out_are_told_once() {
        let noted = |name: &str, text: &str| PlanReport {
            notes: vec![Note::warning("NodesLeftOut", text)],
            ..PlanReport::of_nothing(format!("default/{name}"))
        };
        let plans = [
            noted("a", "not balanced over: n1"),
            noted("b", "not balanced over: n1"),
            // Whose the Nodes are tells that.
            PlanReport {
                notes: vec![Note::warning(
                    "NodesShareInstance",
                    "nodes n1 and n2 have the same",
                )],
                ..PlanReport::of_nothing("default/c".to_owned())
            },
        ];
        let left_out = |plans, nodes: &[Arc<Node>]| left_out(plans, false, nodes, NOW.parse().ok());
        let check = left_out(Some(&plans), &[]);
        assert_eq!(check.outcome, Outcome::Warning);
        assert_eq!(check.details, ["not balanced over: n1"]);
        assert_eq!(left_out(Some(&[]), &[]).outcome, Outcome::Ok);
        assert_eq!(left_out(None, &[]).outcome, Outcome::Skipped);
        // One that is about to go is no trouble; a taint that was left is.
        for (value, outcome) in [("1767227100", Outcome::Ok), ("1764499999", Outcome::Warning)] {
            let mut node = Node::named("n1");
            node.taints.push(Taint {
                key: keys::TAINT_TO_BE_DELETED.into(),
                value: Some(value.to_owned()),
                effect: TaintEffect::NoSchedule,
                time_added: None,
            });
            let check = left_out(Some(&[]), &[Arc::new(node)]);
            assert_eq!(check.outcome, outcome, "{check:?}");
            assert_eq!(
                check.remedy.contains("kubectl taint node n1"),
                outcome == Outcome::Warning
            );
        }
    }

    #[test]
    fn a_node_that_waits_too_long_is_a_failure_unless_another_cloud_has_to_see_to_it() {
        let now: Timestamp = NOW.parse().unwrap();
        let fresh = node("fresh", "", Some("2026-01-01T00:25:00Z"));
        let late = node("late", "", Some("2026-01-01T00:10:00Z"));
        let (missing, foreign) = (missing(), Ok(InstanceAnswer::Foreign));
        let young = judge_waiting(&[(&fresh, Shown::of(Some(&missing)))], now, true);
        assert_eq!(young.outcome, Outcome::Warning);
        let both = judge_waiting(
            &[(&fresh, Shown::default()), (&late, Shown::of(Some(&missing)))],
            now,
            true,
        );
        assert_eq!(both.outcome, Outcome::Failed);
        assert_eq!(
            both.details,
            [
                "late, for 20 min: no such instance",
                "fresh, for 5 min: the cloud does not list its instances"
            ]
        );
        assert_eq!(
            judge_waiting(&[(&late, Shown::of(Some(&foreign)))], now, true).outcome,
            Outcome::Warning
        );
        assert_eq!(judge_waiting(&[], now, true).outcome, Outcome::Ok);
        let many: Vec<_> = (1..8)
            .map(|index| node(&format!("n{index}"), "", Some("2026-01-01T00:25:00Z")))
            .collect();
        let many: Vec<(&Node, Shown<'_>)> = many.iter().map(|node| (&**node, Shown::default())).collect();
        assert_eq!(
            judge_waiting(&many, now, true).details,
            ["n1, n2, n3, n4, n5 and 2 more, for 5 min: the cloud does not list its instances"]
        );
        let elsewhere = judge_waiting(&[(&late, Shown::of(Some(&missing)))], now, false);
        let remedy = elsewhere.remedy;
        assert!(remedy.contains("--controllers"), "{remedy}");
    }
}
