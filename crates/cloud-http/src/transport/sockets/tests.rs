use std::sync::Mutex;

use bowline_cloud_kit::ClientEnd;
use bowline_transport::BoxError;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, sleep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What reached the cloud, over all connections.
type Heard = Arc<Mutex<String>>;

/// A cloud that takes its time to accept a connection, and answers each request as soon as it is there. The gate
/// closes at the given time.
fn cloud(
    accepts_after: Duration,
    closes_after: Duration,
) -> (
    impl AsyncFn(&'static str) -> Result<http::StatusCode, legacy::Error>,
    Heard,
) {
    let heard = Heard::default();
    let written = Arc::clone(&heard);
    let connector = tower::service_fn(move |_: Uri| {
        let heard = Arc::clone(&written);
        async move {
            sleep(accepts_after).await;
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(answer(far, heard));
            Ok::<_, BoxError>(TokioIo::new(ClientEnd(near)))
        }
    });
    let end = Instant::now() + closes_after;
    let gate: Arc<dyn Gate> = Arc::new(move || {
        if Instant::now() < end {
            Ok(())
        } else {
            Err(GateClosed::new("closed"))
        }
    });
    let tls = Arc::new(client_tls(None).unwrap().with_no_client_auth());
    let way = Way {
        target: Arc::clone(&tls),
        server_name: None,
        proxy: tls,
        proxies: Arc::default(),
        limit: 60 * SECOND,
    };
    let client = pool(Connector::new(connector, way).gated(gate));
    let send = async move |method: &'static str| {
        let request = http::Request::builder()
            .method(method)
            .uri("http://cloud.example.com/v1/things")
            .body(Full::new(Bytes::from_static(b"{}")))
            .unwrap();
        client.request(request).await.map(|answer| answer.status())
    };
    (send, heard)
}

async fn answer(mut connection: DuplexStream, heard: Heard) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = connection.read(&mut buffer).await {
        let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
        heard.lock().unwrap().push_str(&text);
        if text.ends_with("{}") {
            let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
            connection.write_all(answer).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_byte_is_sent_if_the_lease_ends_while_the_connection_is_made() {
    for method in ["GET", "POST", "DELETE"] {
        let (send, heard) = cloud(30 * SECOND, 10 * SECOND);
        let begun = Instant::now();
        let error = send(method).await.unwrap_err();
        assert!(begun.elapsed() >= 30 * SECOND, "it had been handed over in time");
        assert!(matches!(classify(error), TransportError::Gate(_)), "{method}");
        sleep(SECOND).await;
        assert_eq!(*heard.lock().unwrap(), "", "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stands_sends_nothing_after_the_end_of_the_lease() {
    let (send, heard) = cloud(SECOND, 10 * SECOND);
    assert_eq!(send("POST").await.unwrap(), 204);
    let sent = heard.lock().unwrap().clone();
    assert!(sent.starts_with("POST /v1/things "), "{sent}");
    sleep(10 * SECOND).await;
    send("POST").await.unwrap_err();
    sleep(SECOND).await;
    assert_eq!(*heard.lock().unwrap(), sent);
}
