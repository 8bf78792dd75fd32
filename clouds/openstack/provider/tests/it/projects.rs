//! What another project has, as an administrator's lists show it: it is nobody's here.

use bowline_openstack_sim::kit::journal::Entry;
use bowline_openstack_sim::{FloatingIpSpec, Id};

use crate::world::{World, in_one_page, in_short, lb_name};

/// A world whose manager sees what all projects have, and another project of it.
fn administered(manages_security_groups: bool) -> (World, String) {
    let mut world = World::with_nodes(1);
    world.options.manages_security_groups = manages_security_groups;
    world.restart_as_admin();
    let other = world.sim.add_project("other");
    (world, other)
}

fn address_of(world: &World, floating_ip: Id) -> String {
    let all = world.sim.floating_ips();
    let there = all.iter().find(|there| there.id == floating_ip).unwrap();
    there.address.address.to_string()
}

/// Makes a Service ask for an address.
fn ask_for(world: &World, address: &str) {
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address.to_owned());
    });
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_of_another_project_is_not_available() {
    let (mut world, other) = administered(false);
    let theirs = world.sim.add_floating_ip(FloatingIpSpec {
        project: Some(other),
        ..FloatingIpSpec::default()
    });
    let address = address_of(&world, theirs);
    ask_for(&world, &address);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(
        run.complaint(),
        format!(
            "floating IP {address} is not available; it belongs to another project: choose one of this project in spec.loadBalancerIP, or have whoever runs the other one give it to this one"
        )
    );
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    // Who may not see it asks for the address, and Neutron refuses that.
    world.restart();
    for (may_choose, told) in [(false, "is disallowed by policy"), (true, "already allocated")] {
        world
            .sim
            .set_behaviour(|behaviour| behaviour.users_choose_addresses = may_choose);
        let run = world.run("web").await;
        assert!(run.complaint().contains(told), "{run:#?}");
        assert!(run.complaint().contains("spec.loadBalancerIP"), "{run:#?}");
    }
    assert!(world.sim.floating_ips()[0].target.is_none());
}

/// It was deleted, and its address given out again.
#[tokio::test(start_paused = true)]
async fn a_recorded_address_that_another_project_has_by_now_is_not_taken_back() {
    let (world, other) = administered(false);
    let before = world.run("web").await.settled().published();
    world.sim.remove_floating_ip(world.sim.floating_ips()[0].id);
    let theirs = world.sim.add_floating_ip(FloatingIpSpec {
        project: Some(other),
        address: Some(before[0].parse().unwrap()),
        ..FloatingIpSpec::default()
    });
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_ne!(run.settled().published(), before);
    assert_eq!(in_short(&writes), ["neutron.floatingips.create"]);
    world.assert_settled("web").await;
    world.delete("web");
    world.run("web").await.settled();
    let left: Vec<Id> = world.sim.floating_ips().iter().map(|there| there.id).collect();
    assert_eq!(left, [theirs]);
}

#[tokio::test(start_paused = true)]
async fn another_projects_floating_ip_on_the_load_balancer_is_told_to_people_and_left_there() {
    let (world, other) = administered(false);
    world.annotate("web", "internal", "true");
    world.run("web").await.settled();
    let port = world.sim.load_balancers()[0].vip.port;
    let theirs = world.sim.add_floating_ip(FloatingIpSpec {
        project: Some(other),
        port: Some(port),
        ..FloatingIpSpec::default()
    });
    let address = address_of(&world, theirs);
    let (run, writes) = world.writes_of(world.run("web")).await;
    let exposed = format!("floating IP {address} of another project still leads to its load balancer ");
    assert!(run.complaint().contains(&exposed), "{run:#?}");
    assert!(run.published_although_refused.is_some());
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    world.annotate("web", "internal", "false");
    assert_eq!(world.run("web").await.settled().published(), [address]);
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
    assert_eq!(world.sim.floating_ips()[0].id, theirs);
}

/// Also where the other project shares it with this one.
#[tokio::test(start_paused = true)]
async fn another_projects_security_group_of_the_name_is_not_used() {
    let (world, other) = administered(true);
    let name = "lb-sg-uid-web-default-web";
    let description = "Security Group for default/web Service LoadBalancer in cluster lab";
    let theirs = world.sim.add_security_group(name, description);
    world
        .sim
        .edit_security_group(theirs, |group| group.meta.project.clone_from(&other));
    world.run("web").await.settled();
    let uses = |group: Id| world.sim.ports().iter().any(|port| port.groups.contains(&group));
    let own = world.sim.security_groups();
    let own = own.iter().find(|group| group.name == name && group.id != theirs);
    assert!(uses(own.unwrap().id) && !uses(theirs));
    world.assert_settled("web").await;
    world.delete("web");
    world.run("web").await.settled();
    let left = world.sim.security_groups();
    let left: Vec<Id> = left
        .iter()
        .filter(|group| group.name == name)
        .map(|group| group.id)
        .collect();
    assert_eq!(left, [theirs]);
}

#[tokio::test(start_paused = true)]
async fn what_is_another_projects_is_nobodys_though_its_name_fits() {
    let (world, project) = administered(false);
    let theirs = world.sim.add_load_balancer(&lb_name("web"), vec![lb_name("web")]);
    world.sim.edit_load_balancer(theirs, |theirs| {
        theirs.part.meta.project.clone_from(&project);
        theirs.part.meta.description = "Kubernetes external service default/web from cluster lab".into();
        theirs.part.meta.created_at = "2099-01-01T00:00:00".into();
    });
    let floating_ip = world.sim.add_floating_ip(FloatingIpSpec {
        project: Some(project),
        description: "Floating IP for Kubernetes external service default/web from cluster lab".into(),
        ..FloatingIpSpec::default()
    });
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), Vec::<&str>::new());
    assert_eq!(
        (world.sim.load_balancers().len(), world.sim.floating_ips().len()),
        (2, 2)
    );
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    world.delete("web");
    world.run("web").await.settled();
    let balancers: Vec<_> = world.sim.load_balancers().iter().map(|it| it.part.id).collect();
    let floating_ips: Vec<_> = world.sim.floating_ips().iter().map(|it| it.id).collect();
    assert_eq!((balancers, floating_ips), (vec![theirs], vec![floating_ip]));
}

/// What is thrown away need not be read: a cloud has thousands of groups, each with its rules.
#[tokio::test(start_paused = true)]
async fn what_other_projects_have_is_not_listed_where_it_does_not_count() {
    let (world, _) = administered(true);
    in_one_page(&world.sim);
    let (run, calls) = world.calls_of(world.run("web")).await;
    run.settled();
    let has = |call: &Entry, name: &str, value: &str| {
        let mut query = call.query.iter();
        query.any(|(key, there)| key == name && there == value)
    };
    let project = world.sim.home().project;
    for path in ["/v2.0/security-groups", "/v2.0/lbaas/loadbalancers"] {
        let lists = calls
            .iter()
            .filter(|call| !call.write && call.path.ends_with(path));
        let lists: Vec<_> = lists.collect();
        assert!(!lists.is_empty(), "{path}");
        assert!(
            lists.iter().all(|call| has(call, "project_id", &project)),
            "{lists:#?}"
        );
    }
    let unlimited: Vec<_> = calls
        .iter()
        .filter(|call| {
            let is_list = call.operation.ends_with(".list") && !call.operation.ends_with(".versions.list");
            is_list && !has(call, "limit", "1000")
        })
        .map(|call| call.operation.as_str())
        .collect();
    assert_eq!(unlimited, [""; 0]);
}
