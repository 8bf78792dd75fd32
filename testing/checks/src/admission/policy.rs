//! The policies of all clouds.

use bowline_cloud_provider::Changeability;

use crate::admission::cel;
use crate::admission::check::check;
use crate::admission::clouds::{Cloud, Fixed, FixedField, FixedKey, Late, Rule, clouds};

/// What a policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Keys and values.
    Values,
    /// Changes that come too late.
    Changes,
}

impl Part {
    /// Its name, at the end of a policy's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Changes => "changes",
        }
    }
}

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The chart's name for the cloud.
    pub cloud: &'static str,
    /// What it is about.
    pub part: Part,
    /// Which requests are looked at: `CREATE`, `UPDATE`.
    pub operations: &'static [&'static str],
    /// All of these hold for a request that is looked at: name and CEL.
    pub conditions: Vec<(&'static str, String)>,
    /// Values that several expressions use: name and CEL.
    pub variables: Vec<(&'static str, String)>,
    /// What must hold.
    pub validations: Vec<Validation>,
}

/// What must hold for a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation {
    /// CEL.
    pub expression: String,
    /// What is said when [`Validation::said`] makes nothing of it.
    pub message: String,
    /// CEL that makes what is said, with the value that was given; an empty text if that cannot be repeated.
    pub said: Option<String>,
}

/// The policies of all clouds, in the order of the chart.
#[must_use]
pub fn policies() -> Vec<Policy> {
    let mut all = Vec::new();
    for cloud in clouds() {
        all.push(values(&cloud));
        all.extend(cloud.fixed.as_ref().map(|fixed| changes(&cloud, fixed)));
    }
    all
}

/// The condition that the chart writes anew where the manager serves other Services than those without a class.
pub(crate) const CLASS: &str = "class";

/// The Services whose load balancers the manager makes.
fn conditions() -> Vec<(&'static str, String)> {
    let condition = |name, text: &str| (name, text.to_owned());
    vec![
        condition(
            "load-balancer",
            "has(object.spec.type) && object.spec.type == 'LoadBalancer'",
        ),
        condition(CLASS, "!has(object.spec.loadBalancerClass)"),
        condition("not-being-deleted", "!has(object.metadata.deletionTimestamp)"),
    ]
}

/// How many keys are offered for one that is not known.
const OFFERED: usize = 3;

const ANNOTATIONS: &str = "has(object.metadata.annotations) ? object.metadata.annotations : {}";

fn values(cloud: &Cloud) -> Policy {
    let variable = |name, text: &str| (name, text.to_owned());
    let longest = cloud
        .table
        .iter()
        .map(|spec| spec.key.len())
        .max()
        .unwrap_or_default();
    let shared = cloud.prefixes.iter().map(|prefix| prefix.len());
    let shared = shared.chain([cloud.domain.len()]).min().unwrap_or_default();
    let is_near = cel::is_near("n", "k", shared, longest);
    let is_namesake = cel::is_namesake("n", "k", cloud.name);
    let is_tail = cel::is_tail("n", "k");
    let is_akin = cel::is_akin("n", "k");
    // Any key of the prefixes; what is nearly one of ours, or the end of one, elsewhere in the domain; and one of ours under a misspelt domain.
    let by_prefix = cloud
        .prefixes
        .iter()
        .map(|prefix| format!("k.startsWith({})", cel::text(prefix)));
    let by_likeness = [
        format!(
            "k.startsWith({}) && variables.known.exists(n, {is_near} || {is_tail})",
            cel::text(cloud.domain)
        ),
        format!("variables.known.exists(n, {is_namesake})"),
    ];
    let is_ours: Vec<String> = by_prefix.chain(by_likeness).collect();
    let variables = vec![
        variable("annotations", ANNOTATIONS),
        variable(
            "isNew",
            "oldObject == null || !has(oldObject.spec.type) || oldObject.spec.type != 'LoadBalancer'",
        ),
        variable(
            "before",
            "!variables.isNew && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}",
        ),
        // What is as it was before is nobody's fault in this request.
        variable(
            "touched",
            "variables.annotations.filter(k, !(k in variables.before) || variables.before[k] != variables.annotations[k])",
        ),
        (
            "known",
            format!(
                "[\n  {}\n]",
                cloud
                    .table
                    .iter()
                    .filter(|spec| !cloud.on_nodes.contains(&spec.key))
                    .map(|spec| cel::text(spec.key))
                    .collect::<Vec<_>>()
                    .join(",\n  ")
            ),
        ),
        (
            "unknown",
            format!(
                "variables.touched.filter(k, !(k in variables.known) && ({}))",
                is_ours.join("\n  || ")
            ),
        ),
    ];
    let written = cloud
        .table
        .iter()
        .filter(|spec| spec.change == Changeability::Written)
        .map(|spec| spec.key);
    let unknown = Validation {
        expression: "size(variables.unknown) == 0".to_owned(),
        message: format!("an annotation that {} does not know has no effect", cloud.title),
        said: Some(format!(
            "'annotations that {} does not know have no effect: ' + variables.unknown.map(k,\n  \
             [variables.known.filter(n, !(n in {}) && ({is_near} || {is_namesake} || {is_tail} || {is_akin}))].map(l, size(l) == 0 ? k : k + ' (is it ' + \
             l.filter(n, size(l.filter(m, {})) < {OFFERED}).join(' or ') + '?)')[0]).join(', ')",
            cloud.title,
            // Nobody is led to write what the manager writes.
            cel::list(written),
            cel::is_nearer("m", "n", "k")
        )),
    };
    let of_table = cloud.table.iter().filter_map(|spec| {
        let value = format!("variables.annotations[{}]", cel::text(spec.key));
        let check = check(spec, &value)?;
        let wrong = format!("must be {}", check.allowed);
        Some(Validation {
            expression: format!(
                "!({} in variables.touched)\n|| ({})",
                cel::text(spec.key),
                check.holds
            ),
            message: format!("{} {wrong}", spec.key),
            said: Some(format!(
                "{} ? {} + {value} + {} : ''",
                cel::is_sayable(&value),
                cel::text(&format!("{} is `", spec.key)),
                cel::text(&format!("` and {wrong}"))
            )),
        })
    });
    let validations = std::iter::once(unknown)
        .chain(of_table)
        .chain(cloud.rules.iter().map(of_rule));
    Policy {
        cloud: cloud.name,
        part: Part::Values,
        operations: &["CREATE", "UPDATE"],
        conditions: conditions(),
        validations: validations.collect(),
        variables,
    }
}

