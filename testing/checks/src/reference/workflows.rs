//! The workflows of GitHub: what they run that others wrote.

use crate::reference::documents::files;
use crate::root;

/// What is wrong with the actions that a workflow uses: each has to be named by its commit, because a tag can be moved,
/// with the tag behind it for people.
fn unpinned(workflow: &str) -> Vec<&str> {
    let lines = workflow.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("- ").unwrap_or(line).strip_prefix("uses: ")
    });
    let is_pinned = |action: &&str| {
        let Some((_, version)) = action.split_once('@') else {
            return action.starts_with("./");
        };
        let (commit, tag) = version.split_once(" # v").unwrap_or((version, ""));
        commit.len() == 40 && commit.bytes().all(|it| it.is_ascii_hexdigit()) && !tag.is_empty()
    };
    lines.filter(|action| !is_pinned(action)).collect()
}

#[test]
fn every_action_is_pinned_by_its_commit() {
    let workflows = files(&root().join(".github/workflows"), &["yml", "yaml"]);
    assert!(workflows.len() > 3, "{workflows:?}");
    for path in workflows {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            unpinned(&text).is_empty(),
            "{}: {:?}",
            path.display(),
            unpinned(&text)
        );
    }
}

#[test]
fn a_tag_alone_is_no_pin() {
    let commit = "11bd71901bbe5b1630ceea73d27597364c9af683";
    let text = format!(
        "steps:\n  - uses: a/b@{commit} # v4.2.2\n  - uses: ./local\n  - name: x\n    uses: a/b@v4\n  - uses: a/b@{commit}\n"
    );
    assert_eq!(unpinned(&text), ["a/b@v4", &format!("a/b@{commit}")]);
}
