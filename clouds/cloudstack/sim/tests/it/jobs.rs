//! Asynchronous commands.

use std::time::Duration;

use bowline_cloudstack_sim::{AddressState, JobFault, JobStatus, NetworkSpec, RuleState, UserSpec};
use serde_json::json;

use crate::support::{Caller, cloud, text};

#[tokio::test(start_paused = true)]
async fn job_is_told_done_at_the_second_poll_and_ever_after() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let network = sim.network();
    let accepted = caller
        .post("associateIpAddress", &[("networkid", &network)])
        .await
        .unwrap();
    let (job, id) = (text(&accepted["jobid"]), text(&accepted["id"]));
    let pending = caller.poll(&job).await;
    assert_eq!(
        pending,
        json!({
            "userid": pending["userid"], "jobid": job, "jobstatus": 0, "jobprocstatus": 0, "jobresultcode": 0,
            "cmd": "org.apache.cloudstack.api.command.user.address.AssociateIpAddressCmd",
            "jobinstancetype": "IpAddress", "jobinstanceid": id, "created": "2026-01-01T00:00:00+0000",
        })
    );
    for _ in 0..3 {
        let done = caller.poll(&job).await;
        assert_eq!(
            (&done["jobstatus"], &done["jobresulttype"]),
            (&json!(1), &json!("object"))
        );
        assert_eq!(done["jobresult"]["ipaddress"]["id"], id);
        assert_eq!(done["completed"], "2026-01-01T00:00:00+0000");
    }
    assert_eq!(
        caller.refusal("queryAsyncJobResult", &[("jobid", "7f")]).await.0,
        431
    );
    sim.add_user(UserSpec::new("b", "s").account("other"));
    let other = Caller::with_keys(&sim, "b", "s");
    assert_eq!(
        other.refusal("queryAsyncJobResult", &[("jobid", &job)]).await.0,
        531
    );
}

#[tokio::test(start_paused = true)]
async fn jobs_of_a_network_run_one_after_another() {
    let (sim, vms) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let other = sim.add_network(NetworkSpec::new("other"));
    sim.set_behaviour(|it| it.job_time = Duration::from_secs(2));
    let wish = [
        ("name", "a"),
        ("algorithm", "source"),
        ("publicipid", address.as_str()),
        ("publicport", "80"),
        ("privateport", "30080"),
        ("openfirewall", "false"),
    ];
    let made = caller.post("createLoadBalancerRule", &wish).await.unwrap();
    let rule = text(&made["id"]);
    let members = [("id", rule.as_str()), ("virtualmachineids", vms[0].as_str())];
    let assigned = caller.post("assignToLoadBalancerRule", &members).await.unwrap();
    let elsewhere = caller
        .post("associateIpAddress", &[("networkid", &other)])
        .await
        .unwrap();
    let status = async |job: &serde_json::Value| caller.poll(&text(job)).await["jobstatus"].as_u64();
    assert_eq!(status(&elsewhere["jobid"]).await, Some(0));
    assert_eq!(
        sim.rules()[0].state,
        RuleState::Add,
        "it is there before its job ends"
    );
    tokio::time::advance(Duration::from_millis(1999)).await;
    assert_eq!(status(&made["jobid"]).await, Some(0));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(status(&made["jobid"]).await, Some(1));
    assert_eq!(
        status(&elsewhere["jobid"]).await,
        Some(1),
        "another network does not wait"
    );
    assert_eq!(status(&assigned["jobid"]).await, Some(0));
    assert!(sim.rules()[0].members.is_empty());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(status(&assigned["jobid"]).await, Some(1));
    assert_eq!(sim.rules()[0].state, RuleState::Active);
}

