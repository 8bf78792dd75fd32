mod classes_and_clouds;
mod command_lines;
mod manifests;
mod traffic;

use std::time::Duration;

use bowline_manager::config::{CertificateSource, Config, RouteTiming, ServingConfig};
use bowline_manager::controllers::ControllerName;

use super::*;

fn line(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn resolved(words: &[&str]) -> Options {
    let mut all = vec!["cloud-controller-manager", "--cloud-provider=cloudscale"];
    all.extend(words);
    match read(&line(&all)) {
        Invocation::Run(options) => *options,
        other => panic!("{other:?}"),
    }
}

fn wrong(words: &[&str]) -> Vec<String> {
    let mut all = vec!["cloud-controller-manager", "--cloud-provider=cloudscale"];
    all.extend(words);
    match read(&line(&all)) {
        Invocation::Wrong { errors, .. } => errors,
        other => panic!("{other:?}"),
    }
}

fn printed(words: &[&str]) -> String {
    match read(&line(words)) {
        Invocation::Print(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_flags_the_framework_s_defaults_hold() {
    let options = resolved(&[]);
    assert_eq!(options.manager, Config::default());
    assert_eq!(options.serving, Some(ServingConfig::default()));
    assert_eq!(options.kube.pace, None);
    assert_eq!(options.logging.verbosity, 0);
    assert!(!options.provider.allows_untagged);
}

#[test]
fn the_name_of_the_binary_yields_to_the_flag() {
    let words = ["cloudscale-cloud-controller-manager", "--cloud-provider=other"];
    let Invocation::Run(options) = read(&line(&words)) else {
        panic!("not understood");
    };
    assert_eq!(options.provider.name, "other");
}

#[test]
fn every_go_manager_s_binary_has_its_provider_built_in() {
    for (name, provider) in NAMES {
        let Invocation::Run(options) = read(&line(&[&format!("/usr/bin/{name}")])) else {
            panic!("{name} is not understood");
        };
        assert_eq!(
            (options.provider.name.as_str(), options.program.as_str()),
            (*provider, *name)
        );
    }
}

#[test]
fn the_first_argument_may_name_the_program() {
    for (name, provider) in NAMES {
        for path in [format!("/bin/{name}"), format!("./{name}"), name.to_string()] {
            let Invocation::Run(options) = read(&line(&["/bin/cloud-controller-manager", &path, "--v=1"]))
            else {
                panic!("{path} is not understood");
            };
            let read = (options.provider.name.as_str(), options.program.as_str());
            assert_eq!((read, options.logging.verbosity), ((*provider, *name), 1));
        }
    }
    let own = ["cloudstack-ccm", PROGRAM, "--cloud-provider=openstack"];
    assert!(matches!(read(&line(&own)), Invocation::Run(options) if options.program == PROGRAM));
    let plan = ["x", "/bin/openstack-cloud-controller-manager", "plan"];
    assert!(
        matches!(read(&line(&plan)), Invocation::Plan(options, _) if options.provider.name == "openstack")
    );
}

#[test]
fn no_other_word_names_the_program() {
    // The end of a flag's value is no name of a program.
    let value = resolved(&["--cloud-config=/etc/openstack-cloud-controller-manager"]);
    assert_eq!(value.provider.name, "cloudscale");
    let value = [
        "x",
        "--cloud-config=/etc/cloudstack-ccm",
        "--cloud-provider=openstack",
    ];
    assert!(
        matches!(read(&line(&value)), Invocation::Run(options) if options.program == PROGRAM
            && options.provider.config.as_deref() == Some("/etc/cloudstack-ccm".as_ref()))
    );
    for word in ["/bin/sh", "kube-controller-manager", "/bin/cloudstack-ccm/", ""] {
        let told = format!("unknown command or argument: {word:?}");
        let read = read(&line(&["x", word, "--cloud-provider=cloudscale"]));
        assert!(
            matches!(read, Invocation::Wrong { errors, .. } if errors == [told]),
            "{word}"
        );
    }
    // Once, and in front.
    let name = "/bin/cloudstack-ccm";
    assert!(matches!(
        read(&line(&["x", name, name])),
        Invocation::Wrong { .. }
    ));
    assert!(matches!(
        read(&line(&["x", "--v=1", name])),
        Invocation::Wrong { .. }
    ));
}

#[test]
fn values_come_after_an_equals_sign_or_a_space_and_the_last_one_counts() {
    let options = resolved(&[
        "--secure-port",
        "1",
        "--secure-port=2",
        "--cluster-name",
        "--odd",
        "-v",
        "4",
    ]);
    assert_eq!(options.serving.unwrap().port, 2);
    assert_eq!(options.manager.cluster_name, "--odd");
    assert_eq!(options.logging.verbosity, 4);
    assert_eq!(resolved(&["-v=5"]).logging.verbosity, 5);
    assert_eq!(resolved(&["-v5"]).logging.verbosity, 5);
    assert_eq!(resolved(&["--v", "6"]).logging.verbosity, 6);
}

#[test]
fn underscores_in_names_are_dashes_and_in_values_stay() {
    let options = resolved(&[
        "--cluster_name=my_cluster",
        "--leader_elect_resource_name",
        "--my_lease",
    ]);
    assert_eq!(options.manager.cluster_name, "my_cluster");
    assert_eq!(options.manager.election.unwrap().name, "--my_lease");
}

#[test]
fn a_switch_takes_its_value_only_after_an_equals_sign() {
    assert!(resolved(&["--leader-elect=false"]).manager.election.is_none());
    assert!(resolved(&["--leader-elect=0"]).manager.election.is_none());
    assert!(resolved(&["--leader-elect"]).manager.election.is_some());
    assert_eq!(
        wrong(&["--leader-elect", "false"]),
        ["unknown command or argument: \"false\""]
    );
    assert_eq!(
        wrong(&["--leader-elect=maybe"]),
        ["invalid argument \"maybe\" for \"--leader-elect\" flag: \"maybe\" is neither true nor false"]
    );
}

#[test]
fn lists_are_split_at_commas_and_add_up() {
    let options = resolved(&["--controllers=*,-route,-nodeipam", "--controllers", "-cloud-node"]);
    let running: Vec<_> = ControllerName::ALL
        .into_iter()
        .filter(|one| options.manager.controllers.includes(*one))
        .collect();
    assert_eq!(running, [ControllerName::NodeLifecycle, ControllerName::Service]);
}

#[test]
fn unknown_flags_and_words_are_refused_by_name() {
    assert_eq!(wrong(&["--bogus"]), ["unknown flag: --bogus"]);
    assert_eq!(wrong(&["--bogus=1"]), ["unknown flag: --bogus"]);
    assert_eq!(wrong(&["--bogus_flag=1"]), ["unknown flag: --bogus-flag"]);
    assert_eq!(wrong(&["-x"]), ["unknown shorthand flag: 'x' in -x"]);
    assert_eq!(wrong(&["mend"]), ["unknown command or argument: \"mend\""]);
    assert_eq!(
        wrong(&["--cluster-name"]),
        ["flag needs an argument: --cluster-name"]
    );
    assert_eq!(wrong(&["-v"]), ["flag needs an argument: --v"]);
}

#[test]
fn a_flag_without_effect_is_named_only_if_it_was_given() {
    assert!(resolved(&[]).idle_flags.is_empty());
    assert_eq!(
        resolved(&["--controller-start-interval=1s", "--node-sync-period=0"]).idle_flags,
        ["controller-start-interval", "node-sync-period"]
    );
}

#[test]
fn a_split_log_needs_its_gate_and_takes_the_flags_of_its_format() {
    assert_eq!(resolved(&["--log-text-split-stream=false"]).logging.split, None);
    assert_eq!(
        wrong(&["--log-text-split-stream", "--log-json-info-buffer-size=1Ki"]),
        [
            "--log-json-info-buffer-size needs the feature gate LoggingAlphaOptions",
            "--log-text-split-stream needs the feature gate LoggingAlphaOptions",
        ]
    );
    let gate = "--feature-gates=AllAlpha=true";
    let words = [
        "--log-json-split-stream",
        "--log-json-info-buffer-size=2Ki",
        "--logging-format=json",
        gate,
    ];
    assert_eq!(
        resolved(&words).logging.split,
        Some(SplitStream {
            buffer: 2048,
            flush_period: Duration::from_secs(5)
        })
    );
    assert_eq!(resolved(&["--log-json-split-stream", gate]).logging.split, None);
    assert_eq!(
        wrong(&["--log-text-split-stream", "--log-text-info-buffer-size=1Gi", gate]),
        ["the buffer for info lines must have at most 67108864 bytes, got 1073741824"]
    );
    assert_eq!(
        wrong(&["--log-flush-frequency=0"]),
        ["--log-flush-frequency must be greater than zero, got 0s"]
    );
}

#[test]
fn a_pace_is_kept_only_when_it_is_asked_for() {
    for (flags, expected) in [
        (&["--kube-api-qps=50"][..], Some((50.0, 30))),
        (&["--kube-api-burst=7"], Some((20.0, 7))),
        (&["--kube-api-qps=0"], Some((5.0, 30))),
        (&["--kube-api-qps=-1"], None),
        (&[], None),
    ] {
        let pace = resolved(flags).kube.pace;
        assert_eq!(pace.map(|pace| (pace.qps, pace.burst)), expected, "{flags:?}");
    }
}

#[test]
fn durations_have_go_s_form() {
    let options = resolved(&["--node-monitor-period=1m30s", "--node-deletion-confirmation=0"]);
    let settings = options.manager.settings.node_lifecycle;
    assert_eq!(settings.node_monitor_period, Duration::from_secs(90));
    assert_eq!(settings.node_deletion_confirmation, Duration::ZERO);
    assert_eq!(
        wrong(&["--node-monitor-period=5"]),
        ["invalid argument \"5\" for \"--node-monitor-period\" flag: time: missing unit in duration \"5\""]
    );
}

#[test]
fn all_faults_are_shown_together_and_name_their_flags() {
    let words = [
        "cloud-controller-manager",
        "--controllers=nonsense",
        "--leader-elect-resource-lock=endpoints",
        "--leader-elect-lease-duration=5s",
        "--concurrent-node-syncs=0",
        "--concurrent-service-syncs=-1",
        "--node-monitor-period=0",
        "--node-status-update-frequency=-1s",
        "--node-deletion-share=2",
        "--secure-port=70000",
        "--tls-cert-file=/tls.crt",
        "--tls-min-version=SSL3",
        "--logging-format=xml",
        "--vmodule=a",
        "--requestheader-client-ca-file=/ca.crt",
        "--requestheader-group-headers=",
    ];
    let Invocation::Wrong { errors, usage } = read(&line(&words)) else {
        panic!("accepted");
    };
    assert_eq!(usage, "");
    insta::assert_snapshot!(errors.join("\n"), @r#"
    --cloud-provider cannot be empty
    resourceLock value must be "leases"
    --leader-elect-lease-duration must be greater than --leader-elect-renew-deadline
    "nonsense" is not in the list of known controllers
    --concurrent-node-syncs must be at least 1, got 0
    --node-status-update-frequency must be greater than zero, got -1s
    --node-monitor-period must be greater than zero, got 0s
    --node-deletion-share must be between 0 and 1, got 2
    --concurrent-service-syncs must be at least 1, got -1
    --secure-port 70000 must be between 0 and 65535, inclusive. 0 for turning off secure port
    --tls-cert-file and --tls-private-key-file must be given together
    --tls-min-version "SSL3" is not a known TLS version
    --requestheader-group-headers must not be empty with --requestheader-client-ca-file
    --logging-format must be text or json, got "xml"
    --vmodule: "a" is not of the form pattern=N
    "#);
}

#[test]
fn the_route_loop_is_no_known_one_where_the_go_manager_does_not_know_it() {
    let unknown = "\"route\" is not in the list of known controllers: phoenixnap has no routes";
    for list in [
        "route",
        "*,route",
        "cloud-node,node-route-controller",
        "-route,route",
    ] {
        let flag = format!("--controllers={list}");
        for provider in ["--cloud-provider=phoenixnap", "--cloud-provider=PhoenixNAP"] {
            assert_eq!(wrong(&[provider, &flag]), [unknown], "{list}");
        }
        let called = read(&line(&["/usr/bin/cloud-provider-phoenixnap", &flag]));
        assert!(
            matches!(called, Invocation::Wrong { errors, .. } if errors == [unknown]),
            "{list}"
        );
        assert!(matches!(
            read(&line(&["x", "--cloud-provider=cloudscale", &flag])),
            Invocation::Run(_)
        ));
    }
    for list in ["*", "-route", "*,-route", "cloud-node,service"] {
        let words = [
            "x",
            "--cloud-provider=phoenixnap",
            &format!("--controllers={list}"),
        ];
        assert!(matches!(read(&line(&words)), Invocation::Run(_)), "{list}");
    }
}

#[test]
fn one_port_cannot_serve_two_things() {
    assert_eq!(
        wrong(&["--secure-port=10260"]),
        ["--secure-port and --webhook-secure-port must differ, both are 10260"]
    );
    assert_eq!(resolved(&["--secure-port=0"]).serving, None);
}

#[test]
fn feature_gates_are_known_or_refused() {
    assert_eq!(
        wrong(&["--feature-gates=Nope=true"]),
        ["invalid argument \"Nope=true\" for \"--feature-gates\" flag: unrecognized feature gate: Nope"]
    );
    assert_eq!(
        resolved(&["--feature-gates=WatchList=true,AllAlpha=false"]).idle_gates,
        ["WatchList"]
    );
    assert_eq!(
        wrong(&[
            "--feature-gates=LoggingBetaOptions=false",
            "--logging-format=json"
        ]),
        ["--logging-format=json needs the feature gate LoggingBetaOptions"]
    );
}

#[test]
fn a_certificate_comes_from_files_before_a_directory() {
    let files = ["--tls-cert-file=/a", "--tls-private-key-file=/b", "--cert-dir=/c"];
    assert_eq!(
        resolved(&files).serving.unwrap().certificate,
        CertificateSource::Files {
            certificate: "/a".into(),
            key: "/b".into()
        }
    );
    assert_eq!(
        resolved(&["--cert-dir=/c"]).serving.unwrap().certificate,
        CertificateSource::Directory("/c".into())
    );
}

#[test]
fn node_ipam_is_off_until_it_is_asked_for() {
    let settings = |words: &[&str]| resolved(words).manager.settings.node_networks;
    assert_eq!(
        settings(&["--cluster-cidr=nonsense", "--node-cidr-mask-size=99"]),
        None
    );
    let ranges = settings(&["--allocate-node-cidrs", "--cluster-cidr=10.200.0.0/16"]);
    assert_eq!(ranges.unwrap().unwrap().cluster[0].1, 24);
    // I-03: refused where it runs, which the provider decides.
    let faults = settings(&[
        "--allocate-node-cidrs",
        "--cluster-cidr=10.200.0.0/16,fd00::/48",
        "--node-cidr-mask-size=24",
        "--cidr-allocator-type=CloudAllocator",
    ]);
    let faults: Vec<String> = faults
        .unwrap()
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        faults[..2],
        [
            "--cidr-allocator-type \"CloudAllocator\" is not supported, only RangeAllocator is",
            "--node-cidr-mask-size cannot be used with two cluster CIDRs, use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
        ]
    );
}

#[test]
fn what_a_controller_is_told_that_does_not_run_is_not_looked_at() {
    let told = ["--node-monitor-period=0", "--node-status-update-frequency=0"];
    assert_eq!(wrong(&told).len(), 2);
    let controllers = "--controllers=*,-cloud-node,-cloud-node-lifecycle";
    resolved(&[told[0], told[1], controllers, "--route-reconciliation-period=0"]);
}

#[test]
fn the_route_loop_is_told_what_the_flags_say() {
    let routes = |words: &[&str]| resolved(words).manager.settings.routes;
    let default = routes(&[]);
    assert!(default.is_wanted && default.cluster_cidrs.is_err());
    assert_eq!(default.timing, RouteTiming::Periodic(Duration::from_secs(10)));
    let given = routes(&[
        "--cluster-cidr=10.200.0.0/16",
        "--configure-cloud-routes=false",
        "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true",
    ]);
    assert!(!given.is_wanted && given.cluster_cidrs.is_ok());
    assert_eq!(given.timing, RouteTiming::WatchBased);
}

#[test]
fn further_labels_are_kept_true_behind_the_frameworks_gate() {
    let keeps = |words: &[&str]| resolved(words).manager.settings.node.keeps_additional_labels;
    assert!(!keeps(&[]));
    assert!(keeps(&[
        "--feature-gates=CloudNodeAdditionalLabelsReconciliation=true"
    ]));
    assert!(keeps(&["--feature-gates=AllAlpha=true"]));
}

#[test]
fn a_leader_goes_on_only_if_it_is_told_to() {
    let limit = |words: &[&str]| resolved(words).manager.election.unwrap().recovery_limit;
    assert_eq!(limit(&[]), None);
    assert_eq!(
        limit(&["--leader-recovery-limit=10m"]),
        Some(Duration::from_secs(600))
    );
    let errors = wrong(&["--leader-recovery-limit=10m", "--enable-leader-migration"]);
    assert_eq!(
        errors,
        [
            "--leader-recovery-limit cannot be used with --enable-leader-migration: leave it out until the migration is over"
        ]
    );
}

#[test]
fn an_empty_provider_is_refused() {
    let Invocation::Wrong { errors, .. } = read(&line(&["cloud-controller-manager"])) else {
        panic!("accepted");
    };
    assert_eq!(errors, ["--cloud-provider cannot be empty"]);
}

#[test]
fn what_tls_cannot_serve_is_dropped_and_what_nobody_knows_is_refused() {
    let serving = |words: &[&str]| resolved(words).serving.unwrap();
    let some = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA";
    assert!(serving(&[some]).tls.cipher_suites.is_some());
    assert!(serving(&["--tls-curve-preferences=4588,29"]).tls.groups.is_some());
    assert!(serving(&["--tls-min-version=VersionTLS13"]).tls.requires_tls13);
    assert_eq!(
        wrong(&["--tls-cipher-suites=TLS_FAST"]),
        ["--tls-cipher-suites: TLS_FAST is not known"]
    );
    assert_eq!(
        wrong(&["--webhook-tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"]),
        ["--webhook-tls-cipher-suites: none of TLS_RSA_WITH_RC4_128_SHA can be served"]
    );
    assert_eq!(
        wrong(&["--tls-curve-preferences=25"]),
        ["--tls-curve-preferences: none of 25 can be served"]
    );
}

#[test]
fn named_certificates_have_two_files_and_maybe_patterns() {
    let named = resolved(&[
        "--tls-sni-cert-key=a.crt,a.key",
        "--tls-sni-cert-key=b.crt,b.key:*.b,c",
    ])
    .serving
    .unwrap()
    .named_certificates;
    assert_eq!(named[0].names, Vec::<String>::new());
    assert_eq!(named[1].certificate.to_str(), Some("b.crt"));
    assert_eq!(named[1].key.to_str(), Some("b.key"));
    assert_eq!(named[1].names, ["*.b", "c"]);
    assert_eq!(
        wrong(&["--tls-sni-cert-key=a.crt"]),
        ["--tls-sni-cert-key: \"a.crt\" is not of the form cert,key or cert,key:pattern,pattern"]
    );
}

#[test]
fn no_webhook_is_known() {
    assert!(resolved(&["--webhooks=*"]).serving.is_some());
    assert_eq!(
        wrong(&["--webhooks=*,mine,-yours"]),
        [
            "\"mine\" is not in the list of known webhooks",
            "\"yours\" is not in the list of known webhooks"
        ]
    );
    assert_eq!(
        wrong(&["--webhook-tls-cert-file=a"]),
        ["--webhook-tls-cert-file and --webhook-tls-private-key-file must be given together"]
    );
}

#[test]
fn who_is_believed_comes_from_flags_or_is_looked_up() {
    use bowline_manager::config::Lookup;
    let access = |words: &[&str]| resolved(words).serving.unwrap().access;
    assert_eq!(access(&[]).lookup, Lookup::Required);
    assert_eq!(
        access(&["--authentication-tolerate-lookup-failure"]).lookup,
        Lookup::Tolerated
    );
    assert_eq!(access(&["--authentication-skip-lookup"]).lookup, Lookup::Skipped);
    let proxy = access(&[
        "--requestheader-client-ca-file=ca.crt",
        "--requestheader-allowed-names=a,b",
        "--requestheader-uid-headers=x-remote-uid",
    ])
    .front_proxy
    .unwrap();
    assert_eq!(proxy.headers.allowed_names, ["a", "b"]);
    assert_eq!(proxy.headers.username, ["x-remote-user"]);
    assert_eq!(proxy.headers.uid, ["x-remote-uid"]);
    assert!(!access(&["--feature-gates=RemoteRequestHeaderUID=false"]).front_proxy_uids);
    assert_eq!(
        wrong(&["--authorization-always-allow-paths=/a*b"]),
        ["--authorization-always-allow-paths: only trailing * allowed in \"/a*b\""]
    );
}

#[test]
fn configz_shows_the_configuration_in_effect_in_nine_parts() {
    let configz = resolved(&[
        "--leader-elect-lease-duration=20s",
        "--controllers=*,-route",
        "--node-monitor-period=90s",
        "--concurrent-node-lifecycle-syncs=4",
    ])
    .configz;
    let parts: Vec<&String> = configz.as_object().unwrap().keys().collect();
    assert_eq!(
        parts,
        [
            "Generic",
            "KubeCloudShared",
            "NodeController",
            "NodeLifecycleController",
            "NodeStatusUpdateFrequency",
            "ServiceController",
            "Webhook",
            "apiVersion",
            "kind",
        ]
    );
    let generic = &configz["Generic"];
    assert_eq!(generic["LeaderElection"]["leaseDuration"], "20s");
    assert_eq!(generic["MinResyncPeriod"], "12h0m0s");
    assert_eq!(generic["Controllers"], serde_json::json!(["*", "-route"]));
    assert_eq!(generic["Port"], 10258);
    assert_eq!(configz["KubeCloudShared"]["CloudProvider"]["Name"], "cloudscale");
    let lifecycle = serde_json::json!({ "NodeMonitorPeriod": "1m30s", "ConcurrentNodeLifecycleSyncs": 4 });
    assert_eq!(configz["NodeLifecycleController"], lifecycle);
    assert_eq!(configz["KubeCloudShared"].get("NodeMonitorPeriod"), None);
}

#[test]
fn the_workers_of_the_node_lifecycle_loop_are_checked_in_the_framework_s_words() {
    let flag = "--concurrent-node-lifecycle-syncs";
    for (given, said) in [
        (
            "0",
            "concurrent-node-lifecycle-syncs must be at least 1, but got 0",
        ),
        (
            "-3",
            "concurrent-node-lifecycle-syncs must be at least 1, but got -3",
        ),
    ] {
        assert_eq!(wrong(&[&format!("{flag}={given}")]), [said]);
    }
    let together = wrong(&[&format!("{flag}=0"), "--secure-port=-1"]);
    assert_eq!(together.len(), 2, "{together:?}");
    assert_eq!(
        resolved(&[&format!("{flag}=5")]).idle_flags,
        ["concurrent-node-lifecycle-syncs"]
    );
    let too_many = wrong(&[&format!("{flag}=2147483648")]);
    assert!(
        too_many[0].contains(flag) && too_many[0].contains("out of range"),
        "{too_many:?}"
    );
}

#[test]
fn the_address_of_the_cloud_s_api_is_handed_on() {
    assert_eq!(resolved(&[]).provider.base_url, None);
    let options = resolved(&["--base-url=http://127.0.0.1:9/x/"]);
    assert_eq!(
        options.provider.base_url.as_deref(),
        Some("http://127.0.0.1:9/x/")
    );
}
