use serde_json::{Value, json};

use super::said::last_words;
use super::*;

/// Where the container is as it should be.
pub(super) fn ready() -> Value {
    json!({ "phase": "Running", "containerStatuses": [{ "name": "m", "ready": true }] })
}

/// Each Service that the cloud refuses for old credentials follows from them.
#[test]
fn old_credentials_that_the_cloud_refuses_are_a_failure_of_the_manager() {
    let other = crate::doctor::leadership::LEASE.ok("x");
    let mut checks = [
        MANAGERS.warning("pods run with older credentials", "restart them"),
        other,
    ];
    shuts_out(&mut checks);
    assert_eq!(checks.map(|it| it.outcome), [Outcome::Failed, Outcome::Ok]);
}

fn waiting(reason: &str, message: &str, ended: Option<(i32, &str)>) -> Value {
    let mut status = json!({ "name": "m", "ready": false, "state": { "waiting": { "reason": reason, "message": message } } });
    if let Some((code, message)) = ended {
        status["restartCount"] = json!(7);
        status["lastState"] =
            json!({ "terminated": { "exitCode": code, "reason": "Error", "message": message } });
    }
    json!({ "phase": "Pending", "containerStatuses": [status] })
}

pub(super) fn pod(name: &str, node: &str, status: Value) -> Pod {
    serde_json::from_str(
        &json!({
            "metadata": { "namespace": "kube-system", "name": name },
            "spec": { "nodeName": node, "hostNetwork": true },
            "status": status,
        })
        .to_string(),
    )
    .unwrap()
}

pub(in crate::doctor) fn manager(name: &str, program: Program, flags: &[&str], pods: &[Pod]) -> Deployed {
    let image = match program {
        Program::Bowline => "bowline/bowline:v0.1.0",
        _ => "quay.io/cloudscalech/cloudscale-cloud-controller-manager:1.2.3",
    };
    let container = json!({ "name": "m", "image": image, "command": ["cloudscale-cloud-controller-manager"], "args": flags });
    Deployed {
        kind: "DaemonSet",
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
        program,
        spec: serde_json::from_value(json!({ "nodeSelector": { "role": "control" } })).unwrap(),
        container: serde_json::from_value(container).unwrap(),
        wanted: u32::try_from(pods.len()).ok(),
        pods: pods.to_vec(),
    }
}

fn judged(managers: &[Deployed], leader: Leader<'_>) -> Check {
    judge(managers, &BTreeMap::new(), leader, true)
}

fn at(host: &str) -> Leader<'_> {
    Leader {
        host: Some(host),
        ..Leader::default()
    }
}

#[test]
fn a_manager_that_runs_is_told_with_its_program_and_its_flags() {
    let one = manager(
        "ccm",
        Program::Bowline,
        &["--v=3"],
        &[pod("ccm-1", "c1", ready())],
    );
    let check = judged(&[one], at("c1"));
    assert_eq!(
        (check.outcome, check.seen.as_str()),
        (Outcome::Ok, "DaemonSet kube-system/ccm is Bowline")
    );
    assert_eq!(
        check.details,
        [
            "DaemonSet kube-system/ccm: Bowline, image bowline/bowline:v0.1.0, 1 of 1 pods ready, one of its pods leads",
            "  its flags: --v=3"
        ]
    );
}

#[test]
fn no_manager_at_all_is_a_failure() {
    let check = judged(&[], Leader::default());
    assert_eq!(check.outcome, Outcome::Failed);
    assert!(check.seen.starts_with("there is no manager"), "{check:?}");
    assert!(check.remedy.contains("install"), "{check:?}");
    assert_eq!(
        judged(&[], at("somewhere")).outcome,
        Outcome::Ok,
        "a process elsewhere leads"
    );
}