#[tokio::test(start_paused = true)]
async fn failed_job_takes_back_what_its_command_did() {
    let (sim, vms) = cloud();
    let caller = Caller::new(&sim);
    sim.fail_jobs(JobFault::of("associateIpAddress").saying(530, "the router is gone"));
    let network = sim.network();
    let failed = caller.run("associateIpAddress", &[("networkid", &network)]).await;
    assert_eq!(failed, Err((530, "the router is gone".to_owned())));
    assert!(sim.addresses().is_empty());

    let address = caller.associate().await;
    let rule = caller.rule(&address, "a", 80).await;
    sim.fail_jobs(JobFault::any().nth(2).always());
    caller
        .run("deleteLoadBalancerRule", &[("id", &rule)])
        .await
        .unwrap();
    assert!(caller.try_rule(&address, "b", 80, &[]).await.is_err());
    assert!(sim.rules().is_empty());
    sim.clear_job_faults();

    let rule = caller.rule(&address, "c", 80).await;
    let members = [("id", rule.as_str()), ("virtualmachineids", vms[0].as_str())];
    caller.run("assignToLoadBalancerRule", &members).await.unwrap();
    sim.fail_jobs(JobFault::any().always());
    assert!(
        caller
            .run("deleteLoadBalancerRule", &[("id", &rule)])
            .await
            .is_err()
    );
    assert_eq!(sim.rules()[0].state, RuleState::Active);
    assert!(
        caller
            .run("disassociateIpAddress", &[("id", &address)])
            .await
            .is_err()
    );
    // A release is not taken back: the address stays on its way, and so do the rules on it.
    assert_eq!(sim.addresses()[0].state, AddressState::Releasing);
    assert_eq!(sim.rules()[0].state, RuleState::Revoke);
    let last = sim.jobs().pop().unwrap();
    assert_eq!(
        (last.command, last.status),
        ("disassociateIpAddress", JobStatus::Failed)
    );
    assert_eq!(last.error.as_deref(), Some("injected fault"));
}

#[tokio::test(start_paused = true)]
async fn job_may_deny_its_effect_or_never_end() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    sim.fail_jobs(JobFault::of("createLoadBalancerRule").kept());
    assert!(caller.try_rule(&address, "a", 80, &[]).await.is_err());
    assert_eq!(sim.rules().len(), 1);
    sim.fail_jobs(JobFault::of("deleteLoadBalancerRule").stuck());
    let rule = sim.rules()[0].id.clone();
    let accepted = caller
        .post("deleteLoadBalancerRule", &[("id", &rule)])
        .await
        .unwrap();
    tokio::time::advance(Duration::from_secs(3600)).await;
    for _ in 0..5 {
        let answer = caller.poll(&text(&accepted["jobid"])).await;
        assert_eq!(answer["jobstatus"], 0);
    }
    assert_eq!(sim.rules()[0].state, RuleState::Revoke);
    let again = caller.run("deleteLoadBalancerRule", &[("id", &rule)]).await;
    assert_eq!(
        again,
        Ok(json!({ "success": true })),
        "the next job does not wait for it"
    );
}

#[tokio::test(start_paused = true)]
async fn job_that_never_ends_may_hold_up_its_network() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    sim.set_behaviour(|it| it.stuck_jobs_hold_up = true);
    sim.fail_jobs(JobFault::of("createLoadBalancerRule").stuck());
    let create = |port| {
        let (caller, address) = (&caller, &address);
        let network = sim.network();
        async move {
            let params = [
                ("name", port),
                ("algorithm", "roundrobin"),
                ("publicport", port),
                ("privateport", "31443"),
                ("publicipid", address),
                ("networkid", network.as_str()),
            ];
            let accepted = caller.post("createLoadBalancerRule", &params).await.unwrap();
            text(&accepted["jobid"])
        }
    };
    let (first, second) = (create("80").await, create("81").await);
    tokio::time::advance(Duration::from_secs(3600)).await;
    for _ in 0..5 {
        assert_eq!(caller.poll(&second).await["jobstatus"], 0);
    }
    sim.end_stuck_jobs();
    for _ in 0..2 {
        caller.poll(&first).await;
        caller.poll(&second).await;
    }
    assert_eq!(caller.poll(&first).await["jobstatus"], 2);
    assert_eq!(caller.poll(&second).await["jobstatus"], 1);
}

