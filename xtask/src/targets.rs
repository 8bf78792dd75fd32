//! What is compiled for tests has tests.
//!
//! Cargo compiles a library or a program a second time for the tests in it: also where there are none. So the manifest of
//! what has no tests says `test = false`, and [`check`] holds that it says so there and nowhere else: no test is lost, and no
//! time.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// What stands behind the marks of a block that rustdoc does not compile.
const OTHER_LANGUAGES: [&str; 6] = ["console", "ignore", "json", "text", "toml", "yaml"];

/// Reads the sources of all libraries and programs and prints each whose manifest does not fit.
///
/// # Errors
///
/// When cargo cannot describe the workspace, a source cannot be read, or a manifest does not fit.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let metadata = workspace.metadata()?;
    let mut faults = Vec::new();
    let mut count = 0;
    for package in metadata.workspace_packages() {
        for target in package.targets.iter().filter(|it| it.is_lib() || it.is_bin()) {
            count += 1;
            let table = if target.is_lib() { "[lib]" } else { "[[bin]]" };
            let sources = sources(target.src_path.as_std_path())?;
            faults.extend(fault(
                &format!("{table} of {}", package.name),
                target.test,
                &sources,
            ));
        }
    }
    for fault in &faults {
        eprintln!("{fault}");
    }
    if !faults.is_empty() {
        bail!("{} manifests do not fit their sources", faults.len());
    }
    println!("targets: of {count} libraries and programs, those that have tests are compiled for tests");
    Ok(())
}

/// The packages whose library has doc tests. For each that `cargo test --doc` is told of, rustdoc reads the whole library,
/// whether there are any or not.
///
/// # Errors
///
/// When cargo cannot describe the workspace, or a source cannot be read.
pub(crate) fn with_doc_tests(workspace: &Workspace) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in workspace.metadata()?.workspace_packages() {
        for library in package.targets.iter().filter(|it| it.is_lib()) {
            let sources = sources(library.src_path.as_std_path())?;
            if sources.iter().any(|it| has_doc_test(&it.text)) {
                found.push(package.name.to_string());
            }
        }
    }
    Ok(found)
}

/// One file of a library or program.
struct Source {
    path: PathBuf,
    text: String,
}

/// What is wrong with the setting `test`, if something is.
fn fault(name: &str, is_on: bool, sources: &[Source]) -> Option<String> {
    let found = sources
        .iter()
        .find_map(|it| Some((it.path.display(), first_test(&it.text)?)));
    match (found, is_on) {
        (Some((path, line)), false) => Some(format!(
            "{name} says `test = false`, so nothing runs the test at {path}:{line}; take the setting out"
        )),
        (None, true) => Some(format!(
            "{name} has no tests and is compiled for them; say `test = false` there"
        )),
        _ => None,
    }
}

/// The file and those of all modules in it.
fn sources(root: &Path) -> Result<Vec<Source>> {
    // The modules of a `lib.rs`, `main.rs` or other root are beside it, those of `a.rs` in `a/`.
    let mut left = vec![(root.to_path_buf(), root.with_file_name(""))];
    let mut found = Vec::new();
    while let Some((path, folder)) = left.pop() {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for module in modules(&text) {
            let inner = folder.join(module);
            let flat = inner.with_extension("rs");
            let path = if flat.is_file() {
                flat
            } else {
                inner.join("mod.rs")
            };
            left.push((path, inner));
        }
        found.push(Source { path, text });
    }
    Ok(found)
}

/// The names of the modules that are in files of their own.
fn modules(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (before, name) = line.trim().strip_suffix(';')?.rsplit_once(' ')?;
        let is_module = before == "mod" || (before.starts_with("pub") && before.ends_with(" mod"));
        is_module.then_some(name)
    })
}

