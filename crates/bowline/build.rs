//! Which commit the program is built from: what the build says (`BOWLINE_GIT_COMMIT`), else what git says. A build for tests does not
//! ask, or every commit would build it anew.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=BOWLINE_GIT_COMMIT");
    let told = std::env::var("BOWLINE_GIT_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let is_for_tests = std::env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let commit = told.or_else(|| if is_for_tests { None } else { of_checkout() });
    println!(
        "cargo:rustc-env=BOWLINE_COMMIT={}",
        commit.as_deref().unwrap_or("unknown")
    );
}

/// The commit that is checked out, if this is a checkout and there is a git.
fn of_checkout() -> Option<String> {
    for file in ["HEAD", "logs/HEAD"] {
        println!(
            "cargo:rerun-if-changed={}",
            git(&["rev-parse", "--git-path", file])?
        );
    }
    git(&["rev-parse", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
