//! The rooms inside of a provider: the same in every cloud, and who may look into which. And in every other crate: no files that
//! look into each other.
//!
//! A room is a module; its files are its own. What counts is the text `crate::` or `super::` with what follows it: imports are
//! written so. A module that names its parent's types does not make a circle. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Who never looks into what: modules of a provider, from its root.
const NEVER: &[(&str, &[&str])] = &[
    ("config", &["nodes", "routes", "load_balancer", "provider"]),
    ("messages", &["nodes", "routes", "load_balancer", "provider"]),
    ("nodes", &["routes", "load_balancer", "provider"]),
    ("routes", &["load_balancer", "provider"]),
    ("load_balancer", &["routes", "provider"]),
    (
        "load_balancer::intent",
        &[
            "load_balancer::observe",
            "load_balancer::evidence",
            "load_balancer::plan",
            "load_balancer::apply",
        ],
    ),
    (
        "load_balancer::step",
        &["load_balancer::plan", "load_balancer::apply"],
    ),
    (
        "load_balancer::observe",
        &["load_balancer::plan", "load_balancer::apply"],
    ),
    (
        "load_balancer::evidence",
        &["load_balancer::plan", "load_balancer::apply"],
    ),
    ("load_balancer::plan", &["load_balancer::apply"]),
];

/// What each provider with balancers has, so that who knows one knows all.
const ROOMS: &[&str] = &[
    "config",
    "nodes",
    "messages",
    "load_balancer",
    "load_balancer::intent",
    "load_balancer::observe",
    "load_balancer::evidence",
    "load_balancer::plan",
    "load_balancer::step",
    "load_balancer::apply",
];

/// The providers in these folders: each is looked at by itself.
///
/// # Errors
///
/// When a source cannot be read.
pub(super) fn faults(root: &Path, providers: &[&str]) -> Result<Vec<String>> {
    told(root, providers, of_sources)
}

/// The circles of files in other crates, each looked at by itself.
///
/// # Errors
///
/// When a source cannot be read.
pub(super) fn circles_of(root: &Path, folders: &[&str]) -> Result<Vec<String>> {
    told(root, folders, |sources| circles(&looks(sources)))
}

fn told(
    root: &Path,
    folders: &[&str],
    found: fn(&BTreeMap<String, String>) -> Vec<String>,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for folder in folders {
        let mut sources = BTreeMap::new();
        let src = root.join(folder).join("src");
        read(&src, "", &mut sources).with_context(|| format!("cannot read {}", src.display()))?;
        let found = found(&sources).into_iter();
        faults.extend(found.map(|fault| format!("{folder}: {fault}")));
    }
    Ok(faults)
}

/// The sources under this folder, by their module: `load_balancer::plan`.
fn read(folder: &Path, module: &str, sources: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let inner = match module {
            "" => stem.clone(),
            module => format!("{module}::{stem}"),
        };
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            read(&path, &inner, sources)?;
        } else if path.extension().is_some_and(|it| it == "rs") && stem != "lib" {
            sources.insert(inner, std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn of_sources(sources: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults: Vec<String> = ROOMS
        .iter()
        .filter(|room| !sources.contains_key(**room))
        .map(|room| format!("has no room `{room}`"))
        .collect();
    let looks = looks(sources);
    for (module, into) in &looks {
        for (room, never) in NEVER.iter().filter(|(room, _)| is_within(module, room)) {
            let seen = |it: &&&str| never.iter().any(|no| is_within(it, no)) && !is_within(it, room);
            faults.extend(
                into.iter()
                    .filter(seen)
                    .map(|it| format!("`{module}` may not look into `{it}`")),
            );
        }
    }
    faults.extend(circles(&looks));
    faults
}

/// What each source looks into: a module that has others within it looks into each of them.
fn looks(sources: &BTreeMap<String, String>) -> BTreeMap<&str, BTreeSet<&str>> {
    let looks = sources.iter();
    let mut looks: BTreeMap<&str, BTreeSet<&str>> = looks
        .map(|(module, text)| (module.as_str(), looked_into(module, text, sources)))
        .collect();
    for module in sources.keys() {
        let parent = module.rsplit_once("::").map(|(parent, _)| parent);
        if let Some(inner) = parent.and_then(|it| looks.get_mut(it)) {
            inner.insert(module);
        }
    }
    looks
}

fn is_within(module: &str, room: &str) -> bool {
    module
        .strip_prefix(room)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The other modules that a source names, but for those that it is in.
fn looked_into<'a>(module: &str, text: &str, sources: &'a BTreeMap<String, String>) -> BTreeSet<&'a str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(str::trim);
    let code: String = lines.filter(|line| !line.starts_with("//")).collect();
    let known = |path: String| {
        let mut path = path.as_str();
        loop {
            if let Some((known, _)) = sources.get_key_value(path.trim_end_matches(':')) {
                return Some(known.as_str());
            }
            path = path.rsplit_once("::")?.0;
        }
    };
    let from_root = code.split("crate::").skip(1).flat_map(paths);
    let paths = from_root.chain(paths_from_parents(module, &code));
    paths
        .filter_map(known)
        .filter(|other| !is_within(module, other))
        .collect()
}

/// What a source names by `super::`, from the root.
fn paths_from_parents(module: &str, code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut parent = Some(module);
    for text in code.split("super::").skip(1) {
        parent = parent
            .and_then(|it| it.rsplit_once("::"))
            .map(|(parent, _)| parent);
        if text.is_empty() {
            continue; // another `super::` follows
        }
        let prefix = parent.map_or_else(String::new, |parent| format!("{parent}::"));
        found.extend(paths(text).iter().map(|path| format!("{prefix}{path}")));
        parent = Some(module);
    }
    found
}

/// The paths that a text begins with: `a::{b, c::D}` is `a::b` and `a::c::D`.
fn paths(text: &str) -> Vec<String> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ':';
    let (head, rest) = text.split_at(text.find(|it| !is_name(it)).unwrap_or(text.len()));
    let Some(group) = rest
        .strip_prefix('{')
        .filter(|_| head.is_empty() || head.ends_with("::"))
    else {
        return vec![head.to_owned()];
    };
    let depths = group.chars().scan(1, |depth, it| {
        *depth += i32::from(it == '{') - i32::from(it == '}');
        Some(*depth)
    });
    let (mut items, mut item) = (Vec::new(), String::new());
    for (it, depth) in group.chars().zip(depths).take_while(|(_, depth)| *depth > 0) {
        match it {
            ',' if depth == 1 => items.push(std::mem::take(&mut item)),
            it => item.push(it),
        }
    }
    items.push(item);
    let all = items.iter().flat_map(|item| paths(item.trim()));
    all.map(|path| format!("{head}{path}")).collect()
}

