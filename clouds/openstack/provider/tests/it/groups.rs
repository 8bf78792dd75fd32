//! The security group of a Service.

use std::sync::Arc;

use bowline_base::log::Log;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::{NicSpec, ServerSpec, SubnetSpec};
use tracing::Level;

use crate::shared::join;
use crate::world::{World, in_one_page, in_short, service};

const GROUP: &str = "lb-sg-uid-web-default-web";

fn managed(nodes: usize) -> World {
    let mut world = World::with_nodes(nodes);
    world.configure(|options| options.manages_security_groups = true);
    world
}

/// The rules of all groups.
fn rules(world: &World) -> usize {
    let groups = world.sim.security_groups();
    groups
        .iter()
        .map(|group| world.sim.rules_of(group.id).len())
        .sum()
}

/// The servers whose ports have the group.
fn members(world: &World) -> usize {
    let group = world
        .sim
        .security_groups()
        .into_iter()
        .find(|group| group.name == GROUP);
    let id = group.unwrap().id;
    world
        .sim
        .ports()
        .iter()
        .filter(|port| port.groups.contains(&id))
        .count()
}

#[tokio::test(start_paused = true)]
async fn members_get_a_group_that_opens_the_node_ports() {
    let world = managed(2);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes[2..]),
        [
            "neutron.security-groups.create",
            "neutron.security-group-rules.create",
            "neutron.ports.update",
            "neutron.ports.update",
        ]
    );
    assert_eq!(members(&world), 2);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_group_without_an_answer_is_logged_as_unknown_and_a_refused_one_as_not_taken() {
    for (answer, outcome) in [(None, "unknown"), (Some(403), "not taken")] {
        let world = managed(1);
        let fault = Fault::operation("neutron.security-group-rules.create");
        world.sim.faults().add(match answer {
            None => fault.lose_answer(),
            Some(status) => fault.status(status),
        });
        let (log, _guards) = Log::listen(Level::DEBUG);
        world.run("web").await;
        let expected = format!("outcome=\"{outcome}\"");
        assert_eq!(log.count(&expected), 1, "{outcome}: {}", log.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_left_loses_the_group_and_a_new_one_gets_it() {
    let mut world = managed(2);
    world.run("web").await.settled();
    world.remove_node("node-1");
    world.add_node("node-3");
    world.run("web").await.settled();
    assert_eq!(members(&world), 2);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_server_keeps_the_group_off_nobody_else_s_port() {
    let mut world = managed(1);
    world.add_node("ghost");
    let ghost = Arc::make_mut(world.nodes.last_mut().unwrap());
    let id = ghost.provider_id.take();
    for (name, count) in [("node-2", 2), ("node-3", 3)] {
        world.add_node(name);
        let run = world.run("web").await;
        assert!(
            run.complaint().contains("node ghost has no provider ID"),
            "{run:?}"
        );
        assert_eq!(members(&world), count);
    }
    // Whose port it is becomes known; until then none loses the group.
    world.remove_node("node-2");
    assert!(world.run("web").await.complaint().contains("ghost"));
    assert_eq!(members(&world), 3);
    let ghost = world.nodes.iter_mut().find(|node| node.name.as_str() == "ghost");
    Arc::make_mut(ghost.unwrap()).provider_id = id;
    world.run("web").await.settled();
    assert_eq!(members(&world), 3);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_port_that_is_given_back_is_closed_beside_a_node_without_a_server() {
    let mut world = managed(1);
    world.run("web").await.settled();
    world.add_node("ghost");
    Arc::make_mut(world.nodes.last_mut().unwrap()).provider_id = None;
    world.run("web").await;
    let there = rules(&world);
    world.set_ports("web", &[("TCP", 80, 30999)]);
    for _ in 0..2 {
        let run = world.run("web").await;
        assert!(run.complaint().contains("ghost"), "{run:?}");
    }
    assert_eq!(rules(&world), there);
}

#[tokio::test(start_paused = true)]
async fn the_group_follows_the_nodes_while_another_port_is_taken() {
    let mut world = managed(2);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    world.set_ports("b", &[("TCP", 81, 30081), ("TCP", 80, 30082)]);
    world.remove_node("node-1");
    world.add_node("node-3");
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(
        run.complaint()
            .starts_with("the listener port 80 already exists; "),
        "{run:#?}"
    );
    assert_eq!(
        in_short(&writes),
        [
            "neutron.security-group-rules.create",
            "octavia.members.replace",
            "neutron.ports.update",
            "neutron.ports.update",
        ]
    );
    let (_, writes) = world.writes_of(world.run("b")).await;
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

/// The load balancer that it was sent to is in another subnet; the one before still serves it.
#[tokio::test(start_paused = true)]
async fn a_service_that_was_sent_elsewhere_in_vain_keeps_its_rules() {
    let mut world = managed(1);
    let home = world.sim.home();
    let network = home.network.to_string();
    world.configure(|options| options.placement.network = Some(network.as_str().into()));
    world.run("web").await.settled();
    let wide = SubnetSpec::new("wide", home.network, "10.1.0.0/16".parse().unwrap());
    let wide = world.sim.add_subnet(wide);
    world.put(service("b", &[("TCP", 80, 30082)]));
    world.annotate("b", "subnet-id", &wide.to_string());
    world.run("b").await; // no router leads a floating IP there
    let id = world.annotation("b", "load-balancer-id").unwrap();
    world.annotate("web", "load-balancer-id", &id);
    let run = world.run("web").await;
    assert!(run.complaint().contains("port 80 already exists"), "{run:#?}");
    world.annotate("web", "internal", "true");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("internal Service"), "{run:#?}");
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    let group = world
        .sim
        .security_groups()
        .into_iter()
        .find(|it| it.name == GROUP);
    let rules = world.sim.rules_of(group.unwrap().id);
    let let_in = |range: &str| {
        let mut ranges = rules.iter().map(|it| it.content.remote_prefix.as_deref());
        ranges.any(|there| there == Some(range))
    };
    assert!(let_in("10.0.0.0/24") && !let_in("10.1.0.0/16"), "{rules:?}");
}

#[tokio::test(start_paused = true)]
async fn a_port_without_port_security_is_left_alone() {
    let mut world = managed(1);
    world.add_server_node(ServerSpec {
        nics: vec![NicSpec {
            port_security: Some(false),
            ..NicSpec::default()
        }],
        ..ServerSpec::new("insecure")
    });
    world.run("web").await.settled();
    assert_eq!(members(&world), 1);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn switching_the_option_off_cleans_up() {
    let mut world = managed(2);
    world.run("web").await.settled();
    world.configure(|options| options.manages_security_groups = false);
    world.run("web").await.settled();
    assert!(
        world
            .sim
            .security_groups()
            .iter()
            .all(|group| group.name != GROUP)
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn the_tag_that_old_controllers_left_on_a_port_is_taken_off_once() {
    let world = managed(1);
    world.run("web").await.settled();
    let mut groups = world.sim.security_groups().into_iter();
    let group = groups.find(|group| group.name == GROUP).unwrap().id;
    let mut ports = world.sim.ports().into_iter();
    let port = ports.find(|port| port.groups.contains(&group)).unwrap().id;
    world
        .sim
        .edit_port(port, |port| port.meta.tags.push(group.to_string()));
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let of_tags = writes.iter().filter(|call| call.path.contains("/tags/"));
    assert_eq!(of_tags.count(), 1);
    assert!(world.sim.port(port).unwrap().meta.tags.is_empty());
}

/// Neutron's words name rules of its policy, and these words that are settings too.
#[tokio::test(start_paused = true)]
async fn a_port_that_may_not_be_changed_is_no_fault_of_a_setting() {
    let world = managed(1);
    world.annotate("web", "subnet-id", &world.sim.home().subnet.to_string());
    let said = r#"{"NeutronError": {"type": "PolicyNotAuthorized", "message": "(rule:update_port and (rule:update_port:fixed_ips:subnet_id and rule:update_port:security_groups)) is disallowed by policy", "detail": ""}}"#;
    let update = Fault::operation("neutron.ports.update").always();
    world.sim.faults().add(update.answer(Canned::json(403, said)));
    let told = world.run("web").await.complaint().to_owned();
    assert!(told.contains("the owner of a port, or of its network"), "{told}");
    assert!(
        !told.contains("subnet-id") && !told.contains("load-balancer_member"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_group_that_cannot_be_made_hides_no_address() {
    let world = managed(1);
    world.sim.faults().add(
        Fault::operation("neutron.security-groups.create")
            .always()
            .status(403),
    );
    let run = world.run("web").await;
    assert!(
        run.complaint().contains("create-security-group"),
        "{}",
        run.complaint()
    );
    let status = run.published_although_refused.unwrap();
    assert!(status.ingress[0].ip.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_groups_that_others_give_a_port_meanwhile_are_kept() {
    let mut world = managed(1);
    world.run("web").await.settled();
    world.put(crate::world::service("b", &[("TCP", 81, 30081)]));
    // Both Services write the groups of one new port.
    world.add_node("node-2");
    let (a, b) = tokio::join!(world.run("web"), world.run("b"));
    a.settled();
    b.settled();
    for name in ["web", "b"] {
        world.assert_settled(name).await;
    }
    let port = world.sim.ports().into_iter().find(|port| port.groups.len() > 2);
    assert!(port.is_some());
}

/// OVN keeps the clients' addresses, so the sources are let in at the members, each with its IP version.
#[tokio::test(start_paused = true)]
async fn with_ovn_the_sources_are_kept_out_by_the_group() {
    let mut world = managed(1);
    world.configure(|options| {
        options.provider = "ovn".into();
        options.method = "SOURCE_IP_PORT".into();
    });
    world.edit("web", |service| {
        let ranges = ["192.0.2.0/24", "2001:db8::/32"].map(str::to_owned).to_vec();
        service.spec.as_mut().unwrap().load_balancer_source_ranges = Some(ranges);
    });
    let run = world.run("web").await.settled();
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    let group = world
        .sim
        .security_groups()
        .into_iter()
        .find(|group| group.name == GROUP);
    let rules = world.sim.rules_of(group.unwrap().id);
    let ingress = rules.iter().filter_map(|rule| rule.content.remote_prefix.clone());
    let ingress: Vec<String> = ingress.map(|range| range.to_string()).collect();
    assert_eq!(ingress, ["192.0.2.0/24", "2001:db8::/32"]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_changed_meanwhile_is_read_again() {
    let world = managed(1);
    let outdated = Fault::operation("neutron.ports.update").status(412);
    let id = world.sim.faults().add(outdated);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(world.sim.faults().struck(id), 1);
    let updates = in_short(&writes);
    let updates = updates
        .iter()
        .filter(|operation| **operation == "neutron.ports.update");
    assert_eq!(updates.count(), 2);
    assert_eq!(members(&world), 1);
}

/// Neutron says the same of a port that is gone and of a group that another Service had on it and that is gone meanwhile.
#[tokio::test(start_paused = true)]
async fn a_port_whose_other_group_is_gone_meanwhile_is_read_again() {
    let world = managed(1);
    let gone = r#"{"NeutronError": {"type": "SecurityGroupNotFound", "message": "Security group 7 does not exist", "detail": ""}}"#;
    let fault = Fault::operation("neutron.ports.update").answer(Canned::json(404, gone));
    let id = world.sim.faults().add(fault);
    world.run("web").await.settled();
    assert_eq!(world.sim.faults().struck(id), 1);
    assert_eq!(members(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn services_that_go_together_write_each_port_once_for_each_of_them() {
    let world = managed(3);
    let names: Vec<String> = (0..6).map(|index| format!("s{index}")).collect();
    for (index, name) in (0..).zip(&names) {
        world.put(crate::world::service(name, &[("TCP", 80, 31_000 + index)]));
        world.run(name).await.settled();
    }
    for name in &names {
        world.delete(name);
    }
    let all = futures::future::join_all(names.iter().map(|name| world.run(name)));
    let (runs, writes) = world.writes_of(all).await;
    for run in runs {
        run.settled();
    }
    let count = |wanted: &str| in_short(&writes).iter().filter(|it| **it == wanted).count();
    assert_eq!(count("neutron.ports.update"), 3 * names.len());
    assert_eq!(count("neutron.security-groups.delete"), names.len());
    assert!(
        writes.iter().all(|call| call.status().is_some_and(|it| it < 400)),
        "{writes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_many_services_come_with_one_list() {
    let world = managed(2);
    in_one_page(&world.sim);
    let names: Vec<String> = (0..20).map(|index| format!("s{index}")).collect();
    for (index, name) in (0..).zip(&names) {
        world.put(crate::world::service(name, &[("TCP", 80, 31_000 + index)]));
    }
    let all = || futures::future::join_all(names.iter().map(|name| world.run(name)));
    for run in all().await {
        run.settled();
    }
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let (_, calls) = world.calls_of(all()).await;
    let lists = in_short(&calls);
    let of_groups = lists.iter().filter(|call| call.contains("security-group"));
    assert_eq!(of_groups.count(), 1, "{lists:?}");
}

/// Another program made a rule that Neutron holds for the same, and lists in words of its own, or not at all.
#[tokio::test(start_paused = true)]
async fn a_rule_that_is_there_and_is_not_listed_is_not_asked_for_again() {
    let world = managed(1);
    let exists = r#"{"NeutronError": {"type": "SecurityGroupRuleExists", "message": "Security group rule already exists.", "detail": ""}}"#;
    let fault = Fault::operation("neutron.security-group-rules.create");
    world
        .sim
        .faults()
        .add(fault.always().answer(Canned::json(409, exists)));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let creations = in_short(&writes);
    let creations = creations.iter().filter(|call| call.contains("rules.create"));
    assert_eq!(creations.count(), 1);
    assert_eq!(members(&world), 1);
}

/// What a rule opens works, whatever becomes of the others.
#[tokio::test(start_paused = true)]
async fn a_group_with_only_some_of_its_rules_is_on_the_ports() {
    let world = managed(2);
    world.put(crate::world::service(
        "web",
        &[("TCP", 80, 30080), ("TCP", 443, 30443)],
    ));
    // The two that every new group has, and one more.
    let quota = rules(&world) + 3;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.security_group_rules = Some(quota));
    let run = world.run("web").await;
    assert!(
        run.complaint()
            .contains("Quota exceeded for resources: ['security_group_rule']"),
        "{run:#?}"
    );
    assert!(run.published_although_refused.is_some());
    assert_eq!(members(&world), 2);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.security_group_rules = None);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["neutron.security-group-rules.create"]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn where_the_quota_is_met_a_rule_that_nobody_needs_makes_room() {
    let world = managed(1);
    world.run("web").await.settled();
    let quota = rules(&world);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.security_group_rules = Some(quota));
    world.set_ports("web", &[("TCP", 80, 30081)]);
    world.run("web").await.settled();
    world.assert_settled("web").await;
}

/// Probes and connections that come before the rule would be dropped.
#[tokio::test(start_paused = true)]
async fn node_ports_are_opened_before_the_load_balancer_needs_them_and_closed_after() {
    let mut world = managed(1);
    world.configure(|options| options.monitor.is_wanted = true);
    world.run("web").await.settled();
    world.set_ports("web", &[("TCP", 80, 30081)]);
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.external_traffic_policy = Some("Local".into());
        spec.health_check_node_port = Some(31_000);
    });
    world.add_node("node-2");
    let run = world.run("web").await.settled();
    let kinds: Vec<Vec<&str>> = run
        .waves
        .iter()
        .map(|wave| {
            wave.iter()
                .map(|label| label.split('(').next().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            vec!["create-security-group-rule", "create-security-group-rule"],
            vec!["set-members"],
            vec!["delete-monitor"],
            vec!["create-monitor"],
            vec!["add-security-group"],
            vec!["delete-security-group-rule"],
        ]
    );
    world.assert_settled("web").await;
}
