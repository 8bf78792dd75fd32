use super::*;

fn site(variables: &[(&str, &str)]) -> Site {
    Site {
        environment: variables.iter().copied().collect(),
        calls: Calls::ToRead,
        metrics: Metrics::default(),
        shutdown: CancellationToken::new(),
        user_agent: "test".to_owned(),
        version: "v1.2.3".to_owned(),
        base_url: None,
        user_agents: Vec::new(),
        balances: true,
        makes_routes: true,
        series: Series::default(),
        seed: 0,
        shown: Shown::default(),
        dates: Dates::default(),
        silences: Default::default(),
        starts_anyway: false,
        copies: Vec::new(),
    }
}

fn options(name: &str, allows_untagged: bool) -> ProviderOptions {
    ProviderOptions {
        name: name.to_owned(),
        several: Vec::new(),
        beside: None,
        config: None,
        base_url: None,
        user_agents: Vec::new(),
        allows_untagged,
    }
}

/// The text without what all of them begin with.
async fn error(options: &ProviderOptions, site: &Site) -> String {
    let text = build(options, site).await.err().unwrap().to_string();
    match text.strip_prefix("Cloud provider could not be initialized: ") {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

#[tokio::test]
async fn an_unknown_name_is_refused_with_the_known_ones() {
    for name in ["nimbus", "cloudstack", "External-CloudStack", "Cloudscale", ""] {
        let text = error(&options(name, true), &site(&[])).await;
        let expected = format!("unknown cloud provider {name:?}; built in: ");
        assert!(text.starts_with(&expected), "{text}");
    }
    let text = error(&options("external", true), &site(&[])).await;
    assert!(text.starts_with("Cloud provider is nil"), "{text}");
}

#[cfg(all(feature = "cloudscale", feature = "cloudstack", feature = "phoenixnap"))]
/// Otherwise a cloud that asks to be left alone is told as one that does not answer.
#[test]
fn who_reads_once_does_not_repeat_a_call_or_hold_the_next_one_back() {
    let site = Site {
        calls: Calls::ToReadOnce,
        ..site(&[])
    };
    let http = site.http("nimbus");
    assert!(http.reads_only);
    assert_eq!(http.retry.attempts, 1);
    assert_eq!(http.retry.max_retry_after, Duration::ZERO);
}

#[test]
fn a_near_name_is_told() {
    for (name, meant) in [
        ("cloudscal", Some("cloudscale")),
        ("clodscale", Some("cloudscale")),
        ("Cloudscale", Some("cloudscale")),
        ("cloudstack", Some("external-cloudstack")),
        ("external-cloudstck", Some("external-cloudstack")),
        ("phenixnap", Some("phoenixnap")),
        ("aws", None),
        ("", None),
    ] {
        assert_eq!(near(name), meant, "{name}");
        let text = ProviderError::Unknown(name.to_owned()).to_string();
        assert_eq!(text.contains("; did you mean \""), meant.is_some(), "{text}");
    }
}

#[test]
fn who_names_no_cloud_is_not_told_that_it_is_unknown() {
    let text = check(&options(args::UNSAID, false)).unwrap_err().to_string();
    assert!(text.starts_with("no cloud is named"), "{text}");
}

#[cfg(feature = "cloudscale")]
#[tokio::test]
async fn cloudscale_needs_a_token_and_the_word_that_no_cluster_id_is_fine() {
    assert_eq!(
        error(&options("cloudscale", true), &site(&[])).await,
        "could not init cloud provider \"cloudscale\": no CLOUDSCALE_ACCESS_TOKEN configured"
    );
    let mut site = site(&[("CLOUDSCALE_ACCESS_TOKEN", "secret")]);
    // A command that only reads marks nothing.
    assert!(build(&options("cloudscale", false), &site).await.is_ok());
    let gate = FencingGate::closed(Arc::new(bowline_kube_io::SystemClock));
    site.calls = Calls::WhileLeading(Arc::new(gate));
    assert!(
        error(&options("cloudscale", false), &site)
            .await
            .starts_with("no ClusterID found")
    );
    assert_eq!(
        build(&options("cloudscale", true), &site).await.unwrap().name(),
        "cloudscale"
    );
}

/// An expired credential of one is no reason to leave the others unserved.
#[test]
fn a_cloud_that_refuses_the_start_keeps_no_other_from_it() {
    let mut site = site(&[]);
    let refused = || Err::<&str, _>(CloudError::other("refused"));
    assert_eq!(site.or_go_on("openstack", refused(), "all"), refused());
    site.starts_anyway = true;
    assert_eq!(site.or_go_on("openstack", refused(), "all"), Ok("all"));
    let told = site.shown.take().unwrap().refused;
    assert_eq!((told.len(), told[0].cloud.as_str()), (1, "openstack"));
    let answer = Ok::<_, CloudError>("some");
    assert_eq!(site.or_go_on("openstack", answer, "all"), Ok("some"));
}

#[cfg(all(feature = "cloudstack", feature = "openstack"))]
#[tokio::test(start_paused = true)]
async fn two_clouds_that_do_not_answer_take_no_longer_than_one() {
    // Connections are taken by the system, and nobody reads from them.
    let hanging = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", hanging.local_addr().unwrap());
    let cloud = |name: &str| CloudOptions {
        name: name.to_owned(),
        config: Some(name.into()),
        classes: bowline_cloud_provider::ServiceClasses::new([name.to_owned()], false).unwrap(),
    };
    let copied = |name: &str, contents: String| Copied {
        called: name.to_owned(),
        contents: contents.into(),
    };
    let mut options = options("external-cloudstack,openstack", true);
    options.several = vec![cloud("external-cloudstack"), cloud("openstack")];
    let login = "username = u\npassword = p\ntenant-name = t\ndomain-name = d\nregion = r";
    let site = Site {
        starts_anyway: true,
        copies: vec![
            copied(
                "external-cloudstack",
                format!("[Global]\napi-url = {url}\napi-key = k\nsecret-key = s\n"),
            ),
            copied("openstack", format!("[Global]\nauth-url = {url}/v3\n{login}\n")),
        ],
        ..site(&[])
    };
    let begun = tokio::time::Instant::now();
    build(&options, &site).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// Nothing starts with one cloud of two.
#[cfg(all(feature = "cloudscale", feature = "openstack"))]
#[tokio::test]
async fn of_several_clouds_the_one_without_configuration_is_named() {
    let cloud = |name: &str| CloudOptions {
        name: name.to_owned(),
        config: None,
        classes: bowline_cloud_provider::ServiceClasses::default(),
    };
    let mut options = options("cloudscale,openstack", true);
    options.several = vec![cloud("cloudscale"), cloud("openstack")];
    let with_token = site(&[("CLOUDSCALE_ACCESS_TOKEN", "secret")]);
    for (site, named) in [
        (site(&[]), "\"cloudscale\": no CLOUDSCALE_ACCESS_TOKEN configured"),
        (with_token, "\"openstack\": "),
    ] {
        let text = error(&options, &site).await;
        assert!(
            text.starts_with(&format!("could not init cloud provider {named}")),
            "{text}"
        );
    }
    options.several[1].name = "nimbus".to_owned();
    let text = ProviderError::to_string(&check(&options).unwrap_err());
    assert!(text.contains("unknown cloud provider \"nimbus\""), "{text}");
}

#[cfg(feature = "paper")]
#[tokio::test]
async fn paper_needs_to_know_where_its_api_is_and_marks_what_it_makes() {
    assert_eq!(
        error(&options("paper", false), &site(&[])).await,
        "could not init cloud provider \"paper\": PAPER_API_URL is not set"
    );
    let site = site(&[("PAPER_API_URL", "http://127.0.0.1:1"), ("PAPER_TOKEN", "secret")]);
    assert_eq!(
        build(&options("paper", false), &site).await.unwrap().name(),
        "paper"
    );
}

#[cfg(feature = "phoenixnap")]
#[tokio::test]
async fn phoenixnap_needs_credentials_and_its_name_may_have_capitals() {
    assert_eq!(
        error(&options("phoenixnap", false), &site(&[])).await,
        "could not init cloud provider \"phoenixnap\": --cloud-config is required, unless both PNAP_CLIENT_ID and \
         PNAP_CLIENT_SECRET are in the environment"
    );
    let mut site = site(&[("PNAP_CLIENT_ID", "id"), ("PNAP_CLIENT_SECRET", "secret")]);
    for name in ["phoenixnap", "PhoenixNAP"] {
        assert_eq!(
            build(&options(name, false), &site).await.unwrap().name(),
            "phoenixnap"
        );
    }
    site.base_url = Some("sim.test".to_owned());
    assert_eq!(
        error(&options("phoenixnap", false), &site).await,
        "could not init cloud provider \"phoenixnap\": --base-url is not an absolute URL of http or https: \
         it does not begin with http:// or https://"
    );
}

#[cfg(feature = "phoenixnap")]
#[tokio::test]
async fn phoenixnap_takes_its_file_from_the_variable_of_its_guide_if_the_flag_is_not_given() {
    let site = site(&[("CCM_SECRET", "/nonexistent/cloud-sa.json")]);
    let text = error(&options("phoenixnap", false), &site).await;
    assert!(
        text.starts_with("Couldn't open cloud provider configuration /nonexistent/cloud-sa.json: "),
        "{text}"
    );
    assert!(text.ends_with("; CCM_SECRET names this file"), "{text}");
    let mut given = options("phoenixnap", false);
    given.config = Some("/nonexistent/given.json".into());
    assert!(error(&given, &site).await.contains("/nonexistent/given.json"));
}

#[cfg(feature = "cloudstack")]
#[tokio::test]
async fn cloudstack_needs_a_file_with_its_three_keys() {
    let mut options = options("external-cloudstack", false);
    let nothing_given =
        "could not init cloud provider \"external-cloudstack\": no cloud provider config given";
    assert!(error(&options, &site(&[])).await.starts_with(nothing_given));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cloud-config");
    options.config = Some(path.clone());
    for (text, expected) in [
        (
            "[Global]\napi-url = http://127.0.0.1:1\napi-key = k\n",
            nothing_given,
        ),
        (
            "[Global]\nretries = 3\n",
            "could not init cloud provider \"external-cloudstack\": could not parse cloud provider config: can't \
             store data at section \"Global\", variable \"retries\" (line 2)",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let text = error(&options, &site(&[])).await;
        assert!(text.starts_with(expected), "{text}");
    }
}

/// On a disk it would outlive an interrupted command, with the secrets in it.
#[cfg(feature = "cloudstack")]
#[tokio::test]
async fn a_file_that_is_taken_from_the_cluster_is_nowhere_on_a_disk() {
    let called = "cloud-config of Secret cloudstack-secret in kube-system";
    let mut options = options("external-cloudstack", false);
    options.config = Some(called.into());
    let with = |contents: &str| Site {
        copies: vec![Copied {
            called: called.to_owned(),
            contents: contents.into(),
        }],
        ..site(&[])
    };
    let whole = "[Global]\napi-url = http://127.0.0.1:1\napi-key = k\nsecret-key = s\nversion = 4.20.1.0\n";
    let built = build(&options, &with(whole)).await;
    assert!(built.is_ok(), "{:?}", built.err());
    let told = error(&options, &with("[Global]\napi-key = k\n")).await;
    assert!(told.contains(called), "{told}");
    assert_eq!(
        format!("{:?}", with(whole).copies),
        format!("[Copied({called:?})]")
    );
}

/// What `doctor` tells of the configuration with this file.
#[cfg(any(feature = "cloudscale", feature = "cloudstack", feature = "phoenixnap"))]
async fn remarks(name: &str, file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(name, true);
    let path = folder.path().join("cloud-config");
    std::fs::write(&path, file).unwrap();
    options.config = Some(path);
    let site = site(variables);
    build(&options, &site).await.unwrap();
    site.shown.take().unwrap().remarks
}

#[cfg(feature = "cloudstack")]
#[tokio::test]
async fn a_misspelt_option_of_cloudstack_and_an_open_connection_are_remarked() {
    let file = "[Global]\napi-url = http://127.0.0.1:1\napi-key = k\nsecret-key = s\nversion = 4.20.1.0\n\
                ssl-no-verify\nignore-unknown\nregoin = ch\n";
    let told = remarks("external-cloudstack", file, &[]).await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`ssl-no-verify` is on"), "{told:?}");
    assert!(told[1].contains("\"regoin\""), "{told:?}");
}

#[cfg(feature = "cloudscale")]
#[tokio::test]
async fn a_file_in_which_cloudscale_does_not_look_is_remarked() {
    let told = remarks("cloudscale", "", &[("CLOUDSCALE_ACCESS_TOKEN", "secret")]).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("--cloud-config received but ignored"),
        "{told:?}"
    );
}

#[cfg(feature = "phoenixnap")]
#[tokio::test]
async fn a_type_of_load_balancer_that_phoenixnap_does_not_know_is_remarked() {
    let file = r#"{"clientID": "a", "clientSecret": "b", "loadbalancer": "metal://network"}"#;
    let told = remarks("phoenixnap", file, &[]).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("the load balancer type is not known, kube-vip is the only one, not \"metal\""),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_config_file_that_cannot_be_read_is_named() {
    let mut options = options(names().next().unwrap(), true);
    options.config = Some("/nonexistent/cloud.conf".into());
    let text = error(&options, &site(&[])).await;
    assert!(
        text.starts_with("Couldn't open cloud provider configuration /nonexistent/cloud.conf: "),
        "{text}"
    );
    assert!(text.ends_with("; --cloud-config names this file"), "{text}");
}
