//! One JSON object per line, with the keys of the Go managers: `ts`, `caller`, `msg`, `v`, then the line's own.

use serde_json::{Map, Value as Json, json};
use tracing::Level;

use super::Line;
use super::fields::Value;

pub(super) fn format(line: &Line<'_>) -> String {
    let mut object = Map::new();
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds since 1970 are exact in a double until 2255"
    )]
    let milliseconds = line.time.as_microsecond() as f64 / 1000.0;
    object.insert("ts".into(), json!(milliseconds));
    object.insert("caller".into(), json!(format!("{}:{}", line.file, line.line)));
    object.insert("msg".into(), json!(line.fields.message));
    match line.level {
        Level::ERROR => {}
        Level::WARN | Level::INFO => {
            object.insert("v".into(), json!(0));
        }
        Level::DEBUG => {
            object.insert("v".into(), json!(4));
        }
        Level::TRACE => {
            object.insert("v".into(), json!(6));
        }
    }
    for (key, value) in &line.fields.others {
        let value = match value {
            Value::Text(value) => match *key {
                // Object references, as the Go managers write them.
                "service" | "lease" => reference(value),
                "object" if !value.contains(' ') => reference(value),
                _ => json!(value),
            },
            Value::Bool(value) => json!(value),
            Value::Int(value) => json!(value),
            Value::Unsigned(value) => json!(value),
            Value::Float(value) => json!(value),
        };
        // A field must not hide one of the keys above.
        let key = if object.contains_key(*key) {
            format!("{key}_")
        } else {
            (*key).to_owned()
        };
        object.insert(key, value);
    }
    format!("{}\n", Json::Object(object))
}

fn reference(text: &str) -> Json {
    match text.split_once('/') {
        Some((namespace, name)) => json!({ "name": name, "namespace": namespace }),
        None => json!({ "name": text }),
    }
}
