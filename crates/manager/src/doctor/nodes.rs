//! Nodes: whose they are, whether they are initialised, and whether the cloud has instances for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{
    ErrorKind, InstanceAnswer, InstanceResult, Node, PowerState, Readiness, keys, reasons,
};
use bowline_kube_io::KubeError;
use jiff::{SignedDuration, Timestamp};

use super::cloud::{Answers, near};
use super::{Category, Check, Topic, some_lines, some_of, unread};
use crate::why::node::{REBUILT, TWINS, without_cloud};
use crate::why::of_answer;

pub(super) static READ: Topic = Topic::new(
    Category::Nodes,
    "nodes.read",
    "Nodes are read",
    "docs/reference/rbac.md",
);

pub(super) static OWNERS: Topic = Topic::new(
    Category::Nodes,
    "nodes.cloud",
    "Nodes are of this cloud",
    "docs/guides/troubleshoot.md#nodes",
);

pub(super) static INSTANCES: Topic = Topic::new(
    Category::Nodes,
    "nodes.instances",
    "Nodes have their instances",
    "docs/guides/troubleshoot.md#nodes",
);

pub(super) static INITIALIZED: Topic = Topic::new(
    Category::Nodes,
    "nodes.initialized",
    "Nodes are initialised",
    "docs/runbooks/BowlineNodeNotInitialized.md",
);

pub(super) static BALANCED: Topic = Topic::new(
    Category::Nodes,
    "nodes.balanced",
    "Nodes that may be members are members",
    "docs/guides/troubleshoot.md#nodes",
);

/// After this time a Node does not wait any more: something is wrong. The alert has the same.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// The checks of this category.
pub(super) fn checks(
    nodes: Option<&Result<Vec<Arc<Node>>, KubeError>>,
    answers: Option<&Answers>,
    now: Option<Timestamp>,
    is_initialised_here: bool,
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
            return skipped(
                READ.failed(error.to_string(), unread(error)),
                "Nodes are not read",
            );
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
        Some(answers) => (
            judge_owners(&answers.of_nodes),
            judge_instances(&answers.of_nodes, &answers.unborne),
        ),
        None => {
            let because = "the cloud does not list its instances";
            (OWNERS.skipped(because), INSTANCES.skipped(because))
        }
    };
    let waiting: Vec<(&Node, Option<&InstanceResult>)> = nodes
        .iter()
        .filter(|node| node.is_uninitialized())
        .map(|node| {
            let mut answers = known.into_iter().flat_map(|answers| &answers.of_nodes);
            let answer = answers.find(|(asked, _)| Arc::ptr_eq(asked, node));
            (&**node, answer.map(|(_, answer)| answer))
        })
        .collect();
    vec![
        READ.ok(format!("{}", nodes.len())),
        owners,
        instances,
        judge_waiting(
            &waiting,
            answers.map_or(&[], |it| &it.unborne),
            now,
            is_initialised_here,
        ),
    ]
}

/// Which Nodes no load balancer leads to, by the plans of Services: told here once, and not with each of them.
pub(super) fn left_out(plans: Option<&[PlanReport]>, is_unserved: bool) -> Check {
    let Some(plans) = plans.filter(|_| !is_unserved) else {
        return BALANCED.skipped("no plan of a Service is made");
    };
    let notes = plans.iter().flat_map(|plan| &plan.notes);
    let texts = notes
        .filter(|note| note.reason == reasons::NODES_LEFT_OUT.0)
        .map(|note| note.text.as_str());
    let texts: BTreeSet<&str> = texts.collect();
    if texts.is_empty() {
        return BALANCED.ok("as far as plans of Services were made");
    }
    let lines = texts.into_iter().map(str::to_owned).collect();
    let remedy = "the Services are served by the other Nodes. What keeps these out, `explain node/NAME` and the checks above say";
    BALANCED.warning("not all", remedy).with(some_lines(lines))
}

type Answered = (Arc<Node>, InstanceResult);

fn is_foreign(answer: &InstanceResult) -> bool {
    matches!(answer, Ok(InstanceAnswer::Foreign))
}

