//! Calls at random: whatever is asked for, the cloud stays whole.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Seed;
use bowline_cloudstack_sim::{CloudstackSim, JobFault, JobStatus, RuleState};

use crate::support::{Caller, End, cloud};

fn pick<'i, T>(seed: &Seed, items: &'i [T]) -> Option<&'i T> {
    items.get(usize::try_from(seed.below(items.len() as u64)).unwrap())
}

/// One call, or some seconds without one.
async fn step(caller: &Caller, seed: &Seed) -> Option<End> {
    let sim = &caller.sim;
    let (addresses, rules, openings) = (sim.addresses(), sim.rules(), sim.firewall_rules());
    let address = pick(seed, &addresses).map_or("none", |it| it.id.as_str());
    let rule = pick(seed, &rules).map_or("none", |it| it.id.as_str());
    let opening = pick(seed, &openings).map_or("none", |it| it.id.as_str());
    let vms = sim.vms();
    let vm = pick(seed, &vms).map_or("none", |it| it.id.as_str());
    let network = sim.network();
    let port = (80 + seed.below(3)).to_string();
    let name = format!("a-tcp-{port}-{}", seed.below(1_000_000));
    let (command, parameters): (&str, Vec<(&str, &str)>) = match seed.below(10) {
        0 => {
            tokio::time::advance(Duration::from_secs(seed.below(10))).await;
            return None;
        }
        1 => ("associateIpAddress", vec![("networkid", &network)]),
        2 if seed.below(3) == 0 => ("disassociateIpAddress", vec![("id", address)]),
        2 | 3 => (
            "createLoadBalancerRule",
            vec![
                ("name", &name),
                ("algorithm", "roundrobin"),
                ("publicipid", address),
                ("publicport", &port),
                ("privateport", "30080"),
                ("openfirewall", "false"),
            ],
        ),
        4 => ("deleteLoadBalancerRule", vec![("id", rule)]),
        5 | 6 => (
            "assignToLoadBalancerRule",
            vec![("id", rule), ("virtualmachineids", vm)],
        ),
        7 => (
            "removeFromLoadBalancerRule",
            vec![("id", rule), ("virtualmachineids", vm)],
        ),
        8 => (
            "createFirewallRule",
            vec![
                ("ipaddressid", address),
                ("protocol", "tcp"),
                ("startport", &port),
            ],
        ),
        _ => ("deleteFirewallRule", vec![("id", opening)]),
    };
    Some(caller.post(command, &parameters).await)
}

/// What is always true.
fn check(sim: &CloudstackSim, seed: &Seed) {
    let number = seed.value();
    assert_eq!(sim.check_invariants(), Vec::<String>::new(), "seed {number}");
    for rule in sim.rules() {
        if rule.state == RuleState::Add {
            assert!(rule.members.is_empty(), "seed {number}: {rule:?}");
        }
        let ports = sim.rules();
        let same = ports.iter().filter(|it| {
            it.address == rule.address && it.public_port == rule.public_port && it.state != RuleState::Revoke
        });
        assert!(
            same.count() <= 1,
            "seed {number}: port {} twice",
            rule.public_port
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cloud_stays_whole_whatever_is_called() {
    for number in 0..20 {
        let seed = Seed::new(number);
        let (sim, _) = cloud();
        sim.set_behaviour(|it| {
            it.job_time = Duration::from_secs(seed.below(4));
            it.quota.addresses = Some(4);
        });
        sim.fail_jobs(JobFault::any().nth(7));
        sim.fail_jobs(JobFault::any().nth(20).kept());
        let caller = Caller::new(&sim);
        let mut done = 0;
        for _ in 0..200 {
            match step(&caller, &seed).await {
                None => {}
                Some(Ok(_)) => done += 1,
                Some(Err((code, text))) => {
                    assert!(matches!(code, 431 | 535 | 537), "seed {number}: {code} {text}");
                }
            }
            check(&sim, &seed);
        }
        tokio::time::advance(Duration::from_secs(3600)).await;
        let jobs = sim.jobs();
        assert_eq!(jobs.len(), done, "seed {number}");
        assert!(
            jobs.iter().all(|it| it.status != JobStatus::Pending),
            "seed {number}"
        );
        let good = jobs.iter().filter(|it| it.status == JobStatus::Done).count();
        assert!(good > 10, "seed {number}: {good} of {done} jobs did something");
        check(&sim, &seed);
    }
}
