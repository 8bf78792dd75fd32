//! The annotations of cloudscale.ch, from the table that reads them.

use std::fmt::Write as _;

use bowline_cloudscale::{Changeability, ValueKind, annotation_table};

use crate::{cell, code};

pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Annotations: cloudscale.ch\n\nAll are optional. The default counts only while the key is absent: a key with an \
         empty value is that empty value. What is wrong is said in one event that names every annotation concerned, before \
         anything is written.\n\n| key | value | default | a later change | impact | meaning |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for annotation in annotation_table() {
        let kind = match annotation.kind {
            ValueKind::Int => "whole number",
            ValueKind::List => "JSON list of texts",
            ValueKind::Json => "JSON",
            ValueKind::Text => "text",
        };
        let change = match annotation.change {
            Changeability::Written => "written by the manager",
            Changeability::StatusOnly => "only the status shows it",
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
