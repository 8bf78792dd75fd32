use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::{CloudHttpConfig, Secret, Transport, TransportError, base_url};
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;

use super::*;
use crate::DEFAULT_TOKEN_URL;

type Reply = (u16, &'static str);

const TOKEN: Reply = (200, r#"{"access_token":"t0ken","expires_in":900}"#);

/// A client whose token endpoint and APIs answer as they are told; and what it asked for.
fn client(token: Reply, api: Reply) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let transport = Transport::memory(tower::service_fn(move |request: http::Request<Full<Bytes>>| {
        let (status, body) = if request.uri().path().ends_with("/token") {
            token
        } else {
            api
        };
        let line = format!("{} {}", request.method(), request.uri().path());
        log.lock().unwrap().push(line);
        async move {
            let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            Ok::<_, Infallible>(response)
        }
    }));
    (client_through(transport), asked)
}

fn client_through(transport: Transport) -> Client {
    let credentials = Credentials {
        client_id: "id".to_owned(),
        client_secret: Secret::new("s3cret"),
    };
    let settings = Settings::new(
        credentials,
        "`clientID` and `clientSecret` of /cloud-sa.json".to_owned(),
        base_url("https://api.test").unwrap(),
        base_url(DEFAULT_TOKEN_URL).unwrap(),
    );
    let http = CloudHttp::new(CloudHttpConfig::new("phoenixnap", "test"), transport);
    Client::new(http, &settings, None)
}

/// A client whose token endpoint takes six seconds to answer and whose APIs take one, if wanted to refuse the first token;
/// and how many tokens were asked for.
fn client_with_slow_tokens(is_first_refused: bool) -> (Client, Arc<Mutex<u32>>) {
    let fetched = Arc::new(Mutex::new(0));
    let count = Arc::clone(&fetched);
    let transport = Transport::memory(tower::service_fn(move |request: http::Request<Full<Bytes>>| {
        let is_token = request.uri().path().ends_with("/token");
        let is_refused = is_first_refused
            && request
                .headers()
                .get("authorization")
                .is_some_and(|it| it == "Bearer t1");
        let count = Arc::clone(&count);
        async move {
            let (takes, status, body) = if is_token {
                let number = {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    *count
                };
                let body = format!(r#"{{"access_token":"t{number}","expires_in":900}}"#);
                (6, StatusCode::OK, body)
            } else if is_refused {
                (1, StatusCode::UNAUTHORIZED, String::new())
            } else {
                (1, StatusCode::OK, "[]".to_owned())
            };
            tokio::time::sleep(Duration::from_secs(takes)).await;
            let mut response = Response::new(Full::new(Bytes::from(body)));
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        }
    }));
    (client_through(transport), fetched)
}

#[tokio::test(start_paused = true)]
async fn whoever_needs_a_token_while_one_is_being_fetched_waits_for_that_one() {
    let (client, fetched) = client_with_slow_tokens(false);
    let calls = (0..4).map(|second| {
        let client = client.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(second)).await;
            client.servers().await
        }
    });
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer.unwrap().entries, []);
    }
    assert_eq!(*fetched.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_fetched_anew_once_for_all_who_hold_it() {
    let (client, fetched) = client_with_slow_tokens(true);
    // The first two are refused together, the next two while the new token is being fetched; the last one never had the old.
    let calls = [0, 5_500, 6_100, 6_900, 12_100].map(|millis| {
        let client = client.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            client.servers().await
        }
    });
    for answer in futures::future::join_all(calls).await {
        assert_eq!(answer.unwrap().entries, []);
    }
    assert_eq!(*fetched.lock().unwrap(), 2);
}

