//! phoenixNAP: what ends a start, and how it says so.

use super::program::run_as;

const SECRET: &str = "hunter2-Vq81";

/// The cluster is looked for before the provider, the clients of the secure port after it.
const CLUSTER: [&str; 2] = [
    "--master=http://127.0.0.1:9",
    "--authentication-kubeconfig=/nonexistent/kubeconfig",
];

/// Runs the program with a file; its exit status and everything that it printed.
fn start(file: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloud-sa.json");
    std::fs::write(&path, file).unwrap();
    let config = format!("--cloud-config={}", path.display());
    let flags = [CLUSTER[0], CLUSTER[1], "--cloud-provider=PhoenixNAP", &config];
    let output = run_as("cloud-provider-phoenixnap", &flags, variables);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    (output.status.code(), text)
}

fn file(more: &str) -> String {
    format!("{{\"clientID\": \"id\", \"clientSecret\": \"{SECRET}\"{more}}}")
}

#[test]
fn what_cannot_be_used_ends_the_start_and_is_named_without_the_secret() {
    for (file, variables, words) in [
        (file(",,"), &[][..], &["cloud-sa.json", "line 1 column"][..]),
        (
            file(""),
            &[("PNAP_API_SERVER_PORT", "many")],
            &["PNAP_API_SERVER_PORT", "many"],
        ),
        ("{}".to_owned(), &[], &["PNAP_CLIENT_ID", "clientID"]),
    ] {
        let (code, text) = start(&file, variables);
        assert!(code.is_some_and(|code| code != 0), "{text}");
        for word in words {
            assert!(text.contains(word), "{word} is missing: {text}");
        }
    }
}

#[test]
fn the_route_loop_is_a_usage_error_and_its_absence_is_none() {
    let flags = [CLUSTER[0], CLUSTER[1], "--cloud-provider=PhoenixNAP"];
    let credentials = [("PNAP_CLIENT_ID", "id"), ("PNAP_CLIENT_SECRET", SECRET)];
    let run = |list: &str| {
        let list = format!("--controllers={list}");
        let flags = [&flags[..], &[list.as_str()]].concat();
        run_as("cloud-controller-manager", &flags, &credentials)
    };
    for list in ["route", "*,route", "node-route-controller"] {
        let output = run(list);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("\"route\" is not in the list of known controllers"),
            "{text}"
        );
    }
    for list in ["*,-route", "cloud-node,service"] {
        let text = String::from_utf8(run(list).stderr).unwrap();
        assert!(text.contains("/nonexistent/kubeconfig"), "{text}");
    }
}

// What can be used comes as far as the secure port, whose clients nobody vouches for.
#[test]
fn what_can_be_used_comes_as_far_as_the_secure_port() {
    let more =
        ",\"loadbalancer\": \"kube-vip:///6598f7c2d2a94b6e0f1c1234\", \"CLIENTid\": \"x\", \"unknown\": [1]";
    let (code, text) = start(&file(more), &[]);
    assert!(code.is_some_and(|code| code != 0), "{text}");
    assert!(text.contains("/nonexistent/kubeconfig"), "{text}");
}
