//! The pages for people: where they are, what they link to, and that each link leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::root;

/// A page, with its path relative to the root.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// All files with one of these endings in a folder and below, in order.
pub(crate) fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in entries(folder) {
        if entry.is_dir() {
            found.extend(files(&entry, endings));
        } else if entry
            .extension()
            .is_some_and(|it| endings.iter().any(|ending| it == *ending))
        {
            found.push(entry);
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut entries: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    entries.sort();
    entries
}

/// The folders and files of the repository without what is built, cached or kept by git.
pub(crate) fn checked_in(endings: &[&str]) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name != "target" && (!name.starts_with('.') || name == ".github")
    };
    let (folders, top): (Vec<_>, Vec<_>) = entries(&root())
        .into_iter()
        .filter(is_ours)
        .partition(|path| path.is_dir());
    let has_ending = |path: &PathBuf| {
        let ending = path.extension();
        ending.is_some_and(|it| endings.iter().any(|ending| it == *ending))
    };
    let top = top.into_iter().filter(has_ending);
    top.chain(folders.iter().flat_map(|folder| files(folder, endings)))
        .collect()
}

/// All pages of the repository.
pub(crate) fn documents() -> Vec<Document> {
    let root = root();
    let read = |path: PathBuf| Document {
        text: std::fs::read_to_string(&path).unwrap_or_default(),
        path: path.strip_prefix(&root).unwrap_or(&path).to_owned(),
    };
    let all: Vec<Document> = checked_in(&["md"]).into_iter().map(read).collect();
    assert!(all.len() > 40, "only {} pages were found", all.len());
    all
}

/// The lines of a page that are no code.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fence: Option<&str> = None;
    text.lines().filter(move |line| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                false
            }
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                false
            }
            (open, _) => open.is_none(),
        }
    })
}

/// A line without what stands in backticks.
pub(crate) fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Where the links of a page lead, the ones to other hosts left out.
fn links(text: &str) -> Vec<String> {
    let text: String = prose(text)
        .map(without_code)
        .flat_map(|line| [line, "\n".to_owned()])
        .collect();
    let inline = text
        .match_indices("](")
        .map(|(at, _)| text[at + 2..].split([')', ' ', '\n']).next().unwrap_or_default());
    // [name]: target
    let named = text.lines().filter_map(|line| {
        let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
        (!name.contains(']')).then(|| target.split(' ').next().unwrap_or_default())
    });
    let all = inline.chain(named);
    all.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

/// What links say to lead to the headings of a page. The second heading of a name has `-1` at its end, and so on.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for heading in prose(text).filter(|line| is_heading(line)) {
        let anchor = anchor(heading);
        let times = seen.entry(anchor.clone()).or_default();
        found.insert(match *times {
            0 => anchor,
            times => format!("{anchor}-{times}"),
        });
        *times += 1;
    }
    found
}

fn is_heading(line: &str) -> bool {
    line.trim_start_matches('#').starts_with(' ') && line.starts_with('#')
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// A path without `.` and `..`.
fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                straight.pop();
            }
            Component::CurDir => {}
            other => straight.push(other),
        }
    }
    straight
}

/// The file that a link of a page leads to, relative to the root, and the heading in it.
fn target<'a>(page: &Path, link: &'a str) -> (PathBuf, Option<&'a str>) {
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (link, None),
    };
    let folder = page.parent().unwrap_or(Path::new(""));
    let file = if file.is_empty() {
        page.to_owned()
    } else {
        straight(&folder.join(file))
    };
    (file, heading)
}

/// Why a file, or a heading in it, cannot be opened.
fn missing(file: &Path, heading: Option<&str>) -> Option<&'static str> {
    let path = root().join(file);
    if !path.exists() {
        return Some("no such file");
    }
    let heading = heading?;
    let page = std::fs::read_to_string(path).unwrap_or_default();
    (!anchors(&page).contains(heading)).then_some("no such heading")
}

/// The pages that a text names by their path from the root, each with the heading if there is one.
pub(crate) fn named_pages(text: &str) -> Vec<(&str, Option<&str>)> {
    let goes_on = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '/' | '_');
    let begins = |at: usize| text[..at].chars().next_back().is_none_or(|it| !goes_on(it));
    let all = text.match_indices("docs/").filter(|(at, _)| begins(*at));
    all.filter_map(|(at, _)| {
        let tail = &text[at..];
        let length = tail.find(|it| !goes_on(it)).unwrap_or(tail.len());
        let path = tail[..length].trim_end_matches('.');
        let heading = tail[length..].strip_prefix('#').map(|heading| {
            let length = heading.find(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '-' | '_'));
            &heading[..length.unwrap_or(heading.len())]
        });
        path.ends_with(".md").then_some((path, heading))
    })
    .collect()
}

