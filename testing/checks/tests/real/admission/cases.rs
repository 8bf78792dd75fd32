//! Services that are good or bad, cloud by cloud. The table is `cases.txt`, which says what its rows are.

use crate::admission::apiserver::service;
use serde_json::Value;

/// Who finds out that a Service is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nobody: it is good.
    Good,
    /// The policy, and so does the reader.
    Caught,
    /// The policy; the reader takes it, and the cloud or the API server refuses it later, or it comes to nothing.
    CaughtBeforeTheCloud,
    /// The reader alone: beyond CEL.
    Beyond,
}

/// One Service.
pub(crate) struct Case {
    pub(crate) cloud: &'static str,
    pub(crate) verdict: Verdict,
    /// What a complaint must contain.
    pub(crate) names: &'static str,
    pub(crate) service: Value,
}

pub(crate) fn all() -> Vec<Case> {
    let (mut all, mut cloud, mut prefix) = (Vec::new(), "", "");
    for line in include_str!("cases.txt").lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match first {
            "" | "#" => {}
            "=" => (cloud, prefix) = rest.split_once(' ').unwrap_or((rest, "")),
            "+" => {
                let (cloud, rest) = rest.split_once(' ').unwrap();
                let (verdict, rest) = rest.split_once(' ').unwrap();
                let (patch, names) = rest.rsplit_once(" |").unwrap();
                let mut service = service(&[]);
                json_patch::merge(&mut service, &serde_json::from_str(patch).unwrap());
                all.push(Case {
                    cloud,
                    verdict: self::verdict(verdict),
                    names: names.trim(),
                    service,
                });
            }
            first => {
                let (key, value) = rest.split_once(' ').unwrap();
                let value = match value.starts_with('"') {
                    true => serde_json::from_str(value).unwrap(),
                    false => value.to_owned(),
                };
                all.push(Case {
                    cloud,
                    verdict: verdict(first),
                    names: key,
                    service: service(&[(&format!("{prefix}{key}"), &value)]),
                });
            }
        }
    }
    all
}

fn verdict(word: &str) -> Verdict {
    match word {
        "good" => Verdict::Good,
        "caught" => Verdict::Caught,
        "early" => Verdict::CaughtBeforeTheCloud,
        "beyond" => Verdict::Beyond,
        other => panic!("{other} is no verdict"),
    }
}
