//! Finding virtual machines, rules and addresses among many and among those of others.

use bowline_cloudstack_sim::{NetworkSpec, NicSpec, Owner, ProjectSpec, UserSpec, VmSpec};

use crate::site::Site;
use crate::world::{MACHINES, WEB, World};

#[tokio::test(start_paused = true)]
async fn small_pages_hide_nothing() {
    let site = Site::built(|builder| builder);
    site.sim.set_behaviour(|behaviour| {
        behaviour.page_size = Some(2);
        behaviour.carry_everything();
    });
    site.sim.add_vms("node", 7);
    let world = World::around(site).await;
    for name in ["node-6", "node-7"] {
        world.remove_node(name);
    }
    world.add(
        WEB,
        crate::world::UID,
        &[("TCP", 80, 31080), ("TCP", 443, 31443), ("UDP", 4500, 31500)],
    );
    world.run(WEB).await.settled();
    assert_eq!(world.rules().len(), 3);
    for rule in ["tcp-80", "tcp-443", "udp-4500"] {
        assert_eq!(
            world.members(rule),
            ["node-1", "node-2", "node-3", "node-4", "node-5"]
        );
    }
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
}

#[tokio::test(start_paused = true)]
async fn nodes_with_domains_and_capitals_are_found_by_name() {
    let world = World::new().await;
    for name in MACHINES {
        world.remove_node(name);
    }
    world.add_node("Pool-A-7.corp.example", None);
    world.add_web();
    world.run(WEB).await.settled();
    assert_eq!(world.members("tcp-443"), ["pool-a-7"]);
    assert!(world.run(WEB).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn machines_of_other_accounts_with_the_same_name_are_not_taken() {
    let key = bowline_cloudstack_sim::CloudstackSim::API_KEY;
    let secret = bowline_cloudstack_sim::CloudstackSim::SECRET_KEY;
    let world = World::built(|builder| builder.user(UserSpec::new(key, secret).admin()), "").await;
    let theirs = VmSpec {
        owner: Some(Owner::Account("rivals".to_owned())),
        ..VmSpec::new("pool-a-7")
    };
    world.sim.add_vm(theirs);
    world.add_web();
    world.run(WEB).await.settled();
    let rule = world.rule("tcp-443");
    assert_eq!(rule.members.len(), 3);
    let owners: Vec<Owner> = rule
        .members
        .iter()
        .map(|id| world.sim.vm(id).unwrap().owner)
        .collect();
    assert!(
        owners
            .iter()
            .all(|owner| *owner == Owner::Account("team".to_owned())),
        "{owners:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_balancer_lives_and_dies_in_a_project() {
    let site = Site::new();
    let project = site.sim.add_project(ProjectSpec::new("prod"));
    let network = site
        .sim
        .add_network(NetworkSpec::of_project("k8s-prod", &project));
    for name in MACHINES {
        site.sim.add_vm(VmSpec {
            owner: Some(Owner::Project(project.clone())),
            ..VmSpec::with_nics(name, [NicSpec::on(&network)])
        });
    }
    let world = World::around(site.with(&format!("project-id = {project}\n"))).await;
    world.add_web();
    world.run(WEB).await.settled();
    assert_eq!(world.address().owner, Some(Owner::Project(project)));
    assert_eq!(world.members("udp-4500"), MACHINES);
    world.spec(WEB, |spec| {
        spec["ports"][0]["nodePort"] = serde_json::json!(32000)
    });
    world.run(WEB).await.settled();
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_being_deleted_keeps_nobody_else_out() {
    let world = World::new().await;
    let id = world.sim.vm_named("pool-a-8").unwrap().id;
    world.sim.destroy_vm(&id);
    world.add_web();
    let run = world.run(WEB).await.settled();
    assert!(run.has_note("NodesLeftOut"));
    assert_eq!(world.members("tcp-443"), ["cp-a", "pool-a-7"]);
}
