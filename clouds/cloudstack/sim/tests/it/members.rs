//! Members of load balancer rules.

use bowline_cloudstack_sim::{CloudstackSim, NetworkSpec, NicSpec, RuleState, VmSpec, VmState};
use serde_json::json;

use crate::support::{Caller, End, cloud, each};

struct Rule {
    caller: Caller,
    id: String,
}

impl Rule {
    async fn new(sim: &CloudstackSim) -> Self {
        let caller = Caller::new(sim);
        let address = caller.associate().await;
        let id = caller.rule(&address, "a", 80).await;
        Self { caller, id }
    }

    async fn assign(&self, vms: &[&str]) -> End {
        let vms = vms.join(",");
        let parameters = [("id", self.id.as_str()), ("virtualmachineids", vms.as_str())];
        self.caller.run("assignToLoadBalancerRule", &parameters).await
    }

    async fn remove(&self, vms: &[&str]) -> End {
        let vms = vms.join(",");
        let parameters = [("id", self.id.as_str()), ("virtualmachineids", vms.as_str())];
        self.caller.run("removeFromLoadBalancerRule", &parameters).await
    }

    async fn members(&self) -> Vec<String> {
        let found = self
            .caller
            .get("listLoadBalancerRuleInstances", &[("id", &self.id)])
            .await;
        each(&found, "loadbalancerruleinstance", "name")
    }
}

#[tokio::test(start_paused = true)]
async fn first_member_makes_a_rule_active() {
    let (sim, vms) = cloud();
    let rule = Rule::new(&sim).await;
    assert_eq!(rule.assign(&[]).await, Ok(json!({ "success": true })));
    assert_eq!(sim.rules()[0].state, RuleState::Add);
    rule.assign(&[&vms[1], &vms[0]]).await.unwrap();
    assert_eq!(sim.rules()[0].state, RuleState::Active);
    assert_eq!(rule.members().await, ["pool-a-7", "cp-a"]);
    rule.remove(&[&vms[1], &vms[2]]).await.unwrap();
    assert_eq!(rule.members().await, ["cp-a"]);
    let found = rule
        .caller
        .get("listLoadBalancerRuleInstances", &[("id", &rule.id)])
        .await;
    let member = &found["loadbalancerruleinstance"][0];
    assert_eq!(
        (&member["servicestate"], &member["nic"][0]["ipaddress"]),
        (&json!("Up"), &json!("10.1.1.10"))
    );
}

#[tokio::test(start_paused = true)]
async fn assignment_that_fails_adds_nobody() {
    let (sim, vms) = cloud();
    let rule = Rule::new(&sim).await;
    rule.assign(&[&vms[0]]).await.unwrap();
    let number = sim.vm(&vms[0]).unwrap().number;
    let twice = rule.assign(&[&vms[1], &vms[0]]).await.unwrap_err();
    let text = format!("VM {number} with 10.1.1.10 is already mapped to load balancer.");
    assert_eq!(twice, (431, text));
    let other = sim.add_network(NetworkSpec::new("other"));
    let stranger = sim.add_vm(VmSpec::with_nics("stranger", [NicSpec::on(&other)]));
    let refused = rule.assign(&[&vms[1], &stranger]).await.unwrap_err();
    let text = "VM with id specified cannot be added because it doesn't belong in the same network.";
    assert_eq!(refused, (431, text.to_owned()));
    sim.destroy_vm(&vms[2]);
    assert_eq!(rule.assign(&[&vms[2]]).await.unwrap_err().0, 431);
    assert_eq!(rule.members().await, ["cp-a"]);

    let jobs = sim.jobs().len();
    let unknown = rule.assign(&["7f"]).await.unwrap_err();
    assert!(
        unknown.1.contains("Invalid parameter virtualmachineids value=7f"),
        "{unknown:?}"
    );
    assert_eq!(sim.jobs().len(), jobs, "an unknown id is refused at once");
}

#[tokio::test(start_paused = true)]
async fn members_that_go_are_not_listed() {
    let (sim, vms) = cloud();
    let rule = Rule::new(&sim).await;
    rule.assign(&[&vms[0], &vms[1], &vms[2]]).await.unwrap();
    for state in [
        VmState::Destroyed,
        VmState::Expunging,
        VmState::Error,
        VmState::Unknown,
    ] {
        sim.set_vm_state(&vms[1], state);
        assert_eq!(rule.members().await, ["cp-a", "pool-a-8"], "{state:?}");
    }
    sim.set_vm_state(&vms[1], VmState::Stopped);
    assert_eq!(rule.members().await.len(), 3);
    sim.expunge_vm(&vms[1]);
    assert_eq!(rule.members().await, ["cp-a", "pool-a-8"]);
    sim.remove_member(&rule.id, &vms[0]);
    assert_eq!(sim.member_names(&rule.id), ["pool-a-8"]);
    let of = [("virtualmachineid", vms[2].as_str())];
    assert_eq!(rule.caller.get("listLoadBalancerRules", &of).await["count"], 1);
    let of = [("virtualmachineid", vms[0].as_str())];
    assert_eq!(rule.caller.get("listLoadBalancerRules", &of).await, json!({}));
}