fn assert_none(missing: &[String]) {
    assert!(missing.is_empty(), "these lead nowhere:\n{}", missing.join("\n"));
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut wrong = Vec::new();
    for page in documents() {
        for link in links(&page.text) {
            let (file, heading) = target(&page.path, &link);
            if let Some(why) = missing(&file, heading) {
                wrong.push(format!("{}: {link}: {why}", page.path.display()));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn every_page_is_reached_from_the_map() {
    let pages: BTreeMap<PathBuf, String> = documents().into_iter().map(|it| (it.path, it.text)).collect();
    let mut reached = BTreeSet::new();
    let mut next = vec![PathBuf::from("docs/README.md")];
    while let Some(page) = next.pop() {
        let Some(text) = pages.get(&page) else { continue };
        if reached.insert(page.clone()) {
            next.extend(links(text).iter().map(|link| target(&page, link).0));
        }
    }
    let lost: Vec<String> = pages
        .keys()
        .filter(|page| page.starts_with("docs") && !reached.contains(*page))
        .map(|page| page.display().to_string())
        .collect();
    assert!(lost.is_empty(), "no link leads to {}", lost.join(", "));
}

#[test]
fn every_page_that_a_source_a_manifest_or_a_workflow_names_is_there() {
    let mut wrong = Vec::new();
    for path in checked_in(&["rs", "toml", "yaml", "yml", "tpl", "txt", "json", "go"]) {
        // The examples of this file lead nowhere on purpose.
        if path.ends_with("documents.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for (page, heading) in named_pages(&text) {
            if let Some(why) = missing(Path::new(page), heading) {
                wrong.push(format!("{}: {page}: {why}", path.display()));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn a_page_without_its_heading_and_a_link_in_code_are_told_apart() {
    let page = "# A page\n\n```console\n# no heading, and [no](link.md)\n```\n\n\
                See [there](other.md#part), `[not](this.md)`, ![picture](a.png \"title\") and [out](https://example.org).\n\n\
                ## Part `one`\n\n## Part one\n\n[name]: third.md\n";
    assert_eq!(links(page), ["other.md#part", "a.png", "third.md"]);
    assert_eq!(
        anchors(page).into_iter().collect::<Vec<_>>(),
        ["a-page", "part-one", "part-one-1"]
    );
    let (file, heading) = target(Path::new("docs/guides/a.md"), "../clouds/b.md#part");
    assert_eq!(
        (file.as_path(), heading),
        (Path::new("docs/clouds/b.md"), Some("part"))
    );
    assert_eq!(target(Path::new("docs/a.md"), "#part").0, Path::new("docs/a.md"));
    assert_eq!(
        named_pages("see docs/guides/plan.md#exit-status, and `docs/clouds/`; not docs/a.rs"),
        [("docs/guides/plan.md", Some("exit-status"))]
    );
    assert_eq!(missing(Path::new("README.md"), None), None);
    assert_eq!(missing(Path::new("docs/none.md"), None), Some("no such file"));
    assert_eq!(
        missing(Path::new("README.md"), Some("none")),
        Some("no such heading")
    );
}

/// The blocks of YAML of a page.
fn blocks_of_yaml(text: &str) -> impl Iterator<Item = String> + use<'_> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        let fence = lines.find(|line| line.trim_start() == "```yaml")?;
        let indent = fence.len() - fence.trim_start().len();
        let block = lines.by_ref().take_while(|line| line.trim_start() != "```");
        Some(
            block
                .map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n")
                .collect(),
        )
    })
}

#[test]
fn every_block_of_yaml_in_a_page_can_be_read() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in documents() {
        for block in blocks_of_yaml(&page.text) {
            count += 1;
            if let Err(error) = serde_saphyr::from_multiple::<serde_json::Value>(&block) {
                wrong.push(format!("{}: {error}\n{block}", page.path.display()));
            }
        }
    }
    assert!(count > 20, "{count}");
    assert_none(&wrong);
}

/// The recipes of each tool give the kubelet its flag, in the form of that tool.
#[test]
fn every_recipe_to_bootstrap_switches_the_external_cloud_on() {
    let text = std::fs::read_to_string(root().join("docs/guides/bootstrap.md")).unwrap_or_default();
    let parsed = blocks_of_yaml(&text)
        .flat_map(|block| serde_saphyr::from_multiple::<serde_json::Value>(&block).unwrap_or_default());
    let flag = serde_json::json!([{ "name": "cloud-provider", "value": "external" }]);
    let is_one = |it: &serde_json::Value| {
        let node = it.pointer("/nodeRegistration/kubeletExtraArgs");
        let machine = it.pointer("/spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs");
        let has_argument = node.or(machine).is_some_and(|it| *it == flag);
        let k3s = it
            .pointer("/kubelet-arg/0")
            .is_some_and(|it| it == "cloud-provider=external");
        let rke2 = it.get("cloud-provider-name").is_some_and(|it| it == "external");
        let talos = it
            .pointer("/cluster/externalCloudProvider/enabled")
            .is_some_and(|it| it == true);
        has_argument || k3s || rke2 || talos
    };
    let all: Vec<serde_json::Value> = parsed.collect();
    let without: Vec<&serde_json::Value> = all.iter().filter(|it| !is_one(it)).collect();
    assert!(all.len() >= 9 && without.is_empty(), "{without:?}");
}

#[test]
fn every_check_of_the_doctor_is_on_its_page() {
    let page = std::fs::read_to_string(root().join("docs/guides/doctor.md")).unwrap_or_default();
    let topics = bowline::commands::DOCTOR_TOPICS
        .iter()
        .chain(bowline_manager::doctor::TOPICS);
    let missing = topics.filter(|topic| !page.contains(topic.name));
    assert_none(&missing.map(|topic| topic.name.to_owned()).collect::<Vec<_>>());
}

#[test]
fn every_cause_of_explain_is_on_its_page() {
    let page = std::fs::read_to_string(root().join("docs/guides/explain.md")).unwrap_or_default();
    let rows = bowline_manager::why::CAUSES.iter();
    let missing = rows
        .map(|(id, meaning)| format!("| `{id}` | {meaning} |"))
        .filter(|row| !page.contains(row));
    assert_none(&missing.collect::<Vec<_>>());
}

#[test]
fn every_check_of_the_trial_is_on_its_page_and_names_a_heading_of_it() {
    let page = std::fs::read_to_string(root().join("docs/guides/check-traffic.md")).unwrap_or_default();
    let anchors = anchors(&page);
    let missing = bowline_manager::traffic::TOPICS.iter().filter(|topic| {
        let row = format!("| `{}` | {} |", topic.id, topic.name);
        let anchor = topic.help.split_once('#').map(|(_, anchor)| anchor);
        !page.contains(&row) || !anchor.is_some_and(|anchor| anchors.contains(anchor))
    });
    assert_none(&missing.map(|topic| topic.name.to_owned()).collect::<Vec<_>>());
}

#[test]
fn every_path_of_where_to_change_exists() {
    let page = std::fs::read_to_string(root().join("docs/where-to-change.md")).unwrap_or_default();
    let words = page.split('`').skip(1).step_by(2);
    let folders = ["clouds/", "crates/", "deploy/", "docs/", "testing/", "xtask/"];
    let paths: Vec<&str> = words
        .filter(|word| folders.iter().any(|it| word.starts_with(it)))
        .collect();
    assert!(paths.len() > 40, "only {} paths", paths.len());
    let clouds = ["cloudscale", "cloudstack", "openstack", "phoenixnap"];
    let each = paths
        .iter()
        .flat_map(|path| clouds.map(|cloud| path.replace("CLOUD", cloud)));
    let missing = each.filter(|path| !root().join(path).exists());
    assert_none(&missing.collect::<Vec<_>>());
}

/// The paths in the tables of the architecture: one that does not begin at the root begins in the folder of the row's first.
fn paths_of_rows(page: &str) -> Vec<String> {
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && line[2..].starts_with(|it: char| it.is_ascii_digit()));
    let of_row = |row: &str| {
        let is_path = |word: &&str| word.ends_with(".rs") || word.ends_with('/');
        let words: Vec<&str> = row.split('`').skip(1).step_by(2).filter(is_path).collect();
        let first = words.first().and_then(|first| first.rsplit_once('/'));
        let folder = first.map_or("", |(folder, _)| folder).to_owned();
        let is_whole = |word: &str| word.starts_with("crates/") || word.starts_with("clouds/");
        let whole = words.iter().map(|word| match is_whole(word) {
            true => (*word).to_owned(),
            false => format!("{folder}/{word}"),
        });
        whole.collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

#[test]
fn every_path_in_the_tables_of_the_architecture_exists() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap_or_default();
    let paths = paths_of_rows(&page);
    assert!(paths.len() > 30, "only {} paths", paths.len());
    // `*` stands for a cloud: one that has the file is enough.
    let clouds = ["cloudscale", "cloudstack", "openstack", "phoenixnap"];
    let is_there = |path: &str| {
        let mut of_clouds = clouds.iter().map(|cloud| path.replace('*', cloud));
        of_clouds.any(|path| root().join(path).exists())
    };
    let missing = paths.into_iter().filter(|path| !is_there(path));
    assert_none(&missing.collect::<Vec<_>>());
}

#[test]
fn no_page_holds_a_merge_that_was_not_finished() {
    let mut wrong = Vec::new();
    for page in documents() {
        let mut rows = BTreeSet::new();
        for line in page.text.lines() {
            let is_mark = line == "=======" || ["<<<<<<< ", ">>>>>>> "].iter().any(|it| line.starts_with(it));
            // A word of the glossary is explained once, a row of any table stands once.
            let row = match page.path.ends_with("docs/glossary.md") {
                true => line.split(" | ").next().unwrap_or_default(),
                false => line,
            };
            let is_row =
                line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| word |");
            if !line.starts_with('|') {
                rows.clear();
            }
            if is_mark || (is_row && !rows.insert(row.to_owned())) {
                wrong.push(format!("{}: {line}", page.path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "these are left of a merge:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_guide_for_annotations_lists_every_file_of_its_example() {
    let spellings = [
        "timeout_member_connect_ms",
        "TIMEOUT_MEMBER_CONNECT",
        "TimeoutMemberConnectMs",
    ];
    let page = std::fs::read_to_string(root().join("docs/guides/add-an-annotation.md")).unwrap_or_default();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let listed: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    // Tests that read an answer go on without a new field; those that build a request do not compile.
    let built = [" timeout_member_connect_ms: "];
    let crates = ["client", "provider", "sim"].map(|it| root().join("clouds/cloudscale").join(it));
    let folders = crates.iter().flat_map(|folder| {
        let source = files(&folder.join("src"), &["rs"]);
        let tests = files(&folder.join("tests"), &["rs"]);
        let source = source.into_iter().map(|path| (path, spellings.as_slice()));
        source.chain(tests.into_iter().map(|path| (path, built.as_slice())))
    });
    let there: BTreeSet<String> = folders
        .filter(|(path, _)| !path.ends_with("tests.rs"))
        .filter(|(path, spellings)| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            spellings.iter().any(|spelling| text.contains(spelling))
        })
        .map(|(path, _)| path)
        .filter_map(|path| Some(path.strip_prefix(root()).ok()?.display().to_string()))
        .collect();
    assert_eq!(listed, there.iter().map(String::as_str).collect());
}

const GUIDE: &str = "docs/guides/add-an-annotation.md";

/// The files that a patch changes, each as it is then.
///
/// # Errors
///
/// If what a part of the patch expects does not stand in its file exactly once.
fn patched(patch: &str) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    for file in patch.split("--- a/").skip(1) {
        let (path, rest) = file.split_once('\n').unwrap_or_default();
        let text = std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))?;
        let mut parts = rest.split("@@\n");
        if parts.next() != Some(format!("+++ b/{path}\n").as_str()) {
            return Err(format!("{path}: no +++ with the same path"));
        }
        let text = parts.try_fold(text, |text, part| {
            let side = |without: char| -> String {
                let lines = part.lines().filter(|line| !line.starts_with(without));
                lines.map(|line| format!("{}\n", &line[1..])).collect()
            };
            match text.matches(&side('+')).count() {
                1 => Ok(text.replace(&side('+'), &side('-'))),
                count => Err(format!("{path}: {count} times there:\n{part}")),
            }
        })?;
        files.insert(path.to_owned(), text);
    }
    Ok(files)
}

/// The files of the whole change of the guide, as they are after it.
fn whole_change() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(root().join(GUIDE)).unwrap_or_default();
    let patch = page
        .split_once("```diff\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    patched(patch.expect("the guide shows the change").0).unwrap()
}

#[test]
fn the_change_of_the_guide_for_annotations_can_be_made_where_it_says() {
    let page = std::fs::read_to_string(root().join(GUIDE)).unwrap_or_default();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let listed: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    let change = whole_change();
    let mut changed: BTreeSet<&str> = change.keys().map(String::as_str).collect();
    changed.insert("clouds/cloudscale/sim/src/traffic.rs"); // the row that the guide leaves out
    assert_eq!(changed, listed);
}

#[test]
#[ignore = "compiles the crates of a cloud in a copy of the tree; the scheduled run does it"]
fn the_change_of_the_guide_for_annotations_compiles() {
    let copy = tempfile::tempdir().unwrap();
    let git = std::process::Command::new("git")
        .arg("ls-files")
        .current_dir(root())
        .output()
        .unwrap();
    let paths = String::from_utf8(git.stdout).unwrap();
    for path in paths.lines() {
        let to = copy.path().join(path);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root().join(path), to).unwrap();
    }
    for (path, text) in whole_change() {
        std::fs::write(copy.path().join(path), text).unwrap();
    }
    let mut check = std::process::Command::new(env!("CARGO"));
    check
        .args(["check", "--locked", "--all-targets"])
        .current_dir(copy.path());
    for package in [
        "bowline-cloudscale-client",
        "bowline-cloudscale-sim",
        "bowline-cloudscale",
    ] {
        check.args(["-p", package]);
    }
    let done = check
        .env("CARGO_TARGET_DIR", copy.path().join("target"))
        .status()
        .unwrap();
    assert!(done.success(), "{done}");
}
