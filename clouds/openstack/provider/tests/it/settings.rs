//! Settings that cannot be kept to: told before anything is made, by their names.

use bowline_openstack_sim::NetworkSpec;

use crate::world::{World, in_short, service};

/// What a Service is told; nothing may have been written for it.
async fn told(world: &World) -> String {
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    run.complaint().to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_whatever_the_cloud_is_like_is_told_before_any_write() {
    for (suffix, value, allowed) in [
        ("hostname", "Web_1", "a DNS name in lower case"),
        ("timeout-client-data", "-1", "a whole number from 0 to "),
        ("connection-limit", "-2", "a whole number from -1 to "),
        ("health-monitor-max-retries", "11", "a whole number from 1 to 10"),
        ("lb-method", "NONSENSE", "one of ROUND_ROBIN, "),
    ] {
        let world = World::with_nodes(1);
        world.annotate("web", "enable-health-monitor", "true");
        world.annotate("web", suffix, value);
        let told = told(&world).await;
        let expected =
            format!("annotation loadbalancer.openstack.org/{suffix} is `{value}` and must be {allowed}");
        assert!(told.starts_with(&expected), "{told}");
    }
    for address in ["nowhere", "2001:db8::1"] {
        let world = World::with_nodes(1);
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = Some(address.into());
        });
        let told = told(&world).await;
        assert!(
            told.starts_with(&format!(
                "spec.loadBalancerIP is `{address}` and must be an IPv4 address"
            )),
            "{told}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_floating_ip_could_come_from_is_told_before_any_write() {
    let id = "0c3e6a2f-0000-4000-8000-000000000001";
    for (suffix, value, reason) in [
        ("floating-subnet-id", id, "failed to find subnet "),
        ("floating-subnet", "none-*", "no subnet matching "),
        (
            "floating-subnet-tags",
            "none",
            "could not find subnets for network ",
        ),
        ("floating-network-id", id, "failed to find network "),
    ] {
        let world = World::with_nodes(1);
        world.annotate("web", suffix, value);
        let told = told(&world).await;
        assert!(told.starts_with(reason), "{told}");
        let remedy = format!("; correct annotation loadbalancer.openstack.org/{suffix}");
        assert!(told.ends_with(&remedy), "{told}");
    }
    let mut world = World::with_nodes(1);
    let inner = world.sim.add_network(NetworkSpec::default()).to_string();
    world.configure(|options| options.floating.network = Some(inner.as_str().into()));
    let told = told(&world).await;
    let remedy = "is not external, so no floating IP can come from it; correct floating-network-id of [LoadBalancer] in cloud.conf";
    assert!(told.ends_with(remedy), "{told}");
}

#[tokio::test(start_paused = true)]
async fn the_subnet_of_the_members_is_looked_for_before_any_write() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.is_serial = is_serial);
        world.annotate("web", "member-subnet-id", "0c3e6a2f-0000-4000-8000-000000000001");
        let told = told(&world).await;
        assert!(
            told.ends_with("; correct annotation loadbalancer.openstack.org/member-subnet-id"),
            "{told}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_number_keeps_no_member_from_following_its_node() {
    let mut world = World::with_nodes(2);
    world.run("web").await.settled();
    world.annotate("web", "timeout-client-data", "-1");
    world.remove_node("node-2");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(
        run.complaint().contains("timeout-client-data is `-1`"),
        "{run:#?}"
    );
    assert!(run.published_although_refused.is_some());
    assert_eq!(in_short(&writes), ["octavia.members.replace"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_cloud_names_the_setting_and_what_to_do() {
    let id = "0c3e6a2f-0000-4000-8000-000000000001";
    for suffix in [
        "subnet-id",
        "network-id",
        "port-id",
        "flavor-id",
        "availability-zone",
    ] {
        let world = World::with_nodes(1);
        world.annotate("web", suffix, id);
        let run = world.run("web").await;
        let told = run.complaint();
        let expected = format!(
            "annotation loadbalancer.openstack.org/{suffix} is `{id}`, which the cloud refuses; name "
        );
        assert!(told.contains(&expected) && told.contains(": 400 "), "{told}");
        assert!(world.sim.load_balancers().is_empty());
    }
    let mut world = World::with_nodes(1);
    world.configure(|options| options.flavor = Some(id.into()));
    let run = world.run("web").await;
    let told = run.complaint();
    assert!(
        told.contains("flavor-id of [LoadBalancer] in cloud.conf is "),
        "{told}"
    );
    // Neutron lets administrators alone choose, if it is not told otherwise.
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.users_choose_addresses = false);
    world.put(service("web", &[("TCP", 80, 30080)]));
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some("203.0.113.77".into());
    });
    let run = world.run("web").await;
    let told = run.complaint();
    assert!(
        told.contains("spec.loadBalancerIP is `203.0.113.77`, which the cloud refuses; "),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_outside_of_the_subnet_is_told_before_anything_is_made() {
    let world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some("192.0.2.5".into());
    });
    let (run, writes) = world.writes_of(world.run("web")).await;
    let subnet = world.sim.home().subnet;
    let expected = format!(
        "cannot have address 192.0.2.5: it is not in subnet {subnet} (10.0.0.0/24); correct spec.loadBalancerIP"
    );
    assert!(run.complaint().contains(&expected), "{}", run.complaint());
    assert!(writes.is_empty(), "{writes:?}");
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some("10.0.0.99".into());
    });
    assert_eq!(world.run("web").await.settled().published(), ["10.0.0.99"]);
}

/// Octavia refuses allowed CIDRs then, also 0.0.0.0/0, and keeps to none.
#[tokio::test(start_paused = true)]
async fn where_a_person_set_security_groups_on_the_address_no_sources_are_asked_for() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let balancer = world.sim.load_balancers()[0].part.id;
    world
        .sim
        .edit_load_balancer(balancer, |it| it.vip_groups = vec!["by-hand".to_owned()]);
    world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
    assert_eq!(world.run("web").await.settled().reasons(), [""; 0]);
    assert_eq!(world.sim.listeners().len(), 2);
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_source_ranges = Some(vec!["192.0.2.0/24".into()]);
    });
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerSourceRangesIgnored"]);
    assert!(run.notes[0].text.contains("vip_sg_ids"), "{:?}", run.notes);
}
