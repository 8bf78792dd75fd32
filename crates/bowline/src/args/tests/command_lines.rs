//! The commands: their words, their own flags, and their help.

use super::*;

#[test]
fn a_plan_takes_the_manager_s_flags_and_its_own() {
    let words = [
        "ccm",
        "plan",
        "--cloud-provider=cloudscale",
        "--v=3",
        "--service=default/web,a/b",
        "-o",
        "json",
    ];
    let Invocation::Plan(options, plan) = read(&line(&words)) else {
        panic!("not understood");
    };
    assert_eq!(options.logging.verbosity, 3);
    assert_eq!(
        plan.services,
        [ServiceKey::new("default", "web"), ServiceKey::new("a", "b")]
    );
    assert_eq!(plan.output, OutputForm::Json);

    let words = [
        "ccm",
        "plan",
        "--cloud-provider=cloudscale",
        "--service=web",
        "--output=xml",
    ];
    let Invocation::Wrong { errors, .. } = read(&line(&words)) else {
        panic!("accepted");
    };
    assert_eq!(
        errors,
        [
            "--service must be namespace/name, got \"web\"",
            "--output must be text or json, got \"xml\""
        ]
    );
}

#[test]
fn a_doctor_takes_the_manager_s_flags_and_its_own() {
    let words = |more: &'static str| line(&["ccm", "doctor", "--cloud-provider=cloudscale", more]);
    let Invocation::Doctor(options, doctor) = read(&words("--output=json")) else {
        panic!("not understood");
    };
    assert_eq!(options.provider.name, "cloudscale");
    assert_eq!(options.given_flags, ["output", "cloud-provider"]);
    assert_eq!((doctor.output, doctor.has_log), (OutputForm::Json, false));
    let Invocation::Doctor(_, doctor) = read(&words("--v=2")) else {
        panic!("not understood");
    };
    assert_eq!((doctor.output, doctor.has_log), (OutputForm::Text, true));
    for wrong in ["--output=xml", "--service=default/web"] {
        assert!(matches!(read(&words(wrong)), Invocation::Wrong { .. }), "{wrong}");
    }
}

#[test]
fn what_is_to_be_explained_is_named_by_kind_namespace_and_name() {
    let read_with = |more: &[&str]| {
        read(&line(
            &[&["ccm", "explain", "--cloud-provider=cloudscale"], more].concat(),
        ))
    };
    let web = |namespace: &str| Target::Service(ServiceKey::new(namespace, "web"));
    let node = Target::Node(NodeName::new("n1"));
    for (words, targets) in [
        (&["service/web"][..], vec![web("default")]),
        (&["service/web", "-n", "shop"], vec![web("shop")]),
        (&["node/n1", "--v=0", "svc/shop/web"], vec![node, web("shop")]),
    ] {
        let Invocation::Explain(_, explain) = read_with(words) else {
            panic!("not understood: {words:?}");
        };
        assert_eq!(explain.targets, targets);
    }
    for wrong in [
        &[][..],
        &["web"],
        &["pod/web"],
        &["service/a/b/c"],
        &["node/"],
        &["node/a/b"],
    ] {
        let Invocation::Wrong { errors, .. } = read_with(wrong) else {
            panic!("accepted: {wrong:?}");
        };
        assert!(errors[0].contains("service/NAMESPACE/NAME"), "{errors:?}");
    }
}

#[test]
fn a_plan_s_flags_are_unknown_to_the_manager() {
    assert_eq!(wrong(&["--service=default/web"]).len(), 1);
}

