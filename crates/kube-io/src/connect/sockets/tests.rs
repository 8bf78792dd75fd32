//! What the gate keeps from the wire, over connections in memory.

use bowline_cloud_kit::ClientEnd;
use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_api::{Effect, Fault, KubeApi};
use bowline_transport::{BoxError, Gate, GateClosed, Lines};
use http::Uri;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::error::KubeError;
use crate::{LeaseLock, LeaseRecord, NodeCache, ServiceCache};

const SECOND: Duration = Duration::from_secs(1);

/// Open until a moment, as while a lease lasts.
fn until(end: Instant) -> Arc<dyn Gate> {
    Arc::new(move || match Instant::now() < end {
        true => Ok(()),
        false => Err(GateClosed::new("the lease is over")),
    })
}

/// What each connection hears, in the order in which they were made.
type Connections = Arc<Mutex<Vec<JoinHandle<Vec<u8>>>>>;

/// An API server that takes its time to accept a connection and then only listens: what each connection has heard.
fn silent(accepts_after: Duration, gate: Arc<dyn Gate>) -> (Kube, Connections) {
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
    let options = KubeOptions {
        gate,
        ..KubeOptions::new("test")
    };
    let client = layered(&nearby(), Whose::Own, connector).unwrap();
    let kube = Kube::assemble(
        client.clone(),
        client,
        "in-memory",
        None,
        Lines::default(),
        options,
    );
    (kube.with_timeout(60 * SECOND), connections)
}

