//! What a load balancer that is there cannot become is told of, and nothing is written for it.

use bowline_openstack::ClassOptions;
use bowline_openstack_sim::SubnetSpec;
use bowline_openstack_sim::model::network::FixedIp;

use crate::world::World;

/// Whether an annotation or the class says so.
#[tokio::test(start_paused = true)]
async fn a_class_with_another_subnet_is_told_as_the_annotation_is() {
    let mut world = World::with_nodes(1);
    let home = world.sim.home();
    let wide = SubnetSpec::new("wide", home.network, "10.1.0.0/16".parse().unwrap());
    let wide = world.sim.add_subnet(wide);
    world.configure(|options| {
        for (name, subnet) in [("dmz", home.subnet), ("in", wide)] {
            let mut class = ClassOptions::default();
            class.placement.subnet = Some(subnet.to_string().as_str().into());
            options.classes.insert(name.to_owned(), class);
        }
    });
    world.annotate("web", "class", "dmz");
    world.run("web").await.settled();
    world.assert_settled("web").await;
    let told = async |world: &World| {
        let (run, writes) = world.writes_of(world.run("web")).await;
        World::assert_quiet(&run, &writes);
        let texts: Vec<String> = run.notes.into_iter().map(|note| note.text).collect();
        texts.join("\n")
    };
    world.annotate("web", "class", "in");
    let text = told(&world).await;
    let expected = format!(
        "subnet-id of [LoadBalancerClass \"in\"] in cloud.conf is {wide}, it has {}; ",
        home.subnet
    );
    assert!(text.contains(&expected), "{text}");
    // What the annotation says counts.
    world.annotate("web", "subnet-id", &home.subnet.to_string());
    assert_eq!(told(&world).await, "");
    world.remove_annotation("web", "subnet-id");
    world.annotate("web", "class", "dmz");
    assert_eq!(told(&world).await, "");
    // The class says something else by now.
    world.configure(|options| {
        let class = options.classes.get_mut("dmz").unwrap();
        class.placement.network = Some("elsewhere".into());
    });
    let text = told(&world).await;
    assert!(
        text.contains("network-id of [LoadBalancerClass \"dmz\"] in cloud.conf is elsewhere, it has "),
        "{text}"
    );
}

/// A given port is where it is.
#[tokio::test(start_paused = true)]
async fn a_class_is_not_told_of_beside_a_given_port() {
    let mut world = World::with_nodes(1);
    let home = world.sim.home();
    let wide = SubnetSpec::new("wide", home.network, "10.1.0.0/16".parse().unwrap());
    let wide = world.sim.add_subnet(wide);
    world.configure(|options| {
        let mut class = ClassOptions::default();
        class.placement.subnet = Some(wide.to_string().as_str().into());
        options.classes.insert("in".to_owned(), class);
    });
    let fixed_ip = FixedIp {
        subnet: home.subnet,
        address: "10.0.0.200".parse().unwrap(),
    };
    let port = world.sim.add_port("vip", vec![fixed_ip]);
    world.annotate("web", "class", "in");
    world.annotate("web", "port-id", &port.to_string());
    let run = world.run("web").await.settled();
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}
