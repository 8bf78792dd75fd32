//! What failures become.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use bowline_cloud_http::{CredentialsFile, Secret};
use bowline_cloudstack_client::{ApiError, Association, Class, Deleted, Keys, Lookup};

use crate::answers::{API_KEY, Answer, Api, SECRET_KEY};

/// A write, which is never repeated, so that each answer is seen once.
async fn write(answer: Answer) -> ApiError {
    let api = Api::new([answer]);
    let to = Association::Network("n-7".into());
    let error = api.client().associate_ip_address(&to, None).await.unwrap_err();
    assert_eq!(api.take_seen().len(), 1);
    error
}

fn refusal(code: u16, text: &str) -> Answer {
    Answer::Body(
        code,
        format!(
            r#"{{"associateipaddressresponse":{{"uuidList":[],"errorcode":{code},"cserrorcode":4350,"errortext":"{text}"}}}}"#
        ),
    )
}

fn missing(parameter: &str, value: &str) -> String {
    format!(
        "Unable to execute API command associateipaddress due to invalid value. Invalid parameter {parameter} \
         value={value} due to incorrect long value format, or entity does not exist or due to incorrect parameter \
         annotation for the field in api cmd class."
    )
}

#[tokio::test]
async fn each_code_has_its_class_and_says_whether_something_may_have_happened() {
    let table = [
        (401, Class::Unauthenticated, false),
        (405, Class::Invalid, false),
        (429, Class::Throttled { after: None }, false),
        (430, Class::Invalid, false),
        (431, Class::Invalid, false),
        (432, Class::Denied, false),
        (503, Class::Unavailable { after: None }, true),
        (530, Class::Unavailable { after: None }, true),
        (531, Class::Denied, false),
        (532, Class::Exhausted, false),
        (533, Class::Exhausted, false),
        (534, Class::Unavailable { after: None }, true),
        (535, Class::Exhausted, false),
        (536, Class::Conflict, false),
        (537, Class::Conflict, false),
    ];
    for (code, class, maybe_applied) in table {
        let error = write(refusal(code, "Not this time.")).await;
        assert_eq!(error.class, class, "{code}");
        assert_eq!(error.is_rule_conflict(), code == 537, "{code}");
        assert_eq!(error.code(), Some(code));
        assert_eq!(error.maybe_applied(), maybe_applied, "{code}");
        let said = format!("CloudStack API error {code} (CSExceptionErrorCode: 4350): Not this time.");
        let text = error.to_string();
        assert!(text.starts_with(&said), "{text}");
        // Only of keys, and of what is not reached, there is more to say.
        assert_eq!(text == said, ![401, 534].contains(&code), "{text}");
    }
}

#[tokio::test]
async fn a_good_status_with_an_error_code_is_an_error() {
    let body = r#"{"associateipaddressresponse":{"errorcode":533,"errortext":"None left"}}"#;
    let error = write(Answer::ok(body)).await;
    assert_eq!(error.class, Class::Exhausted);
    assert_eq!(
        error.to_string(),
        "CloudStack API error 533 (CSExceptionErrorCode: 0): None left"
    );
    assert!(!error.maybe_applied());
}

