//! Making a balancer.

use bowline_cloudstack_sim::{NetworkSpec, NicSpec, VmSpec};

use crate::site::Site;
use crate::world::{MACHINES, WEB, World};

#[tokio::test(start_paused = true)]
async fn a_network_without_load_balancing_is_named() {
    let site = Site::new();
    let network = site.sim.add_network(NetworkSpec {
        services: Some(vec!["Dhcp".into(), "Dns".into()]),
        ..NetworkSpec::new("flat")
    });
    site.sim
        .add_vm(VmSpec::with_nics("cp-a", [NicSpec::on(&network)]));
    let world = World::around(site).await;
    world.add_web();
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("network flat"), "{}", run.complaint());
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_version_is_not_told_is_taken_for_an_old_one() {
    let forbid = |behaviour: &mut bowline_cloudstack_sim::Behaviour| {
        behaviour.forbidden_to_users.insert("listCapabilities".to_owned());
    };
    let site = Site::new();
    site.sim.set_behaviour(forbid);
    for name in MACHINES {
        site.sim.add_vm(VmSpec::new(name));
    }
    let world = World::around(site).await;
    world.add_web();
    world.run(WEB).await.settled();
    // It may take a list all the same.
    world.annotate(WEB, "source-cidrs", Some("10.0.0.0/8"));
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").cidrs.as_deref(), Some("10.0.0.0/8"));
    assert!(world.run(WEB).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn services_choose_different_addresses() {
    let world = World::new().await;
    let keys: Vec<String> = (0..8).map(|number| format!("shop/web-{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        world.add(
            key,
            &format!("0000000{number}-0000-4000-8000-000000000000"),
            &[("TCP", 443, 31443)],
        );
    }
    let runs = futures::future::join_all(keys.iter().map(|key| world.run(key))).await;
    let mut published: Vec<String> = runs
        .into_iter()
        .flat_map(|run| run.settled().published())
        .collect();
    published.sort();
    published.dedup();
    assert_eq!((published.len(), world.sim.addresses().len()), (8, 8));
}