/// The line, from 1 on, of the first test, or of what is compiled for tests only.
fn first_test(text: &str) -> Option<usize> {
    let is_test = |line: &str| {
        let attribute = line.strip_prefix("#[").map(|rest| {
            let end = rest.find(|it: char| !(it.is_alphanumeric() || "_:".contains(it)));
            &rest[..end.unwrap_or(rest.len())]
        });
        attribute.is_some_and(|it| it == "test" || it.ends_with("::test"))
            || line.starts_with("#[cfg(test)]")
            || line.contains("proptest!")
    };
    Some(text.lines().position(|line| is_test(line.trim_start()))? + 1)
}

/// Whether rustdoc may find an example to compile: a block that is not said to be in another language, or an indented one.
fn has_doc_test(text: &str) -> bool {
    let mut is_open = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let Some(told) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_open = false;
            return line.contains("doc = include_str!");
        };
        let Some(language) = told.trim_start().strip_prefix("```") else {
            return !is_open && told.starts_with("     ") && !told.trim().is_empty();
        };
        is_open = !is_open;
        is_open && !OTHER_LANGUAGES.contains(&language.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(setting: bool, text: &str) -> Option<String> {
        let source = Source {
            path: "src/lib.rs".into(),
            text: text.to_owned(),
        };
        fault("[lib] of it", setting, &[source])
    }

    #[test]
    fn a_manifest_that_loses_a_test_is_a_fault() {
        let found = faults(false, "\n#[test]\nfn it() {}");
        assert!(
            found.unwrap().contains("nothing runs the test at src/lib.rs:2"),
            "not named"
        );
        assert_eq!(faults(true, "#[test]\nfn it() {}"), None);
    }

    #[test]
    fn to_be_compiled_for_no_tests_is_a_fault() {
        assert!(faults(true, "fn it() {}").is_some());
        assert_eq!(faults(false, "fn it() {}"), None);
    }

    #[test]
    fn every_module_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("lib.rs", "mod a;\npub(crate) mod b;\nmod inline {}\n");
        write("a.rs", "mod deep;");
        write("a/deep.rs", "");
        write("b/mod.rs", "");
        write("stranger.rs", "");
        let read = sources(&directory.path().join("lib.rs")).unwrap();
        let mut names: Vec<_> = read
            .iter()
            .map(|it| {
                let path = it.path.strip_prefix(directory.path()).unwrap();
                path.display().to_string()
            })
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["a.rs", "a/deep.rs", "b/mod.rs", "lib.rs"]);
        // A form of `mod` that is not understood here must not hide tests.
        write("lib.rs", "mod elsewhere;");
        assert!(sources(&directory.path().join("lib.rs")).is_err());
    }

    #[test]
    fn examples_are_seen_and_what_is_in_another_language_is_none() {
        for text in [
            "/// ```\n/// it();\n/// ```",
            "    //! ```no_run\n    //! it();",
            "/// ```text\n/// a\n/// ```\n/// b\n/// ```rust\n/// it();\n/// ```",
            "/// So:\n///\n///     it();",
            "#![doc = include_str!(\"README.md\")]",
        ] {
            assert!(has_doc_test(text), "{text}");
        }
        for text in [
            "/// ```text\n///     a -> b\n/// ```\nfn it() {}",
            "/// Words.\n///\n/// - a list\n///   of things",
            "// ```\n// it();\n// ```",
        ] {
            assert!(!has_doc_test(text), "{text}");
        }
    }

    #[test]
    fn all_kinds_of_tests_are_seen() {
        for line in [
            "#[test]",
            "    #[tokio::test]",
            "#[tokio::test(start_paused = true)]",
            "proptest! {",
            "proptest::proptest! {",
            "#[cfg(test)]",
        ] {
            assert_eq!(first_test(&format!("fn it() {{}}\n{line}\n")), Some(2), "{line}");
        }
        for line in ["// #[test]", "#[tested]", "let test = 1;", "#[cfg(unix)]"] {
            assert_eq!(first_test(line), None, "{line}");
        }
    }
}