#[tokio::test]
async fn a_body_that_is_not_the_apis_is_a_readable_error() {
    let error = write(Answer::Body(
        502,
        "<html>\n<body>Bad gateway</body></html>".to_owned(),
    ))
    .await;
    assert_eq!(error.class, Class::Unanswered);
    assert!(error.said.is_none() && error.maybe_applied());
    assert_eq!(
        error.to_string(),
        "associateIpAddress: POST /client/api: 502 Bad Gateway: <html> <body>Bad gateway</body></html> (host cloud.example)"
    );
    for (status, kind) in [
        (302, Class::Invalid),
        (404, Class::Invalid),
        (408, Class::Unavailable { after: None }),
    ] {
        assert_eq!(
            write(Answer::Body(status, String::new())).await.class,
            kind,
            "{status}"
        );
    }
    let error = write(Answer::ok("<html>Sign in</html>")).await;
    assert_eq!(error.class, Class::Unusable);
    assert!(error.to_string().contains("<html>Sign in</html>"), "{error}");
    let error = write(Answer::ok(r#"{"associateipaddressresponse":{}}"#)).await;
    assert_eq!(error.class, Class::Unusable);
    assert!(error.maybe_applied());
    assert!(error.to_string().contains("missing field `jobid`"), "{error}");
}

/// The clock of the client shows 02:54:05.
#[tokio::test]
async fn a_signature_that_is_refused_for_a_wrong_clock_says_by_how_much_it_is_wrong() {
    let refused = "unable to verify user credentials and/or request signature";
    let body = format!(r#"{{"associateipaddressresponse":{{"errorcode":401,"errortext":"{refused}"}}}}"#);
    let said = format!("CloudStack API error 401 (CSExceptionErrorCode: 0): {refused}");
    let remedy = |place: &str| {
        format!(
            "{said}; the clock of this machine is {place} that of the answer, and a signature is good for some minutes only: \
             correct the time of the node"
        )
    };
    for (date, expected) in [
        ("Wed, 02 Jan 2030 03:06:00 GMT", remedy("11 min behind")),
        ("Wed, 02 Jan 2030 02:47:05 GMT", remedy("7 min ahead of")),
        ("Wed, 02 Jan 2030 02:55:30 GMT", said.clone()),
        (
            "today",
            format!(
                "{said}; the keys are wrong or were revoked, or the clock of this machine is off by minutes: compare it with `date -u`"
            ),
        ),
    ] {
        let answer = Answer::Header(401, ("date", date), body.clone());
        assert_eq!(write(answer).await.to_string(), expected, "{date}");
    }
    // Another refusal has another cause.
    let body = body.replace("401", "431");
    let answer = Answer::Header(431, ("date", "Wed, 02 Jan 2030 03:06:00 GMT"), body);
    assert!(!write(answer).await.to_string().contains("clock"));
}

/// The API says so by the words for wrong keys.
#[tokio::test]
async fn one_command_that_is_refused_while_its_keys_are_good_for_others_points_to_the_role() {
    let refused = "unable to verify user credentials and/or request signature";
    let said = format!("CloudStack API error 401 (CSExceptionErrorCode: 4350): {refused}");
    let role = "the keys were good for another command meanwhile: see whether the role of their account allows \
                `associateIpAddress`";
    let keys = "the keys are wrong or were revoked, or the clock of this machine is off by minutes: compare it with `date -u`";
    let good = Answer::ok(r#"{"response":{"jobid":"j1"}}"#);
    let page = Answer::Body(401, "<html>Sign in</html>".to_owned());
    let refusal = || refusal(401, refused);
    for (answers, expected) in [
        (
            vec![good.clone(), refusal(), good.clone(), refusal()],
            format!("{said}; {role}"),
        ),
        // They may have been revoked between the two, or a clock was set.
        (vec![good.clone(), refusal()], format!("{said}; {keys}")),
        (vec![refusal(), refusal()], format!("{said}; {keys}")),
        (
            vec![good, page],
            "associateIpAddress: POST /client/api: 401 Unauthorized: <html>Sign in</html>".to_owned(),
        ),
    ] {
        let tries = answers.len() / 2;
        let client = Api::new(answers).client();
        let to = Association::Network("n-7".into());
        for _ in 1..tries {
            let _ = client.delete_firewall_rule(&"f".into()).await;
            let _ = client.associate_ip_address(&to, None).await;
        }
        let _ = client.delete_firewall_rule(&"f".into()).await;
        let error = client.associate_ip_address(&to, None).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

/// The words of `ApiServer.commandAvailable` and of `DynamicRoleBasedAPIAccessChecker`.
#[tokio::test]
async fn a_command_that_is_refused_by_the_words_for_a_role_is_no_matter_of_keys() {
    let old = "The given command 'associateIpAddress' either does not exist, is not available for user.";
    let new =
        "The API [associateIpAddress] does not exist or is not available for the account for user id [3c1d].";
    for (code, words) in [(401, old), (432, new)] {
        let error = write(refusal(code, words)).await;
        assert_eq!((error.class, error.maybe_applied()), (Class::Denied, false));
        assert_eq!(
            error.to_string(),
            format!(
                "CloudStack API error {code} (CSExceptionErrorCode: 4350): {words}; these keys may not use it: see whether the role of \
                 their account allows `associateIpAddress`"
            )
        );
    }
}

#[tokio::test]
async fn what_answers_at_a_url_that_is_not_the_apis_is_told_with_what_is_expected() {
    let error = async |url: &str, answer: Answer| {
        let api = Api::new([answer]);
        let to = Association::Network("n-7".into());
        let refused = api.client_at(url).associate_ip_address(&to, None).await;
        refused.unwrap_err().to_string()
    };
    let page = |status| Answer::Body(status, "<html>No such page.</html>".to_owned());
    let usual = "`api-url` is the whole URL, such as https://cloud.example:8443/client/api";
    for (status, path) in [(404, "/"), (302, "/client"), (405, "/api"), (200, "/client/")] {
        let error = error(
            &format!("https://cloud.example:8443{path}?x=hunter2"),
            page(status),
        )
        .await;
        let expected =
            format!("; what answers at https://cloud.example:8443{path} is not CloudStack's API: {usual}");
        assert!(error.ends_with(&expected), "{status}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let usual = error("http://cloud.example/client/api", page(404)).await;
    assert!(
        usual.ends_with(
            "; what answers at http://cloud.example/client/api is not CloudStack's API: correct scheme, host or port of \
             `api-url`"
        ),
        "{usual}"
    );
    for answer in [page(502), Answer::ok("{"), Answer::Body(431, String::new())] {
        let error = error("http://cloud.example/api", answer.clone()).await;
        assert!(!error.contains("api-url"), "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn no_connection_is_no_effect() {
    let error = write(Answer::NoConnection).await;
    assert_eq!(error.class, Class::Unanswered);
    assert!(!error.maybe_applied());
    let text = error.to_string();
    assert!(text.ends_with("(host cloud.example)"), "{text}");
}

#[tokio::test]
async fn missing_is_believed_only_of_an_id_that_was_sent_and_never_of_the_project() {
    let error = write(refusal(431, &missing("networkid", "n-7"))).await;
    assert_eq!(error.class, Class::NotFound);
    assert!(error.proves_absence_of("n-7") && !error.proves_absence_of("n-8"));
    for (parameter, value) in [("networkid", "n-8"), ("vpcid", "n-7")] {
        let error = write(refusal(431, &missing(parameter, value))).await;
        assert_eq!(error.class, Class::Invalid, "{parameter} {value}");
        assert!(!error.proves_absence_of(value));
    }
    let api = Api::new([refusal(431, &missing("projectid", "-1"))]);
    let error = api
        .client_in(Some("-1"))
        .virtual_machine(&"v".into())
        .await
        .unwrap_err();
    assert_eq!(error.class, Class::Invalid);
    let text = error.to_string();
    assert!(
        text.contains("; set `project-id` of the configuration to"),
        "{text}"
    );
}

#[tokio::test]
async fn what_is_gone_is_none_when_read_and_no_error_when_deleted() {
    let gone = || refusal(431, &missing("id", "x-1"));
    let client = Api::new([gone(), gone(), gone(), gone()]).client();
    assert_eq!(
        client.virtual_machine(&"x-1".into()).await.unwrap(),
        Lookup::Unknown
    );
    assert_eq!(client.network(&"x-1".into()).await.unwrap(), None);
    assert_eq!(
        client.delete_load_balancer_rule(&"x-1".into()).await.unwrap(),
        Deleted::AlreadyGone
    );
    let error = client.delete_load_balancer_rule(&"x-2".into()).await.unwrap_err();
    assert_eq!(error.class, Class::Invalid);
}

#[tokio::test]
async fn a_page_of_something_in_between_never_proves_absence() {
    let html = Answer::Body(431, format!("<html>{}</html>", missing("id", "v")));
    let error = Api::new([html])
        .client()
        .virtual_machine(&"v".into())
        .await
        .unwrap_err();
    assert_eq!(error.class, Class::Invalid);
    assert!(error.said.is_none());
}

#[tokio::test]
async fn a_project_that_the_keys_do_not_see_is_named() {
    let projects = r#"{"listprojectsresponse":{"count":1,"project":[{"id":"p1","name":"production"}]}}"#;
    for answer in [projects, r#"{"listprojectsresponse":{}}"#] {
        let client = Api::new([Answer::ok(answer)]).client_in(Some("prod"));
        let error = client.project().await.unwrap_err();
        assert_eq!(error.class, Class::Denied);
        assert_eq!(
            error.to_string(),
            "these keys see no project of the name \"prod\": `project-id` takes the id of a project, or its exact name"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn neither_keys_nor_signature_are_shown_whatever_is_echoed() {
    for status in [200, 400, 401, 500, 531] {
        let errors = [
            write(Answer::Echo(status)).await,
            Api::new([Answer::Echo(status)])
                .client()
                .capabilities()
                .await
                .unwrap_err(),
        ];
        for error in errors {
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("you sent"), "{shown}");
            for secret in [API_KEY, "q7J", SECRET_KEY] {
                assert!(!shown.contains(secret), "{secret}: {shown}");
            }
            let signatures: Vec<_> = shown.match_indices("signature=").collect();
            assert!(
                signatures
                    .iter()
                    .all(|(at, _)| shown[*at..].starts_with("signature=***")),
                "{shown}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_keys_are_looked_for_in_their_file_before_giving_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, "old").unwrap();
    let parse = |contents: &[u8]| {
        Ok(Keys {
            api_key: Secret::new(String::from_utf8_lossy(contents)),
            secret_key: Secret::new("s"),
            doubt: "look at how it is written".to_owned(),
        })
    };
    let file = CredentialsFile::open(&path, parse).unwrap();
    let taken = Answer::ok(r#"{"response":{"jobid":"j1"}}"#);
    let api = Api::new([refusal(401, "no"), refusal(401, "no"), taken]);
    let client = api.client_following(file);
    let error = client.delete_firewall_rule(&"f".into()).await.unwrap_err();
    assert_eq!(error.class, Class::Unauthenticated);
    assert!(
        error.to_string().ends_with("; look at how it is written"),
        "{error}"
    );
    assert_eq!(api.take_seen().len(), 1);
    std::fs::write(&path, "new").unwrap();
    // The file is looked at once a second at most, however often the keys are refused.
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    client.delete_firewall_rule(&"f".into()).await.unwrap();
    let bodies: Vec<String> = api.take_seen().into_iter().map(|seen| seen.body).collect();
    assert!(
        bodies[0].starts_with("apiKey=old&") && bodies[1].starts_with("apiKey=new&"),
        "{bodies:?}"
    );
}
