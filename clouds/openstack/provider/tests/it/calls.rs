//! The number of calls is part of the contract.

use std::time::Duration;

use bowline_kit::Interruption;
use bowline_openstack_sim::kit::faults::Fault;
use futures::future::join_all;

use crate::world::{Run, World, builder, in_one_page, in_short, service};

fn reads_and_writes(calls: &[bowline_openstack_sim::kit::journal::Entry]) -> (usize, usize) {
    let writes = calls.iter().filter(|call| call.write).count();
    (calls.len() - writes, writes)
}

async fn all(world: &World, names: &[String]) -> Vec<Run> {
    join_all(names.iter().map(|name| world.run(name))).await
}

/// In waves, as where they come one after the other: each wave shares its lists.
#[tokio::test(start_paused = true)]
async fn a_hundred_new_services_that_name_their_subnet_list_the_ports_once() {
    let mut world = World::over(builder().private_range("10.0.0.0/16".parse().unwrap()).build());
    in_one_page(&world.sim);
    world.add_node("node-1");
    let names: Vec<String> = (0..100).map(|index| format!("s{index}")).collect();
    let subnet = world.sim.home().subnet.to_string();
    for (name, port) in names.iter().zip(31_000..) {
        world.put(service(name, &[("TCP", 80, port)]));
        world.annotate(name, "internal", "true");
        world.annotate(name, "subnet-id", &subnet);
    }
    let (runs, calls) = world
        .calls_of(async {
            let mut runs = Vec::new();
            for wave in names.chunks(10) {
                runs.extend(all(&world, wave).await);
            }
            runs
        })
        .await;
    for run in runs {
        run.settled();
    }
    assert_eq!(counted(&calls)["neutron.ports.list"], 1, "{:?}", counted(&calls));
}