#[test]
fn pods_that_do_not_run_are_told_with_the_cause_and_the_remedy() {
    let scheduled = json!({ "phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 node(s) had untolerated taint {node.cloudprovider.kubernetes.io/uninitialized: true}.",
    }] });
    for (status, words, remedy) in [
        (
            waiting(
                "CrashLoopBackOff",
                "back-off 5m0s",
                Some((255, "no token: CLOUDSCALE_ACCESS_TOKEN is empty")),
            ),
            "CrashLoopBackOff, 7 restarts, it ended with exit code 255: no token: CLOUDSCALE_ACCESS_TOKEN is empty",
            "logs ccm-1 --previous",
        ),
        (
            waiting("ImagePullBackOff", "Back-off pulling image", None),
            "ImagePullBackOff of bowline/bowline:v0.1.0",
            "imagePullSecrets",
        ),
        (
            waiting(
                "CreateContainerConfigError",
                "secret \"cloudscale\" not found",
                None,
            ),
            "secret \"cloudscale\" not found",
            "make the Secret",
        ),
        (scheduled, "untolerated taint", "tolerations"),
    ] {
        let one = manager("ccm", Program::Bowline, &[], &[pod("ccm-1", "c1", status)]);
        let check = judged(&[one], Leader::default());
        assert_eq!(check.outcome, Outcome::Failed, "{check:?}");
        assert!(check.seen.contains(words), "{check:?}");
        assert!(check.remedy.contains(remedy), "{check:?}");
    }
    let some = [
        pod("ccm-1", "c1", ready()),
        pod("ccm-2", "c2", waiting("CrashLoopBackOff", "", Some((1, "")))),
    ];
    let check = judged(&[manager("ccm", Program::Bowline, &[], &some)], at("c1"));
    assert_eq!(check.outcome, Outcome::Warning, "one works: {check:?}");
    let check = judged(
        &[manager(
            "ccm",
            Program::Bowline,
            &[],
            &[pod("ccm-1", "c1", json!({}))],
        )],
        at("c1"),
    );
    assert_eq!(check.outcome, Outcome::Ok, "whoever leads runs: {check:?}");
}

#[test]
fn a_workload_without_pods_says_why() {
    let mut none = manager("ccm", Program::Bowline, &[], &[]);
    let check = judged(std::slice::from_ref(&none), Leader::default());
    assert!(
        check
            .seen
            .contains("runs on no Node: none has the labels of its nodeSelector role=control"),
        "{check:?}"
    );
    none.kind = "Deployment";
    assert!(
        judged(std::slice::from_ref(&none), Leader::default())
            .seen
            .contains("is scaled to 0")
    );
    none.wanted = Some(2);
    let said = Said {
        warning: Some(
            "FailedCreate: error looking up service account kube-system/x: serviceaccount \"x\" not found"
                .to_owned(),
        ),
        absent: vec!["Secret cloudscale".to_owned()],
        ..Said::default()
    };
    let check = judge(
        &[none],
        &BTreeMap::from([("Deployment kube-system/ccm".to_owned(), said)]),
        Leader::default(),
        true,
    );
    assert!(
        check.seen.contains("lacks 2 of its pods: FailedCreate"),
        "{check:?}"
    );
    assert!(check.remedy.contains("apply the ServiceAccount"), "{check:?}");
    assert!(
        check
            .seen
            .contains("needs what does not exist in kube-system: Secret cloudscale"),
        "{check:?}"
    );
}

#[test]
fn two_managers_that_work_at_once_are_a_failure_and_two_that_share_a_lease_a_warning() {
    let of = |name: &str, program, flags: &[&str]| {
        manager(name, program, flags, &[pod(&format!("{name}-1"), "c1", ready())])
    };
    let ours = || of("ours", Program::Bowline, &[]);
    for (other, outcome, words) in [
        (
            of("go", Program::Go, &["--leader-elect-resource-name=x"]),
            Outcome::Failed,
            "their leases are",
        ),
        (
            of("go", Program::Go, &["--leader-elect=false"]),
            Outcome::Failed,
            "without an election",
        ),
        (of("go", Program::Go, &[]), Outcome::Warning, "share the lease"),
        (
            of("go", Program::Go, &["--cloud-provider=openstack"]),
            Outcome::Failed,
            "for different clouds",
        ),
        (
            of(
                "go",
                Program::Go,
                &["--cloud-provider=openstack", "--leader-elect-resource-name=x"],
            ),
            Outcome::Ok,
            "",
        ),
    ] {
        let check = judged(&[ours(), other], at("elsewhere"));
        assert_eq!(check.outcome, outcome, "{check:?}");
        assert!(check.seen.contains(words), "{check:?}");
    }
    let pods = [pod("a", "c1", ready()), pod("b", "c2", ready())];
    let check = judged(
        &[manager("ccm", Program::Bowline, &["--leader-elect=false"], &pods)],
        Leader::default(),
    );
    assert!(check.seen.contains("all of them work at once"), "{check:?}");
}

