use std::collections::BTreeMap;

use super::*;

/// What a login needs, and no more.
const LOGIN: &str = "[Global]
auth-url = http://keystone:5000/v3
username = user
password = Secret1
tenant-name = project
domain-id = default
region = RegionOne
";

/// A file that may not be read.
const FORBIDDEN: &str = "/root/clouds.yaml";

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
            if path == Path::new(FORBIDDEN) {
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

#[test]
fn without_a_file_there_is_no_start() {
    let read = Options::read(&CloudConfig::Absent, &Environment::default(), &|_| {
        Err(io::ErrorKind::NotFound.into())
    });
    assert_eq!(
        read.unwrap_err().to_string(),
        "no OpenStack cloud provider config file given"
    );
}

#[test]
fn durations_have_units_and_monitors_count_whole_seconds() {
    assert_eq!(
        error("[LoadBalancer]\nmonitor-delay = 5"),
        "cannot read cloud config cloud.conf: failed to parse `5`: the unit is missing: a duration is written as 5s, 1m30s or 500ms at \
         section \"LoadBalancer\", variable \"monitor-delay\" (line 9)"
    );
    assert_eq!(balancing("monitor-delay = 1m").monitor.delay_s, 60);
    assert_eq!(balancing("monitor-timeout = 2900ms").monitor.timeout_s, 2);
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
            "cloud.conf: section \"Colours\" (line 12) is not known and has no effect",
        ]
    );
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
        "invalid value in section [Metadata] with key `search-order`. Value cannot contain more than 2 elements"
    );
    assert_eq!(
        error("configDrive,W"),
        "invalid element \"W\" found in section [Metadata] with key `search-order`.Supported elements include \
         \"configDrive\" and \"metadataService\""
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
        "currently only support LBaaS v2, unrecognised lb-version \"v1\""
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

mod clouds {
    use super::*;

    const CLOUDS: &str = "clouds:
  one:
    auth:
      auth_url: http://other:5000
      username: admin
      password: other
      project_name: demo
      domain_name: Default
    region_name: R
    interface: internal
    verify: false
";

    const OPTIONS: &str = "[Global]\nuse-clouds\nauth-url = http://a:5000/v3\npassword = P\n";

    fn world(files: &[(&'static str, &'static str)]) -> World {
        World {
            files: files.iter().copied().collect(),
            variables: vec![("HOME", "/home/u")],
        }
    }

    #[test]
    fn an_entry_fills_what_the_file_leaves_empty() {
        let options = world(&[("clouds.yaml", CLOUDS)]).read(OPTIONS).unwrap();
        assert_eq!(options.settings.auth_url.as_str(), "http://a:5000/v3");
        assert_eq!(options.nodes.region, "R");
        assert_eq!(options.settings.interface, Interface::Internal);
        let login = format!("{:?}", options.settings.login);
        assert!(
            login.contains("admin") && login.contains("demo") && login.contains("Default"),
            "{login}"
        );
        assert!(options.tls.verifies_certificates);
    }

    #[test]
    fn files_are_found_in_every_place_and_by_the_variable() {
        for path in [
            "clouds.yaml",
            "/home/u/.config/openstack/clouds.yaml",
            "/etc/openstack/clouds.yaml",
            "clouds.yml",
            "/etc/openstack/clouds.yml",
        ] {
            assert!(world(&[(path, CLOUDS)]).read(OPTIONS).is_ok(), "{path}");
        }
        let mut named = world(&[("/x/y.yaml", CLOUDS)]);
        assert!(named.read(&format!("{OPTIONS}clouds-file = /x/y.yaml")).is_ok());
        assert_eq!(
            named.read(OPTIONS).unwrap_err().to_string(),
            "use-clouds is on, and no clouds.yaml was found"
        );
        named.variables.push(("OS_CLIENT_CONFIG_FILE", "/x/y.yaml"));
        assert!(named.read(OPTIONS).is_ok());
    }

    #[test]
    fn a_named_file_that_may_not_be_read_is_not_passed_over() {
        let world = world(&[("/etc/openstack/clouds.yaml", CLOUDS)]);
        assert!(world.read(&format!("{OPTIONS}clouds-file = /absent")).is_ok());
        let error = world
            .read(&format!("{OPTIONS}clouds-file = {FORBIDDEN}"))
            .unwrap_err();
        assert!(
            error.to_string().starts_with("cannot read /root/clouds.yaml, "),
            "{error}"
        );
    }

    #[test]
    fn a_text_in_clouds_yaml_may_look_like_a_number() {
        let clouds = "clouds: {one: {region_name: 7, auth: {username: 1e3, user_domain_id: 0x1f, project_id: 0123, password: 12345}}}";
        let options = world(&[("clouds.yaml", clouds)])
            .read("[Global]\nuse-clouds = true\nauth-url = http://a:5000/v3\n")
            .unwrap();
        assert_eq!(options.nodes.region, "7");
        let login = format!("{:?}", options.settings.login);
        assert!(
            login.contains("1e3") && login.contains("0x1f") && login.contains("0123"),
            "{login}"
        );
    }

    #[test]
    fn one_of_several_entries_is_named_by_the_file_or_else_by_the_variable() {
        const TWO: &str = "clouds:
  a: {region_name: A, auth: {username: u, domain_id: d, project_id: p}}
  b: {region_name: B, auth: {username: u, domain_id: d, project_id: p}}
";
        let mut world = world(&[("clouds.yaml", TWO)]);
        assert!(matches!(world.read(OPTIONS), Err(OptionsError::NoCloudChosen)));
        world.variables.push(("OS_CLOUD", "b"));
        assert_eq!(world.read(OPTIONS).unwrap().nodes.region, "B");
        assert_eq!(
            world.read(&format!("{OPTIONS}cloud = a")).unwrap().nodes.region,
            "A"
        );
        assert_eq!(
            world
                .read(&format!("{OPTIONS}cloud = c"))
                .unwrap_err()
                .to_string(),
            "clouds.yaml has no entry \"c\""
        );
    }

    #[test]
    fn a_profile_is_below_the_entry_and_the_secure_file_above() {
        let files = [
            (
                "clouds.yaml",
                "clouds: {one: {profile: vendor, region_name: Mine, auth: {username: u, project_id: p}}}",
            ),
            (
                "/etc/openstack/clouds-public.yaml",
                "public-clouds: {vendor: {region_name: Theirs, auth: {auth_url: 'http://vendor:5000/v3', user_domain_name: D}}}",
            ),
            ("secure.yaml", "clouds: {one: {auth: {password: hunter2}}}"),
        ];
        let options = world(&files).read("[Global]\nuse-clouds = true\n").unwrap();
        assert_eq!(options.settings.auth_url.as_str(), "http://vendor:5000/v3");
        assert_eq!(options.nodes.region, "Mine");
        assert!(!format!("{options:?}").contains("hunter2"));
        let without = world(&files[..1]).read("[Global]\nuse-clouds = true\n");
        assert_eq!(
            without.unwrap_err().to_string(),
            "use-clouds is on, and no clouds-public.yaml was found"
        );
    }
}
