//! What the gate keeps from the wire, over connections in memory.

use bowline_cloud_kit::ClientEnd;
use bowline_cloud_provider::NodeName;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::client::WriteGate;
use crate::error::KubeError;

const SECOND: Duration = Duration::from_secs(1);

/// Open until a moment, as while a lease lasts.
struct Until(Instant);

impl WriteGate for Until {
    fn is_open(&self) -> bool {
        Instant::now() < self.0
    }
}

/// What each connection hears, in the order in which they were made.
type Connections = Arc<Mutex<Vec<JoinHandle<Vec<u8>>>>>;

/// An API server that takes its time to accept a connection and then only listens: what each connection has heard.
fn silent(accepts_after: Duration, gate: Arc<dyn WriteGate>) -> (Kube, Connections) {
    let connections = Connections::default();
    let accepted = Arc::clone(&connections);
    let connector = tower::service_fn(move |_: Uri| {
        let accepted = Arc::clone(&accepted);
        async move {
            sleep(accepts_after).await;
            let (near, mut far) = tokio::io::duplex(1 << 16);
            let listening = tokio::spawn(async move {
                let mut heard = Vec::new();
                let read = far.read_to_end(&mut heard);
                // A request that has been sent is waited for no longer than this.
                let _ = tokio::time::timeout(5 * SECOND, read).await;
                heard
            });
            accepted.lock().unwrap().push(listening);
            Ok::<_, BoxError>(TokioIo::new(ClientEnd(near)))
        }
    });
    let target = super::super::ConnectOptions {
        master: Some("http://api.example.com".to_owned()),
        ..Default::default()
    };
    let reach = Arc::new(super::super::reach(&target).unwrap());
    let options = KubeOptions {
        gate,
        ..KubeOptions::new("test")
    };
    let client = layered(&reach, Whose::Own, || connector.clone()).unwrap();
    let kube = Kube::assemble(client.clone(), client, "in-memory", None, options);
    (kube.with_timeout(60 * SECOND), connections)
}

async fn heard(connections: &Mutex<Vec<JoinHandle<Vec<u8>>>>) -> Vec<String> {
    let listening = std::mem::take(&mut *connections.lock().unwrap());
    let mut all = Vec::new();
    for one in listening {
        all.push(String::from_utf8(one.await.unwrap()).unwrap());
    }
    all
}

async fn annotate(kube: &Kube) -> KubeError {
    let annotations = [("a".to_owned(), None)];
    kube.annotate_node(&NodeName::new("a"), "uid-1", &annotations)
        .await
        .unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn no_byte_of_a_write_is_sent_if_the_lease_ends_while_the_connection_is_made() {
    let gate = Arc::new(Until(Instant::now() + 4 * SECOND));
    let (kube, connections) = silent(8 * SECOND, gate);
    let begun = Instant::now();
    let error = annotate(&kube).await;
    assert_eq!(error, KubeError::GateClosed);
    assert!(begun.elapsed() >= 8 * SECOND, "it had been handed over in time");
    assert_eq!(heard(&connections).await, [""]);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_connection_is_made_in_time_is_sent() {
    let gate = Arc::new(Until(Instant::now() + 12 * SECOND));
    let (kube, connections) = silent(8 * SECOND, gate);
    let error = annotate(&kube).await;
    assert_ne!(error, KubeError::GateClosed);
    let heard = heard(&connections).await;
    assert!(heard[0].starts_with("PATCH /api/v1/nodes/a "), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn reads_and_the_lease_need_no_gate() {
    let gate = Arc::new(Until(Instant::now()));
    let (kube, connections) = silent(SECOND, gate);
    let read = kube.node(&NodeName::new("a")).await.unwrap_err();
    let lease = crate::LeaseLock::new(kube.with_gate(Arc::new(crate::OpenGate)), "n", "l", "me");
    let written = lease.create(&crate::LeaseRecord::default()).await.unwrap_err();
    for error in [read, written] {
        assert_ne!(error, KubeError::GateClosed);
    }
    let heard = heard(&connections).await;
    assert!(
        heard[0].starts_with("GET ") && heard[1].starts_with("POST "),
        "{heard:?}"
    );
}