fn of_rule(rule: &Rule) -> Validation {
    let keys = rule
        .keys
        .iter()
        .map(|key| format!("{} in variables.touched", cel::text(key)));
    let fields = rule.fields.iter().map(|field| {
        format!(
            "variables.isNew || has(object.spec.{field}) != has(oldObject.spec.{field}) \
             || has(object.spec.{field}) && object.spec.{field} != oldObject.spec.{field}"
        )
    });
    let touched: Vec<String> = keys.chain(fields).collect();
    Validation {
        expression: format!("!({})\n|| ({})", touched.join(" || "), rule.holds),
        message: rule.message.clone(),
        said: None,
    }
}

fn changes(cloud: &Cloud, fixed: &Fixed) -> Policy {
    let mut conditions = conditions();
    conditions.push((
        "load-balancer-before",
        "has(oldObject.spec.type) && oldObject.spec.type == 'LoadBalancer'".to_owned(),
    ));
    conditions.push(("made", fixed.since.clone()));
    Policy {
        cloud: cloud.name,
        part: Part::Changes,
        operations: &["UPDATE"],
        conditions,
        variables: vec![
            ("annotations", ANNOTATIONS.to_owned()),
            (
                "before",
                "has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}".to_owned(),
            ),
        ],
        validations: fixed
            .keys
            .iter()
            .map(of_fixed)
            .chain(fixed.fields.iter().map(of_field))
            .collect(),
    }
}

fn of_field(field: &FixedField) -> Validation {
    Validation {
        expression: field.holds.clone(),
        message: field.message.clone(),
        said: None,
    }
}

fn of_fixed(fixed: &FixedKey) -> Validation {
    let key = cel::text(fixed.key);
    let [now, before] = ["annotations", "before"].map(|map| {
        let absent = match fixed.rule {
            Late::Text(default) => default,
            Late::Wish | Late::Found | Late::JsonWish => "",
        };
        format!(
            "({key} in variables.{map} ? variables.{map}[{key}] : {})",
            cel::text(absent)
        )
    });
    let bare =
        |text: &str| format!("{text}.lowerAscii().replace(' ', '').replace('\\n', '').replace('\\t', '')");
    let holds = match fixed.rule {
        Late::Text(_) => format!("{now} == {before}"),
        Late::Wish => format!("{now} == '' || {now} == {before}"),
        Late::Found => format!("{now} == '' || {before} == '' || {now} == {before}"),
        Late::JsonWish => format!(
            "{} in ['', '[]', 'null']\n|| {} == {}\n|| {}",
            bare(&now),
            bare(&now),
            bare(&before),
            cel::are_same_vips(&now, &before)
        ),
    };
    let holds = match &fixed.unless {
        Some(unless) => format!("{unless}\n|| {holds}"),
        None => holds,
    };
    Validation {
        expression: holds,
        message: format!("{}: {}", fixed.key, fixed.remedy),
        said: Some(format!(
            "{} && {} ? {} + {} + ' and was ' + {} + {} : ''",
            cel::is_sayable(&now),
            cel::is_sayable(&before),
            cel::text(&format!("{} is ", fixed.key)),
            cel::quoted(&now),
            cel::quoted(&before),
            cel::text(&format!(": {}", fixed.remedy))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cloud_has_a_policy_of_values_and_names_do_not_repeat() {
        let all = policies();
        let mut names: Vec<(&str, &str)> = all
            .iter()
            .map(|policy| (policy.cloud, policy.part.name()))
            .collect();
        assert_eq!(names.iter().filter(|(_, part)| *part == "values").count(), 4);
        assert_eq!(names.len(), 7);
        names.dedup();
        assert_eq!(names.len(), 7);
    }
}