#[tokio::test(start_paused = true)]
async fn server_that_shuts_down_takes_no_jobs_and_answers_reads() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let network = sim.network();
    sim.set_behaviour(|it| it.refuses_jobs = true);
    assert_eq!(
        caller
            .refusal("associateIpAddress", &[("networkid", &network)])
            .await
            .0,
        503
    );
    caller.get("listNetworks", &[]).await;
    sim.set_behaviour(|it| it.maintenance = true);
    assert_eq!(caller.refusal("listNetworks", &[]).await.0, 503);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_waits_for_polls_does_nothing_until_it_is_asked_after() {
    let (sim, _) = cloud();
    sim.set_behaviour(|it| it.jobs_wait_for_polls = true);
    let caller = Caller::new(&sim);
    let network = sim.network();
    let accepted = caller
        .post("associateIpAddress", &[("networkid", &network)])
        .await
        .unwrap();
    let state = || sim.addresses().remove(0).state;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(state(), AddressState::Allocating);
    let job = text(&accepted["jobid"]);
    assert_eq!(caller.poll(&job).await["jobstatus"], 0);
    assert_eq!(state(), AddressState::Allocating);
    assert_eq!(caller.poll(&job).await["jobstatus"], 1);
    assert_eq!(state(), AddressState::Allocated);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_go_is_shown_so_when_its_job_begins_and_not_before() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let rule = caller.rule(&address, "a", 80).await;
    let open = [
        ("ipaddressid", address.as_str()),
        ("protocol", "tcp"),
        ("startport", "80"),
    ];
    let opened = caller.run("createFirewallRule", &open).await.unwrap();
    let opened = text(&opened["firewallrule"]["id"]);
    sim.set_behaviour(|it| it.job_time = Duration::from_secs(20));
    let network = sim.network();
    caller
        .post("associateIpAddress", &[("networkid", &network)])
        .await
        .unwrap();
    for (command, id) in [
        ("deleteFirewallRule", &opened),
        ("deleteLoadBalancerRule", &rule),
        ("disassociateIpAddress", &address),
    ] {
        caller.post(command, &[("id", id)]).await.unwrap();
    }
    let states = async || {
        let rules = caller.get("listLoadBalancerRules", &[]).await;
        let addresses = caller.get("listPublicIpAddresses", &[("id", &address)]).await;
        let opened = caller.get("listFirewallRules", &[]).await;
        let lists = [
            &opened["firewallrule"],
            &rules["loadbalancerrule"],
            &addresses["publicipaddress"],
        ];
        lists.map(|list| text(&list[0]["state"]))
    };
    assert_eq!(states().await, ["Active", "Add", "Allocated"]);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(states().await, ["Deleting", "Add", "Allocated"]);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(sim.firewall_rules().len(), 0);
    assert_eq!(sim.rules()[0].state, RuleState::Revoke);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(sim.addresses()[0].state, AddressState::Releasing);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(sim.addresses().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_opening_whose_deletion_failed_stays_on_its_way_out() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let open = [
        ("ipaddressid", address.as_str()),
        ("protocol", "tcp"),
        ("startport", "80"),
    ];
    let opened = caller.run("createFirewallRule", &open).await.unwrap();
    let opened = text(&opened["firewallrule"]["id"]);
    sim.fail_jobs(JobFault::of("deleteFirewallRule"));
    let failed = caller.run("deleteFirewallRule", &[("id", &opened)]).await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(sim.firewall_rules()[0].state, RuleState::Revoke);
    // Another one like it may be made meanwhile.
    caller.run("createFirewallRule", &open).await.unwrap();
    caller
        .run("deleteFirewallRule", &[("id", &opened)])
        .await
        .unwrap();
    assert_eq!(sim.firewall_rules().len(), 1);
}
