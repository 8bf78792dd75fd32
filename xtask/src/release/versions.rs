//! Where the version is written, apart from the manifest of the workspace.

use anyhow::{Result, bail, ensure};

/// Fails unless the changelog has a section of this version, dated, with something in it.
pub(super) fn changelog_entry(changelog: &str, version: &str) -> Result<()> {
    let mut lines = changelog.lines();
    let Some(heading) = lines.find(|line| heading_version(line) == Some(version)) else {
        bail!("CHANGELOG.md has no section `## {version}`");
    };
    ensure!(has_date(heading), "the heading {heading:?} has no date");
    let body = lines.take_while(|line| !line.starts_with("## "));
    let entries = body.filter(|line| line.trim_start().starts_with("- ")).count();
    ensure!(entries > 0, "the section of {version} in CHANGELOG.md is empty");
    Ok(())
}

/// The version in `## 1.2.3 (2026-01-31)` or `## [1.2.3] - 2026-01-31`.
fn heading_version(line: &str) -> Option<&str> {
    let word = line.strip_prefix("## ")?.split_whitespace().next()?;
    Some(word.trim_matches(['[', ']']))
}

fn has_date(heading: &str) -> bool {
    let is_date = |word: &str| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.len() == 3
            && parts
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    heading
        .split_whitespace()
        .any(|word| is_date(word.trim_matches(['(', ')'])))
}

/// The images of ours that a manifest names.
pub(super) fn our_images(manifest: &str) -> impl Iterator<Item = &str> {
    let value = |line| str::trim_start_matches(str::trim(line), "- ").strip_prefix("image:");
    manifest
        .lines()
        .filter_map(value)
        .map(|image| {
            image
                .split(" #")
                .next()
                .unwrap_or(image)
                .trim()
                .trim_matches(['"', '\''])
        })
        .filter(|image| repository(image).rsplit('/').next() == Some("bowline"))
}

/// Whether an image has the version as its tag, with or without the `v`.
pub(super) fn has_tag(image: &str, version: &str) -> bool {
    let tag = image
        .strip_prefix(repository(image))
        .and_then(|rest| rest.strip_prefix(':'));
    tag.is_some_and(|tag| tag.strip_prefix('v').unwrap_or(tag) == version)
}

/// The image without tag and digest. A colon before the last slash belongs to a port.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    let name = image.rfind('/').map_or(0, |slash| slash + 1);
    image[name..]
        .find(':')
        .map_or(image, |colon| &image[..name + colon])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_section_with_an_entry_is_enough() {
        for heading in ["## 1.2.3 (2026-01-31)", "## [1.2.3] - 2026-01-31"] {
            let text =
                format!("# Changelog\n\n{heading}\n\n### Added\n\n- A thing.\n\n## 1.2.2 (2026-01-01)\n");
            changelog_entry(&text, "1.2.3").unwrap();
        }
    }

    #[test]
    fn an_entry_of_another_version_does_not_count() {
        let text = "## 1.2.3 (2026-01-31)\n\n## 1.2.2 (2026-01-01)\n\n- A thing.\n";
        assert!(
            changelog_entry(text, "1.2.3")
                .unwrap_err()
                .to_string()
                .contains("empty")
        );
        assert!(
            changelog_entry(text, "1.2.4")
                .unwrap_err()
                .to_string()
                .contains("no section")
        );
    }

    #[test]
    fn a_section_that_is_not_dated_is_not_ready() {
        let error = changelog_entry("## 1.2.3 unreleased\n\n- A thing.\n", "1.2.3").unwrap_err();
        assert!(error.to_string().contains("no date"), "{error}");
    }

    #[test]
    fn only_our_images_are_looked_at() {
        let manifest = "
            containers:
            - image: registry.example:5000/project/bowline:v1.2.3 # ours
            - name: other
              image: 'example/proxy:2'
            - image: \"example/bowline@sha256:00\"
        ";
        let images: Vec<&str> = our_images(manifest).collect();
        assert_eq!(
            images,
            [
                "registry.example:5000/project/bowline:v1.2.3",
                "example/bowline@sha256:00"
            ]
        );
        assert!(has_tag(images[0], "1.2.3"));
        assert!(!has_tag(images[0], "1.2.4"));
        assert!(!has_tag(images[1], "1.2.3"));
    }
}
