//! The policies as the chart holds them.

use std::fmt::Write as _;

use crate::admission::clouds::clouds;
use crate::admission::policy::{CLASS, Part, Policy, policies};

/// Where [`template`] goes, relative to the repository's root.
pub const TEMPLATE: &str = "deploy/chart/templates/_admission.tpl";

/// The specs of all policies as named templates of the chart. A cloud without a policy of a part has an empty one.
#[must_use]
pub fn template() -> String {
    let mut text = String::from("{{/* Written by `cargo xtask generate`. */}}\n");
    let all = policies();
    for cloud in clouds() {
        for part in [Part::Values, Part::Changes] {
            let policy = all
                .iter()
                .find(|policy| policy.cloud == cloud.name && policy.part == part);
            let spec = policy.map(spec).unwrap_or_default();
            let _ = write!(
                text,
                "{{{{- define \"bowline.admission.{}.{}\" }}}}\n{spec}{{{{- end }}}}\n",
                cloud.name,
                part.name()
            );
        }
    }
    text
}

/// Which classes are served, the values of the chart say.
const SERVED: &str = "{{ include \"bowline.admission.class\" . }}";

/// The spec of a `ValidatingAdmissionPolicy`.
fn spec(policy: &Policy) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# A fault in a policy must not keep Services from anybody.\nfailurePolicy: Ignore"
    );
    let _ = writeln!(
        text,
        "matchConstraints:\n  resourceRules:\n    - apiGroups: [\"\"]\n      apiVersions: [v1]\n      operations: [{}]\n      resources: [services]",
        policy.operations.join(", ")
    );
    for (title, entries) in [
        ("matchConditions", &policy.conditions),
        ("variables", &policy.variables),
    ] {
        let _ = writeln!(text, "{title}:");
        for (name, expression) in entries {
            let _ = writeln!(text, "  - name: {name}");
            let is_of_chart = *name == CLASS;
            let expression = if is_of_chart { SERVED } else { expression };
            block(&mut text, "    expression", expression);
        }
    }
    let _ = writeln!(text, "validations:");
    for validation in &policy.validations {
        block(&mut text, "  - expression", &validation.expression);
        block(&mut text, "    message", &validation.message);
        if let Some(said) = &validation.said {
            block(&mut text, "    messageExpression", said);
        }
    }
    text
}

/// A field with its text below it, as it is.
fn block(text: &mut String, field: &str, value: &str) {
    let _ = writeln!(text, "{field}: |-");
    for line in value.lines() {
        let _ = writeln!(text, "      {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helm_finds_no_action_of_its_own_in_a_policy() {
        let is_own = |line: &&str| !line.starts_with("{{") && line.trim() != SERVED;
        for line in template().lines().filter(is_own) {
            assert!(!line.contains("{{") && !line.contains("}}"), "{line}");
        }
    }
}
