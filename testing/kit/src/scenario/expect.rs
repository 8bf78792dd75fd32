//! The verbs that expect something.

use serde_json::{Value, json};

use super::fault::word;
use super::path::{Found, path_end, text, value};
use super::stage::Stage;
use super::text::Step;
use super::update::Updates;
use super::{Complaint, ScenarioCloud, difference};

type Done = Result<(), Complaint>;

impl<C: ScenarioCloud> Stage<'_, C> {
    /// Checks what a verb says, if it is one of these.
    pub(super) fn expected(&self, verb: &str, step: &Step) -> Option<Done> {
        let listed = |path| self.list(path, step);
        Some(match verb {
            "writes" => listed("run.writes"),
            "calls" => listed("run.calls"),
            "steps" => listed("run.kinds"),
            "notes" => listed("run.reasons"),
            "published" => listed("run.published"),
            "no" => self.nothing(step.rest()),
            "nothing-left" => self.empty("leftovers"),
            "orderly" => self.empty("violations"),
            "unchanged" => self.unchanged(),
            "see" => self.see(step),
            "count" => self.count(step),
            "none" => self.empty(step.rest()),
            "annotation" => self.annotated(step),
            _ => return None,
        })
    }

    /// Exactly these, in this order.
    fn list(&self, path: &str, step: &Step) -> Done {
        let seen = self.look(path)?.value();
        let expected = listed(step, step.rest())?;
        self.compare(step, step.verb(), &expected, &seen)
    }

    fn compare(&self, step: &Step, head: &str, expected: &Value, seen: &Value) -> Done {
        if expected == seen {
            return Ok(());
        }
        if Updates::are_wanted() && step.is_verbatim {
            self.updates.lock().unwrap().note(step, head, seen);
            return Ok(());
        }
        Err(difference(expected, seen))
    }

    /// `no writes`, `no calls`, `no steps`, `no notes`
    fn nothing(&self, what: &str) -> Done {
        match what {
            "writes" => self.empty("run.writes"),
            "calls" => self.empty("run.calls"),
            "steps" => self.empty("run.kinds"),
            "notes" => self.empty("run.notes"),
            "published" => match self.look("run.published")?.value() {
                Value::Null => Ok(()),
                seen => Err(difference(&Value::Null, &seen)),
            },
            other => Err(format!("no {other}: what is that?")),
        }
    }

    fn empty(&self, path: &str) -> Done {
        match self.look(path)?.items() {
            none if none.is_empty() => Ok(()),
            some => Err(difference(&json!([]), &Value::Array(some))),
        }
    }

    fn unchanged(&self) -> Done {
        let kept = self.kept.as_ref().ok_or("keep was not said")?;
        let seen = self.cloud().state();
        if *kept == seen {
            return Ok(());
        }
        let kinds = kept.as_object().into_iter().flatten();
        let kinds = kinds.filter(|(kind, before)| seen[*kind] != **before);
        let texts = kinds.map(|(kind, before)| format!("{kind}: {}", difference(before, &seen[kind])));
        Err(texts.collect::<Vec<_>>().join("\n"))
    }

    /// `annotation NAME KEY OP VALUE`
    fn annotated(&self, step: &Step) -> Done {
        let (key, rest) = word(step.rest());
        let (name, rest) = word(rest);
        let found = self.look(&format!("annotation {key} {name}"))?;
        self.test(step, &format!("annotation {key} {name}"), found, rest)
    }

    /// `see [all|any|sorted] PATH OP VALUE`
    fn see(&self, step: &Step) -> Done {
        let (first, after) = word(step.rest());
        let (how, rest) = match first {
            "all" | "any" | "sorted" => (first, after),
            _ => ("", step.rest()),
        };
        let end = path_end(rest);
        let (path, test) = (&rest[..end], rest[end..].trim());
        let found = self.look(path)?;
        let head = &step.text[..step.text.len() - test.len()];
        match how {
            "all" | "any" => {
                let items = match found.is_many {
                    true => found.values,
                    false => found.items(),
                };
                if items.is_empty() {
                    return Err(format!("nothing is {path}"));
                }
                let (op, expected) = operator(test, step)?;
                let fits = |item: &&Value| holds(&op, item, &expected).is_ok();
                let count = items.iter().filter(fits).count();
                match count == items.len() || (how == "any" && count > 0) {
                    true => Ok(()),
                    false => Err(difference(&expected, &Value::Array(items))),
                }
            }
            "sorted" => {
                let mut items = found.items();
                items.sort_by_key(|item| (item.as_u64(), text(item)));
                let found = Found {
                    values: items,
                    is_many: true,
                };
                self.test(step, head.trim(), found, test)
            }
            _ => self.test(step, head.trim(), found, test),
        }
    }

    fn test(&self, step: &Step, head: &str, found: Found, test: &str) -> Done {
        let (op, expected) = operator(test, step)?;
        let seen = single(found, &expected);
        let Err(complaint) = holds(&op, &seen, &expected) else {
            return Ok(());
        };
        match op.as_str() {
            "=" => self.compare(step, &format!("{head} ="), &expected, &seen),
            _ => Err(complaint),
        }
    }

    /// `count PATH OP N`
    fn count(&self, step: &Step) -> Done {
        let end = path_end(step.rest());
        let (path, test) = (&step.rest()[..end], step.rest()[end..].trim());
        let found = Found {
            values: vec![json!(self.look(path)?.items().len())],
            is_many: false,
        };
        self.test(step, &format!("count {path}"), found, test)
    }
}

