//! What is told of jobs. Samples: CloudStack developer's guide, "Asynchronous commands", with invented values.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use bowline_cloudstack_client::{ApiError, Class, Job, Made, PublicIpId, RuleId};

use crate::answers::{Answer, Api};

async fn job(members: &str) -> Job {
    let body = format!(r#"{{"queryasyncjobresultresponse":{{"jobid":"j1",{members}}}}}"#);
    let api = Api::new([Answer::ok(&body)]);
    let job = api.client().query_job(&"j1".into()).await.unwrap();
    assert_eq!(api.take_commands(), ["GET queryAsyncJobResult jobid=j1"]);
    job
}

async fn failure(members: &str) -> ApiError {
    match job(members).await {
        Job::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_job_is_pending_until_it_says_otherwise() {
    for members in [
        r#""jobstatus":0,"jobprocstatus":0,"jobresultcode":0,"created":"2026-03-04T05:06:07+0000""#,
        r#""jobstatus":7"#,
        r#""cmd":"x""#,
    ] {
        assert!(matches!(job(members).await, Job::Pending), "{members}");
    }
}

#[tokio::test]
async fn each_kind_of_object_is_found_in_the_result() {
    let done = |result: &str| {
        format!(r#""jobstatus":1,"jobresultcode":0,"jobresulttype":"object","jobresult":{result}"#)
    };
    let address = |id: Option<&str>| Made::Address {
        id: id.map(Into::into),
        ip: Some("203.0.113.40".to_owned()),
    };
    for (result, expected) in [
        (
            r#"{"loadbalancer":{"id":"e5","name":"a-tcp-443","publicport":"443"}}"#,
            Made::Rule("e5".into()),
        ),
        (
            r#"{"ipaddress":{"id":"77","ipaddress":"203.0.113.40"}}"#,
            address(Some("77")),
        ),
        (r#"{"ipaddress":{"ipaddress":"203.0.113.40"}}"#, address(None)),
        (
            r#"{"firewallrule":{"id":"f1","startport":443}}"#,
            Made::FirewallRule("f1".into()),
        ),
        (
            r#"{"networkacl":{"id":4711,"startport":"443"}}"#,
            Made::AclItem("4711".into()),
        ),
        (r#"{"networkacl":{"id":[]}}"#, Made::Untold),
        (r#"{"success":true}"#, Made::Untold),
        (r#"{"success":"true","displaytext":"ok"}"#, Made::Untold),
        ("null", Made::Untold),
        (r#"{"x":{}}"#, Made::Untold),
    ] {
        let Job::Done(made) = job(&done(result)).await else {
            panic!("{result}");
        };
        assert_eq!(made, expected, "{result}");
    }
}

#[test]
fn what_a_job_does_not_tell_is_known_from_the_answer_to_its_command() {
    let rule = || Made::from(RuleId::from("e5"));
    assert_eq!(Made::Untold.or(rule()), rule());
    assert_eq!(rule().or(Made::Untold), rule());
    let address = |id: Option<&str>, ip: Option<&str>| Made::Address {
        id: id.map(Into::into),
        ip: ip.map(str::to_owned),
    };
    assert_eq!(
        address(None, Some("203.0.113.40")).or(PublicIpId::from("77").into()),
        address(Some("77"), Some("203.0.113.40"))
    );
}

#[tokio::test]
async fn a_failed_job_has_the_class_of_its_code_and_may_have_done_something() {
    let error = failure(
        r#""jobstatus":2,"jobresultcode":431,"jobresulttype":"object",
           "jobresult":{"errorcode":431,"errortext":"VM with id specified cannot be added"}"#,
    )
    .await;
    assert_eq!(error.class, Class::Invalid);
    assert!(error.maybe_applied());
    assert_eq!(
        error.to_string(),
        "Undefined error: CloudStack API error 431 (CSExceptionErrorCode: 0): VM with id specified cannot be added"
    );
    let error =
        failure(r#""jobstatus":2,"jobresultcode":530,"jobresulttype":"text","jobresult":"no router""#).await;
    assert_eq!(error.class, Class::Unavailable { after: None });
    assert_eq!(error.to_string(), "no router");
    let error = failure(
        r#""jobstatus":2,"jobresultcode":534,"jobresulttype":"object",
           "jobresult":{"errorcode":534,"errortext":"Resource [VirtualRouter:12] is unreachable"}"#,
    )
    .await;
    assert_eq!(
        error.to_string(),
        "Undefined error: CloudStack API error 534 (CSExceptionErrorCode: 0): Resource [VirtualRouter:12] is unreachable; \
         whoever runs CloudStack looks at the virtual router, the agent of its host, and the log of the management server"
    );
    let error = failure(r#""jobstatus":2,"jobresultcode":533"#).await;
    assert_eq!(error.class, Class::Exhausted);
    let error = failure(r#""jobstatus":1,"jobresult":{"success":false,"displaytext":"not done"}"#).await;
    assert!(error.to_string().ends_with(": not done"), "{error}");
}

#[tokio::test]
async fn a_question_that_fails_says_nothing_of_the_job() {
    let api = Api::new([Answer::Body(
        530,
        r#"{"queryasyncjobresultresponse":{"errorcode":530,"errortext":"down"}}"#.to_owned(),
    )]);
    let error = api.client().query_job(&"j1".into()).await.unwrap_err();
    assert_eq!(error.class, Class::Unavailable { after: None });
}
