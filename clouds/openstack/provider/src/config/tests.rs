use std::collections::BTreeMap;

use std::io;
use std::path::Path;
use std::time::Duration;

use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_openstack_client::Interface;
use ipnet::IpNet;

use super::*;

mod clouds;

/// What a login needs, and no more.
const LOGIN: &str = "[Global]
auth-url = http://keystone:5000/v3
username = user
password = Secret1
tenant-name = project
domain-id = default
region = RegionOne
";

/// Files that may not be read.
const FORBIDDEN: &str = "/root/clouds.yaml";
const LOCKED: &str = "/locked/";

/// Files by their path, and variables by their name.
#[derive(Default)]
struct World {
    files: BTreeMap<&'static str, &'static str>,
    variables: Vec<(&'static str, &'static str)>,
}

impl World {
    fn read(&self, contents: &str) -> Result<Options, OptionsError> {
        let config = CloudConfig::Given {
            path: "cloud.conf".to_owned(),
            contents: contents.as_bytes().to_vec(),
        };
        let files = |path: &Path| {
            if path == Path::new(FORBIDDEN) || path.starts_with(LOCKED) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let file = self.files.get(path.to_str().unwrap_or_default());
            file.map(|text| text.as_bytes().to_vec())
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        Options::read(&config, &self.variables.iter().copied().collect(), &files)
    }
}

fn read(more: &str) -> Result<Options, OptionsError> {
    World::default().read(&format!("{LOGIN}{more}"))
}

fn balancing(more: &str) -> LoadBalancerOptions {
    read(&format!("[LoadBalancer]\n{more}"))
        .unwrap()
        .load_balancer
        .unwrap()
}

fn error(more: &str) -> String {
    read(more).unwrap_err().to_string()
}

#[test]
fn a_file_with_a_login_alone_has_the_go_managers_defaults() {
    let options = read("").unwrap();
    assert_eq!(options.load_balancer, Some(LoadBalancerOptions::default()));
    assert_eq!(options.settings.request_timeout, Duration::from_secs(60));
    assert_eq!(options.router, None);
    assert!(options.tls.verifies_certificates);
    assert_eq!(options.warnings, [""; 0]);
}

/// As a template leaves it that has nothing to fill in.
#[test]
fn an_option_without_a_value_is_not_set() {
    let nothing_in = |(section, names): &(&str, Vec<&str>)| {
        let names = names.iter().map(|name| format!("{name} =\n")).collect::<String>();
        format!("[{section}]\n{names}{section}-is-unknown =\n")
    };
    let empty: String = sections::options()
        .iter()
        .filter(|(section, _)| *section != "LoadBalancerClass")
        .map(nothing_in)
        .collect();
    let told = |options: Options| {
        format!(
            "{:?} {:?} {:?}",
            options.nodes,
            options.load_balancer,
            options.shown()
        )
    };
    let without = World::default().read(LOGIN).unwrap();
    let with = World::default().read(&format!("{empty}{LOGIN}")).unwrap();
    assert_eq!(with.warnings.len(), without.warnings.len() + 5);
    assert_eq!(told(with), told(without));
    let names = read("[Networking]\ninternal-network-name = a\ninternal-network-name = \"\"\n").unwrap();
    assert_eq!(names.nodes.internal_networks, ["a"]);
    assert_eq!(
        balancing("lb-method = SOURCE_IP\nlb-method =\n").method,
        "ROUND_ROBIN"
    );
}

#[test]
fn without_a_file_there_is_no_start() {
    let read = Options::read(&CloudConfig::Absent, &Environment::default(), &|_| {
        Err(io::ErrorKind::NotFound.into())
    });
    assert_eq!(
        read.unwrap_err().to_string(),
        "no OpenStack cloud provider config file given: --cloud-config names none"
    );
}

#[test]
fn durations_have_units_and_monitors_count_whole_seconds() {
    assert_eq!(
        error("[LoadBalancer]\nmonitor-delay = 5"),
        "cannot read cloud config cloud.conf: failed to parse `5`: the unit is missing: a duration is written as 5s, 1m30s or 500ms at \
         section \"LoadBalancer\", variable \"monitor-delay\" (line 9)"
    );
    assert_eq!(balancing("monitor-delay = 1m").monitor.delay.as_secs(), 60);
    assert_eq!(balancing("monitor-timeout = 2900ms").monitor.timeout.as_secs(), 2);
    assert!(error("[LoadBalancer]\nmonitor-delay = -1s").contains("not negative"));
}

#[test]
fn values_of_a_wrong_kind_are_errors() {
    for line in [
        "create-monitor = maybe",
        "monitor-max-retries = -1",
        "monitor-max-retries = many",
        "max-shared-lb = two",
        "lb-method",
    ] {
        assert!(read(&format!("[LoadBalancer]\n{line}")).is_err(), "{line}");
    }
    assert_eq!(balancing("monitor-max-retries = 0x0a").monitor.max_retries, 10);
    assert!(balancing("Create-Monitor").monitor.is_wanted);
}

#[test]
fn what_is_unknown_is_told_once_and_has_no_effect() {
    let options =
        read("[BlockStorage]\nbs-version = v3\n[Global]\ncolour = red\n[Colours]\nred = 1\nblue = 2\n")
            .unwrap();
    assert_eq!(
        options.warnings,
        [
            "cloud.conf: option \"colour\" in section \"Global\" (line 11) is not known and has no effect",
            "cloud.conf: section \"Colours\" (line 12) is not known and has no effect: the sections are Global, Networking, \
             LoadBalancer, LoadBalancerClass, Route, Metadata",
        ]
    );
}

#[test]
fn a_misspelt_or_misplaced_option_is_told_with_the_one_that_was_meant() {
    for (lines, expected) in [
        (
            "[Global]\nusernmae = u",
            "option \"usernmae\" in section \"Global\" (line 9) is not known and has no effect: did you mean \"username\"?",
        ),
        (
            "[LoadBalancer]\nrouter-id = r",
            "option \"router-id\" in section \"LoadBalancer\" (line 9) is not known and has no effect: it belongs in \
             section \"Route\"",
        ),
        (
            "[Global]\nfloating-network = n",
            "option \"floating-network\" in section \"Global\" (line 9) is not known and has no effect: did you mean \
             \"floating-network-id\", which belongs in section \"LoadBalancer\"?",
        ),
        (
            "[Global]\nproject-id = p",
            "option \"project-id\" in section \"Global\" (line 9) is not known and has no effect: did you mean \
             \"tenant-id\"?",
        ),
        (
            "[LoadBalancers]\nlb-method = x",
            "section \"LoadBalancers\" (line 8) is not known and has no effect: did you mean \"LoadBalancer\"?",
        ),
        (
            "[LoadBalancerClass]\nsubnet-id = s",
            "section \"LoadBalancerClass\" (line 8) is not known and has no effect: it has a name of its own, as in \
             [LoadBalancerClass \"NAME\"]",
        ),
        (
            "[Route \"a\"]\nrouter-id = r",
            "section \"Route\" (line 8) is not known and has no effect: it has no name of its own: [Route]",
        ),
    ] {
        let expected = format!("cloud.conf: {expected}");
        assert_eq!(read(lines).unwrap().warnings, [expected], "{lines}");
    }
}

#[test]
fn an_error_names_the_file_the_section_and_what_may_have_been_meant() {
    let without = |option: &str| {
        let lines = LOGIN.lines().filter(|line| !line.starts_with(option));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let error = |text: String| World::default().read(&text).unwrap_err().to_string();
    let place = "(section \"Global\" of cloud.conf)";
    assert_eq!(
        error(without("password")),
        format!(
            "no password, application credential or token is given: set `password`, `application-credential-id` with its \
             secret, or `token` {place}"
        )
    );
    assert_eq!(
        error(without("username")),
        format!("a user is needed: either username or user-id {place}")
    );
    assert_eq!(
        error(without("username") + "usrname = user\n"),
        format!(
            "a user is needed: either username or user-id {place}; option \"usrname\" in section \"Global\" (line 7) is \
             not known and has no effect: did you mean \"username\"?"
        )
    );
    assert_eq!(
        error(without("auth-url")),
        format!("`auth-url` is missing or empty {place}")
    );
    assert_eq!(
        error(LOGIN.replace("Global", "Globl")),
        format!(
            "`auth-url` is missing or empty {place}; section \"Globl\" (line 1) is not known and has no effect: did you \
             mean \"Global\"?"
        )
    );
    assert_eq!(
        error(format!("{LOGIN}os-endpoint-type = private\n")),
        format!("`os-endpoint-type` is \"private\": it is one of public, internal, admin {place}")
    );
    assert!(error(format!("{LOGIN}ca-file = /absent\n")).ends_with(place));
}

#[test]
fn lists_collect_and_other_options_are_replaced() {
    let options = read(
        "[Networking]\npublic-network-name = a\npublic-network-name = b\naddress-sort-order = 10.0.0.0/8, x fd00::/8\n\
         [Route]\nrouter-id = r1\nrouter-id = r2\n",
    )
    .unwrap();
    assert_eq!(options.nodes.public_networks, ["a", "b"]);
    assert_eq!(
        options.nodes.sort_order,
        [
            "10.0.0.0/8".parse().unwrap(),
            "fd00::/8".parse::<IpNet>().unwrap()
        ]
    );
    assert_eq!(options.router.unwrap().as_str(), "r2");
    assert_eq!(options.warnings.len(), 1);
}

#[test]
fn classes_keep_the_case_of_their_name() {
    let balancing = balancing("[LoadBalancerClass \"Dmz\"]\nsubnet-id = s\nfloating-subnet-tags = a,b\n");
    let class = &balancing.classes["Dmz"];
    assert_eq!(class.placement.subnet, Some("s".into()));
    assert_eq!(class.floating.subnet_tags.as_deref(), Some("a,b"));
    assert_eq!(class.placement.network, None);
}

#[test]
fn a_search_order_has_one_or_two_known_words() {
    for order in ["configDrive, metadataService", "metadataService", "\"\""] {
        assert!(
            read(&format!("[Metadata]\nsearch-order = {order}")).is_ok(),
            "{order}"
        );
    }
    let error = |order| error(&format!("[Metadata]\nsearch-order = {order}"));
    assert_eq!(
        error("a,b,c"),
        "invalid value in section [Metadata] with key `search-order`. Value cannot contain more than 2 elements (section \
         \"Metadata\" of cloud.conf)"
    );
    assert_eq!(
        error("configDrive,W"),
        "invalid element \"W\" found in section [Metadata] with key `search-order`.Supported elements include \
         \"configDrive\" and \"metadataService\" (section \"Metadata\" of cloud.conf)"
    );
    assert_eq!(
        search_order::check("").unwrap_err().to_string(),
        "invalid value in section [Metadata] with key `search-order`. Value cannot be empty"
    );
}

#[test]
fn the_time_of_a_request_may_stand_in_either_section() {
    let timeout = |more: &str| read(more).unwrap().settings.request_timeout.as_secs();
    assert_eq!(timeout("[Metadata]\nrequest-timeout = 0s"), 60);
    assert_eq!(timeout("[Metadata]\nrequest-timeout = 10s"), 10);
    assert_eq!(timeout("[Global]\nrequest-timeout = 20s"), 20);
    // What is told is what is in force.
    for (more, told) in [("", "60s"), ("[Global]\nrequest-timeout = 20s", "20s")] {
        let options = read(more).unwrap();
        let lines = options
            .report
            .iter()
            .filter(|(_, option, _)| *option == "request-timeout");
        let lines: Vec<&str> = lines.map(|(_, _, value)| value.as_str()).collect();
        assert_eq!(lines, [told, told], "{more}");
    }
}

#[test]
fn load_balancers_may_be_switched_off_and_have_one_version() {
    assert!(
        read("[LoadBalancer]\nenabled = false\nlb-version = v1")
            .unwrap()
            .load_balancer
            .is_none()
    );
    assert_eq!(
        error("[LoadBalancer]\nlb-version = v1"),
        "currently only support LBaaS v2, unrecognised lb-version \"v1\" (section \"LoadBalancer\" of cloud.conf)"
    );
    assert_eq!(
        read("[LoadBalancer]\nlb-provider = haproxy")
            .unwrap()
            .warnings
            .len(),
        1
    );
}

#[test]
fn the_environment_sets_the_region_of_ids_and_the_steps_of_waits() {
    let world = |variables: &[(&'static str, &'static str)]| World {
        variables: variables.to_vec(),
        ..World::default()
    };
    let options = world(&[("OS_CCM_REGIONAL", "true"), ("OCCM_WAIT_LB_ACTIVE_STEPS", "3")])
        .read(LOGIN)
        .unwrap();
    assert!(options.nodes.is_regional);
    assert_eq!(options.load_balancer.unwrap().wait_steps, 3);
    let others = [
        ("OS_CCM_REGIONAL", "True"),
        ("OCCM_WAIT_LB_ACTIVE_STEPS", "many"),
        ("OS_AUTH_URL", "http://elsewhere"),
        ("OS_PASSWORD", "other"),
        ("OS_REGION_NAME", "Other"),
    ];
    let options = world(&others).read(LOGIN).unwrap();
    assert!(!options.nodes.is_regional);
    assert_eq!(options.nodes.region, "RegionOne");
    assert_eq!(options.settings.auth_url.as_str(), "http://keystone:5000/v3");
    assert_eq!(options.load_balancer.unwrap().wait_steps, 23);
}

#[test]
fn options_of_newer_go_managers_and_of_distributors_are_read() {
    let options = read("[LoadBalancer]\n").unwrap();
    let balancers = options.load_balancer.unwrap();
    assert!(balancers.renames && balancers.cluster_uid.is_none());
    assert!(!options.nodes.deletes_by_name && !options.nodes.keeps_nodes);
    let text = "[Global]\ndelete-nodes-without-provider-id = yes\n[LoadBalancer]\nenable-lb-rename = false\ncluster-uid = c1\nformer-cluster-name = old\n";
    let options = read(text).unwrap();
    let balancers = options.load_balancer.unwrap();
    assert!(options.nodes.deletes_by_name && !balancers.renames);
    assert_eq!(balancers.cluster_uid.as_deref(), Some("c1"));
    assert!(balancers.former_clusters.is_empty());
    assert!(
        options.warnings[0].contains("`former-cluster-name` has no effect"),
        "{:?}",
        options.warnings
    );
}

#[test]
fn a_password_that_a_comment_cuts_short_is_doubted_and_not_shown() {
    let doubt = |more: &str| {
        super::file::File::parse(format!("{LOGIN}{more}").as_bytes())
            .unwrap()
            .global
            .credentials
            .doubt
    };
    assert_eq!(
        doubt("[Global]\npassword = \"hun#ter2\"\nregion = r # here\n[Networking]\ntoken = a#b"),
        ""
    );
    assert_eq!(
        doubt("[Global]\npassword = hun#ter2"),
        "the value of `password` ends where a `#` or `;` begins a comment: a value with such a character in it stands in double quotes"
    );
}

#[test]
fn no_text_shows_a_secret() {
    let options = read("").unwrap();
    assert!(!format!("{options:?}").contains("Secret1"));
    let misplaced = read("[Global]\nSecret1-2\n").unwrap();
    assert!(
        !misplaced.warnings.concat().contains("Secret1"),
        "{:?}",
        misplaced.warnings
    );
    assert!(!error("[Metadata]\nrequest-timeout = Secret1\n").contains("Secret1"));
    let in_url = read("[Global]\nauth-url = https://anna:Secret2@keystone:5000/v3\n").unwrap();
    assert!(!format!("{in_url:?}").contains("Secret2"));
    let shown = |(_, option, value): &(_, &str, String)| (*option == "auth-url").then(|| value.clone());
    assert_eq!(
        in_url.report.iter().find_map(shown).as_deref(),
        Some("https://keystone:5000/v3")
    );
    assert!(!error("[Global]\nauth-url = anna:Secret2@keystone\n").contains("Secret2"));
}

#[test]
fn options_are_shown_with_their_origin_and_without_secrets() {
    let options = read("[Metadata]\nsearch-order = configDrive\n").unwrap();
    let shown: Vec<String> = options
        .shown()
        .into_iter()
        .map(|it| format!("{} = {} ({})", it.name, it.value, it.origin))
        .collect();
    for line in [
        "[Global] auth-url = http://keystone:5000/v3 (cloud.conf)",
        "[Global] password = <set> (cloud.conf)",
        "[Global] request-timeout = 60s (default)",
        "[Metadata] search-order = configDrive (cloud.conf)",
        "[LoadBalancer] lb-provider = amphora (default)",
    ] {
        assert!(shown.iter().any(|it| it == line), "{line}: {shown:#?}");
    }
    assert!(!shown.join("\n").contains("Secret1"), "{shown:#?}");
}