#[test]
fn the_version_is_one_line() {
    let text = printed(&["ccm", "--version"]);
    assert!(text.starts_with("Kubernetes v1.37."), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert!(printed(&["ccm", "--version=raw"]).contains("GitVersion:"));
    assert_eq!(resolved(&["--version=v1.35.1"]).version.git_version, "v1.35.1");
    assert_eq!(resolved(&["--version=false"]).version, Version::current());
    assert_eq!(wrong(&["--version=latest"]).len(), 1);
}

#[test]
fn all_help_shows_every_flag_that_is_not_hidden() {
    let text = printed(&["ccm", "--help-all"]);
    for flag in flag_table().iter().flat_map(|group| group.flags) {
        let is_shown =
            text.contains(&format!("--{} ", flag.name)) || text.contains(&format!("--{}\n", flag.name));
        assert_eq!(is_shown, !flag.is_hidden, "--{}", flag.name);
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!("help_all", text);
}

#[test]
fn the_help_of_every_command_fits_on_a_screen_and_has_examples() {
    let words: Vec<&str> = words::names().map(|(name, _)| name).collect();
    for &name in &words {
        let text = printed(&["ccm", name, "--help"]);
        assert_eq!(text, printed(&["ccm", "help", name]), "{name}");
        assert!(
            text.lines().count() <= 40,
            "{name}: {}\n{text}",
            text.lines().count()
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\nExamples:\n"), "{text}");
    }
    let text = printed(&["ccm", "-h"]);
    assert_eq!(text, printed(&["ccm", "help"]));
    assert!(
        words.iter().all(|name| text.contains(&format!("\n  {name:<16}"))),
        "{text}"
    );
    assert!(
        text.lines().count() <= 40 && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_wrong_word_is_answered_with_the_nearest_one() {
    assert_eq!(
        wrong(&["docter"]),
        ["unknown command or argument: \"docter\"; did you mean \"doctor\"?"]
    );
    assert_eq!(
        wrong(&["orphan"]),
        ["unknown command or argument: \"orphan\"; did you mean \"orphans\"?"]
    );
    let Invocation::Wrong { errors, .. } = read(&line(&["ccm", "help", "plam"])) else {
        panic!("there is no such command");
    };
    assert_eq!(
        errors,
        ["unknown command or argument: \"plam\"; did you mean \"plan\"?"]
    );
    assert_eq!(wrong(&["start"]), ["unknown command or argument: \"start\""]);
}

#[test]
fn by_the_name_of_the_plugin_there_are_the_commands_alone() {
    let help = printed(&["/usr/local/bin/kubectl-bowline"]);
    assert!(help.contains("  kubectl bowline COMMAND [flags]\n"), "{help}");
    let plan = ["kubectl-bowline", "plan", "--cloud-provider=openstack"];
    assert!(matches!(read(&line(&plan)), Invocation::Plan(..)));
    for words in [
        &["kubectl-bowline", "--cloud-provider=openstack"][..],
        &["kubectl-bowline", "run"],
    ] {
        assert!(!matches!(read(&line(words)), Invocation::Run(_)), "{words:?}");
    }
}

#[test]
fn completions_are_those_of_the_table() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["ccm", "completion", shell]);
        for word in ["orphans", "cloud-provider", "cluster-uid", "kubectl-bowline"] {
            assert!(script.contains(word), "{shell}: {word}\n{script}");
        }
        assert!(!script.contains("log-backtrace-at"), "{script}");
    }
    let Invocation::Wrong { errors, .. } = read(&line(&["ccm", "completion", "csh"])) else {
        panic!("nobody writes scripts for csh");
    };
    assert_eq!(errors, ["say for which shell: bash, zsh or fish"]);
}

#[test]
fn the_version_tells_the_commit_or_that_it_is_unknown() {
    assert!(!Version::current().git_commit.is_empty());
    let text = printed(&["ccm", "version"]);
    assert!(
        text.starts_with("Kubernetes v1.37.") && text.contains("\ncommit: "),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&printed(&["ccm", "version", "-o", "json"])).unwrap();
    assert_eq!(json["gitCommit"], Version::current().git_commit);
}

#[test]
fn orphans_are_deleted_only_with_the_word() {
    let read_with = |words: &[&str]| {
        let all: Vec<&str> = ["ccm", "orphans", "--cloud-provider=openstack"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        read(&line(&all))
    };
    let Invocation::Orphans(_, orphans) = read_with(&["--delete", "-y", "--gone", "--cluster-name=old"])
    else {
        panic!("that is how it is called");
    };
    assert!(orphans.deletes && orphans.is_sure && orphans.is_gone && orphans.names_cluster);
    let Invocation::Orphans(_, orphans) = read_with(&[]) else {
        panic!("that is how it is called");
    };
    assert!(!orphans.deletes && !orphans.is_gone && !orphans.names_cluster);
    assert!(matches!(read_with(&["--yes"]), Invocation::Wrong { .. }));
}
