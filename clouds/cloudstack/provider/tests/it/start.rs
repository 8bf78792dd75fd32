use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{CloudstackSim, ProjectSpec, UserSpec};

use crate::site::Site;

#[tokio::test(start_paused = true)]
async fn an_administrator_costs_one_question_and_an_ordinary_user_two() {
    let admin = UserSpec::new(CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY).admin();
    let site = Site::built(|builder| builder.user(admin));
    site.start().await.unwrap();
    assert_eq!(site.commands(), ["listManagementServersMetrics"]);
    let site = Site::new();
    let provider = site.start().await.unwrap();
    assert_eq!(
        site.commands(),
        ["listManagementServersMetrics", "listCapabilities"]
    );
    assert!(provider.instances().is_some() && provider.has_cluster_id());
    assert!(provider.routes().is_none());
}

#[tokio::test(start_paused = true)]
async fn where_both_questions_are_forbidden_the_manager_starts_all_the_same() {
    for status in [432, 401, 531] {
        let site = Site::new();
        site.sim.set_behaviour(|behaviour| {
            behaviour.forbidden_status = status;
            if status != 401 {
                behaviour.forbidden_to_users.insert("listCapabilities".to_owned());
            }
        });
        site.start().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn good_keys_that_may_ask_neither_question_are_told_from_wrong_ones_by_a_third() {
    let site = Site::new();
    let refused = r#"{"response":{"errorcode":401,"errortext":"unable to verify user credentials"}}"#;
    for question in ["listManagementServersMetrics", "listCapabilities"] {
        let question = Fault::operation(question).always();
        site.sim.faults().add(question.answer(Canned::json(401, refused)));
    }
    site.start().await.unwrap();
    assert_eq!(
        site.commands(),
        [
            "listManagementServersMetrics",
            "listCapabilities",
            "listVirtualMachines"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_is_wrong_with_the_first_question_the_second_one_is_asked() {
    for status in [429, 430, 431, 503, 530] {
        let site = Site::new();
        let question = Fault::operation("listManagementServersMetrics");
        let body = format!(
            r#"{{"listmanagementserversmetricsresponse":{{"errorcode":{status},"errortext":"injected"}}}}"#
        );
        site.sim
            .faults()
            .add(question.always().answer(Canned::json(status, &body)));
        site.start().await.unwrap();
        let commands = site.commands();
        assert_eq!(
            commands.last().unwrap(),
            "listCapabilities",
            "{status}: {commands:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_management_server_that_tells_no_version_does_not_stand_for_all() {
    for (servers, commands) in [
        (r#"{"id":"1"},{"id":"2","version":"4.22.0.0"}"#, 1),
        (r#"{"id":"1","version":""}"#, 2),
    ] {
        let site = Site::new();
        let body =
            format!(r#"{{"listmanagementserversmetricsresponse":{{"managementserver":[{servers}]}}}}"#);
        let question = Fault::operation("listManagementServersMetrics");
        site.sim
            .faults()
            .add(question.always().answer(Canned::json(200, &body)));
        site.start().await.unwrap();
        assert_eq!(site.commands().len(), commands, "{servers}");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_is_wrong_with_both_questions_the_manager_starts() {
    for status in [430, 431, 405, 532, 536, 429, 503, 530] {
        let site = Site::new();
        for command in ["listManagementServersMetrics", "listCapabilities"] {
            let envelope = format!("{}response", command.to_lowercase());
            let body = format!(r#"{{"{envelope}":{{"errorcode":{status},"errortext":"injected"}}}}"#);
            site.sim.faults().add(
                Fault::operation(command)
                    .always()
                    .answer(Canned::json(status, &body)),
            );
        }
        let provider = site.start().await;
        assert!(provider.is_ok(), "{status}: {:?}", provider.err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_in_the_file_spares_the_question() {
    let site = Site::new().with("version = 4.20.1\n");
    site.start().await.unwrap();
    assert!(site.commands().is_empty());
}

#[tokio::test(start_paused = true)]
async fn wrong_keys_end_the_start_with_the_apis_words() {
    for line in ["secret-key = wrong\n", "api-key = wrong\n"] {
        let site = Site::new().with(line);
        let error = site.start().await.err().unwrap();
        assert_eq!(
            error.to_string(),
            "CloudStack API error 401 (CSExceptionErrorCode: 0): unable to verify user credentials and/or request \
             signature; the keys are wrong or were revoked, or the clock of this machine is off by minutes: compare it with `date -u`"
        );
    }
}

/// The server itself sends no `Date`; a proxy in front of it does.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_ends_the_start_and_is_told_where_the_answer_has_a_date() {
    for (sends_date, skew_s, told) in [
        (true, 660, Some("11 min behind")),
        (true, -360, Some("6 min ahead of")),
        (false, 660, None),
    ] {
        let site = Site::new();
        site.sim.set_behaviour(|it| {
            (it.sends_date, it.clock_skew_s, it.max_expiry) = (sends_date, skew_s, Some(900));
        });
        let error = site.start().await.err().unwrap().to_string();
        let refused = "CloudStack API error 401 (CSExceptionErrorCode: 0): unable to verify user credentials";
        assert!(error.starts_with(refused), "{error}");
        match told {
            Some(told) => assert!(
                error.contains(&format!("the clock of this machine is {told} ")),
                "{error}"
            ),
            None => assert!(error.ends_with("compare it with `date -u`"), "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_url_with_a_wrong_path_ends_the_start_and_is_told_with_what_is_expected() {
    let site = Site::new().with("api-url = http://cloud.test/client\n");
    let error = site.start().await.err().unwrap().to_string();
    assert!(
        error.ends_with(
            "; what answers at http://cloud.test/client is not CloudStack's API: `api-url` is the whole URL, such as \
             http://cloud.test/client/api"
        ),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_is_cut_at_a_comment_sign_unless_it_is_quoted() {
    let user = |secret: &str| UserSpec::new(CloudstackSim::API_KEY, secret);
    for (secret, line) in [("p", "secret-key = p;q\n"), ("p;q", "secret-key = \"p;q\"\n")] {
        let site = Site::built(|builder| builder.user(user(secret))).with(line);
        site.start().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_in_trouble_holds_no_start_up() {
    for fault in [
        Fault::any().always().drop_before(),
        Fault::any().always().status(530),
        Fault::any().always().status(503),
        Fault::any().always().hang_before(),
    ] {
        let site = Site::new();
        let what = format!("{fault:?}");
        site.sim.faults().add(fault);
        let begun = tokio::time::Instant::now();
        site.start().await.unwrap();
        let spent = begun.elapsed();
        assert!(spent <= Duration::from_secs(20), "{what}: {spent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_api_ends_the_start() {
    let site = Site::new();
    site.sim.faults().add(Fault::any().always().html(404));
    let text = site.start().await.err().unwrap().to_string();
    assert!(
        text.starts_with("listManagementServersMetrics: GET /client/api: 404 Not Found"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_project_is_found_by_its_exact_name_or_ends_the_start() {
    let site = Site::new().with("project-id = prod\n");
    site.sim.add_project(ProjectSpec::new("production"));
    let error = site.start().await.err().unwrap().to_string();
    assert!(
        error.starts_with("these keys see no project of the name \"prod\""),
        "{error}"
    );
    site.sim.add_project(ProjectSpec::new("prod"));
    site.start().await.unwrap();
}
