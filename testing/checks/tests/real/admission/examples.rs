//! Every Service in the manuals and among the examples is accepted without a word.

use std::path::Path;

use bowline_checks::chart::root;
use serde_json::Value;

use crate::admission::apiserver::ApiServer;

/// What a reader puts in the place of these words.
const OWN: &[(&str, &str)] = &[
    ("YOUR_ADDRESS", "203.0.113.7"),
    (
        "YOUR_CONTAINER_REF",
        "https://kms.cloud.example/v1/containers/2db69ba3-1864-4608-853a-0771b6885a3a",
    ),
    ("YOUR_FLOATING_IP", "203.0.113.7"),
    ("YOUR_LOAD_BALANCER_ID", "2db69ba3-1864-4608-853a-0771b6885a3a"),
    ("YOUR_SUBNET_UUID", "2db69ba3-1864-4608-853a-0771b6885a3a"),
];

/// The YAML and JSON objects of a file: all of it, or the blocks of a page.
fn objects(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let text = OWN.iter().fold(text, |text, (word, own)| text.replace(word, own));
    let blocks: Vec<String> = if path.extension().is_some_and(|it| it == "md") {
        let parts = text.split("\n```").skip(1).step_by(2);
        parts
            .filter_map(|part| part.split_once('\n'))
            .map(|(_, block)| block.to_owned())
            .collect()
    } else {
        vec![text]
    };
    let mut found = Vec::new();
    for block in blocks.iter().filter(|block| block.contains("kind: Service")) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(block).unwrap_or_default();
        found.extend(documents.into_iter().filter(|it| it["kind"] == "Service"));
    }
    found
}

fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn every_example_is_accepted_without_a_word() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    let root = root();
    let mut seen = 0;
    for cloud in ["cloudscale", "phoenixnap", "cloudstack", "openstack"] {
        let mut paths = vec![root.join(format!("docs/clouds/{cloud}.md"))];
        for page in [
            format!("docs/guides/migrate-{cloud}.md"),
            "docs/tutorials/first-service.md".to_owned(),
        ] {
            paths.push(root.join(page));
        }
        files(&root.join(format!("deploy/{cloud}/examples")), &mut paths);
        for path in paths {
            for mut service in objects(&path) {
                service["metadata"].as_object_mut().unwrap().remove("namespace");
                seen += 1;
                let answer = server.create(cloud, &service).await;
                assert!(
                    answer.status < 300 && answer.warnings.is_empty(),
                    "{}: {answer:?}",
                    path.display()
                );
            }
        }
    }
    assert!(seen >= 36, "only {seen} examples were found");
}
