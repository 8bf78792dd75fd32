//! What is on its way out and does not go: an address whose release failed, a rule whose deletion takes long.

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::model::PublicAddress;
use bowline_cloudstack_sim::{AddressState, JobFault, RuleState};
use serde_json::json;

use crate::site::Site;
use crate::world::{Outcome, WEB, World};

/// Those that somebody has and that serve.
fn allocated(world: &World) -> Vec<PublicAddress> {
    let mut all = world.sim.addresses();
    all.retain(|address| !address.is_source_nat && address.state == AddressState::Allocated);
    all
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_somebody_else_deletes_is_made_anew() {
    for is_vpc in [false, true] {
        let world = World::of(Site::new(), is_vpc).await;
        world.add_web();
        world.run(WEB).await.settled();
        let before = world.rule("tcp-443").id;
        // The router is slow: the rule is listed with its members all the time.
        world
            .sim
            .edit_rule(&before, |rule| rule.state = RuleState::Revoke);
        world.run(WEB).await.settled();
        let rule = world.rule("tcp-443");
        assert_ne!(rule.id, before, "VPC {is_vpc}");
        assert_eq!((rule.state, rule.members.len()), (RuleState::Active, 3));
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_balancer_whose_address_cannot_be_given_back_is_served_by_another_one() {
    for is_vpc in [false, true] {
        for is_cleaned_up in [false, true] {
            let what = format!("VPC {is_vpc}, cleaned up {is_cleaned_up}");
            let world = World::of(Site::new(), is_vpc).await;
            world.add_web();
            world.sim.fail_jobs(JobFault::of("createLoadBalancerRule").nth(2));
            world
                .sim
                .fail_jobs(JobFault::of("disassociateIpAddress").always());
            let run = world.run(WEB).await;
            assert!(matches!(run.outcome, Outcome::Failed(_)), "{what}: {run:#?}");
            let mut left = world.sim.addresses();
            left.retain(|address| address.state == AddressState::Releasing);
            let [left] = left.as_slice() else {
                panic!("{what}: {left:#?}")
            };
            let mut rules = world.sim.rules().into_iter();
            assert!(rules.any(|rule| rule.state == RuleState::Revoke), "{what}");
            world.sim.clear_job_faults();
            if is_cleaned_up {
                // Another job of the network makes the server do it; the rules stay.
                world.sim.set_behaviour(|it| it.releases_leave_rules = true);
                world.sim.release_address(&left.id);
                world.sim.set_behaviour(|it| it.releases_leave_rules = false);
            }
            let mut tries = 0;
            let run = loop {
                let run = world.run(WEB).await;
                if matches!(run.outcome, Outcome::Settled(_)) {
                    break run;
                }
                tries += 1;
                assert!(tries < 4, "{what}: {run:#?}");
            };
            let [serving] = &allocated(&world)[..] else {
                panic!("{what}: {:#?}", world.sim.addresses())
            };
            assert_eq!(run.published(), [serving.address.to_string()], "{what}");
            assert!(serving.id != left.id || is_cleaned_up, "{what}");
            for rule in ["tcp-443", "udp-4500"] {
                assert_eq!(world.members(rule).len(), 3, "{what}");
                assert_eq!(world.rule(rule).address, serving.id, "{what}");
            }
            // What is left over goes when the Service shows where it is.
            world.publish_at(WEB, &serving.address.to_string());
            world.run(WEB).await.settled();
            world.delete(WEB);
            world.run(WEB).await.settled();
            let mut held = world.sim.addresses();
            held.retain(|address| !address.is_source_nat);
            assert!(held.is_empty() && world.rules().is_empty(), "{what}: {held:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_go_keeps_no_service_that_moved_from_it_from_being_served() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let before = world.address();
    world
        .sim
        .fail_jobs(JobFault::of("disassociateIpAddress").always());
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    let run = world.run(WEB).await;
    assert!(run.complaint().starts_with("error releasing"), "{run:#?}");
    let state = || {
        let mut all = world.sim.addresses().into_iter();
        all.find(|it| it.id == before.id).map(|it| it.state)
    };
    assert_eq!(state(), Some(AddressState::Releasing));
    world.publish_at(WEB, "203.0.113.77");
    // The Nodes are followed all the same.
    world.remove_node("pool-a-8");
    world.run(WEB).await;
    let rule = |port: u16| {
        let mut rules = world.sim.rules().into_iter();
        rules.find(|it| it.public_port == port && it.state == RuleState::Active)
    };
    assert_eq!(rule(443).unwrap().members.len(), 2);
    world.sim.clear_job_faults();
    world.run(WEB).await.settled();
    assert_eq!(state(), None);
}

#[tokio::test(start_paused = true)]
async fn a_firewall_that_is_not_listed_of_an_address_that_is_there_is_an_error() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let refused = r#"{"listfirewallrulesresponse":{"errorcode":431,"errortext":"Ip address id=1 not ready for firewall rules yet"}}"#;
    let canned = bowline_cloudstack_sim::kit::faults::Canned::json(431, refused);
    world
        .sim
        .faults()
        .add(Fault::operation("listFirewallRules").times(1).answer(canned));
    let run = world.run(WEB).await;
    assert!(
        run.complaint().starts_with("error fetching firewall rules"),
        "{run:#?}"
    );
    assert!(world.run(WEB).await.settled().waves.is_empty());
}
