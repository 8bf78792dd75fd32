//! One session of the controller: what is predicted, what is read again, what is said of a failure.

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::plan::ReportedOutcome;
use bowline_kit::faults::Disturbed;
use bowline_kit::{predict, predicted_kinds};
use bowline_openstack_sim::kit::Fault;

use crate::world::{World, in_one_page, in_short, service};

#[tokio::test(start_paused = true)]
async fn the_writes_made_are_those_that_were_predicted_in_that_order() {
    for (name, change) in World::changes() {
        let world = World::before(change).await;
        let balancers = world.cloud.load_balancer().unwrap();
        let predicted = predicted_kinds(balancers, world.facts("web"));
        let (predicted, writes) = world.writes_of(predicted).await;
        assert!(writes.is_empty(), "{name}");
        let run = world.run("web").await.settled();
        assert_eq!(run.kinds_of_steps(), predicted, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_new_service_says_that_its_address_is_new() {
    let world = World::with_nodes(1);
    let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
    let ReportedOutcome::Settled { publishes } = &report.outcome else {
        panic!("{report:#?}")
    };
    assert_eq!(publishes, &["a new floating IP"]);
}

/// A gateway may let nothing through but the calls of the API itself, or Octavia's root fails for a while.
#[tokio::test(start_paused = true)]
async fn versions_that_cannot_be_read_stop_no_service() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    world.restart();
    let versions = || Fault::operation("octavia.versions.list").always().status(500);
    let fault = world.sim.faults().add(versions());
    world.add_node("node-2");
    world.annotate("web", "connection-limit", "7");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("version of Octavia's API"), "{run:#?}");
    assert!(run.published_although_refused.is_some());
    assert_eq!(in_short(&writes), ["octavia.members.replace"]);
    // What takes no version is made. What could not be had later waits.
    world.put(service("plain", &[("TCP", 81, 30081)]));
    let run = world.run("plain").await;
    assert!(run.published_although_refused.is_some(), "{run:#?}");
    world.put(service("limited", &[("TCP", 82, 30082)]));
    world.annotate("limited", "flavor-id", "f");
    let (run, writes) = world.writes_of(world.run("limited")).await;
    assert!(run.complaint().contains("version of Octavia's API"), "{run:#?}");
    assert!(writes.is_empty());
    world.delete("limited");
    world.run("limited").await.settled();
    world.sim.faults().remove(fault);
    for name in ["web", "plain"] {
        world.run(name).await.settled();
        world.assert_settled(name).await;
    }
}

/// A cloud that changes what it is told: one write, and a person is told.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_answered_and_not_kept_is_not_made_for_ever() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let listener = world.sim.listeners()[0].part.id;
    let body = serde_json::json!({ "listener": {
        "id": listener, "name": format!("listener_0_{}", crate::world::lb_name("web")), "protocol": "TCP", "protocol_port": 80, "connection_limit": 4,
        "timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000,
        "timeout_tcp_inspect": 0, "allowed_cidrs": ["0.0.0.0/0"], "tags": [crate::world::lb_name("web")],
    } });
    let answer = bowline_openstack_sim::kit::faults::Canned::json(200, &body.to_string());
    let update = Fault::operation("octavia.listeners.update")
        .always()
        .answer(answer);
    world.sim.faults().add(update);
    world.annotate("web", "connection-limit", "5");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("is not as Bowline wrote it"), "{run:#?}");
    assert_eq!(writes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn services_that_are_made_together_share_lists_and_have_names_of_their_own() {
    let world = World::with_nodes(2);
    in_one_page(&world.sim);
    for index in 0..5 {
        world.put(service(&format!("s{index}"), &[("TCP", 80, 31_000 + index)]));
    }
    let names: Vec<String> = (0..5).map(|index| format!("s{index}")).collect();
    let runs = futures::future::join_all(names.iter().map(|name| world.run(name)));
    let (runs, calls) = world.calls_of(runs).await;
    for run in runs {
        run.settled();
    }
    let reads = calls.iter().filter(|call| !call.write).count();
    assert!(reads <= 20, "{reads}: {:?}", in_short(&calls));
    assert_eq!(world.sim.load_balancers().len(), 5);
    assert_eq!(world.sim.floating_ips().len(), 5);
}

/// The list of members that a look reads anyway says which of them it is.
#[tokio::test(start_paused = true)]
async fn which_member_does_not_answer_is_told_without_another_call() {
    let world = World::with_nodes(2);
    world.annotate("web", "enable-health-monitor", "true");
    world.run("web").await.settled();
    let look = async || {
        let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web"));
        let (report, calls) = world.calls_of(report).await;
        (report, calls.len())
    };
    let ids: Vec<_> = world.sim.members().iter().map(|it| it.part.id).collect();
    for id in &ids {
        world.sim.edit_member(*id, |it| it.healthy = Some(true));
    }
    let (well, calls) = look().await;
    assert!(well.ailments.is_empty(), "{:?}", well.ailments);
    world.sim.edit_member(ids[1], |it| it.healthy = Some(false));
    let (report, calls_then) = look().await;
    let down = &world.sim.members()[1];
    let pool = &world.sim.pools()[0].part.name;
    let text = format!(
        "pool {pool}: 1 of 2 members do not answer: {} ({}:{}, ERROR)",
        down.part.name, down.address, down.port
    );
    assert_eq!((report.ailments.len(), &report.ailments[0].text), (1, &text));
    assert_eq!(calls_then, calls);
    let shown = report.shown.members.join("; ");
    assert!(
        shown.contains(&format!("{} (does not answer)", down.part.name)),
        "{shown}"
    );
    assert!(shown.contains("(answers)"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_leads_nowhere_is_an_outage_and_not_a_difference() {
    let world = World::with_nodes(1);
    world.put(service("web", &[("TCP", 80, 30_080)]));
    let told = async || {
        let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
        report.ailments.into_iter().map(|it| it.text).collect::<Vec<_>>()
    };
    assert_eq!(told().await, [""; 0], "it is not made yet");
    world.run("web").await.settled();
    assert_eq!(told().await, [""; 0]);
    let pool = world.sim.pools()[0].part.name.clone();
    for member in world.sim.members() {
        assert!(world.sim.delete_member(member.part.id));
    }
    assert_eq!(told().await, [format!("pool {pool}: it has no members")]);
    world.run("web").await.settled();
    assert!(world.sim.delete_listener(world.sim.listeners()[0].part.id));
    assert_eq!(told().await, [format!("pool {pool}: no listener leads to it")]);
}

#[tokio::test(start_paused = true)]
async fn members_that_a_person_took_the_weight_of_are_told() {
    let world = World::with_nodes(2);
    world.run("web").await.settled();
    let ids: Vec<_> = world.sim.members().iter().map(|it| it.part.id).collect();
    let told = async || {
        let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
        report
            .ailments
            .into_iter()
            .map(|it| (it.is_total, it.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(told().await, []);
    world.sim.edit_member(ids[0], |it| it.weight = 0);
    let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
    let shown = report.shown.members.join("; ");
    assert!(shown.contains("(gets no new connections)"), "{shown}");
    let one = told().await;
    assert!(
        !one[0].0 && one[0].1.contains("1 of 2 members get no new connections"),
        "{one:?}"
    );
    world.sim.edit_member(ids[1], |it| it.weight = 0);
    assert!(told().await[0].0);
    // It is a person's, and stays.
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.is_empty(), "{writes:?}");
    assert!(run.settled().lacks.unwrap_or_default().contains("--weight 1"));
}

/// Octavia says `OFFLINE` of it, as of much that works.
#[tokio::test(start_paused = true)]
async fn what_somebody_switched_off_serves_nobody_and_is_told() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let told = async || {
        let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
        let off = report.ailments.into_iter().filter(|it| it.is_total);
        let off = off.filter(|it| it.text.contains("switched off"));
        off.map(|it| it.text).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(told().await, "");
    let (balancer, pool) = (
        world.sim.load_balancers()[0].part.id,
        world.sim.pools()[0].part.id,
    );
    world.sim.edit_pool(pool, |it| it.part.is_up = false);
    let name = &world.sim.pools()[0].part.name;
    assert_eq!(
        told().await,
        format!("pool {name}: it is switched off (admin_state_up)")
    );
    // It is a cause that holds, although there is nothing to write.
    let lacks = async || {
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(writes.is_empty(), "{writes:?}");
        run.settled().lacks.unwrap_or_default()
    };
    let told_by_run = lacks().await;
    assert!(
        told_by_run.contains(name) && told_by_run.contains("pool set --enable"),
        "{told_by_run}"
    );
    world.sim.edit_pool(pool, |it| it.part.is_up = true);
    assert_eq!(lacks().await, "");
    let listener = world.sim.listeners()[0].part.id;
    world.sim.edit_listener(listener, |it| it.part.is_up = false);
    assert!(lacks().await.contains("listener_0_"));
    world.sim.edit_listener(listener, |it| it.part.is_up = true);
    world.sim.edit_pool(pool, |it| it.part.is_up = false);
    world.sim.edit_load_balancer(balancer, |it| it.part.is_up = false);
    let first = format!("load balancer {balancer}: it is switched off (admin_state_up)");
    assert!(told().await.starts_with(&first));
    assert!(lacks().await.starts_with(&first));
}