/// Both may run on one computer of the control plane.
#[test]
fn of_two_managers_on_one_computer_the_one_with_the_lease_leads() {
    let pods = |name| [pod(name, "c1", ready())];
    let one = manager(
        "one",
        Program::Bowline,
        &["--leader-elect-resource-name=ccm-one"],
        &pods("o"),
    );
    let flags = [
        "--cloud-provider=openstack",
        "--leader-elect-resource-name=ccm-two",
    ];
    let two = manager("two", Program::Bowline, &flags, &pods("t"));
    let leader = Leader {
        lease: "kube-system/ccm-two",
        ..at("c1")
    };
    let check = judged(&[one, two], leader);
    assert_eq!(check.outcome, Outcome::Ok, "{check:?}");
    let leading: Vec<_> = check
        .details
        .iter()
        .filter(|line| line.contains("leads"))
        .collect();
    assert!(
        matches!(leading[..], [line] if line.starts_with("DaemonSet kube-system/two")),
        "{check:?}"
    );
}

#[test]
fn a_go_manager_that_leads_is_told() {
    let go = manager("go", Program::Go, &[], &[pod("go-1", "c1", ready())]);
    let check = judged(std::slice::from_ref(&go), at("c1"));
    assert_eq!(check.outcome, Outcome::Warning);
    assert!(check.seen.contains("leads, which is a Go manager"), "{check:?}");
    assert!(check.remedy.contains("change the image"), "{check:?}");
    let leader = Leader {
        host: Some("laptop"),
        program: Some(Program::Go),
        ..Leader::default()
    };
    assert!(judged(&[], leader).seen.contains("outside of the cluster"));
    let ours = manager("ours", Program::Bowline, &[], &[pod("o", "c2", ready())]);
    assert!(
        judged(&[ours], leader)
            .seen
            .contains("by the managed fields of its lease")
    );
}

/// Half an upgrade: the workload has the new image, and one of its pods does not.
#[test]
fn an_old_pod_with_a_go_image_that_leads_is_named() {
    let old = "quay.io/cloudscalech/cloudscale-cloud-controller-manager:1.3.0";
    let mut pods = [pod("ccm-new", "c1", ready()), pod("ccm-old", "c1", ready())];
    for (pod, image) in pods.iter_mut().zip(["bowline/bowline:v0.1.0", old]) {
        pod.spec.containers = serde_json::from_value(json!([{ "name": "m", "image": image }])).unwrap();
    }
    let ccm = manager("ccm", Program::Bowline, &[], &pods);
    let leader = Leader {
        program: Some(Program::Go),
        ..at("c1")
    };
    let check = judged(&[ccm], leader);
    assert_eq!(check.outcome, Outcome::Warning);
    assert!(
        check.seen.starts_with(&format!(
            "pod ccm-old on c1 leads, which still has the image {old}"
        )),
        "{check:?}"
    );
    assert!(check.remedy.contains("delete pod ccm-old"), "{check:?}");
    assert!(!check.remedy.contains("DaemonSet"), "{check:?}");
}

