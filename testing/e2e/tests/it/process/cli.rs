//! The command line as people meet it. Snapshots hold the whole of what is printed and the exit status.

use std::process::Output;

use bowline::args::{self, Invocation};

use super::program::{run_as, run_by_link};

const NAME: &str = "cloud-controller-manager";

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    format!(
        "status: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().expect("no signal"),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// What differs from run to run and from release to release.
fn filters() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            r"(?m)^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ (\w+\.rs):\d+\]",
            "$1[when] $2]",
        ),
        (r"v\d+\.\d+\.\d+\+bowline\.\d+\.\d+\.\d+", "[version]"),
        (
            r#"Major:"\d+", Minor:"\d+""#,
            r#"Major:"[major]", Minor:"[minor]""#,
        ),
        (
            r#"GitCommit:"[0-9a-f]*", GitTreeState:"\w*", BuildDate:"[^"]*""#,
            "[build]",
        ),
        (r#"Platform:"[^"]*""#, r#"Platform:"[platform]""#),
    ]
}

macro_rules! snapshot {
    ($name:literal, $output:expr) => {
        insta::with_settings!({ filters => filters() }, {
            insta::assert_snapshot!($name, told(&$output));
        });
    };
}

#[test]
fn help_is_the_table_of_flags_on_stdout() {
    // The text itself is a snapshot of the crate that makes it.
    for words in [
        &["--help-all"][..],
        &["-h"],
        &["plan", "--help"],
        &["doctor", "--help"],
    ] {
        let line: Vec<String> = [NAME]
            .iter()
            .chain(words)
            .map(|word| (*word).to_owned())
            .collect();
        let Invocation::Print(expected) = args::read(&line) else {
            panic!("{:?}", args::read(&line));
        };
        assert!(expected.contains("--cloud-provider string"), "{expected}");
        let output = run_as(NAME, words, &[]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        assert!(output.stderr.is_empty(), "help is no complaint");
    }
}

#[test]
fn version_is_one_line() {
    snapshot!("version", run_as(NAME, &["--version"], &[]));
    snapshot!("version_raw", run_as(NAME, &["--version=raw"], &[]));
}

#[test]
fn an_unknown_flag_is_named() {
    snapshot!("unknown_flag", run_as(NAME, &["--cloud-provder=cloudscale"], &[]));
}

#[test]
fn an_argument_without_a_flag_is_refused() {
    snapshot!(
        "positional",
        run_as(NAME, &["--cloud-provider=cloudscale", "start"], &[])
    );
}

#[test]
fn a_command_that_is_not_the_first_word_is_told_so() {
    let told = told(&run_as(NAME, &["--cloud-provider=cloudscale", "plan"], &[]));
    assert!(told.contains("\"plan\" (a command is the first word)"), "{told}");
}

#[test]
fn the_provider_must_be_named() {
    snapshot!("no_provider", run_as(NAME, &[], &[]));
}

#[test]
fn all_faults_of_a_command_line_are_told_at_once() {
    let flags = [
        "--cloud-provider=cloudscale",
        "--concurrent-node-syncs=0",
        "--node-monitor-period=0s",
        "--secure-port=70000",
        "--controllers=nonsense,*",
        "--leader-elect-resource-lock=endpoints",
        "--node-deletion-share=2",
    ];
    snapshot!("many_faults", run_as(NAME, &flags, &[]));
}

#[test]
fn an_unknown_feature_gate_is_refused() {
    snapshot!(
        "unknown_gate",
        run_as(
            NAME,
            &["--cloud-provider=cloudscale", "--feature-gates=Nope=true"],
            &[]
        )
    );
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let flags = [
        "--cloud-provider=cloudscale",
        "--allow-untagged-cloud",
        "--kubeconfig=/nowhere/kubeconfig",
    ];
    snapshot!(
        "no_kubeconfig",
        run_as(NAME, &flags, &[("CLOUDSCALE_ACCESS_TOKEN", "secret")])
    );
}

#[test]
fn without_any_hint_where_the_api_server_is_it_says_how_to_give_one() {
    let flags = ["--cloud-provider=cloudscale", "--allow-untagged-cloud"];
    snapshot!(
        "no_api_server",
        run_as(NAME, &flags, &[("CLOUDSCALE_ACCESS_TOKEN", "secret")])
    );
}

#[test]
fn where_the_cluster_is_comes_before_the_cloud() {
    let flags = [
        "--cloud-provider=external-cloudstack",
        "--cloud-config=/nowhere/cloud-config",
        "--kubeconfig=/nowhere/kubeconfig",
    ];
    let told = told(&run_as(NAME, &flags, &[]));
    assert!(told.contains("/nowhere/kubeconfig"), "{told}");
    assert!(!told.contains("/nowhere/cloud-config`"), "{told}");
}

#[test]
fn the_kubeconfig_that_is_missing_is_named_by_its_own_flag() {
    for flag in ["--authentication-kubeconfig", "--authorization-kubeconfig"] {
        let named = format!("{flag}=/nowhere/kubeconfig");
        let flags = [
            "--cloud-provider=cloudscale",
            "--allow-untagged-cloud",
            "--master=http://127.0.0.1:9",
            &named,
        ];
        let told = told(&run_as(NAME, &flags, &[("CLOUDSCALE_ACCESS_TOKEN", "secret")]));
        assert!(
            told.contains(&format!("{flag} `/nowhere/kubeconfig`: ")),
            "{told}"
        );
    }
}

#[test]
fn an_unknown_provider_is_refused() {
    let flags = ["--cloud-provider=unknown", "--master=http://127.0.0.1:9"];
    snapshot!("unknown_provider", run_as(NAME, &flags, &[]));
}

#[test]
fn the_name_of_the_provider_comes_before_every_file_and_a_near_one_is_told() {
    for (word, status) in [(None, 255), (Some("plan"), 1)] {
        let flags = [
            "--cloud-provider=cloudscal",
            "--cloud-config=/nowhere/cloud-config",
            "--kubeconfig=/nowhere/kubeconfig",
        ];
        let words: Vec<&str> = word.into_iter().chain(flags).collect();
        let output = run_as(NAME, &words, &[]);
        assert_eq!(output.status.code(), Some(status));
        let told = told(&output);
        let hint = "unknown cloud provider \"cloudscal\"; built in: ";
        assert!(
            told.contains(hint) && told.contains("; did you mean \"cloudscale\"?"),
            "{told}"
        );
        assert!(!told.contains("/nowhere"), "{told}");
    }
}

#[test]
fn a_plan_that_cannot_begin_is_a_plain_line_on_stderr_with_status_1() {
    let cloud = ["plan", "--cloud-provider=cloudscale", "--allow-untagged-cloud"];
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "clusters: [").unwrap();
    let broken = broken.to_str().unwrap();
    for (flag, variable, expected) in [
        (None, None, "Error: no API server is configured"),
        (
            None,
            Some("/nowhere/kubeconfig"),
            "Error: $KUBECONFIG `/nowhere/kubeconfig`: ",
        ),
        (
            None,
            Some("/nowhere/a:/nowhere/b"),
            "Error: $KUBECONFIG `/nowhere/a`: ",
        ),
        (None, Some(broken), "Error: $KUBECONFIG `"),
        (
            Some(format!("--kubeconfig={broken}")),
            Some("/nowhere/kubeconfig"),
            "Error: --kubeconfig `",
        ),
        (
            Some("--output=yaml".to_owned()),
            None,
            "Error: --output must be text or json",
        ),
        (
            Some("--servce=default/web".to_owned()),
            None,
            "Error: unknown flag: --servce (did you mean --service?)",
        ),
    ] {
        let words: Vec<&str> = cloud.into_iter().chain(flag.as_deref()).collect();
        let token = ("CLOUDSCALE_ACCESS_TOKEN", "secret");
        let variables: Vec<(&str, &str)> = [token]
            .into_iter()
            .chain(variable.map(|path| ("KUBECONFIG", path)))
            .collect();
        let output = run_as(NAME, &words, &variables);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with(expected), "{error}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_manager_itself_takes_no_kubeconfig_from_the_environment() {
    let flags = ["--cloud-provider=cloudscale", "--allow-untagged-cloud"];
    let variables = [
        ("CLOUDSCALE_ACCESS_TOKEN", "secret"),
        ("KUBECONFIG", "/nowhere/kubeconfig"),
    ];
    let told = told(&run_as(NAME, &flags, &variables));
    assert!(told.contains("no API server is configured"), "{told}");
    assert!(!told.contains("/nowhere"), "{told}");
}

#[test]
fn without_a_token_there_is_no_provider() {
    let flags = [
        "--cloud-provider=cloudscale",
        "--allow-untagged-cloud",
        "--master=http://127.0.0.1:9",
    ];
    snapshot!("no_token", run_as(NAME, &flags, &[]));
}

#[test]
fn a_provider_without_cluster_id_must_be_allowed() {
    let flags = ["--cloud-provider=cloudscale", "--master=http://127.0.0.1:9"];
    snapshot!(
        "untagged",
        run_as(NAME, &flags, &[("CLOUDSCALE_ACCESS_TOKEN", "secretsecret")])
    );
}

#[test]
fn by_the_name_of_the_go_manager_the_provider_is_known() {
    let flags = ["--master=http://127.0.0.1:9"];
    let told = told(&run_by_link("cloudscale-cloud-controller-manager", &flags, &[]));
    assert!(told.contains("no CLOUDSCALE_ACCESS_TOKEN configured"), "{told}");
    let help = run_by_link("cloudscale-cloud-controller-manager", &["--help"], &[]);
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(
        help.contains("  cloudscale-cloud-controller-manager [flags]\n"),
        "{help}"
    );
}

#[test]
fn names_of_flags_may_have_underscores() {
    let flags = [
        "--cloud_provider=cloudscale",
        "--allow_untagged_cloud",
        "--cluster_name=x",
        "--kubeconfig=/nowhere/kubeconfig",
    ];
    let told = told(&run_as(NAME, &flags, &[("CLOUDSCALE_ACCESS_TOKEN", "secret")]));
    assert!(told.contains("/nowhere/kubeconfig"), "{told}");
}
