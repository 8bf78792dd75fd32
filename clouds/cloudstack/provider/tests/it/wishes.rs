//! What people asked for beyond the Go manager: the address by annotation, an address that is kept, `ipMode`.

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::{AddressSpec, JobFault};
use serde_json::json;

use crate::world::{Outcome, WEB, World};

const IP: &str = "203.0.113.77";
const OTHER: &str = "203.0.113.78";

#[tokio::test(start_paused = true)]
async fn the_annotation_names_the_address_before_the_field_does() {
    for is_own in [false, true] {
        let world = World::with_service().await;
        if is_own {
            world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
        }
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(OTHER));
        world.annotate(WEB, "address", Some(IP));
        assert_eq!(world.run(WEB).await.published(), [IP]);
        let mark = world.annotation(WEB, "ip-associated-by-controller");
        assert_eq!(mark.as_deref() == Some("true"), !is_own);
        assert!(world.run(WEB).await.settled().waves.is_empty());
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(world.sim.addresses().len(), usize::from(is_own));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_annotation_moves_the_balancer() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let members = world.members("tcp-443");
    world.annotate(WEB, "address", Some(IP));
    assert_eq!(world.run(WEB).await.published(), [IP]);
    assert_eq!(
        (world.address().address.to_string(), world.members("tcp-443")),
        (IP.to_owned(), members)
    );
    world.annotate(WEB, "address", Some("nonsense"));
    let run = world.run(WEB).await;
    assert!(
        run.complaint().starts_with("could not find IP address nonsense"),
        "{}",
        run.complaint()
    );
    assert_eq!(world.rules().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kept_address_outlives_its_service() {
    for requested in [None, Some(IP)] {
        let world = World::with_service().await;
        world.annotate(WEB, "keep-ip", Some("true"));
        world.annotate(WEB, "address", requested);
        world.run(WEB).await.settled();
        let address = world.address();
        let (run, writes) = world
            .writes_of(async {
                world.delete(WEB);
                world.run(WEB).await
            })
            .await;
        run.settled();
        assert!(
            !writes.contains(&"disassociateIpAddress".to_owned()),
            "{writes:?}"
        );
        assert_eq!(world.address().id, address.id);
        assert_eq!((world.rules(), world.openings()), (Vec::new(), Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_address_is_left_when_the_balancer_moves_and_used_again_after_a_failure() {
    let world = World::with_service().await;
    world.annotate(WEB, "keep-ip", Some("true"));
    world.sim.fail_jobs(JobFault::of("createLoadBalancerRule").nth(2));
    assert!(matches!(world.run(WEB).await.outcome, Outcome::Failed(_)));
    let first = world.address().id;
    world.run(WEB).await.settled();
    assert_eq!(world.address().id, first);
    world.annotate(WEB, "address", Some(IP));
    let run = world.run(WEB).await;
    assert_eq!(run.published(), [IP]);
    assert!(!run.has_note("PublicIPKept"), "{:?}", run.notes);
    assert_eq!(world.sim.addresses().len(), 2);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    assert!(!world.annotation(WEB, "ip-ids").unwrap().contains(&first));
}

#[tokio::test(start_paused = true)]
async fn only_true_keeps_an_address() {
    let world = World::with_service().await;
    world.annotate(WEB, "keep-ip", Some("yes"));
    let run = world.run(WEB).await.settled();
    let told = "`yes`, which does not keep the address";
    assert!(
        run.notes
            .iter()
            .any(|note| note.reason == "IgnoredAnnotations" && note.text.contains(told)),
        "{:?}",
        run.notes
    );
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_the_ip_mode_where_it_is_asked_for() {
    let world = World::with_service().await;
    let modes = |run: bowline_kit::Run| match run.outcome {
        Outcome::Settled(status) => status
            .ingress
            .into_iter()
            .map(|entry| entry.ip_mode)
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(modes(world.run(WEB).await), [None]);
    for (value, expected) in [("Proxy", "Proxy"), ("VIP", "VIP")] {
        world.annotate(WEB, "ip-mode", Some(value));
        let run = world.run(WEB).await;
        assert!(run.waves.is_empty());
        assert_eq!(modes(run)[0].unwrap().as_str(), expected);
    }
    world.annotate(WEB, "hostname", Some("edge.example.org"));
    assert_eq!(modes(world.run(WEB).await), [None]);
    world.publish(WEB);
    world.annotate(WEB, "ip-mode", Some("proxy"));
    let run = world.run(WEB).await;
    assert!(run.complaint().contains("ip-mode"), "{}", run.complaint());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_stand_in_gets_its_firewall_changed_all_the_same() {
    let world = World::with_service().await;
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24", "198.51.100.0/24"]);
        spec["ports"].as_array_mut().unwrap().pop();
    });
    world.run(WEB).await.settled();
    world.spec(WEB, |spec| {
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
    });
    let conflict = r#"{"createfirewallruleresponse":{"errorcode":537,"errortext":"overlaps"}}"#;
    world.sim.faults().add(
        Fault::operation("createFirewallRule")
            .answer(bowline_cloudstack_sim::kit::faults::Canned::json(537, conflict)),
    );
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(
        writes,
        ["createFirewallRule", "deleteFirewallRule", "createFirewallRule"]
    );
    assert_eq!(world.openings(), ["tcp 443 192.0.2.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_server_ignores_is_an_error_and_not_made_for_ever() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let rules: Vec<_> = world.sim.rules();
    world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
    let sim = world.sim.clone();
    let undo = async {
        for _ in 0..1_000 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            for rule in &rules {
                sim.edit_rule(&rule.id, |known| known.algorithm.clone_from(&rule.algorithm));
            }
        }
    };
    let (run, ()) = tokio::join!(world.run(WEB), undo);
    assert!(
        run.complaint().contains("is not as it was written"),
        "{}",
        run.complaint()
    );
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").algorithm, "source");
}
