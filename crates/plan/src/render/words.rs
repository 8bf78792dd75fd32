//! Steps in people's words: `create pool tcp/http of k8s-service-…` for `create-pool(00000000-…/tcp/http)`.

use super::PlanReport;

/// The steps of a report in order, each in words.
pub(super) fn of(report: &PlanReport) -> Vec<String> {
    let mut created: Vec<String> = Vec::new();
    let steps = report.waves.iter().flat_map(|wave| &wave.steps);
    steps
        .map(|step| {
            let Some((action, parent, object)) = parts(&step.label) else {
                return step.label.clone();
            };
            let object = named(object, &created);
            let words: Vec<&str> = action
                .split('-')
                .map(|word| match word {
                    "lb" => "load balancer",
                    "ip" => "IP",
                    word => word,
                })
                .collect();
            let of = parent.map_or(String::new(), |parent| format!(" of {}", named(parent, &created)));
            let is_balancer = words.last() == Some(&"load balancer");
            if let Some((&"create", noun)) = words.split_first() {
                created.push(match is_balancer {
                    true => object.clone(),
                    false => format!("{} {object}", noun.join(" ")),
                });
            }
            format!("{} {object}{of}", words.join(" "))
        })
        .collect()
}

/// What is done, what it belongs to, and what it is done to.
fn parts(label: &str) -> Option<(&str, Option<&str>, &str)> {
    let (action, inside) = label.strip_suffix(')')?.split_once('(')?;
    match inside.split_once('/') {
        Some((parent, object)) if is_id(parent) => Some((action, Some(parent), object)),
        _ => Some((action, None, inside)),
    }
}

/// The text with the ids of what does not exist yet replaced by what it will be called.
fn named(text: &str, created: &[String]) -> String {
    let is_of_id = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut shown = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_of_id(letter)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        match made_up(word) {
            Some(_) if shown.ends_with('=') => shown.push_str("<new>"),
            Some(number) => {
                let name = number.checked_sub(1).and_then(|index| created.get(index));
                shown.push_str(name.map_or("the new one", String::as_str));
            }
            None => shown.push_str(word),
        }
        let other = tail.find(is_of_id).unwrap_or(tail.len());
        shown.push_str(&tail[..other]);
        rest = &tail[other..];
    }
    shown
}

fn is_uuid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.chars().all(|it| it.is_ascii_hexdigit() || it == '-')
}

fn is_id(word: &str) -> bool {
    is_uuid(word) || made_up(word).is_some()
}

/// The number of an id that a prediction made up: of a UUID that is nearly nothing, or at the end of `new-…` and `planned-…`.
fn made_up(word: &str) -> Option<usize> {
    if is_uuid(word) {
        let number = word.strip_prefix("00000000-0000-0000-0000-")?;
        return usize::from_str_radix(number, 16).ok();
    }
    let (kind, number) = word.rsplit_once('-')?;
    let is_new = kind == "new" || kind == "planned" || kind.starts_with("new-");
    is_new.then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Impact, ReportedWave, StepView};

    #[test]
    fn steps_are_told_by_the_names_of_what_they_are_about() {
        let labels = [
            "create-lb(k8s-service-7)",
            "create-pool(00000000-0000-0000-0000-000000000001/tcp/http)",
            "create-pool-member(00000000-0000-0000-0000-000000000002/10.0.0.1:30080)",
            "create-listener(00000000-0000-0000-0000-000000000009/tcp/80)",
            "delete-pool(3f2a91b4-1c2d-4e5f-8a9b-0c1d2e3f4a5b/tcp/old)",
            "create-rule(a-tcp-80 -> 30080)",
            "annotate-service(uuid=00000000-0000-0000-0000-000000000001)",
            "odd",
        ];
        let steps: Vec<StepView> = labels
            .iter()
            .map(|label| StepView {
                label: (*label).to_owned(),
                object: String::new(),
                impact: Impact::None,
                lanes: Vec::new(),
            })
            .collect();
        let report = PlanReport {
            waves: vec![ReportedWave::of(&steps)],
            ..PlanReport::of_nothing("default/web".to_owned())
        };
        assert_eq!(
            of(&report),
            [
                "create load balancer k8s-service-7",
                "create pool tcp/http of k8s-service-7",
                "create pool member 10.0.0.1:30080 of pool tcp/http",
                "create listener tcp/80 of the new one",
                "delete pool tcp/old of 3f2a91b4-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
                "create rule a-tcp-80 -> 30080",
                "annotate service uuid=<new>",
                "odd",
            ]
        );
    }
}
