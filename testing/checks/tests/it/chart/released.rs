//! What `.github/workflows/release.yml` makes of the charts and manifests.

use std::path::Path;
use std::process::Command;

use bowline_checks::chart::{CLOUDS, Helm, root};
use serde_json::json;

use crate::chart::{container, of, release, rendered_as};

const NAME: &str = "registry.example/owner/bowline";
const DIGEST: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files of a release in this folder, with the image named.
fn name_image(folder: &Path) {
    std::fs::create_dir(folder.join(".github")).unwrap();
    for path in ["deploy", ".github/name-image"] {
        let (from, to) = (root().join(path), folder.join(path));
        run(Command::new("cp").arg("-r").args([from, to]));
    }
    run(Command::new(folder.join(".github/name-image")).args([NAME, "v9.8.7", DIGEST]));
}

#[test]
fn charts_and_manifests_of_a_release_name_the_image_that_it_signs() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    name_image(folder.path());
    let expected = format!("{NAME}:v9.8.7@{DIGEST}");

    let chart = folder.path().join("deploy/chart");
    let image = |values| container(&rendered_as(&helm, release(&chart), &values))["image"].clone();
    for cloud in CLOUDS {
        assert_eq!(image(of(cloud, json!({}))), expected, "{cloud}");
    }
    let other = DIGEST.replace("00", "11");
    for (values, expected) in [
        (json!({ "tag": "v1" }), format!("{NAME}:v1")),
        (json!({ "digest": other }), format!("{NAME}:v9.8.7@{other}")),
    ] {
        assert_eq!(image(of("cloudscale", json!({ "image": values }))), expected);
    }
    let former = folder.path().join("deploy/phoenixnap/chart");
    let values = json!({ "config": { "clientID": "id", "clientSecret": "secret" } });
    let objects = rendered_as(&helm, release(&former), &values);
    assert_eq!(container(&objects)["image"], expected);

    let manifests = run(Command::new("grep")
        .args(["-rhE", "^ *(- )?image: "])
        .arg(folder.path().join("deploy"))
        .args([
            "--include=*.yml",
            "--include=*.yaml",
            "--exclude-dir=templates",
            "--exclude-dir=examples",
        ]));
    assert!(manifests.lines().count() >= CLOUDS.len(), "{manifests}");
    for line in manifests.lines() {
        assert!(line.ends_with(&format!("image: {expected}")), "{line}");
    }
}

#[test]
fn the_image_is_named_before_a_chart_is_packed() {
    let workflow = std::fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
    let named = workflow.find(".github/name-image").unwrap();
    for after in ["helm package", "tar -czf"] {
        assert!(named < workflow.find(after).unwrap(), "{after}");
    }
}