/// The same on the way back to the Go manager: whichever of the two leads.
#[test]
fn an_old_pod_of_bowline_under_a_go_image_is_named() {
    let mut pods = [pod("ccm-new", "c1", ready()), pod("ccm-old", "c2", ready())];
    let go = "quay.io/cloudscalech/cloudscale-cloud-controller-manager:1.2.3";
    for (pod, image) in pods.iter_mut().zip([go, "registry.example/bowline:1"]) {
        pod.spec.containers = serde_json::from_value(json!([{ "name": "m", "image": image }])).unwrap();
    }
    let ccm = manager("ccm", Program::Go, &[], &pods);
    let told = |host, program| {
        let leader = Leader {
            program: Some(program),
            ..at(host)
        };
        judged(std::slice::from_ref(&ccm), leader)
    };
    let check = told("c1", Program::Go);
    assert_eq!(check.outcome, Outcome::Warning);
    assert_eq!(
        check.seen,
        format!(
            "DaemonSet kube-system/ccm leads, which is a Go manager and not Bowline; pod ccm-old on c2 waits for the lease, and still has the image \
             registry.example/bowline:1, Bowline: DaemonSet kube-system/ccm has {go} by now"
        )
    );
    assert!(check.remedy.contains("delete pod ccm-old"), "{check:?}");
    let check = told("c2", Program::Bowline);
    assert!(
        check.seen.starts_with(
            "pod ccm-old on c2 leads, which still has the image registry.example/bowline:1, Bowline"
        ),
        "{check:?}"
    );
    assert!(!check.remedy.contains("Bowline takes the lease"), "{check:?}");
}

#[test]
fn the_proxy_of_a_manager_is_named_without_its_password() {
    let mut ccm = manager("ccm", Program::Bowline, &[], &[]);
    assert_eq!(proxies(&ccm), None);
    let variables = json!([
        { "name": "HTTPS_PROXY", "value": "http://anna:p@w@10.0.0.1:3128" },
        { "name": "http_proxy", "value": "anna:pw@10.0.0.2" },
        { "name": "NO_PROXY", "value": "10.0.0.0/8" },
    ]);
    ccm.container.env = serde_json::from_value(variables).unwrap();
    assert_eq!(
        proxies(&ccm).unwrap(),
        "DaemonSet kube-system/ccm (HTTPS_PROXY=http://10.0.0.1:3128, http_proxy=10.0.0.2)"
    );
}

#[test]
fn the_line_of_a_log_that_tells_of_an_error_is_its_last_word() {
    let log = "I0101 start\nE0101 no token\nI0101 bye\n\n";
    assert_eq!(last_words(log).as_deref(), Some("E0101 no token"));
    assert_eq!(last_words("I0101 start\n").as_deref(), Some("I0101 start"));
    assert_eq!(last_words("\n"), None);
}

/// The new credentials are in the Secret, and doctor logs in with these: what the pods have is seen by the times alone.
#[test]
fn a_pod_that_started_before_its_secret_was_written_runs_with_older_credentials() {
    let running = |since: &str| {
        let mut status = ready();
        status["containerStatuses"][0]["state"] = json!({ "running": { "startedAt": since } });
        status
    };
    let pods = [
        pod("old", "c1", running("2026-01-01T00:00:00Z")),
        pod("new", "c2", running("2026-01-01T00:10:00Z")),
    ];
    let manager = manager("ccm", Program::Bowline, &[], &pods);
    let said = |at: &str| {
        let of_it = Said {
            written: vec![("Secret cloudscale".to_owned(), at.parse().unwrap())],
            ..Said::default()
        };
        BTreeMap::from([(manager.object(), of_it)])
    };
    let judged = |at: &str| judge(std::slice::from_ref(&manager), &said(at), Leader::default(), true);
    let check = judged("2026-01-01T00:05:00Z");
    assert_eq!(check.outcome, Outcome::Warning, "{check:?}");
    assert!(
        check
            .seen
            .contains("older credentials than those of Secret cloudscale"),
        "{check:?}"
    );
    assert!(check.seen.ends_with("after they started: old"), "{check:?}");
    assert!(
        check.remedy.contains("rollout restart daemonset/ccm"),
        "{check:?}"
    );
    assert_eq!(judged("2025-12-31T00:00:00Z").outcome, Outcome::Ok);
}
