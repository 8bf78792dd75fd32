//! What a load balancer that is there cannot become is told of, and nothing is written for it.

use bowline_openstack::ClassOptions;
use bowline_openstack_sim::model::network::FixedIp;
use bowline_openstack_sim::{FloatingIpSpec, SubnetSpec};

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

/// As the address of the load balancer itself, that of a floating IP would be refused.
#[tokio::test(start_paused = true)]
async fn what_is_advised_of_an_address_is_not_refused() {
    let world = World::with_nodes(1);
    let floating_ip = world.sim.add_floating_ip(FloatingIpSpec::default());
    let mut all = world.sim.floating_ips().into_iter();
    let address = all
        .find(|it| it.id == floating_ip)
        .unwrap()
        .address
        .address
        .to_string();
    let ask = |address: Option<&str>| {
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = address.map(str::to_owned);
        });
    };
    ask(Some(&address));
    world.run("web").await.settled();
    world.annotate("web", "internal", "true");
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerChangeIgnored"]);
    let advice = "; take the change back, or delete Service default/web and create it anew, with spec.loadBalancerIP taken off before or set to a free address of the load balancer's subnet";
    assert!(run.notes[0].text.ends_with(advice), "{}", run.notes[0].text);
    ask(None);
    let run = world.run("web").await.settled();
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    // Of a floating IP another one may be asked for.
    world.remove_annotation("web", "internal");
    world.run("web").await.settled();
    ask(Some("203.0.113.200"));
    let run = world.run("web").await.settled();
    let advice = "; take the change back, or delete Service default/web and create it anew";
    assert!(run.notes[0].text.ends_with(advice), "{}", run.notes[0].text);
}
