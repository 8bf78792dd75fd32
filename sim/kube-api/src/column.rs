//! The columns of `kubectl get`.

use serde_json::{Value, json};

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    format: &'static str,
    priority: u8,
}

/// The columns of kinds that have nothing of their own to show.
pub(crate) const NAME_AND_AGE: &[Column] = &[Column::name(), Column::text("Age")];

impl Column {
    pub(crate) const fn name() -> Self {
        Self {
            name: "Name",
            format: "name",
            priority: 0,
        }
    }

    pub(crate) const fn text(name: &'static str) -> Self {
        Self {
            name,
            format: "",
            priority: 0,
        }
    }

    /// Shown by `-o wide` only.
    pub(crate) const fn wide(name: &'static str) -> Self {
        Self {
            name,
            format: "",
            priority: 1,
        }
    }

    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": "string",
            "format": self.format,
            "description": "",
            "priority": self.priority,
        })
    }
}
