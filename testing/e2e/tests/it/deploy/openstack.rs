//! What is shipped for OpenStack: the manifests, the Secret, and the examples.

use std::path::PathBuf;

use bowline_cloud_provider::Environment;
use bowline_openstack::Options;

use super::{container, documents, expanded, given, of, only, root, secret, understood};

fn folder() -> PathBuf {
    root().join("openstack")
}

/// It serves on the loopback interface only, where a kubelet asks on behalf of a Pod of the host's network.
#[test]
fn both_ways_to_run_it_have_one_command_line_and_are_probed_where_they_serve() {
    let (set, file) = (of("openstack"), documents(&folder().join("static-pod.yaml")));
    let of_pod = &only(&file, "Pod")["spec"]["containers"][0];
    for container in [container(&set), of_pod] {
        let options = understood(&expanded(container));
        let config = options.provider.config.as_deref();
        assert_eq!(config, Some("/etc/config/cloud.conf".as_ref()));
        assert!(options.manager.election.is_some());
        assert_eq!(
            (options.provider.name.as_str(), &container["command"]),
            ("openstack", &of_pod["command"])
        );
        let port = options.serving.unwrap().port;
        for probe in ["livenessProbe", "readinessProbe"] {
            let asked = &container[probe]["httpGet"];
            assert_eq!(
                (&asked["host"], &asked["port"]),
                (&"127.0.0.1".into(), &port.into())
            );
        }
    }
}

#[test]
fn the_files_of_the_static_pod_are_given_to_the_user_that_it_runs_as() {
    let file = folder().join("static-pod.yaml");
    let all = documents(&file);
    let user = &only(&all, "Pod")["spec"]["securityContext"]["runAsUser"];
    let runbook = root().join("../docs/runbooks/BowlineCredentialExpiring.md");
    for path in [file, runbook] {
        let text = std::fs::read_to_string(&path).unwrap();
        for words in [
            format!("chown {user} /etc/kubernetes/"),
            "chmod 600 /etc/kubernetes/".to_owned(),
        ] {
            assert!(text.contains(&words), "{}: {words}", path.display());
        }
    }
}

#[test]
fn the_secret_holds_a_file_that_needs_nothing_but_a_credential() {
    let text = secret("openstack", "cloud-config", "cloud.conf");
    let read = |text: &str| Options::read(&given(text), &Environment::default(), &|path| std::fs::read(path));
    assert!(read(&text).is_err(), "the credential is left to fill in");
    // What is commented out is no riddle either.
    let filled = text.replace("\"\"", "\"p;q\"").replace("CLOUD", "cloud.example");
    let uncommented: String = filled
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(option) if option.contains(" = ") || option.starts_with('[') => format!("{option}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let options = read(&uncommented).unwrap_or_else(|error| panic!("{error}: {uncommented}"));
    assert_eq!(options.warnings, Vec::<String>::new());
    assert!(options.router.is_some());
    assert!(options.load_balancer.unwrap().manages_security_groups);
}