fn block() -> NewIpBlock {
    NewIpBlock {
        description: None,
        location: "NLD".to_owned(),
        cidr_block_size: "/29",
        tags: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_may_be_null() {
    let (client, _) = client(TOKEN, (200, "null"));
    assert_eq!(client.servers().await.unwrap().entries, []);
    assert_eq!(client.ip_blocks(&[]).await.unwrap().entries, []);
    assert_eq!(client.tags().await.unwrap().entries, []);
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_cannot_be_read_is_kept_apart_and_costs_no_other() {
    let body = r#"[{"id":"a"},null,{"id":"b","status":7},{"id":null},{"id":"c"}]"#;
    let (client, _) = client(TOKEN, (200, body));
    let servers = client.servers().await.unwrap();
    let ids: Vec<&str> = servers.entries.iter().map(|server| server.id.as_str()).collect();
    assert_eq!((ids, servers.odd.len()), (vec!["a", "c"], 3));
    let body = r#"[{"id":"a","tags":[{"value":"x"}]},{"id":"b","tags":[{"name":"x","value":7}]},{"id":"c"}]"#;
    let (client, _) = self::client(TOKEN, (200, body));
    let blocks = client.ip_blocks(&[]).await.unwrap();
    assert_eq!((blocks.entries.len(), blocks.odd.len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn no_list_at_all_is_an_error_and_so_is_nothing_where_an_object_should_be() {
    for body in ["", "{}", "<html>", "\"x\""] {
        let (client, _) = client(TOKEN, (200, body));
        assert_eq!(
            client.servers().await.unwrap_err().class,
            Class::Unusable,
            "{body}"
        );
        assert_eq!(
            client.create_ip_block(&block()).await.unwrap_err().class,
            Class::Unusable,
            "{body}"
        );
    }
    let (client, _) = self::client(TOKEN, (200, "null"));
    assert_eq!(client.server("a").await.unwrap_err().class, Class::Unusable);
}

#[tokio::test(start_paused = true)]
async fn a_purchase_that_failed_for_want_of_a_token_was_not_made() {
    for token in [(500, ""), (503, "busy"), (401, "{}"), (200, "{}"), (302, "")] {
        let (client, asked) = client(token, (201, "{}"));
        let error = client.create_ip_block(&block()).await.unwrap_err();
        assert!(!error.maybe_applied(), "{error}");
        assert!(
            !asked
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.contains("ip-blocks"))
        );
    }
    // The same answers of the API itself tell less.
    for (api, maybe) in [
        ((500, ""), true),
        ((201, ""), true),
        ((429, ""), false),
        ((406, ""), false),
    ] {
        let (client, _) = client(TOKEN, api);
        let error = client.create_ip_block(&block()).await.unwrap_err();
        assert_eq!(error.maybe_applied(), maybe, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_token_endpoint_says_is_said_of_nothing_else() {
    for status in [400, 401, 403, 404, 406, 409] {
        let (client, _) = client((status, r#"{"message":"no route"}"#), (200, "{}"));
        let errors = [
            client.server("a").await.unwrap_err(),
            client.ip_block("a").await.unwrap_err(),
            client.delete_ip_block("a").await.unwrap_err(),
            client.create_tag("usage").await.unwrap_err(),
            client.attach("n", "b").await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.class, Class::Unauthenticated, "{error}");
            assert!(!error.may_be_gone() && error.status().is_none(), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_refused_names_where_its_credentials_are_set_and_any_other_failure_the_token() {
    let source = "`clientID` and `clientSecret` of /cloud-sa.json";
    let no_token = "no token could be fetched";
    for (status, body, remedy) in [
        (
            401,
            r#"{"error":"invalid_client"}"#,
            format!("the client ID or the client secret is wrong, or was revoked: correct {source}"),
        ),
        (
            400,
            r#"{"error":"invalid_scope"}"#,
            format!("the credentials need the scopes bmc, bmc.read, tags and tags.read: they are {source}"),
        ),
        (
            403,
            "",
            format!("the token endpoint refused the credentials: they are {source}"),
        ),
        (503, "", no_token.to_owned()),
        (200, "<html>portal</html>", no_token.to_owned()),
        (200, r#"{"expires_in":900}"#, no_token.to_owned()),
        (200, r#"{"access_token":""}"#, no_token.to_owned()),
    ] {
        let (client, _) = client((status, body), (200, "{}"));
        let error = client.server("a").await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("({remedy})")), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_reached_is_named_be_it_that_of_the_tokens_or_that_of_the_apis() {
    for host in ["auth.phoenixnap.com", "api.test"] {
        let transport = Transport::memory(tower::service_fn(
            move |request: http::Request<Full<Bytes>>| async move {
                if request.uri().host() == Some(host) {
                    let cause = "failed to lookup address information: Name or service not known";
                    return Err(TransportError::Connect(cause.into()));
                }
                Ok(Response::new(Full::new(Bytes::from_static(TOKEN.1.as_bytes()))))
            },
        ));
        let error = client_through(transport)
            .server("a")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("Name or service not known") && error.contains(&format!("(host {host})")),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn some_answers_mean_something_else_to_these_apis_than_to_http() {
    let said = r#"{"message":"No."}"#;
    for (status, body, class) in [
        (404, said, Class::NotFound),
        (404, "<html>", Class::Invalid),
        (406, said, Class::Exhausted),
        (500, said, Class::Unusable),
        (502, "<html>", Class::Unanswered),
    ] {
        let (client, _) = client(TOKEN, (status, body));
        let error = client.create_ip_block(&block()).await.unwrap_err();
        assert_eq!(error.class, class, "{error}");
    }
    // Without a token no call is of use, not only this one.
    let (client, _) = client((500, said), (200, "{}"));
    let error = client.create_ip_block(&block()).await.unwrap_err();
    assert_eq!(error.class, Class::Unavailable { after: None });
}

#[tokio::test(start_paused = true)]
async fn a_message_has_what_the_api_said_and_nothing_else_of_the_body() {
    for (status, body, expected) in [
        (
            400,
            r#"{"message":"Wrong.","validationErrors":["location: not known"],"trace":"x7"}"#,
            "ip-blocks.create: POST /ips/v1/ip-blocks: 400 Bad Request: Wrong.: location: not known",
        ),
        (
            403,
            r#"{"message":"No.","validationErrors":null}"#,
            "ip-blocks.create: POST /ips/v1/ip-blocks: 403 Forbidden: No.",
        ),
        (
            400,
            r#"{"message":"Wrong.","validationErrors":[1,null,"location: not known",{"trace":"x7"}]}"#,
            "ip-blocks.create: POST /ips/v1/ip-blocks: 400 Bad Request: Wrong.: location: not known",
        ),
        (
            400,
            r#"{"message":"Wrong.","validationErrors":"x7"}"#,
            "ip-blocks.create: POST /ips/v1/ip-blocks: 400 Bad Request: Wrong.",
        ),
        (
            403,
            "<html>x7</html>",
            "ip-blocks.create: POST /ips/v1/ip-blocks: 403 Forbidden",
        ),
        (
            500,
            r#"{"error":"x7"}"#,
            "ip-blocks.create: POST /ips/v1/ip-blocks: 500 Internal Server Error",
        ),
        (
            500,
            "",
            "ip-blocks.create: POST /ips/v1/ip-blocks: 500 Internal Server Error",
        ),
    ] {
        let (client, _) = client(TOKEN, (status, body));
        let error = client.create_ip_block(&block()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let (client, _) = client(TOKEN, (201, "{\"name\":\"x7\"}"));
    let text = client.create_ip_block(&block()).await.unwrap_err().to_string();
    assert!(
        text.contains("cannot read the answer (201 Created)") && !text.contains("x7"),
        "{text}"
    );
}
