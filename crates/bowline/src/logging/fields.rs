//! The fields of a line, in the order in which they were written.

use std::fmt;

use tracing::field::{Field, Visit};

/// The field of the text of a recorded event.
const EVENT_TEXT: &str = "note";

/// A value that a line can show.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
}

/// The message and the other fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) others: Vec<(&'static str, Value)>,
}

impl Fields {
    /// Adds fields, of which a later one replaces an earlier one of the same name.
    pub(super) fn extend(&mut self, more: &Self) {
        for (name, value) in &more.others {
            self.put(name, value.clone());
        }
    }

    /// These fields after others, replacing those of the same name.
    pub(super) fn after(self, mut earlier: Self) -> Self {
        for (name, value) in self.others {
            earlier.put(name, value);
        }
        earlier.message = self.message;
        earlier
    }

    fn put(&mut self, name: &'static str, value: Value) {
        match self.others.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => self.others.push((name, value)),
        }
    }

    fn put_text(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            // An event's text goes by the name of the message in the Go managers' lines, which tracing has taken.
            EVENT_TEXT => self.put("message", Value::Text(text)),
            name => self.put(name, Value::Text(text)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value.to_owned());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), Value::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), Value::Unsigned(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), Value::Float(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put_text(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, format!("{value:?}"));
    }
}
