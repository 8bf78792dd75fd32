//! The annotations of each cloud, from the tables that read them.

use std::fmt::Write as _;

use bowline_cloud_provider::{AnnotationSpec, Changeability, ValueKind};

use crate::{cell, code};

/// The page of one cloud.
pub(crate) fn page(cloud: &str, table: &[AnnotationSpec]) -> String {
    let mut page = format!(
        "# Annotations: {cloud}\n\nAll are optional. The default counts only while the key is absent: a key with an \
         empty value is that empty value. What is wrong is said in one event that names every annotation concerned, before \
         anything is written.\n\n| key | value | default | a later change | impact | meaning |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for annotation in table {
        let kind = match annotation.kind {
            ValueKind::Int => "whole number",
            ValueKind::Bool => "`true` or `false`",
            ValueKind::List => "JSON list of texts",
            ValueKind::CommaList => "list, with commas",
            ValueKind::Json => "JSON",
            ValueKind::Text => "text",
        };
        let change = match annotation.change {
            Changeability::Written => "written by the manager",
            Changeability::StatusOnly => "only the status shows it",
            Changeability::CreationOnly => "no effect",
            Changeability::InPlace => "made in place",
            Changeability::Rebuild => "parts are made anew",
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
