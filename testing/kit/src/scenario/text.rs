//! How a file of scenarios is read.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use super::Complaint;

/// One test.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(super) title: String,
    /// `file:line` of the title.
    pub(super) place: String,
    pub(super) steps: Vec<Step>,
}

impl Scenario {
    /// What follows this verb where it is first said; empty if it is not.
    #[must_use]
    pub fn told(&self, verb: &str) -> &str {
        let step = self.steps.iter().find(|step| step.verb() == verb);
        step.map_or("", Step::rest)
    }

    /// The scenario with a number for `{stop}`, if that stands in it.
    pub(super) fn stopped_at(&self, stop: usize) -> Option<Self> {
        let values = [("stop".to_owned(), stop.to_string())];
        let steps: Vec<Step> = self.steps.iter().map(|step| told(step, &values)).collect();
        let stops = steps
            .iter()
            .zip(&self.steps)
            .any(|(now, before)| now.text != before.text);
        stops.then(|| Self {
            steps,
            ..self.clone()
        })
    }
}

/// One step: a line, and the lines that are indented below it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) source: Arc<str>,
    /// The line, from 1 on.
    pub(super) line: usize,
    pub(super) text: String,
    /// Each with its line and without the indentation of this step.
    pub(super) below: Vec<(usize, String)>,
    /// Whether it stands in the file as it is here, so that an expectation can be written there.
    pub(super) is_verbatim: bool,
}

impl Step {
    pub(super) fn verb(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }

    /// What follows the verb.
    pub(super) fn rest(&self) -> &str {
        self.text[self.verb().len()..].trim()
    }

    /// The same with the lines below, as one text.
    pub(super) fn whole(&self) -> String {
        let below = self.below.iter().map(|(_, text)| text.trim());
        let parts = std::iter::once(self.rest()).chain(below);
        parts.collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.source, self.line)
    }

    fn map(&self, change: impl Fn(&str) -> String) -> Self {
        let below = self.below.iter().map(|(line, text)| (*line, change(text)));
        let mut step = Self {
            text: change(&self.text),
            below: below.collect(),
            ..self.clone()
        };
        step.is_verbatim &= step.text == self.text && step.below == self.below;
        step
    }
}

/// Steps with a name, and the names of what they are told.
struct Definition {
    parameters: Vec<String>,
    steps: Vec<Step>,
}

type Definitions = BTreeMap<String, Rc<Definition>>;

/// The scenarios of a file. What `common.scenario` beside it defines is known in it.
pub(super) fn read(path: &Path) -> Result<Vec<Scenario>, Complaint> {
    let mut definitions = Definitions::new();
    let common = path.with_file_name("common.scenario");
    if common != path && common.is_file() {
        parse(&common, &mut definitions)?;
    }
    parse(path, &mut definitions)
}

fn parse(path: &Path, definitions: &mut Definitions) -> Result<Vec<Scenario>, Complaint> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let source: Arc<str> = path.display().to_string().into();
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines()).collect();
    let lines: Vec<(usize, String)> = lines
        .into_iter()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim().starts_with('#'))
        .map(|(number, line)| (number, line.trim_end().to_owned()))
        .collect();
    let mut scenarios = Vec::new();
    for block in lines.chunk_by(|_, next| next.1.starts_with(' ')) {
        let ((number, title), body) = (&block[0], &block[1..]);
        let place = format!("{source}:{number}");
        if title.starts_with(' ') {
            return Err(format!("{place}: a step without a scenario"));
        }
        let steps = steps(&source, body, 2)?;
        if steps.is_empty() {
            return Err(format!("{place}: a scenario without steps"));
        }
        match title.strip_prefix("define ") {
            Some(head) => {
                let mut words = head.split_whitespace().map(str::to_owned);
                let name = words.next().unwrap_or_default();
                let definition = Definition {
                    parameters: words.collect(),
                    steps,
                };
                definitions.insert(name, Rc::new(definition));
            }
            None => scenarios.extend(instances(title, &place, &steps, definitions)?),
        }
    }
    Ok(scenarios)
}

/// Lines as steps; `indent` is how far a step is indented.
pub(super) fn steps(
    source: &Arc<str>,
    lines: &[(usize, String)],
    indent: usize,
) -> Result<Vec<Step>, Complaint> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in lines {
        let depth = line.len() - line.trim_start().len();
        match steps.last_mut() {
            Some(step) if depth >= indent + 2 => step.below.push((*number, line[indent + 2..].to_owned())),
            _ if depth == indent => steps.push(Step {
                source: Arc::clone(source),
                line: *number,
                text: line.trim().to_owned(),
                below: Vec::new(),
                is_verbatim: true,
            }),
            _ => return Err(format!("{source}:{number}: indented by {depth}, not {indent}")),
        }
    }
    Ok(steps)
}

