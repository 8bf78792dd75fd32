//! What an earlier manager left.

use super::*;

/// A Service as the former manager leaves it.
fn left(name: &str, port: u16, address: Option<&str>, ingress: Value) -> Value {
    let mut left = service(name, &[("", 80, port)]);
    left["metadata"]["finalizers"] = json!([FINALIZER]);
    if let Some(address) = address {
        left["spec"]["loadBalancerIP"] = json!(address);
    }
    left["status"] = json!({ "loadBalancer": { "ingress": ingress } });
    left
}

/// A block as the former manager leaves it, and its third address.
fn block(world: &World, name: &str, is_attached: bool) -> String {
    let mut spec = BlockSpec::of_service(&cluster(world), "default", name);
    if is_attached {
        spec = spec.attached(NETWORK, "PUBLIC_NETWORK");
    }
    world.sim.add_block(spec);
    let mark = format!("default/{name}");
    let balancers = world.sim.balancers();
    balancers
        .into_iter()
        .find(|it| it.service == mark)
        .unwrap()
        .addresses[0]
        .clone()
}

#[tokio::test(start_paused = true)]
async fn what_the_former_manager_left_is_made_good_and_nothing_is_bought() {
    let mut world = World::new();
    let done = block(&world, "done", true);
    let half = block(&world, "half", true);
    world.apply(left(
        "done",
        30080,
        Some(&done),
        json!([{ "ip": done, "ipMode": "VIP" }]),
    ));
    world.apply(left("half", 30081, Some(&half), json!([{}])));
    block(&world, "going", false);
    world.apply(left("going", 30082, None, json!([])));
    world.delete_service("going");
    world
        .sim
        .add_block(BlockSpec::marked(&cluster(&world)).attached(NETWORK, "PUBLIC_NETWORK"));
    let (before, untouched) = (world.since(), world.service("done").unwrap());
    world.start();
    world
        .until("all is made good", |w| {
            w.addresses("half") == [half.as_str()] && w.service("going").is_none() && marked(w).is_empty()
        })
        .await;
    world.rest().await;
    assert_eq!(world.service("done").unwrap(), untouched);
    assert_eq!(world.events("done"), Vec::<String>::new());
    assert!(!calls(&world, before).contains(&"ip-blocks.create".to_owned()));
    assert_eq!(world.sim.blocks().len(), 2);
    world.assert_served();
}

/// Services that were made together are read together.
#[tokio::test(start_paused = true)]
async fn a_start_with_many_services_reads_their_blocks_in_one_list() {
    let mut world = World::new();
    for index in 0..8 {
        let name = format!("s{index}");
        let address = block(&world, &name, true);
        world.apply(left(
            &name,
            30080 + index,
            Some(&address),
            json!([{ "ip": address }]),
        ));
    }
    world.start();
    world.pass(Duration::from_secs(20)).await;
    let lists = world.cloud().journal().count_operation("ip-blocks.list");
    assert_eq!(lists, 1);
}
