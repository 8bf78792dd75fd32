//! The acceptance scenarios of phoenixNAP with a whole manager, by their numbers. What every cloud must do is in the
//! conformance suite, the arithmetic of blocks, tags and claims beside the provider.

use std::time::Duration;

use bowline_conformance::cloud::{
    CloudUnderTest as _, FINALIZER, SECOND, SHUTDOWN, Since, service, tainted_node, web,
};
use bowline_conformance::clouds::Phoenixnap;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::{
    BlockSpec, BlockStatus, NetworkSpec, Scope, ServerSpec, ServerStatus, TagFilter,
};
use serde_json::{Value, json};

type World = bowline_conformance::cloud::World<Phoenixnap>;

const NETWORK: &str = Phoenixnap::NETWORK;

/// A manager with nothing to do yet.
async fn idle() -> World {
    let mut world = World::new();
    world.start();
    world.rest().await;
    world
}

/// A manager with the Service `web`, which has its address.
async fn settled() -> World {
    let world = idle().await;
    world.apply(web());
    world.settled("web").await;
    world
}

/// The same manager with another environment.
fn world_with(variables: &[(&str, &str)]) -> World {
    let mut sim = Phoenixnap::new(7);
    for (variable, value) in variables {
        sim.set(variable, value);
    }
    World::over(sim, 7)
}

