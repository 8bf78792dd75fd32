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
fn an_empty_value_hides_none_of_the_profile_or_of_another_key() {
    let clouds = "clouds:
  one:
    profile: vendor
    auth: {auth_url: '', username: admin, password: p, project_name: demo, domain_name: Default}
    region_name: ''
    interface: ' '
    endpoint_type: internal
";
    let public = "public-clouds: {vendor: {auth: {auth_url: 'http://v:5000'}, region_name: V}}";
    let files = [("clouds.yaml", clouds), ("clouds-public.yaml", public)];
    let options = world(&files).read("[Global]\nuse-clouds\n").unwrap();
    assert_eq!(options.settings.auth_url.as_str(), "http://v:5000/");
    assert_eq!(options.nodes.region, "V");
    assert_eq!(options.settings.interface, Interface::Internal);
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
    assert!(named.read(OPTIONS).is_err());
    named.variables.push(("OS_CLIENT_CONFIG_FILE", "/x/y.yaml"));
    assert!(named.read(OPTIONS).is_ok());
}

#[test]
fn where_no_file_is_found_each_place_is_told() {
    let error = |world: &World, more: &str| {
        let error = world.read(&format!("{OPTIONS}{more}")).unwrap_err();
        error.to_string()
    };
    let beginning = "use-clouds is on, and no clouds.yaml was found: looked for ";
    let end = "(section \"Global\" of cloud.conf)";
    assert_eq!(
        error(&world(&[]), "clouds-file = /absent.yaml"),
        format!(
            "{beginning}/absent.yaml (by its name), clouds.yaml in the working directory, /home/u/.config/openstack/clouds.yaml, \
             /etc/openstack/clouds.yaml, clouds.yml in the working directory, /home/u/.config/openstack/clouds.yml, \
             /etc/openstack/clouds.yml {end}"
        )
    );
    let homeless = World::default();
    assert_eq!(
        error(&homeless, ""),
        format!(
            "{beginning}clouds.yaml in the working directory, /etc/openstack/clouds.yaml, clouds.yml in the working directory, \
             /etc/openstack/clouds.yml, not in a home directory, because HOME is not set {end}"
        )
    );
    // A file that is there and may not be read is told as such.
    let locked = World {
        variables: vec![("HOME", "/locked")],
        ..World::default()
    };
    let error = error(&locked, "");
    assert!(
        error.contains("/locked/.config/openstack/clouds.yaml (permission denied), "),
        "{error}"
    );
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
    assert_eq!(
        world.read(OPTIONS).unwrap_err().to_string(),
        "clouds.yaml does not have exactly one entry: name one by the option `cloud` or the variable OS_CLOUD (section \
         \"Global\" of cloud.conf)"
    );
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
        "clouds.yaml has no entry \"c\" (section \"Global\" of cloud.conf)"
    );
}

#[test]
fn an_entry_that_is_misspelt_or_holds_no_login_is_told_with_its_file() {
    const NO_LOGIN: &str = "clouds: {production: {auth: {username: u, project_id: p}}}";
    let world = world(&[("/etc/openstack/clouds.yaml", NO_LOGIN)]);
    let error = |more: &str| world.read(&format!("{OPTIONS}{more}")).unwrap_err().to_string();
    assert_eq!(
        error(""),
        "a username needs its domain: user-domain-id, user-domain-name, domain-id or domain-name (section \"Global\" of \
         cloud.conf and the entry \"production\" of /etc/openstack/clouds.yaml)"
    );
    assert_eq!(
        error("cloud = producton"),
        "/etc/openstack/clouds.yaml has no entry \"producton\": did you mean \"production\"? (section \"Global\" of \
         cloud.conf)"
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
    let without = without.unwrap_err().to_string();
    assert!(
        without.starts_with(
            "use-clouds is on, and no clouds-public.yaml was found: looked for clouds-public.yaml in the working directory, "
        ),
        "{without}"
    );
}