#[tokio::test(start_paused = true)]
async fn a_node_more_costs_a_hundred_services_one_write_for_each_pool_and_few_lists() {
    let services = 100;
    let mut world = World::over(builder().private_range("10.0.0.0/16".parse().unwrap()).build());
    in_one_page(&world.sim);
    for index in 0..20 {
        world.add_node(&format!("node-{index}"));
    }
    let names: Vec<String> = (0..services).map(|index| format!("s{index}")).collect();
    for (index, name) in names.iter().enumerate() {
        world.put(service(
            name,
            &[("TCP", 80, 30_000 + i32::try_from(index).unwrap())],
        ));
        world.annotate(name, "internal", "true");
    }
    for run in all(&world, &names).await {
        run.settled();
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    world.add_node("node-more");
    let (runs, calls) = world.calls_of(all(&world, &names)).await;
    for run in runs {
        run.settled();
    }
    let (reads, writes) = reads_and_writes(&calls);
    assert_eq!(writes, services);
    assert!(reads <= 10 + 2 * services, "{reads} reads");
}

#[tokio::test(start_paused = true)]
async fn a_node_more_costs_services_of_two_ports_the_members_of_each_pool_and_few_lists() {
    let mut world = World::with_nodes(3);
    in_one_page(&world.sim);
    let names: Vec<String> = (0..10).map(|index| format!("s{index}")).collect();
    for (index, name) in names.iter().enumerate() {
        let port = 30_100 + 2 * i32::try_from(index).unwrap();
        world.put(service(name, &[("TCP", 80, port), ("TCP", 443, port + 1)]));
    }
    for run in all(&world, &names).await {
        run.settled();
    }
    tokio::time::advance(Duration::from_secs(60)).await;
    world.add_node("node-more");
    let (runs, calls) = world.calls_of(all(&world, &names)).await;
    for run in runs {
        run.settled();
    }
    let (reads, writes) = reads_and_writes(&calls);
    let mut lists: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for call in calls.iter().filter(|call| !call.write) {
        *lists.entry(call.operation.as_str()).or_default() += 1;
    }
    assert_eq!(writes, 20);
    assert_eq!(lists["neutron.floatingips.list"], 1, "{lists:?}");
    assert!(reads <= 10 + 2 * 20, "{reads}: {lists:?}");
}

/// Octavia takes its time after each write, so the two pools of a load balancer are written one after the other.
#[tokio::test(start_paused = true)]
async fn a_node_more_costs_as_much_where_octavia_is_slow() {
    for (monitors, groups) in [(false, false), (true, false), (false, true), (true, true)] {
        for (change_time, apart) in [(1_000, 0), (2_000, 7), (3_000, 15)] {
            let mut world = World::with_nodes(3);
            in_one_page(&world.sim);
            world.configure(|options| {
                options.monitor.is_wanted = monitors;
                options.manages_security_groups = groups;
            });
            let names: Vec<String> = (0..5).map(|index| format!("s{index}")).collect();
            for (index, name) in names.iter().enumerate() {
                let port = 30_100 + 2 * i32::try_from(index).unwrap();
                world.put(service(name, &[("TCP", 80, port), ("TCP", 443, port + 1)]));
            }
            for run in all(&world, &names).await {
                run.settled();
            }
            world
                .sim
                .set_behaviour(|behaviour| behaviour.lb_change_time = Duration::from_millis(change_time));
            tokio::time::advance(Duration::from_secs(60)).await;
            world.add_node("node-more");
            let runs = names.iter().zip(0..).map(async |(name, index)| {
                tokio::time::sleep(Duration::from_millis(apart * index)).await;
                world.run(name).await
            });
            let (runs, calls) = world.calls_of(join_all(runs)).await;
            for run in runs {
                run.settled();
            }
            let (reads, _) = reads_and_writes(&calls);
            let of = format!("monitors {monitors}, groups {groups}, {change_time} ms, {apart} ms apart");
            let refused: Vec<u16> = calls
                .iter()
                .filter_map(|call| call.status())
                .filter(|status| *status >= 400)
                .collect();
            assert_eq!(refused, [0u16; 0], "{of}");
            // One to begin with, one for each of the two changes, and one more where a change takes longer than is thought at first.
            let lists = counted(&calls)["octavia.loadbalancers.list"];
            assert!(lists <= 4, "{lists} lists of load balancers; {of}");
            // The members of each pool are read before their write, and after it.
            let pools = 2 * names.len();
            assert!(
                reads <= 11 + 2 * pools,
                "{reads} reads; {of}: {:?}",
                counted(&calls)
            );
            for name in &names {
                world.assert_settled(name).await;
            }
        }
    }
}

/// A world whose Services have security groups, `s0`, `s1` ...
fn grouped(services: usize, nodes: usize) -> (World, Vec<String>) {
    let mut world = World::with_nodes(nodes);
    in_one_page(&world.sim);
    world.configure(|options| options.manages_security_groups = true);
    let names: Vec<String> = (0..services).map(|index| format!("s{index}")).collect();
    for (name, port) in names.iter().zip(31_000..) {
        world.put(service(name, &[("TCP", 80, port)]));
    }
    (world, names)
}

/// Reconciles Services together; how often ports were written, with what was refused.
async fn port_writes(world: &World, names: &[String]) -> usize {
    let runs = names
        .iter()
        .map(|name| world.run_with(name, Interruption::SideBySide));
    let (runs, calls) = world.calls_of(join_all(runs)).await;
    for run in runs {
        run.settled();
    }
    counted(&calls)["neutron.ports.update"]
}

/// Each Service has a security group of its own on each Node's port, and Neutron takes the groups of a port as a whole.
#[tokio::test(start_paused = true)]
async fn twenty_services_write_the_groups_of_a_port_together() {
    for delay in [20, 200, 1_000].map(Duration::from_millis) {
        let (mut world, names) = grouped(20, 15);
        world.sim.faults().add(Fault::any().always().delay(delay));
        let writes = port_writes(&world, &names).await;
        assert!(
            (15..=100).contains(&writes),
            "{writes} writes of 15 ports for 300 groups"
        );
        (1..=10).for_each(|index| world.remove_node(&format!("node-{index}")));
        let writes = port_writes(&world, &names).await;
        assert!(
            (10..=70).contains(&writes),
            "{writes} writes of 10 ports for 200 groups"
        );
        world.sim.faults().clear();
        for name in &names {
            world.assert_settled(name).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_refused_costs_the_others_nothing() {
    let (world, names) = grouped(4, 1);
    // The first write is of one group, and the second one of the three others: then of one, and of the last two.
    let together = Fault::operation("neutron.ports.update").nth(2).status(400);
    world.sim.faults().add(together);
    assert_eq!(port_writes(&world, &names).await, 1 + 1 + 1 + 1);
    for name in &names {
        world.assert_settled(name).await;
    }
}

fn counted(calls: &[bowline_openstack_sim::kit::journal::Entry]) -> std::collections::BTreeMap<&str, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for call in calls {
        *counts.entry(call.operation.as_str()).or_default() += 1;
    }
    counts
}

/// A list of the project that is longer than an answer may be is read in smaller pages, and the size is remembered.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_large_for_a_page_costs_a_few_pages() {
    let mut world = World::with_nodes(20);
    in_one_page(&world.sim);
    let names: Vec<String> = (0..8).map(|index| format!("web-{index}")).collect();
    for (name, port) in names.iter().zip(31_000..) {
        world.put(service(name, &[("TCP", 80, port)]));
    }
    for run in all(&world, &names).await {
        run.settled();
    }
    // Each of the eight pools shows its twenty members in some 1,400 bytes.
    world.restart_with_limit(8 * 1_024);
    let lists = |calls: &[bowline_openstack_sim::kit::journal::Entry]| {
        let lists = calls.iter().filter(|call| call.operation == "octavia.pools.list");
        lists.map(|call| call.path.clone()).collect::<Vec<_>>().len()
    };
    let (run, calls) = world.calls_of(world.run("web-0")).await;
    run.settled();
    // 1000, 250, 62, 15 and 3 at once; then 3 and 2.
    assert_eq!(lists(&calls), 7, "{:?}", in_short(&calls));
    let (run, calls) = world.calls_of(world.run("web-1")).await;
    run.settled();
    assert_eq!(lists(&calls), 3, "{:?}", in_short(&calls));
}