/// An address that no test asks anybody for.
fn nearby() -> Arc<Reach> {
    let target = super::super::ConnectOptions {
        master: Some("http://api.example.com".to_owned()),
        ..Default::default()
    };
    Arc::new(super::super::reach(&target).unwrap())
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
    let written = kube.set_pod_networks(&Node::named("a"), &[]).await;
    written.map(drop).unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn no_byte_of_a_write_is_sent_if_the_lease_ends_while_the_connection_is_made() {
    let gate = until(Instant::now() + 4 * SECOND);
    let (kube, connections) = silent(8 * SECOND, gate);
    let begun = Instant::now();
    let error = annotate(&kube).await;
    assert_eq!(error, KubeError::GateClosed);
    assert!(begun.elapsed() >= 8 * SECOND, "it had been handed over in time");
    assert_eq!(heard(&connections).await, [""]);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_connection_is_made_in_time_is_sent() {
    let gate = until(Instant::now() + 12 * SECOND);
    let (kube, connections) = silent(8 * SECOND, gate);
    let error = annotate(&kube).await;
    assert_ne!(error, KubeError::GateClosed);
    let heard = heard(&connections).await;
    assert!(heard[0].starts_with("PATCH /api/v1/nodes/a "), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn reads_and_the_lease_need_no_gate() {
    let gate = until(Instant::now());
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

/// A connection to this API server over memory, for as long as somebody speaks on it.
fn served(
    api: &KubeApi,
) -> impl Service<Uri, Response = TokioIo<ClientEnd>, Error = BoxError, Future: Send> + Clone + use<> {
    let service = api.service();
    tower::service_fn(move |_: Uri| {
        let service = service.clone();
        async move {
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                let service = TowerToHyperService::new(service);
                let builder = auto::Builder::new(TokioExecutor::new());
                builder.serve_connection(TokioIo::new(far), service).await
            });
            Ok::<_, BoxError>(TokioIo::new(ClientEnd(near)))
        }
    })
}

/// Whoever holds the lease renews it every 2 s, for 5 min, while all that others may send hangs.
#[tokio::test(start_paused = true)]
async fn requests_that_hang_keep_neither_the_lease_nor_the_watches_waiting() {
    let api = KubeApi::builder().build();
    api.apply_json(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}))
        .unwrap();
    let client = layered(&nearby(), Whose::Own, served(&api)).unwrap();
    let kube = Kube::assemble(
        client.clone(),
        client,
        "in-memory",
        None,
        Lines::default(),
        KubeOptions::new("test"),
    );

    let (nodes, services) = (Arc::new(NodeCache::new()), Arc::new(ServiceCache::new()));
    let locks = ["main", "migration"]
        .map(|name| LeaseLock::new(kube.with_timeout(5 * SECOND), "kube-system", name, "me"));
    let mut held = Vec::new();
    for lock in &locks {
        let record = LeaseRecord {
            holder: "me".into(),
            lease_duration: 15 * SECOND,
            ..LeaseRecord::default()
        };
        held.push(lock.create(&record).await.unwrap());
    }
    let mut followed = locks[0]
        .watch(held[0].resource_version.as_deref().unwrap())
        .await
        .unwrap();
    api.faults().inject(Fault::new(Effect::Silence).verb("patch"));
    api.faults()
        .inject(Fault::new(Effect::Silence).verb("get").resource("nodes"));
    let name = NodeName::new("a");
    let hanging = async {
        loop {
            let writes: Vec<_> = (0..20).map(|_| annotate(&kube)).collect();
            let reads: Vec<_> = (0..20).map(|_| kube.node(&name)).collect();
            futures::join!(
                futures::future::join_all(writes),
                futures::future::join_all(reads)
            );
        }
    };
    let renewals = async {
        sleep(SECOND).await; // until everything hangs
        for number in 1..=150_u32 {
            for (lock, held) in locks.iter().zip(&mut held) {
                let begun = Instant::now();
                held.transitions = number;
                *held = lock.update(held).await.unwrap();
                assert!(begun.elapsed() < SECOND);
            }
            assert_eq!(followed.next().await.unwrap().unwrap().transitions, number);
            let fresh = format!("n{number}");
            api.apply_json(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": fresh}}))
                .unwrap();
            sleep(2 * SECOND).await;
            assert!(nodes.is_synced() && services.is_synced());
            assert!(nodes.get(&NodeName::new(&*fresh)).is_some(), "at {number}");
        }
    };
    let watches = futures::future::join3(
        crate::watch_nodes(kube.clone(), Arc::clone(&nodes)),
        crate::watch_services(kube.clone(), Arc::clone(&services)),
        // In the place of the ConfigMap's, of which this server has none.
        crate::watch_nodes(kube.clone(), Arc::default()),
    );
    tokio::select! {
        biased;
        () = renewals => {}
        _ = watches => {}
        () = hanging => {}
    }
}

/// The same, until they are all frozen: then those that stand carry nothing more in either direction, and stay open. New ones work.
fn freezable(
    api: &KubeApi,
    frozen: &Arc<watch::Sender<u32>>,
) -> impl Service<Uri, Response = TokioIo<ClientEnd>, Error = BoxError, Future: Send> + Clone + use<> {
    let (service, frozen) = (api.service(), Arc::clone(frozen));
    tower::service_fn(move |_: Uri| {
        let (service, mut frozen) = (service.clone(), frozen.subscribe());
        async move {
            let (near, mut mid) = tokio::io::duplex(1 << 16);
            let (mut beyond, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                let service = TowerToHyperService::new(service);
                let builder = auto::Builder::new(TokioExecutor::new());
                builder.serve_connection(TokioIo::new(far), service).await
            });
            tokio::spawn(async move {
                tokio::select! {
                    biased;
                    _ = frozen.changed() => std::future::pending().await,
                    _ = tokio::io::copy_bidirectional(&mut mid, &mut beyond) => {}
                }
            });
            Ok::<_, BoxError>(TokioIo::new(ClientEnd(near)))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn where_all_connections_die_without_a_word_the_work_is_done_within_45_s() {
    for age in [0, 3, 11, 19, 27, 29, 40] {
        let api = KubeApi::builder().build();
        let new_node = |name: &str| {
            api.apply_json(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
                .unwrap()
        };
        new_node("a");
        let (reach, frozen) = (nearby(), Arc::new(watch::Sender::new(0)));
        let client = layered(&reach, Whose::Own, freezable(&api, &frozen)).unwrap();
        let lines = reach.lines.clone();
        let kube = Kube::assemble(
            client.clone(),
            client,
            "in-memory",
            None,
            lines,
            KubeOptions::new("test"),
        );
        let (nodes, services) = (Arc::new(NodeCache::new()), Arc::new(ServiceCache::new()));
        let (old, new) = (NodeName::new("a"), NodeName::new("new"));
        let work = async {
            nodes.synced().await;
            services.synced().await;
            sleep(age * SECOND + SECOND / 100).await;
            // All that may stand at once, stand.
            let reads = || futures::future::join_all((0..ORDINARY).map(|_| kube.node(&old)));
            assert!(reads().await.iter().all(Result::is_ok));
            frozen.send_modify(|times| *times += 1);
            let died = Instant::now();
            new_node("new");
            let initialised = async {
                while nodes.get(&new).is_none() {
                    sleep(SECOND / 10).await;
                }
                let found = kube.node(&new).await.unwrap();
                kube.set_pod_networks(&found, &["10.1.0.0/24".to_owned()])
                    .await
                    .unwrap();
            };
            // Meanwhile all others hang, and are tried again.
            let others = async {
                loop {
                    drop(reads().await);
                    sleep(SECOND).await;
                }
            };
            tokio::select! {
                () = initialised => {}
                () = others => {}
            }
            assert!(died.elapsed() <= 45 * SECOND, "{:?} at {age} s", died.elapsed());
        };
        tokio::select! {
            () = work => {}
            () = crate::watch_nodes(kube.clone(), Arc::clone(&nodes)) => {}
            () = crate::watch_services(kube.clone(), Arc::clone(&services)) => {}
        }
    }
}

#[test]
fn the_sockets_of_all_pools_are_as_many_as_are_promised() {
    assert_eq!(MAX_SOCKETS, 16);
}

#[test]
fn the_path_of_the_server_comes_before_that_of_the_api() {
    let asked = Uri::from_static("/api/v1/nodes?limit=1");
    for (server, whole) in [
        (
            "https://api.example:6443",
            "https://api.example:6443/api/v1/nodes?limit=1",
        ),
        (
            "https://one.example/k8s/c-1/",
            "https://one.example/k8s/c-1/api/v1/nodes?limit=1",
        ),
    ] {
        assert_eq!(at(&Uri::from_static(server), &asked), whole);
    }
}
