//! Paths into JSON: `listeners[port=81].pool.members[*].name`.

use serde_json::Value;

use super::Complaint;

/// What a path leads to.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) values: Vec<Value>,
    /// Whether the path picks several.
    pub(super) is_many: bool,
}

impl Found {
    /// As one value: a list of what several are.
    pub(super) fn value(self) -> Value {
        let Self { mut values, is_many } = self;
        match is_many {
            true => Value::Array(values),
            false => values.pop().unwrap_or_default(),
        }
    }

    /// The values; in the place of a list those in it.
    pub(super) fn items(self) -> Vec<Value> {
        let items = |value| match value {
            Value::Array(items) => items,
            Value::Null => Vec::new(),
            value => vec![value],
        };
        self.values.into_iter().flat_map(items).collect()
    }

    /// As one value, and one that is found by a search as itself.
    pub(super) fn only(self) -> Value {
        match self.value() {
            Value::Array(mut items) if items.len() == 1 => items.pop().unwrap_or_default(),
            value => value,
        }
    }
}

/// Follows a path.
pub(super) fn find(root: &Value, path: &str) -> Result<Found, Complaint> {
    let mut found = Found {
        values: vec![root.clone()],
        is_many: false,
    };
    for part in parts(path)? {
        let is_many = match part {
            Part::Field(_) => found.is_many,
            Part::Index(_) => found.is_many && found.values.iter().all(Value::is_array),
            Part::Last => false,
            Part::All | Part::Which(..) => true,
        };
        let values = match &part {
            Part::Field(name) => found
                .values
                .iter()
                .filter_map(|it| it.get(name).cloned())
                .collect(),
            Part::Index(index) if found.values.iter().all(Value::is_array) => {
                let lists = found.values.iter();
                lists.filter_map(|it| it.get(*index).cloned()).collect()
            }
            Part::Index(index) => found.items().into_iter().skip(*index).take(1).collect(),
            Part::Last => found.items().pop().into_iter().collect(),
            Part::All => found.items(),
            Part::Which(field, test, wanted) => {
                let items = found.items().into_iter();
                items.filter(|it| holds(it, field, *test, wanted)).collect()
            }
        };
        found = Found { values, is_many };
    }
    Ok(found)
}

enum Part {
    Field(String),
    Index(usize),
    Last,
    All,
    Which(String, char, String),
}

fn parts(path: &str) -> Result<Vec<Part>, Complaint> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inner, left) = inner.split_once(']').ok_or_else(|| format!("no ] in {path}"))?;
            parts.push(bracket(inner));
            rest = left;
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end == 0 {
            return Err(format!("an empty name in {path}"));
        }
        parts.push(Part::Field(rest[..end].to_owned()));
        rest = &rest[end..];
    }
    Ok(parts)
}

fn bracket(inner: &str) -> Part {
    match inner {
        "*" => return Part::All,
        "-1" => return Part::Last,
        _ => {}
    }
    if let Ok(index) = inner.parse() {
        return Part::Index(index);
    }
    let which = inner.find(['=', '~', '^', '!']).map(|at| {
        let (field, rest) = inner.split_at(at);
        let (test, wanted) = rest.split_at(1);
        Part::Which(
            field.to_owned(),
            test.chars().next().unwrap_or('='),
            wanted.to_owned(),
        )
    });
    which.unwrap_or_else(|| Part::Field(inner.to_owned()))
}

/// Whether a field is so (`=`), is not (`!`), contains (`~`) or begins with (`^`) something.
fn holds(item: &Value, field: &str, test: char, wanted: &str) -> bool {
    let value = match field {
        "" => Some(item.clone()),
        field => find(item, field).ok().map(Found::value),
    };
    let text = value.as_ref().map(text).unwrap_or_default();
    let contains = |wanted: &str| match &value {
        Some(Value::Array(items)) => items.iter().any(|it| self::text(it) == wanted),
        _ => text.contains(wanted),
    };
    match test {
        '~' => contains(wanted),
        '^' => text.starts_with(wanted),
        '!' => text != wanted,
        _ => text == wanted,
    }
}

/// A value as a person writes it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// What a person writes as a value: JSON, else a text.
pub(super) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Where the path at the beginning of a text ends: at a blank that is not in brackets.
pub(super) fn path_end(text: &str) -> usize {
    let mut depth = 0;
    let end = text.find(|it: char| {
        match it {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && it == ' '
    });
    end.unwrap_or(text.len())
}