/// Where one is found by a search and one is expected, it is the one; where nothing is found, it is `null`.
fn single(found: Found, expected: &Value) -> Value {
    if !found.is_many {
        return found.value();
    }
    match found.value() {
        Value::Array(mut items) if items.len() < 2 && !expected.is_array() => items.pop().unwrap_or_default(),
        value => value,
    }
}

/// An operator with its value, which may be a list on the lines below.
fn operator(test: &str, step: &Step) -> Result<(String, Value), Complaint> {
    let (op, rest) = word(test);
    let is_list = !step.below.is_empty() || matches!(op, "in-order" | "in-a-row");
    let expected = match is_list {
        true => listed(step, rest)?,
        false if rest.is_empty() => return Err("what is expected?".to_owned()),
        false => value(rest),
    };
    Ok((op.to_owned(), expected))
}

/// What stands after commas on the line or on the lines below; `[...]` is JSON.
fn listed(step: &Step, rest: &str) -> Result<Value, Complaint> {
    if rest.starts_with('[') {
        return serde_json::from_str(rest).map_err(|error| format!("{rest}: {error}"));
    }
    let on_line = rest.split(',').map(str::trim).filter(|it| !it.is_empty());
    let below = step.below.iter().map(|(_, text)| text.trim());
    let items: Vec<Value> = on_line.chain(below).map(value).collect();
    match items.is_empty() {
        true if !Updates::are_wanted() => Err("what is expected?".to_owned()),
        _ => Ok(Value::Array(items)),
    }
}

/// Whether a value is as expected.
fn holds(op: &str, seen: &Value, expected: &Value) -> Done {
    let (shown, wanted) = (text(seen), text(expected));
    let number = |value: &Value| value.as_f64();
    let holds = match op {
        "=" => seen == expected,
        "!=" => seen != expected,
        "contains" => has(seen, expected),
        "lacks" => !seen.is_null() && !has(seen, expected),
        "in-order" => is_in_order(seen, expected),
        "in-a-row" => is_in_a_row(seen, expected),
        "starts" => shown.starts_with(&wanted),
        "ends" => shown.ends_with(&wanted),
        "<" => number(seen) < number(expected) && !seen.is_null(),
        "<=" => number(seen) <= number(expected) && !seen.is_null(),
        ">" => number(seen) > number(expected),
        ">=" => number(seen) >= number(expected),
        other => return Err(format!("{other:?} is no comparison")),
    };
    match holds {
        true => Ok(()),
        false => Err(difference(expected, seen)),
    }
}

fn has(seen: &Value, expected: &Value) -> bool {
    match seen {
        Value::Array(items) => items.contains(expected),
        seen => text(seen).contains(&text(expected)),
    }
}

/// Whether a list has these in this order, perhaps with others between.
fn is_in_order(seen: &Value, expected: &Value) -> bool {
    let mut seen = seen.as_array().into_iter().flatten();
    let mut expected = expected.as_array().into_iter().flatten();
    expected.all(|wanted| seen.any(|it| it == wanted))
}

/// Whether a list has these one directly after the other.
fn is_in_a_row(seen: &Value, expected: &Value) -> bool {
    let (Some(seen), Some(expected)) = (seen.as_array(), expected.as_array()) else {
        return false;
    };
    !expected.is_empty() && seen.windows(expected.len()).any(|part| part == expected)
}
