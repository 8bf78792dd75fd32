//! The file of rules, read.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::monitoring::root;

/// Where the rules are.
pub const RULES: &str = "deploy/chart/files/rules.yaml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[serde(rename = "name")]
    _name: String,
    rules: Vec<Alert>,
}

/// One rule. Several have one name, and tell by the label `cause` what they saw.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// The name.
    #[serde(rename = "alert")]
    pub name: String,
    /// In PromQL.
    #[serde(rename = "expr")]
    pub expression: String,
    /// How long it has to hold.
    #[serde(rename = "for")]
    pub duration: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// Summary, description and runbook.
    pub annotations: BTreeMap<String, String>,
}

/// All rules in their order.
///
/// # Errors
///
/// The file cannot be read, or holds something else.
pub fn alerts() -> anyhow::Result<Vec<Alert>> {
    let text = std::fs::read_to_string(root().join(RULES))?;
    let file: File = serde_saphyr::from_str(&text)?;
    Ok(file.groups.into_iter().flat_map(|group| group.rules).collect())
}