fn cluster(world: &World) -> String {
    let namespace = world.api.object("Namespace", "", "kube-system").unwrap();
    namespace["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The names of the calls, those by the clock left aside.
fn calls(world: &World, since: Since) -> Vec<String> {
    world
        .calls(since)
        .into_iter()
        .map(|call| call.operation)
        .collect()
}

fn field(world: &World, name: &str) -> Value {
    world.service(name).unwrap()["spec"]["loadBalancerIP"].clone()
}

fn last_event(world: &World, object: &str) -> String {
    world.events(object).last().cloned().unwrap_or_default()
}

/// The block of a Service that was marked and not yet taken away.
fn marked(world: &World) -> Vec<String> {
    let blocks = world.sim.blocks();
    let marked = blocks.into_iter().filter(|block| block.has_tag("delete", None));
    marked.map(|block| block.id).collect()
}

mod nodes {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a14_a_node_joins_by_its_name_in_any_case() {
        let world = idle().await;
        let id = world.sim.add_server(
            ServerSpec::new("Worker-NLD-03")
                .instance_type("s3.c3.large")
                .private(["10.9.0.3"])
                .public(["192.0.2.71", "2001:db8:7::71"]),
        );
        let begun = world.since();
        world.apply(tainted_node("worker-nld-03"));
        world
            .until("it joins", |w| w.is_initialized("worker-nld-03"))
            .await;
        world.rest().await;
        assert_eq!(calls(&world, begun), ["servers.list"]);
        let node = world.node("worker-nld-03").unwrap();
        assert_eq!(node["spec"]["providerID"], format!("phoenixnap://{id}"));
        assert_eq!(
            node["status"]["addresses"],
            json!([
                { "type": "Hostname", "address": "Worker-NLD-03" },
                { "type": "ExternalIP", "address": "192.0.2.71" },
                { "type": "ExternalIP", "address": "2001:db8:7::71" },
                { "type": "InternalIP", "address": "10.9.0.3" },
            ])
        );
        let labels = node["metadata"]["labels"].as_object().unwrap();
        for (key, value) in [
            ("node.kubernetes.io/instance-type", "s3.c3.large"),
            ("beta.kubernetes.io/instance-type", "s3.c3.large"),
            ("topology.kubernetes.io/region", "NLD"),
            ("failure-domain.beta.kubernetes.io/region", "NLD"),
        ] {
            assert_eq!(labels[key], value, "{key}");
        }
        assert!(!labels.keys().any(|key| key.ends_with("/zone")), "{labels:?}");
        assert_eq!(node["metadata"]["annotations"]["phoenixnap.com/server-id"], id);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bare_server_id_is_a_provider_id_like_any_other() {
        let world = idle().await;
        let id = world.sim.add_server(ServerSpec::new("bare"));
        let mut node = tainted_node("other-name");
        node["spec"]["providerID"] = json!(id);
        world.apply(node);
        world.until("it joins", |w| w.is_initialized("other-name")).await;
        world.pass(SECOND * 700).await;
        assert_eq!(world.node("other-name").unwrap()["spec"]["providerID"], json!(id));
        assert_eq!(world.reasons("other-name"), ["Synced"]);
        world.sim.remove_server(&id);
        world.set_ready("other-name", "Unknown");
        world.until("it goes", |w| w.node("other-name").is_none()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a15_a_private_server_joins_and_one_without_private_addresses_does_not() {
        let world = idle().await;
        world.sim.add_server(ServerSpec::new("quiet").private_only());
        world
            .sim
            .add_server(ServerSpec::new("loud").private::<String>([]));
        world.apply(tainted_node("quiet"));
        world.apply(tainted_node("loud"));
        world.until("it joins", |w| w.is_initialized("quiet")).await;
        let addresses = world.node("quiet").unwrap()["status"]["addresses"].to_string();
        assert!(!addresses.contains("ExternalIP"), "{addresses}");
        world.pass(SECOND * 30).await;
        assert!(!world.is_initialized("loud"));
        let event = last_event(&world, "loud");
        assert!(event.contains("no private IP address"), "{event}");
    }

    #[tokio::test(start_paused = true)]
    async fn a16_of_two_servers_with_the_name_none_is_guessed() {
        let world = idle().await;
        let ids = [(); 2].map(|()| world.sim.add_server(ServerSpec::new("db")));
        world.apply(tainted_node("db"));
        world.pass(SECOND * 30).await;
        assert!(!world.is_initialized("db"));
        let event = last_event(&world, "db");
        assert!(ids.iter().all(|id| event.contains(id)), "{event}");
        world.sim.set_server_status(&ids[0], ServerStatus::Deleting);
        world.until("it joins", |w| w.is_initialized("db")).await;
        let node = world.node("db").unwrap();
        assert_eq!(node["spec"]["providerID"], format!("phoenixnap://{}", ids[1]));
    }

    #[tokio::test(start_paused = true)]
    async fn a17_a_node_goes_whose_server_is_denied_and_not_listed() {
        // Also where it was the last server of the account.
        for others in [0, 2] {
            let world = World::with_nodes(others).await;
            world.add_node("w9");
            world.rest().await;
            world.sim.remove_machine("w9");
            world.set_ready("w9", "Unknown");
            let took = world.until("it goes", |w| w.node("w9").is_none()).await;
            assert!(took < SECOND * 10, "{took:?}");
            assert_eq!(world.api.objects("Node").len(), others);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a18_rights_that_were_lost_delete_no_node() {
        let world = World::with_nodes(30).await;
        let fault = world
            .cloud()
            .faults()
            .add(Fault::path("/bmc/v1/**").always().status(403));
        for index in 1..=30 {
            world.set_ready(&format!("n{index}"), "Unknown");
        }
        // The distance between two questions grows to a minute.
        world.pass(SECOND * 600).await;
        assert!(world.cloud().faults().struck(fault) >= 10, "it never asked");
        assert_eq!(world.api.objects("Node").len(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a19_only_a_powered_off_server_is_shut_down() {
        let world = World::with_nodes(2).await;
        let id = world.sim.servers()[0].id.clone();
        world.set_ready("n1", "Unknown");
        for status in [
            ServerStatus::Error,
            ServerStatus::Reserved,
            ServerStatus::Rebooting,
            ServerStatus::Reinstating,
            ServerStatus::Other("frozen".to_owned()),
        ] {
            world.sim.set_server_status(&id, status.clone());
            world.pass(SECOND * 20).await;
            assert_eq!(world.taints("n1"), Vec::<String>::new(), "{status:?}");
        }
        world.sim.set_server_status(&id, ServerStatus::PoweredOff);
        let took = world
            .until("the taint", |w| w.taints("n1").contains(&SHUTDOWN.to_owned()))
            .await;
        assert!(took <= SECOND * 60, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn fifty_nodes_among_five_hundred_servers_cost_as_many_lists_as_one_node() {
        let cost = async |nodes: usize| {
            let mut world = World::new();
            world.sim.add_servers("other", 500);
            for index in 0..nodes {
                world.join(&format!("n{index}"));
            }
            let begun = world.since();
            world.start();
            world
                .until("all join", |w| {
                    (0..nodes).all(|i| w.is_initialized(&format!("n{i}")))
                })
                .await;
            calls(&world, begun)
        };
        let (one, fifty) = (cost(1).await, cost(50).await);
        assert!(
            fifty.len() <= one.len() + 1 && fifty.len() <= 3,
            "{one:?} {fifty:?}"
        );
        assert!(fifty.iter().all(|call| call == "servers.list"), "{fifty:?}");
    }
}

mod services {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a01_a02_the_first_service_costs_nine_calls_and_the_second_three() {
        let world = idle().await;
        let begun = world.since();
        world.apply(web());
        world.settled("web").await;
        let mut expected = vec!["ip-blocks.list", "tags.list"];
        expected.extend(["tags.create"; 5]);
        expected.extend(["ip-blocks.create", "public-networks.attach"]);
        assert_eq!(calls(&world, begun), expected);
        assert_eq!(field(&world, "web"), json!(world.addresses("web")[0]));
        world.assert_served();

        let begun = world.since();
        world.apply(service("search", &[("", 80, 30080)]));
        world.settled("search").await;
        assert_eq!(
            calls(&world, begun),
            ["ip-blocks.list", "ip-blocks.create", "public-networks.attach"]
        );
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a05_a_service_without_location_says_so_and_is_served_when_it_has_one() {
        let mut world = world_with(&[("PNAP_LOCATION", "")]);
        world.start();
        world.rest().await;
        world.apply(web());
        world.pass(SECOND * 30).await;
        let event = last_event(&world, "web");
        for word in ["PNAP_LOCATION", "phoenixnap.com/ip-location"] {
            assert!(event.contains(word), "{event}");
        }
        assert!(world.sim.blocks().is_empty() && world.sim.tags().is_empty());
        world.edit_service("web", |it| {
            it["metadata"]["annotations"]["phoenixnap.com/ip-location"] = json!("NLD");
        });
        world.settled("web").await;
        world.assert_served();
    }

    const PLACE: [&str; 2] = ["PNAP_LOCATION", "PNAP_LOAD_BALANCER"];

    /// The Service `web` with annotations, served by a manager around this cloud.
    async fn served(sim: Phoenixnap, annotations: &Value) -> World {
        let mut world = World::over(sim, 7);
        world.start();
        world.rest().await;
        let mut service = web();
        service["metadata"]["annotations"] = annotations.clone();
        world.apply(service);
        world.settled("web").await;
        world
    }

    /// Where the one block was bought, and the network that it is on.
    fn place(world: &World) -> (String, Option<String>) {
        let blocks = world.sim.blocks();
        assert_eq!(blocks.len(), 1);
        let assignment = blocks[0].assignment.clone();
        (
            blocks[0].location.clone(),
            assignment.and_then(|it| it.resource_id),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a06_the_file_gives_the_location_annotation_another_name() {
        let mut sim = Phoenixnap::new(7);
        let network = sim.add_network(NetworkSpec::new("aus").location("AUS"));
        let file = json!({
            "annotationIPLocation": "acme.io/site",
            "loadbalancer": format!("kube-vip://{network}"),
        });
        sim.set_file(&file, &PLACE);
        let annotations = json!({ "acme.io/site": "AUS", "phoenixnap.com/ip-location": "PHX" });
        let world = served(sim, &annotations).await;
        assert_eq!(place(&world), ("AUS".to_owned(), Some(network)));
    }

    #[tokio::test(start_paused = true)]
    async fn a07_the_environment_beats_the_file() {
        let mut sim = Phoenixnap::new(7);
        let [a, b] = ["CHI", "AUS"].map(|it| sim.add_network(NetworkSpec::new(it).location(it)));
        // No other client than this one gets a token.
        sim.set_credentials("e", Phoenixnap::SECRET, Scope::ALL);
        let file = json!({
            "clientID": "f",
            "clientSecret": Phoenixnap::SECRET,
            "location": "CHI",
            "loadbalancer": format!("kube-vip://{a}"),
        });
        sim.set_file(&file, &["PNAP_CLIENT_SECRET"]);
        sim.set("PNAP_CLIENT_ID", "e");
        sim.set("PNAP_LOCATION", "AUS");
        sim.set("PNAP_LOAD_BALANCER", &format!("kube-vip://{b}"));
        let world = served(sim, &json!({})).await;
        assert_eq!(place(&world), ("AUS".to_owned(), Some(b)));
    }

    #[tokio::test(start_paused = true)]
    async fn a08_an_empty_variable_does_not_blank_out_the_file() {
        let mut sim = Phoenixnap::new(7);
        let network = sim.add_network(NetworkSpec::new("sgp").location("SGP"));
        let file = json!({ "location": "SGP", "loadbalancer": format!("kube-vip://{network}") });
        sim.set_file(&file, &PLACE);
        sim.set("PNAP_LOCATION", "");
        let world = served(sim, &json!({})).await;
        assert_eq!(place(&world), ("SGP".to_owned(), Some(network)));
    }

    #[tokio::test(start_paused = true)]
    async fn a22_two_at_once_on_a_busy_network_both_get_their_block() {
        let world = idle().await;
        world.sim.set_behaviour(|it| it.attach_time = SECOND * 20);
        let names = ["one", "two"];
        for (name, port) in names.into_iter().zip([30080, 30081]) {
            world.apply(service(name, &[("", 80, port)]));
        }
        let took = world
            .until("both addresses", |w| {
                names.iter().all(|name| !w.addresses(name).is_empty())
            })
            .await;
        assert!(took < SECOND * 120, "{took:?}");
        world.pass(SECOND * 30).await;
        let blocks = world.sim.blocks();
        assert_eq!(blocks.len(), 2);
        assert!(blocks.iter().all(|block| block.status == BlockStatus::Assigned));
        let accepted = world
            .cloud()
            .journal()
            .filter(|entry| entry.operation == "public-networks.attach" && entry.status() == Some(202));
        assert_eq!(accepted.len(), 2, "none is attached twice");
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a24_an_attachment_that_failed_is_made_good_within_a_minute() {
        let world = idle().await;
        world.sim.set_behaviour(|it| {
            it.attach_time = SECOND * 5;
            it.failing_attachments = 1;
        });
        world.apply(web());
        let took = world
            .until("it is attached", |w| {
                w.sim
                    .blocks()
                    .iter()
                    .any(|block| block.status == BlockStatus::Assigned)
            })
            .await;
        assert!(took <= SECOND * 65, "{took:?}");
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a29_a_preset_address_buys_nothing_and_a_cleared_one_a_block() {
        let world = idle().await;
        let mut preset = web();
        preset["spec"]["loadBalancerIP"] = json!("203.0.113.200");
        world.apply(preset.clone());
        world.pass(SECOND * 30).await;
        let event = last_event(&world, "web");
        assert!(
            event.contains("203.0.113.200") && event.contains("clear the field"),
            "{event}"
        );
        assert!(world.sim.blocks().is_empty() && world.sim.tags().is_empty());
        assert_eq!(field(&world, "web"), "203.0.113.200");
        world.delete_service("web");
        let took = world.until("it is gone", |w| w.service("web").is_none()).await;
        assert!(took < SECOND, "{took:?}");

        world.apply(preset);
        world.pass(SECOND * 30).await;
        world.edit_service("web", |it| it["spec"]["loadBalancerIP"] = Value::Null);
        world.settled("web").await;
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a30_another_address_of_the_own_block_is_kept() {
        let world = settled().await;
        let third: std::net::Ipv4Addr = world.addresses("web")[0].parse().unwrap();
        let other = std::net::Ipv4Addr::from_bits(third.to_bits() + 2).to_string();
        world.edit_service("web", |it| it["spec"]["loadBalancerIP"] = json!(other));
        world
            .until("the status follows", |w| w.addresses("web") == [other.as_str()])
            .await;
        world.rest().await;
        assert_eq!(field(&world, "web"), json!(other));
        assert_eq!(world.sim.blocks().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a34_a_block_on_a_former_network_is_told_of_and_released_from_there() {
        let mut world = settled().await;
        let other = world.sim.add_network(NetworkSpec::new("new"));
        world.kill().await;
        world
            .sim
            .set("PNAP_LOAD_BALANCER", &format!("kube-vip://{other}"));
        let before = world.sim.state();
        world.start();
        world.pass(SECOND * 60).await;
        let event = last_event(&world, "web");
        assert!(event.contains(NETWORK) && event.contains(&other), "{event}");
        assert_eq!(world.sim.state(), before);
        let begun = world.since();
        world.delete_service("web");
        world.gone("web").await;
        let detached = world.calls(begun);
        let detached: Vec<_> = detached
            .iter()
            .filter(|call| call.operation == "public-networks.detach")
            .collect();
        assert!(
            detached.len() == 1 && detached[0].path.contains(NETWORK),
            "{detached:?}"
        );
        assert!(world.sim.blocks().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a35_an_unknown_type_serves_nodes_and_costs_services_no_call() {
        let mut world = world_with(&[("PNAP_LOAD_BALANCER", "metallb://abc")]);
        world.join("n1");
        world.start();
        world.until("it joins", |w| w.is_initialized("n1")).await;
        world.rest().await;
        let mark = world.cloud().journal().mark();
        world.apply(web());
        world.pass(SECOND * 120).await;
        assert_eq!(world.cloud().journal().since(mark).len(), 0);
        assert!(!world.has_finalizer("web"));
    }

    #[tokio::test(start_paused = true)]
    async fn a39_what_the_api_says_about_a_sold_out_pool_is_in_the_event() {
        let world = idle().await;
        world.sim.set_behaviour(|it| it.quota.blocks = Some(0));
        let begun = world.since();
        world.apply(web());
        world.pass(SECOND * 60).await;
        let refused = world
            .cloud()
            .journal()
            .filter(|entry| entry.status() == Some(406));
        assert!((3..=5).contains(&refused.len()), "{} tries", refused.len());
        let event = last_event(&world, "web");
        assert!(event.contains("406"), "{event}");
        assert!(!calls(&world, begun).contains(&"public-networks.attach".to_owned()));
        world.sim.set_behaviour(|it| it.quota.blocks = None);
        world.settled("web").await;
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a41_a_new_node_is_told_to_services_and_costs_them_no_call() {
        let world = World::with_nodes(2).await;
        for (name, port) in ["a", "b", "c"].into_iter().zip(30080..) {
            world.apply(service(name, &[("", 80, port)]));
            world.settled(name).await;
        }
        let id = world.sim.add_server(ServerSpec::new("late"));
        let begun = world.since();
        let mut node = tainted_node("late");
        node["spec"] = json!({ "taints": [], "providerID": format!("phoenixnap://{id}") });
        world.apply(node);
        world.pass(SECOND * 10).await;
        for name in ["a", "b", "c"] {
            assert!(last_event(&world, name).contains("Updated load balancer with new hosts"));
        }
        let late = world.node("late").unwrap();
        assert_eq!(late["metadata"]["annotations"]["phoenixnap.com/server-id"], id);
        world.pass(SECOND * 190).await;
        let of_blocks = calls(&world, begun);
        assert!(
            !of_blocks.iter().any(|call| !call.starts_with("servers.")),
            "{of_blocks:?}"
        );
        for name in ["a", "b", "c"] {
            assert!(
                !world
                    .reasons(name)
                    .contains(&"UpdateLoadBalancerFailed".to_owned())
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a44_what_kube_vip_wrote_into_the_status_stays() {
        let world = settled().await;
        let address = world.addresses("web")[0].clone();
        let completed = json!([{
            "ip": address, "ipMode": "VIP",
            "ports": [{ "port": 8080, "protocol": "TCP" }, { "port": 9000, "protocol": "TCP" }],
        }]);
        world.edit_service("web", |it| {
            it["status"]["loadBalancer"]["ingress"] = completed.clone()
        });
        world.rest().await;
        let begun = world.since();
        world.annotate_idly("web");
        world.rest().await;
        assert_eq!(calls(&world, begun), ["ip-blocks.list"]);
        assert_eq!(world.object_writes(begun), Vec::<String>::new());
        assert_eq!(
            world.service("web").unwrap()["status"]["loadBalancer"]["ingress"],
            completed
        );
    }
}

mod release {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a25_a_service_goes_before_its_block_is_off_the_network() {
        let world = settled().await;
        world.sim.set_behaviour(|it| it.detach_time = SECOND * 5);
        let begun = world.since();
        world.delete_service("web");
        let took = world.until("it is gone", |w| w.service("web").is_none()).await;
        assert!(took < SECOND * 2, "{took:?}");
        assert_eq!(marked(&world).len(), 1, "the block is on its way");
        let took = world
            .until("nothing is left", |w| w.sim.blocks().is_empty())
            .await;
        assert!(took < SECOND * 60, "{took:?}");
        let writes: Vec<String> = world
            .calls(begun)
            .into_iter()
            .filter(|call| call.write)
            .map(|call| call.operation)
            .collect();
        assert_eq!(
            writes,
            ["ip-blocks.tag", "public-networks.detach", "ip-blocks.delete"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a26_five_at_once_are_gone_in_time_and_nothing_is_refused() {
        let world = idle().await;
        let names: Vec<String> = (0..5).map(|index| format!("s{index}")).collect();
        for (name, port) in names.iter().zip(30080..) {
            world.apply(service(name, &[("", 80, port)]));
        }
        world
            .until("all addresses", |w| {
                names.iter().all(|name| !w.addresses(name).is_empty())
            })
            .await;
        world.rest().await;
        world.sim.set_behaviour(|it| it.detach_time = SECOND * 5);
        let mark = world.cloud().journal().mark();
        for name in &names {
            world.delete_service(name);
        }
        let took = world
            .until("all blocks are gone", |w| w.sim.blocks().is_empty())
            .await;
        assert!(took < SECOND * 100, "{took:?}");
        for entry in world.cloud().journal().since(mark) {
            assert!(entry.status().is_some_and(|status| status < 300), "{entry:?}");
        }
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a27_a_release_that_fails_is_tried_again_on_the_same_block() {
        let world = settled().await;
        let block = world.sim.blocks()[0].id.clone();
        world
            .cloud()
            .faults()
            .add(Fault::operation("ip-blocks.tag").times(3).status(500));
        let mark = world.cloud().journal().mark();
        world.delete_service("web");
        world.pass(SECOND * 10).await;
        assert!(world.has_finalizer("web"), "it stays Terminating");
        world.gone("web").await;
        assert!(world.sim.blocks().is_empty());
        let writes = world.cloud().journal().since(mark);
        let on_blocks = writes.iter().filter(|entry| entry.write);
        assert!(on_blocks.clone().all(|entry| entry.path.contains(&block)));
        assert_eq!(on_blocks.count(), 4 + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a31_a_service_of_the_same_name_gets_a_block_of_its_own() {
        let world = settled().await;
        let old = world.sim.blocks()[0].id.clone();
        world.delete_service("web");
        world.until("it is gone", |w| w.service("web").is_none()).await;
        world.pass(SECOND * 2).await;
        world.apply(web());
        world.settled("web").await;
        let blocks = world.sim.blocks();
        assert!(blocks.len() == 1 && blocks[0].id != old, "{blocks:?}");
        world.assert_served();
    }

    #[tokio::test(start_paused = true)]
    async fn a32_the_blocks_of_another_cluster_are_nobodys_business() {
        for filter in [TagFilter::Ignored, TagFilter::Any] {
            let world = idle().await;
            world.sim.set_behaviour(|it| it.tag_filter = filter);
            const OTHER: &str = "7a1d4c52-93f0-4c46-8f0e-1b6f7d5f6a11";
            let theirs = [
                BlockSpec::of_service(OTHER, "default", "web").network(NETWORK),
                BlockSpec::marked(OTHER).network(NETWORK),
                BlockSpec::marked(OTHER),
            ]
            .map(|spec| world.sim.add_block(spec));
            let before: Vec<_> = theirs.iter().map(|id| world.sim.block(id)).collect();
            world.apply(web());
            world
                .until("its address", |w| !w.addresses("web").is_empty())
                .await;
            world.delete_service("web");
            world.until("it is gone", |w| w.service("web").is_none()).await;
            world.pass(SECOND * 120).await;
            let after: Vec<_> = theirs.iter().map(|id| world.sim.block(id)).collect();
            assert_eq!(after, before, "{filter:?}");
            assert_eq!(world.sim.blocks().len(), theirs.len(), "{filter:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a45_an_idle_sweeper_lists_twice_a_minute_and_nothing_else() {
        let world = settled().await;
        world.pass(SECOND * 45).await;
        let mark = world.cloud().journal().mark();
        world.pass(SECOND * 590).await;
        let calls = world.cloud().journal().since(mark);
        let of_cluster = calls
            .iter()
            .filter(|call| call.operation == "ip-blocks.list" && call.query.len() == 2);
        assert!((19..=20).contains(&of_cluster.count()), "{calls:#?}");
        assert!(calls.iter().all(|call| !call.write), "{calls:#?}");
    }
}

mod takeover {
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
    async fn a38_what_the_former_manager_left_is_made_good_and_nothing_is_bought() {
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

    #[tokio::test(start_paused = true)]
    async fn a38_what_is_as_it_should_be_costs_one_call() {
        let mut world = World::new();
        let done = block(&world, "done", true);
        world.apply(left("done", 30080, Some(&done), json!([{ "ip": done }])));
        let begun = world.since();
        world.start();
        world.pass(SECOND * 300).await;
        assert_eq!(calls(&world, begun), ["ip-blocks.list"]);
        assert_eq!(world.object_writes(begun), Vec::<String>::new());
        assert_eq!(world.all_events(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a28_an_address_that_was_not_written_any_more_is_written_by_the_next_process() {
        for is_deleted in [false, true] {
            let mut world = World::new();
            let address = block(&world, "cart", true);
            world.apply(left("cart", 30080, None, json!([])));
            if is_deleted {
                world.delete_service("cart");
            }
            world.start();
            if is_deleted {
                world.gone("cart").await;
                assert!(world.sim.blocks().is_empty());
            } else {
                world.settled("cart").await;
                assert_eq!(field(&world, "cart"), json!(address));
                assert_eq!(world.sim.blocks().len(), 1);
            }
            let bought = world.cloud().journal().count_operation("ip-blocks.create");
            assert_eq!(bought, 0);
        }
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
}

mod metrics {
    use super::*;

    /// The provider's own series of the manager that was started as the `index`th of those that run.
    fn counted(world: &World, index: usize) -> Vec<String> {
        shown(&world.metrics()[index])
    }

    fn shown(metrics: &bowline_manager::metrics::Metrics) -> Vec<String> {
        let page = metrics.render().unwrap();
        let lines = page.lines().filter(|line| line.starts_with("phoenixnap_"));
        lines.map(str::to_owned).collect()
    }

    fn expected(active: usize, marked: usize, orphaned: usize, stuck: usize) -> Vec<String> {
        vec![
            format!("phoenixnap_ip_blocks{{state=\"active\"}} {active}"),
            format!("phoenixnap_ip_blocks{{state=\"marked\"}} {marked}"),
            format!("phoenixnap_ip_blocks{{state=\"orphaned\"}} {orphaned}"),
            format!("phoenixnap_ip_blocks_stuck {stuck}"),
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn w46_blocks_are_counted_by_who_leads_and_by_nobody_else() {
        let mut world = idle().await;
        world.start();
        world.apply(web());
        world.settled("web").await;
        world.pass(SECOND * 60).await;
        assert_eq!(counted(&world, 0), expected(1, 0, 0, 0));
        assert_eq!(counted(&world, 1), Vec::<String>::new());

        let cluster = cluster(&world);
        let orphan = world
            .sim
            .add_block(BlockSpec::of_service(&cluster, "default", "gone"));
        world
            .sim
            .add_block(BlockSpec::marked(&cluster).attached("s1", "server"));
        world.pass(SECOND * 70).await;
        assert_eq!(counted(&world, 0), expected(1, 1, 1, 1));

        let former = world.metrics().remove(0);
        world.kill().await;
        assert_eq!(shown(&former), Vec::<String>::new());
        world.sim.remove_block(&orphan);
        assert_eq!(counted(&world, 0), Vec::<String>::new());
        world
            .until("the successor has counted", |w| !counted(w, 0).is_empty())
            .await;
        assert_eq!(counted(&world, 0), expected(1, 1, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn w46_what_nobody_could_look_at_is_not_told_of() {
        let world = settled().await;
        world.pass(SECOND * 40).await;
        assert_eq!(counted(&world, 0), expected(1, 0, 0, 0));
        let illness = Fault::operation("ip-blocks.list").always().status(500);
        world.cloud().faults().add(illness);
        world.pass(SECOND * 40).await;
        assert_eq!(counted(&world, 0), Vec::<String>::new());
        world.cloud().faults().clear();
        world.pass(SECOND * 40).await;
        assert_eq!(counted(&world, 0), expected(1, 0, 0, 0));
    }
}