/// The circles, each named by its modules; what is on more than one is named once.
fn circles(looks: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let reached = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&str> = looks.get(from).into_iter().flatten().copied().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(looks.get(module).into_iter().flatten());
            }
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> = looks.keys().map(|it| (*it, reached(it))).collect();
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for (module, there) in &reach {
        if !there.contains(module) || told.contains(module) {
            continue;
        }
        let all: Vec<&str> = there
            .iter()
            .filter(|it| reach.get(**it).is_some_and(|back| back.contains(module)))
            .copied()
            .collect();
        told.extend(all.iter().copied());
        circles.push(format!("a circle of files: {}", all.join(", ")));
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rooms, each empty, with these sources on top: module and text.
    fn of(sources: &[(&str, &str)]) -> Vec<String> {
        let rooms = ROOMS.iter().map(|room| (*room, ""));
        let all = rooms.chain(sources.iter().copied());
        of_sources(
            &all.map(|(module, text)| (module.to_owned(), text.to_owned()))
                .collect(),
        )
    }

    #[test]
    fn observing_never_looks_into_the_plan() {
        let found = of(&[(
            "load_balancer::observe::reads",
            "use crate::load_balancer::plan::{Wanted, parts};",
        )]);
        assert_eq!(
            found,
            ["`load_balancer::observe::reads` may not look into `load_balancer::plan`"]
        );
        assert_eq!(
            of(&[(
                "load_balancer::plan",
                "use crate::load_balancer::observe::Observed;"
            )]),
            [""; 0]
        );
    }

    #[test]
    fn files_that_look_into_each_other_are_a_circle_but_a_parent_may_be_named() {
        let found = of(&[
            ("nodes::servers", "use crate::nodes::labels::labels;"),
            ("nodes::labels", "use crate::nodes::servers::{Server};"),
            ("nodes", "use crate::nodes::servers::Servers;"),
            (
                "nodes::flavors",
                "use crate::nodes::Instance;\n// crate::load_balancer",
            ),
        ]);
        assert_eq!(found, ["a circle of files: nodes::labels, nodes::servers"]);
    }

    #[test]
    fn a_sibling_is_named_from_the_parent_too_and_among_others() {
        let found = of(&[
            (
                "nodes::servers",
                "use super::{Kind,\n    labels::{self, Label}};\nuse super::super::config::Url;",
            ),
            ("nodes::labels", "fn of(it: &super::servers::Server) {}"),
            ("nodes::flavors", "use super::servers::Server;"),
        ]);
        assert_eq!(found, ["a circle of files: nodes::labels, nodes::servers"]);
    }

    #[test]
    fn a_room_looks_into_what_is_within_it() {
        let found = of(&[
            ("nodes", ""),
            ("nodes::servers", "use crate::routes::Route;"),
            ("routes", "use crate::nodes::Node;"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], "a circle of files: nodes, nodes::servers, routes");
    }

    #[test]
    fn a_provider_has_every_room() {
        assert_eq!(of_sources(&BTreeMap::new()).len(), ROOMS.len());
    }
}