/// A scenario for each combination of the rows of its tables.
fn instances(
    title: &str,
    place: &str,
    steps: &[Step],
    definitions: &Definitions,
) -> Result<Vec<Scenario>, Complaint> {
    let (tables, steps): (Vec<_>, Vec<_>) = steps.iter().cloned().partition(|step| step.verb() == "each");
    let mut rows: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for table in &tables {
        let names: Vec<&str> = table.rest().split('|').map(str::trim).collect();
        if table.below.is_empty() {
            return Err(format!("{}: a table without rows", table.place()));
        }
        let mut combined = Vec::new();
        for row in &rows {
            for (number, line) in &table.below {
                let values: Vec<&str> = line.split('|').map(str::trim).collect();
                if values.len() != names.len() {
                    return Err(format!("{}:{number}: {} values", table.source, values.len()));
                }
                let values = names.iter().zip(values);
                let values = values.map(|(name, value)| ((*name).to_owned(), value.to_owned()));
                combined.push(row.iter().cloned().chain(values).collect());
            }
        }
        rows = combined;
    }
    let firsts: Vec<String> = tables.iter().map(first_name).collect();
    let of_row = |(number, row): (usize, Vec<(String, String)>)| {
        let values = row.iter().filter(|(name, _)| firsts.contains(name));
        let values: Vec<String> = values
            .map(|(_, value)| value.chars().take(30).collect())
            .collect();
        let title = match values.is_empty() {
            true => title.to_owned(),
            false => format!("{title} [{number}: {}]", values.join(", ")),
        };
        let steps: Vec<Step> = steps.iter().map(|step| told(step, &row)).collect();
        Ok(Scenario {
            title,
            place: place.to_owned(),
            steps: expanded(&steps, definitions, 0)?,
        })
    };
    (1..).zip(rows).map(of_row).collect()
}

/// The name of a table's first column.
fn first_name(table: &Step) -> String {
    let names = table.rest().split('|').map(str::trim);
    names.take(1).collect()
}

/// A step with values in the places of their names. A value may name another one.
fn told(step: &Step, values: &[(String, String)]) -> Step {
    let filled = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    };
    step.map(|text| filled(&filled(text)))
}

/// Steps with those that a definition stands for in its place.
fn expanded(steps: &[Step], definitions: &Definitions, depth: usize) -> Result<Vec<Step>, Complaint> {
    let mut all = Vec::new();
    for step in steps.iter().filter(|step| !step.text.is_empty()) {
        let Some(definition) = definitions.get(step.verb()) else {
            if step.verb() == "meanwhile" {
                let body = expanded(
                    &self::steps(&step.source, &step.below, 0)?,
                    definitions,
                    depth + 1,
                )?;
                let below = body.into_iter().flat_map(|step| {
                    let inner = step
                        .below
                        .into_iter()
                        .map(|(line, text)| (line, format!("  {text}")));
                    std::iter::once((step.line, step.text)).chain(inner)
                });
                let below = below.collect();
                all.push(Step {
                    below,
                    ..step.clone()
                });
                continue;
            }
            if step.verb() != "repeat" {
                all.push(step.clone());
                continue;
            }
            let times: usize = step
                .rest()
                .parse()
                .map_err(|_| format!("{}: how often?", step.place()))?;
            let body: Vec<(usize, String)> = step.below.clone();
            let body = expanded(&self::steps(&step.source, &body, 0)?, definitions, depth + 1)?;
            if body.is_empty() {
                return Err(format!("{}: nothing to repeat", step.place()));
            }
            (0..times).for_each(|_| all.extend(body.iter().cloned()));
            continue;
        };
        let words = words(&step.whole());
        if words.len() != definition.parameters.len() || depth > 5 {
            let wanted = definition.parameters.join(" ");
            return Err(format!("{}: {} takes: {wanted}", step.place(), step.verb()));
        }
        let values: Vec<(String, String)> = definition.parameters.iter().cloned().zip(words).collect();
        let inner: Vec<Step> = definition.steps.iter().map(|it| told(it, &values)).collect();
        all.extend(expanded(&inner, definitions, depth + 1)?);
    }
    Ok(all)
}

/// Words between blanks, or between quotation marks.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, left) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = left.trim_start();
    }
    words
}