pub(super) fn is_missing(answer: &InstanceResult) -> bool {
    match answer {
        Ok(InstanceAnswer::Absent(_)) => true,
        Ok(InstanceAnswer::Present(_) | InstanceAnswer::Foreign) => false,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
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
fn judge_instances(answers: &[Answered], names: &[String]) -> Check {
    let of_ours = || answers.iter().filter(|(_, answer)| !is_foreign(answer));
    let count = of_ours().count();
    let names_of = |is: &dyn Fn(&Answered) -> bool| -> Vec<String> {
        of_ours()
            .filter(|one| is(one))
            .map(|(node, _)| node.name.to_string())
            .collect()
    };
    let present = |power| {
        names_of(&|(_, answer)| matches!(answer, Ok(InstanceAnswer::Present(one)) if one.power == power))
    };
    let (mut on, off) = (present(PowerState::On), present(PowerState::Off));
    let broken = present(PowerState::Failed);
    on.extend_from_slice(&broken);
    let seen = format!("{} of {count}", on.len() + off.len());
    let missing = names_of(&|(_, answer)| is_missing(answer));
    let mut lines = Vec::new();
    if !missing.is_empty() {
        lines.push(format!("not listed: {}", some_of(missing.clone())));
    }
    let rebuilt = of_ours().filter(|(node, answer)| {
        node.provider_id.is_some() && is_missing(answer) && near(node, names).is_some()
    });
    let rebuilt: Vec<String> = rebuilt.map(|(node, _)| node.name.to_string()).collect();
    if !rebuilt.is_empty() {
        lines.push(format!(
            "an instance of the same name is there with another ID: {}: {REBUILT}",
            some_of(rebuilt)
        ));
    }
    if !off.is_empty() {
        lines.push(format!("switched off: {}", some_of(off.clone())));
    }
    if !broken.is_empty() {
        lines.push(format!("failed, as the cloud says: {}", some_of(broken)));
    }
    let mut errors = Vec::new();
    for (node, answer) in of_ours() {
        if let Err(error) = answer
            && !is_missing(answer)
        {
            errors.push(format!("{}: {error}", node.name));
        }
    }
    let had = names_of(&|(node, _)| node.provider_id.is_some());
    let known: Vec<&Answered> = of_ours().filter(|(node, _)| !node.is_uninitialized()).collect();
    // As the controller sees it: what was found for a Node that waits may have its name only. One other Node alone may have
    // gone, and so may all if none is Ready.
    let are_others_missing = known.len() > 1
        && known.iter().all(|(_, answer)| is_missing(answer))
        && known.iter().any(|(node, _)| node.readiness == Readiness::Ready);
    let is_blind =
        are_others_missing || !had.is_empty() && on.is_empty() && off.is_empty() && errors.is_empty();
    let waits = of_ours()
        .any(|(node, answer)| node.is_uninitialized() && !matches!(answer, Ok(InstanceAnswer::Present(_))));
    let is_well = lines.is_empty() && errors.is_empty();
    let has_only_errors = lines.is_empty();
    lines.extend(some_lines(errors));
    let check = if is_blind {
        INSTANCES.failed(
            seen,
            "the credentials see none of the instances: are they of another project, account, zone or region? Then give the manager those of the \
             right one. It deletes no Node meanwhile: delete none by hand either, unless the cloud itself shows that its instance is gone",
        )
    } else if waits {
        INSTANCES.failed(
            seen,
            "an instance is found by the provider ID of its Node, else by the name, which no other may bear: compare them, and the project \
             of the credentials",
        )
    } else if is_well {
        return INSTANCES.ok(seen);
    } else if has_only_errors {
        INSTANCES.warning(seen, "follow what stands behind the name")
    } else {
        let is_kept = |(node, answer): &Answered| is_missing(answer) && node.readiness == Readiness::Ready;
        INSTANCES.warning(
            seen,
            match of_ours().any(is_kept) {
                true => {
                    "a Node that is ready is never deleted: look for its instance, also in other projects; if it is gone, drain the Node and delete it. \
                     Start what is switched off, and look at what has failed in the cloud"
                }
                false => "a Node that is not ready is deleted when its cloud has proved that its instance is gone; start what is switched off, and look at what has failed in the cloud",
            },
        )
    };
    check.with(lines)
}

/// Which Nodes wait for their cloud, and why.
fn judge_waiting(
    waiting: &[(&Node, Option<&InstanceResult>)],
    names: &[String],
    now: Timestamp,
    is_initialised_here: bool,
) -> Check {
    if waiting.is_empty() {
        return INITIALIZED.ok("all");
    }
    let age = |node: &Node| now.duration_since(node.created);
    let is_late = |(node, answer): &&(&Node, Option<&InstanceResult>)| {
        age(node) > PATIENCE && !answer.is_some_and(is_foreign)
    };
    let late = waiting.iter().filter(is_late).count();
    let mut oldest = waiting.to_vec();
    oldest.sort_by_key(|(node, _)| node.created);
    // Those that wait for one reason are one line, with the time of the first.
    let mut reasons: Vec<(String, Vec<&Node>)> = Vec::new();
    for (node, answer) in oldest {
        let why = of_answer(node, answer, near(node, names), now).map_or(String::new(), |cause| cause.text);
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
    use bowline_cloud_provider::plan::Note;
    use bowline_cloud_provider::{CloudError, FoundBy, Instance, InstanceMetadata, Taint, TaintEffect};

    use super::*;
    use crate::doctor::Outcome;

    const NOW: &str = "2026-01-01T00:30:00Z";

    fn present(power: PowerState) -> InstanceResult {
        let metadata = InstanceMetadata::default();
        Ok(InstanceAnswer::Present(Box::new(Instance {
            metadata,
            power,
            found_by: FoundBy::Id,
        })))
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
            let check = judge_instances(&answers, &["Z".to_owned()]);
            assert_eq!((check.outcome, check.seen.as_str()), (outcome, seen));
            assert_eq!(check.details, details);
            let is_about_one = details.first().is_some_and(|it| it.starts_with("e: "));
            assert_eq!(check.remedy.contains("stands behind the name"), is_about_one);
        }
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
        ];
        let check = left_out(Some(&plans), false);
        assert_eq!(check.outcome, Outcome::Warning);
        assert_eq!(check.details, ["not balanced over: n1"]);
        assert_eq!(left_out(Some(&[]), false).outcome, Outcome::Ok);
        assert_eq!(left_out(None, false).outcome, Outcome::Skipped);
    }

    #[test]
    fn a_node_that_waits_too_long_is_a_failure_unless_another_cloud_has_to_see_to_it() {
        let now: Timestamp = NOW.parse().unwrap();
        let fresh = node("fresh", "", Some("2026-01-01T00:25:00Z"));
        let late = node("late", "", Some("2026-01-01T00:10:00Z"));
        let (missing, foreign) = (missing(), Ok(InstanceAnswer::Foreign));
        let young = judge_waiting(&[(&fresh, Some(&missing))], &[], now, true);
        assert_eq!(young.outcome, Outcome::Warning);
        let both = judge_waiting(&[(&fresh, None), (&late, Some(&missing))], &[], now, true);
        assert_eq!(both.outcome, Outcome::Failed);
        assert_eq!(
            both.details,
            [
                "late, for 20 min: no such instance",
                "fresh, for 5 min: the cloud does not list its instances"
            ]
        );
        assert_eq!(
            judge_waiting(&[(&late, Some(&foreign))], &[], now, true).outcome,
            Outcome::Warning
        );
        assert_eq!(judge_waiting(&[], &[], now, true).outcome, Outcome::Ok);
        let many: Vec<_> = (1..8)
            .map(|index| node(&format!("n{index}"), "", Some("2026-01-01T00:25:00Z")))
            .collect();
        let many: Vec<(&Node, Option<&InstanceResult>)> = many.iter().map(|node| (&**node, None)).collect();
        assert_eq!(
            judge_waiting(&many, &[], now, true).details,
            ["n1, n2, n3, n4, n5 and 2 more, for 5 min: the cloud does not list its instances"]
        );
        let elsewhere = judge_waiting(&[(&late, Some(&missing))], &[], now, false);
        let remedy = elsewhere.remedy;
        assert!(remedy.contains("--controllers"), "{remedy}");
    }
}
