use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_kube_api::{Effect, Fault, KubeApi};
use bowline_kube_io::{Decision, Election, Kube, KubeOptions, LeaseLock, LeaseRecord, LeaseTimings};
use serde_json::json;
use tokio::time::Instant;

use crate::{client, node, options, server};

const NAME: &str = "cloud-controller-manager";

fn lock(kube: Kube, identity: &str) -> LeaseLock {
    LeaseLock::new(kube, "kube-system", NAME, identity)
}

/// One round of election: look, decide, write. Gives whether we hold the lease.
async fn round(lock: &LeaseLock, election: &mut Election, kube: &Kube) -> bool {
    let seen = lock.get().await.ok();
    election.observe(seen, Instant::now());
    let begun = Instant::now();
    let written: Option<LeaseRecord> = match election.decide(begun, kube.clock().now()) {
        Decision::Create(record) => lock.create(&record).await.ok(),
        Decision::Update(record) => lock.update(&record).await.ok(),
        Decision::Wait { .. } => None,
    };
    if written.is_some() {
        election.observe(written, begun);
    }
    election.is_holder()
}

fn stored(api: &KubeApi) -> serde_json::Value {
    api.object("Lease", "kube-system", NAME).unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_lease_passes_from_one_to_the_other() {
    let api = server();
    let kube = client(&api);
    let (first, second) = (lock(kube.clone(), "first"), lock(kube.clone(), "second"));
    let mut elections = ["first", "second"].map(|name| Election::new(name, LeaseTimings::default()));
    let [of_first, of_second] = &mut elections;

    assert!(first.get().await.unwrap_err().is_not_found());
    assert!(round(&first, of_first, &kube).await);
    assert_eq!(
        stored(&api),
        json!({
            "holderIdentity": "first", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-03-01T10:00:00.000000Z", "renewTime": "2026-03-01T10:00:00.000000Z"
        })
    );
    assert!(!round(&second, of_second, &kube).await);

    // Renewed once, then silent: the second may take it 15 s after it has seen that.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(round(&first, of_first, &kube).await);
    assert_eq!(stored(&api)["acquireTime"], "2026-03-01T10:00:00.000000Z");
    assert_eq!(stored(&api)["renewTime"], "2026-03-01T10:00:02.000000Z");
    assert!(!round(&second, of_second, &kube).await);
    tokio::time::sleep(Duration::from_secs(14)).await;
    assert!(!round(&second, of_second, &kube).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(round(&second, of_second, &kube).await);
    assert_eq!(stored(&api)["leaseTransitions"], 1);

    // The first finds out when it looks.
    assert!(!round(&first, of_first, &kube).await);
    // Given up, it is free at once.
    let release = of_second.release(kube.clock().now()).unwrap();
    second.update(&release).await.unwrap();
    assert!(round(&first, of_first, &kube).await);
    assert_eq!(stored(&api)["leaseTransitions"], 2);

    for exchange in api.journal().matching(|exchange| exchange.resource == "leases") {
        assert!(
            matches!(exchange.verb.as_str(), "get" | "create" | "update"),
            "{}",
            exchange.verb
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_at_once_one_wins() {
    let api = server();
    let kube = client(&api);
    let (first, second) = (lock(kube.clone(), "first"), lock(kube.clone(), "second"));
    let record = |holder: &str| LeaseRecord {
        holder: holder.into(),
        lease_duration: Duration::from_secs(15),
        ..LeaseRecord::default()
    };
    let base = first.create(&record("first")).await.unwrap();
    assert!(second.create(&record("second")).await.unwrap_err().is_conflict());
    first.update(&base).await.unwrap();
    let late = LeaseRecord {
        holder: "second".into(),
        ..base
    };
    first.update(&first.get().await.unwrap()).await.unwrap();
    // A record that changes nothing may keep its version; a later change decides.
    let current = first.get().await.unwrap();
    first
        .update(&LeaseRecord {
            transitions: 9,
            ..current
        })
        .await
        .unwrap();
    assert!(second.update(&late).await.unwrap_err().is_conflict());
}

#[tokio::test(start_paused = true)]
async fn what_others_put_on_the_lease_stays() {
    let api = server();
    api.apply_json(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": NAME, "labels": {"team": "net"}},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}
    }))
    .unwrap();
    let kube = client(&api);
    let lock = lock(kube.clone(), "me");
    assert!(round(&lock, &mut Election::new("me", LeaseTimings::default()), &kube).await);
    let lease = api.object("Lease", "kube-system", NAME).unwrap();
    assert_eq!(lease["metadata"]["labels"]["team"], "net");
    assert_eq!(lease["spec"]["holderIdentity"], "me");
}

#[tokio::test(start_paused = true)]
async fn the_lease_does_not_wait_for_the_loops() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    api.faults()
        .inject(Fault::new(Effect::Delay(Duration::from_secs(20))).resource("nodes"));
    let kube = Kube::with_service(
        api.service(),
        KubeOptions {
            max_in_flight: 1,
            ..options()
        },
    );
    let busy = kube.clone();
    let slow = tokio::spawn(async move { busy.node(&NodeName::new("a")).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    assert!(
        round(
            &lock(kube.clone(), "me"),
            &mut Election::new("me", LeaseTimings::default()),
            &kube
        )
        .await
    );
    assert!(begun.elapsed() < Duration::from_secs(1));
    slow.await.unwrap().unwrap();
}
