//! How calls travel: tries, timeouts, budget, gate, and what an error says.

#[path = "calls/cloud.rs"]
mod cloud;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_cloud_http::{
    CancellationToken, Class, Classified, Failure, GateClosed, Method, Metrics, Phase, Request, Secret,
    StatusCode, TransportError, Url, resolve,
};
use cloud::{Cloud, Step, read, url, write};
use futures::future::join_all;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

#[tokio::test(start_paused = true)]
async fn a_read_is_tried_three_times_and_the_last_answer_counts() {
    let cloud = Cloud::new([
        Step::status(503),
        Step::Fails(TransportError::Connect),
        Step::body(200, "[7]"),
    ]);
    let answer = cloud.client().send(read()).await.unwrap();
    assert_eq!(answer.json::<Vec<u8>>().unwrap(), [7]);
    assert_eq!(cloud.seen().len(), 3);

    let cloud = Cloud::new([Step::status(503), Step::status(502), Step::status(504)]);
    let error = cloud.client().send(read()).await.unwrap_err();
    assert_eq!(error.status().unwrap().as_u16(), 504);
    assert_eq!(cloud.seen().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn each_exchange_is_counted_with_its_status() {
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let throttled = Step::Answer(429, vec![("retry-after", "1")], "");
    let cloud = Cloud::new([
        throttled,
        Step::Fails(TransportError::Broken),
        Step::status(200),
        Step::Silence,
    ]);
    let client = cloud.client_with(|config| config.metrics = metrics.clone());
    client.send(read()).await.unwrap();
    // A caller that goes away is counted as well, and holds no place.
    assert!(
        tokio::time::timeout(SECONDS(1), client.send(write()))
            .await
            .is_err()
    );
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for line in [
        r#"cloud_api_requests_total{provider="nimbus",operation="things.list",code="429"} 1"#,
        r#"cloud_api_requests_total{provider="nimbus",operation="things.list",code="<error>"} 1"#,
        r#"cloud_api_requests_total{provider="nimbus",operation="things.list",code="200"} 1"#,
        r#"cloud_api_requests_total{provider="nimbus",operation="things.create",code="<cancelled>"} 1"#,
        r#"cloud_api_request_duration_seconds_count{provider="nimbus",operation="things.list"} 2"#,
        r#"cloud_api_requests_in_flight{provider="nimbus"} 0"#,
        r#"cloud_api_throttled_total{provider="nimbus"} 1"#,
        r#"cloud_api_budget_left{provider="nimbus"} 16"#,
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is missing in\n{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_sent_once_whatever_happens_to_it() {
    for step in [
        Step::status(429),
        Step::status(503),
        Step::Fails(TransportError::Connect),
        Step::Fails(TransportError::Broken),
    ] {
        let cloud = Cloud::new([step]);
        assert!(cloud.client().send(write()).await.is_err());
        assert_eq!(cloud.seen().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_declared_idempotent_is_repeated() {
    let cloud = Cloud::new([Step::status(503), Step::status(204)]);
    assert!(cloud.client().send(write().idempotent(true)).await.is_ok());
    assert_eq!(cloud.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_delays() {
    let mut histories = Vec::new();
    for seed in [1, 1, 2] {
        let cloud = Cloud::new([Step::status(503), Step::status(503), Step::status(200)]);
        cloud
            .client_with(|config| config.seed = seed)
            .send(read())
            .await
            .unwrap();
        histories.push(cloud.times());
    }
    assert_eq!(histories[0], histories[1]);
    assert_ne!(histories[0], histories[2]);
    for history in histories {
        assert!((250..=500).contains(&(history[1] - history[0])), "{history:?}");
        assert!((500..=1000).contains(&(history[2] - history[1])), "{history:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_provider_pauses_as_a_whole() {
    let throttled = Step::Answer(429, vec![("retry-after", "7")], "");
    let cloud = Cloud::new([throttled, Step::status(200), Step::status(204)]);
    let client = cloud.client_with(|config| config.max_in_flight = 1);
    // The write was not throttled itself; it waits because the provider is paused.
    let (first, second) = tokio::join!(client.send(read()), client.send(write()));
    first.unwrap();
    second.unwrap();
    assert_eq!(cloud.times(), [0, 7000, 7000]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_each_time_while_others_are_taken_pauses_nobody_again() {
    let throttled = || Step::Answer(429, vec![("retry-after", "7")], "");
    let taken = || Step::status(200);
    let cloud = Cloud::new([throttled(), taken(), throttled(), taken()]);
    let client = cloud.client();
    for _ in 0..2 {
        client.send(write()).await.unwrap_err();
        client.send(read()).await.unwrap();
    }
    assert_eq!(cloud.times(), [0, 7000, 7000, 7000]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_pause_held_back_says_so() {
    let throttled = || Step::Answer(429, vec![("retry-after", "7")], "");
    let cloud = Cloud::new([throttled(), throttled()]);
    let client = cloud.client_with(|config| config.deadline = SECONDS(10));
    let later = async |seconds| {
        tokio::time::sleep(SECONDS(seconds)).await;
        client.send(write()).await
    };
    let (_, refused, held) = tokio::join!(client.send(read()), later(1), later(2));
    assert_eq!(refused.unwrap_err().status().unwrap().as_u16(), 429);
    let error = held.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("not sent within 10 s: the cloud limits requests, and has asked for a pause"),
        "{error}"
    );
    assert_eq!(
        error.class(),
        Class::Throttled {
            after: Some(SECONDS(2))
        }
    );
    assert!(!error.maybe_applied());
    assert_eq!(cloud.times(), [0, 7000]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_beyond_the_limit_is_left_to_the_caller() {
    let cloud = Cloud::new([Step::Answer(503, vec![("retry-after", "600")], "")]);
    let error = cloud.client().send(read()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(SECONDS(600)));
    assert_eq!(cloud.times(), [0]);
}

#[tokio::test(start_paused = true)]
async fn no_try_begins_after_the_deadline() {
    let slow = || Step::Late(SECONDS(15), 503);
    let cloud = Cloud::new([slow(), slow()]);
    let error = cloud
        .client_with(|config| config.deadline = SECONDS(20))
        .send(read())
        .await
        .unwrap_err();
    assert_eq!(error.status().unwrap().as_u16(), 503);
    assert_eq!(cloud.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_place_before_its_deadline_was_never_sent() {
    let cloud = Cloud::new([Step::Silence]);
    let client = cloud.client_with(|config| {
        config.max_in_flight = 1;
        config.deadline = SECONDS(30);
    });
    let (_, queued) = tokio::join!(client.send(write()), client.send(write()));
    let error = queued.unwrap_err();
    assert!(
        matches!(
            error.failure,
            Failure::Timeout {
                phase: Phase::Queue,
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.maybe_applied());
    assert_eq!(cloud.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reads_and_writes_have_their_own_timeouts() {
    for (request, seconds) in [(read(), 20), (write(), 120), (read().timeout(SECONDS(3)), 3)] {
        let cloud = Cloud::new([Step::Silence]);
        let begun = Instant::now();
        let error = cloud.client().send(request).await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), seconds);
        assert!(
            matches!(
                error.failure,
                Failure::Timeout {
                    phase: Phase::Exchange,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.maybe_applied());
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_includes_reading_the_body() {
    let cloud = Cloud::new([Step::HalfABody(200)]);
    let begun = Instant::now();
    let error = cloud.client().send(read()).await.unwrap_err();
    assert_eq!(begun.elapsed(), SECONDS(20));
    assert!(matches!(error.failure, Failure::Timeout { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_good_answer_that_breaks_off_may_have_had_its_effect_and_a_refusal_stays_one() {
    let cloud = Cloud::new([Step::BrokenBody(201)]);
    let error = cloud.client().send(write()).await.unwrap_err();
    assert!(matches!(error.failure, Failure::Broken(_)), "{error}");
    assert!(error.maybe_applied());

    let cloud = Cloud::new([Step::BrokenBody(400)]);
    let error = cloud.client().send(write()).await.unwrap_err();
    assert_eq!(error.status().unwrap().as_u16(), 400);
    assert!(!error.maybe_applied());
}

#[tokio::test(start_paused = true)]
async fn a_body_beyond_the_limit_is_refused() {
    let cloud = Cloud::new([Step::body(200, "12345"), Step::body(200, "123456")]);
    let client = cloud.client_with(|config| config.max_body = 5);
    assert_eq!(&client.send(read()).await.unwrap().body[..], b"12345");
    let error = client.send(read()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.list: GET /v1/things: the answer (200 OK) is longer than 5 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_keeps_every_request_back() {
    let cloud = Cloud::new([]);
    let closed = || Err(GateClosed::new("the lease may have been lost"));
    let client = cloud.client_with(|config| config.gate = Arc::new(closed));
    let error = client.send(write()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.create: POST /v1/things: not sent: the lease may have been lost"
    );
    assert!(!error.maybe_applied());
    let error = client.send(read()).await.unwrap_err();
    assert!(matches!(error.failure, Failure::GateClosed(_)), "{error}");
    assert!(cloud.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn where_only_reads_are_sent_no_write_is() {
    let cloud = Cloud::new([Step::status(200)]);
    let client = cloud.client_with(|config| config.reads_only = true);
    let error = client.send(write()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.create: POST /v1/things: not sent: this process only reads"
    );
    assert!(cloud.seen().is_empty());
    client.send(read()).await.unwrap();
    assert_eq!(cloud.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_asked_again_before_each_repeat_and_after_the_queue() {
    // Open for the first try only.
    let asked = AtomicUsize::new(0);
    let once = move || match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(GateClosed::new("closed")),
    };
    let cloud = Cloud::new([Step::status(503)]);
    let client = cloud.client_with(|config| config.gate = Arc::new(once));
    let error = client.send(write().idempotent(true)).await.unwrap_err();
    assert!(matches!(error.failure, Failure::GateClosed(_)), "{error}");
    assert_eq!(cloud.seen().len(), 1);

    // Open while the write waits for its place, closed when it gets it.
    let closes = Instant::now() + SECONDS(10);
    let timed = move || {
        if Instant::now() < closes {
            Ok(())
        } else {
            Err(GateClosed::new("closed"))
        }
    };
    let cloud = Cloud::new([Step::Late(SECONDS(15), 200)]);
    let client = cloud.client_with(|config| {
        config.max_in_flight = 1;
        config.gate = Arc::new(timed);
    });
    let (_, second) = tokio::join!(client.send(write()), client.send(write()));
    assert!(matches!(second.unwrap_err().failure, Failure::GateClosed(_)));
    assert_eq!(cloud.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_reads_and_waits_but_not_a_write_under_way() {
    let shutdown = CancellationToken::new();
    let cloud = Cloud::new([Step::Late(SECONDS(10), 201), Step::Silence]);
    let client = cloud.client_with(|config| {
        config.max_in_flight = 2;
        config.shutdown = shutdown.clone();
    });
    let begun = Instant::now();
    let stop = async {
        tokio::time::sleep(SECONDS(1)).await;
        shutdown.cancel();
    };
    let (write_under_way, read_under_way, write_waiting, ()) = tokio::join!(
        client.send(write()),
        client.send(read()),
        client.send(write()),
        stop
    );
    assert!(write_under_way.is_ok());
    assert!(matches!(read_under_way.unwrap_err().failure, Failure::Cancelled));
    let error = write_waiting.unwrap_err();
    assert!(matches!(error.failure, Failure::Cancelled));
    assert!(!error.maybe_applied());
    assert_eq!(begun.elapsed(), SECONDS(10));
}

#[tokio::test(start_paused = true)]
async fn sixteen_calls_are_in_flight_and_the_others_follow_in_order() {
    let cloud = Cloud::new((0..40).map(|_| Step::Late(SECONDS(1), 200)));
    let client = cloud.client();
    for outcome in join_all((0..40).map(|_| client.send(read()))).await {
        outcome.unwrap();
    }
    let expected: Vec<u128> = (0..40).map(|index| index / 16 * 1000).collect();
    assert_eq!(cloud.times(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_and_what_to_do_follow_from_the_failure() {
    let (busy, down) = (
        Class::Throttled { after: None },
        Class::Unavailable { after: None },
    );
    let table = [
        (Step::status(400), false, Class::Invalid),
        (Step::status(401), false, Class::Unauthenticated),
        (Step::status(403), false, Class::Denied),
        (Step::status(404), false, Class::NotFound),
        (Step::status(409), false, Class::Conflict),
        (Step::status(423), false, Class::Conflict),
        (Step::status(429), false, busy),
        (Step::status(408), true, down),
        (Step::status(302), true, down),
        (Step::status(500), true, down),
        (Step::status(502), true, Class::Unanswered),
        (Step::status(503), true, down),
        (Step::status(504), true, Class::Unanswered),
        (Step::Fails(TransportError::Connect), false, Class::Unanswered),
        (Step::Fails(TransportError::Tls), false, Class::Unanswered),
        (Step::Fails(TransportError::Broken), true, Class::Unanswered),
    ];
    for (step, maybe_applied, class) in table {
        let error = Cloud::new([step]).client().send(write()).await.unwrap_err();
        assert_eq!(
            (error.maybe_applied(), error.class()),
            (maybe_applied, class),
            "{error}"
        );
    }
    let answer = Cloud::new([Step::body(201, "{")])
        .client()
        .send(write())
        .await
        .unwrap();
    let error = answer.json::<Vec<u8>>().unwrap_err();
    assert_eq!((error.maybe_applied(), error.class()), (true, Class::Unusable));
}

#[tokio::test(start_paused = true)]
async fn an_error_names_the_call_and_shows_neither_query_nor_secret() {
    let token = Secret::new("tok-51cret");
    let page = "<html>\n <h1>denied</h1>\tfor tok-51cret\u{7} </html>";
    let cloud = Cloud::new([Step::body(403, page), Step::body(200, page)]);
    let client = cloud.client();
    let error = client.send(read().bearer(&token)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.list: GET /v1/things: 403 Forbidden: <html> <h1>denied</h1> for *** </html>"
    );
    assert_eq!(cloud.seen()[0].headers["authorization"], "Bearer tok-51cret");
    let error = client
        .send(read().bearer(&token))
        .await
        .unwrap()
        .json::<Vec<u8>>()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.list: GET /v1/things: cannot read the answer (200 OK): expected value at line 1 column 1: \
         <html> <h1>denied</h1> for *** </html>"
    );
    let request = read().bearer(&token);
    assert_eq!(format!("{request:?}"), "things.list: GET /v1/things");
}

#[tokio::test(start_paused = true)]
async fn a_confidential_answer_is_never_shown() {
    let cloud = Cloud::new([
        Step::body(200, r#"["granted-token"]"#),
        Step::body(401, "granted-token"),
    ]);
    let client = cloud.client();
    let answer = client.send(read().confidential_answer()).await.unwrap();
    let error = answer.json::<Vec<u8>>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.list: GET /v1/things: cannot read the answer (200 OK): data error at line 1 column 16"
    );
    let error = client.send(read().confidential_answer()).await.unwrap_err();
    assert_eq!(error.to_string(), "things.list: GET /v1/things: 401 Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn a_long_body_is_cut_in_messages() {
    let cloud = Cloud::new([Step::Answer(500, vec![], LONG)]);
    let text = cloud.client().send(write()).await.unwrap_err().to_string();
    assert!(text.ends_with("äää…"), "{text}");
    assert_eq!(text.chars().filter(|c| *c == 'ä').count(), 200);
}

const LONG: &str = concat!(
    "ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää",
    "ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää",
    "ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää",
);

#[tokio::test(start_paused = true)]
async fn bodies_and_headers_arrive_as_they_were_given() {
    let cloud = Cloud::new([Step::status(200), Step::status(200), Step::status(200)]);
    let client = cloud.client();
    let base = Url::parse("https://anna:pw@cloud.example/client/api#part").unwrap();
    let token = Request::read(Method::POST, "token", base.clone()).form([
        ("grant_type", "client_credentials"),
        ("scope", "bmc bmc.read tags"),
    ]);
    client.send(token).await.unwrap();
    let signed =
        Request::read(Method::GET, "list", base).raw_query("name=worker%2001*a~b%2Fc&signature=e%3D");
    client.send(signed).await.unwrap();
    client
        .send(write().query("tag:a", "b c").json(&[1, 2]))
        .await
        .unwrap();

    let seen = cloud.seen();
    assert_eq!(seen[0].head, "POST https://cloud.example/client/api");
    assert_eq!(
        seen[0].body,
        "grant_type=client_credentials&scope=bmc+bmc.read+tags"
    );
    assert_eq!(
        seen[0].headers["content-type"],
        "application/x-www-form-urlencoded"
    );
    assert_eq!(
        seen[1].head,
        "GET https://cloud.example/client/api?name=worker%2001*a~b%2Fc&signature=e%3D"
    );
    assert!(!seen[1].headers.contains_key("content-type"));
    assert_eq!(
        seen[2].head,
        "POST https://cloud.example/v1/things?secret=yes&tag%3Aa=b+c"
    );
    assert_eq!(seen[2].body, "[1,2]");
    for seen in seen {
        assert_eq!(seen.headers["user-agent"], "bowline/test");
        assert_eq!(seen.headers["accept"], "application/json");
        assert!(!seen.headers.contains_key("authorization"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_header_that_http_does_not_allow_is_refused_before_anything_is_sent() {
    let cloud = Cloud::new([]);
    let error = cloud
        .client()
        .send(read().bearer(&Secret::new("line\nbreak")))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "things.list: GET /v1/things: bad request: the secret for header authorization holds characters not \
         allowed in HTTP"
    );
    assert!(!error.maybe_applied());
}

#[test]
fn paths_are_resolved_as_relative_references_and_ids_cannot_leave_their_place() {
    let table = [
        ("https://h", "https://h/v1/things/7"),
        ("https://h/", "https://h/v1/things/7"),
        ("https://h/v1", "https://h/v1/things/7"),
        ("https://h/v1/", "https://h/v1/v1/things/7"),
        ("https://h/proxy/?q=1", "https://h/proxy/v1/things/7"),
    ];
    for (base, expected) in table {
        assert_eq!(
            resolve(&Url::parse(base).unwrap(), "v1/things", &["7"])
                .unwrap()
                .as_str(),
            expected
        );
    }
    let odd = resolve(&url(), "v1/things", &["a/../b?c#d", "2001:db8::1"]).unwrap();
    assert_eq!(
        odd.as_str(),
        "https://cloud.example/v1/v1/things/a%2F..%2Fb%3Fc%23d/2001:db8::1"
    );
    for segment in ["", ".", ".."] {
        assert!(resolve(&url(), "v1/things", &[segment]).is_err(), "{segment:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_read_of_the_clouds_objects_that_has_come_whole_is_a_good_one() {
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let age = || {
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let name = "cloud_api_last_good_read_age_seconds{";
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    let cloud = Cloud::new([
        Step::status(401),
        Step::body(200, "\n<!DOCTYPE html><html>Maintenance</html>"),
        Step::body(200, r#"{"servers":[{"name":"a"},{"na"#),
        Step::body(200, r#""hello""#),
        Step::body(200, r#"{"servers":[]}"#),
        Step::body(200, "{}"),
        Step::status(200),
        Step::status(200),
        Step::body(200, r#"["a"]"#),
    ]);
    let client = cloud.client_with(|config| config.metrics = metrics.clone());
    client.send(read()).await.unwrap_err();
    tokio::time::advance(SECONDS(60)).await;
    for _ in 0..2 {
        client.send(read()).await.unwrap();
    }
    for _ in 0..2 {
        let response = client.send(read()).await.unwrap();
        response.json::<Vec<String>>().unwrap_err();
        let copy = response.clone();
        drop(response);
        assert_eq!(copy.json::<u8>().unwrap_err().status(), Some(StatusCode::OK));
    }
    let response = client.send(read()).await.unwrap();
    response.refused(StatusCode::UNAUTHORIZED);
    drop(response);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for code in [
        r#"code="<page>"} 1"#,
        r#"code="<error>"} 1"#,
        r#"code="<unreadable>"} 2"#,
        r#"code="401"} 2"#,
    ] {
        assert!(text.contains(code), "{text}");
    }
    client.send(read().preliminary()).await.unwrap();
    client.send(write()).await.unwrap();
    assert_eq!(age(), "60.0", "since the first request");
    // Of a list with an odd entry the others are used.
    let response = client.send(read()).await.unwrap();
    response.json_or_parts::<u8>().unwrap_err();
    response.json::<Vec<String>>().unwrap();
    drop(response);
    assert_eq!(age(), "0.0");
}
