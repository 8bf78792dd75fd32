//! The annotations of each cloud, from the tables that read them.

use std::fmt::Write as _;

use bowline_cloud_provider::{Accepts, AnnotationSpec, Changeability, ValueKind};

use crate::reference::{cell, code};

/// What a blank value is where it is a value.
pub(crate) const EMPTY: &str =
    "The default counts only while the key is absent: a key with an empty value is that empty value.";

/// What it is where it is none.
pub(crate) const NOT_SET: &str = "The default counts while the key is absent, or its value empty or blank.";

/// The page of one cloud.
pub(crate) fn page(cloud: &str, blank: &str, table: &[AnnotationSpec]) -> String {
    let mut page = format!(
        "# Annotations: {cloud}\n\nAll are optional. {blank} Bowline reports all wrong annotations in one event, before it writes \
         anything.\n\n| key | value | default | a later change | impact | meaning |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for annotation in table {
        let kind = value(annotation);
        let change = match annotation.change {
            Changeability::Written => "written by the manager",
            Changeability::StatusOnly => "only the status shows it",
            Changeability::CreationOnly => "no effect",
            Changeability::InPlace => "made in place",
            Changeability::Rebuild => "parts are replaced",
            Changeability::Refused => "refused",
        };
        let _ = writeln!(
            page,
            "| `{}` | {kind} | {} | {change} | {} | {} |",
            annotation.key,
            code(annotation.default),
            annotation.impact,
            cell(annotation.doc)
        );
    }
    page
}

/// What a value is, and which ones are taken.
fn value(annotation: &AnnotationSpec) -> String {
    let text = match (annotation.accepts, annotation.kind) {
        (Accepts::Between(least, i64::MAX), _) => return format!("whole number, {least} or more"),
        (Accepts::Between(least, most), _) => return format!("whole number from {least} to {most}"),
        (Accepts::Words(words) | Accepts::WordsOfAnyCase(words), _) => {
            let words: Vec<String> = words
                .iter()
                .filter(|word| !word.is_empty())
                .map(|word| code(word))
                .collect();
            return words.join(", ");
        }
        (Accepts::NotBlank, _) => "text, not blank",
        (Accepts::Uuid, _) => "UUID",
        (Accepts::Uuids, _) => "JSON list of UUIDs",
        (Accepts::Hostname, _) => "host name",
        (Accepts::Address, _) => "IP address",
        (Accepts::Networks, ValueKind::List) => "JSON list of networks",
        (Accepts::Networks, _) => "networks, with commas",
        (Accepts::Addresses, _) => "JSON list of addresses",
        (Accepts::Selector, _) => "label selector",
        (Accepts::Labels, _) => "labels, with commas",
        (Accepts::Vips, _) => "JSON list of objects",
        (Accepts::HttpCheck, _) => "JSON object",
        (Accepts::Any, ValueKind::Int) => "whole number",
        (Accepts::Any, ValueKind::Bool) => "`true` or `false`",
        (Accepts::Any, ValueKind::List) => "JSON list of texts",
        (Accepts::Any, ValueKind::CommaList) => "list, with commas",
        (Accepts::Any, ValueKind::Json) => "JSON",
        (Accepts::Any, ValueKind::Text) => "text",
    };
    text.to_owned()
}
