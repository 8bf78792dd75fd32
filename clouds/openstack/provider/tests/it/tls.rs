//! TLS that ends at the load balancer.

use std::time::Duration;

use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::{OpenstackSim, Service};

use crate::world::{World, builder, in_short, service};

fn over(sim: OpenstackSim) -> World {
    let mut world = World::over(sim);
    world.add_node("node-1");
    world.put(service("web", &[("TCP", 443, 30443)]));
    world
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_there_is_used() {
    let world = over(builder().build());
    let id = world.sim.add_secret("web");
    world.annotate(
        "web",
        "default-tls-container-ref",
        &format!("https://kms/v1/secrets/{id}"),
    );
    world.run("web").await.settled();
    let listener = world.sim.snapshot().load_balancers[0].listeners[0].clone();
    assert_eq!(listener.protocol, "TERMINATED_HTTPS");
    assert_eq!(listener.pool.unwrap().protocol, "HTTP");
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_not_there_is_refused_and_nothing_is_made() {
    let world = over(builder().build());
    let missing = "https://kms/v1/secrets/11111111-2222-3333-4444-555555555555";
    world.annotate("web", "default-tls-container-ref", missing);
    let run = world.run("web").await;
    assert!(run.complaint().contains("does not exist"), "{}", run.complaint());
    world.annotate("web", "default-tls-container-ref", "https://kms/v1/keys/x");
    assert!(world.run("web").await.complaint().contains("failed to parse"));
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_key_manager_tls_is_refused_unless_the_store_is_external() {
    let mut world = over(builder().without(Service::KeyManager).build());
    world
        .sim
        .set_behaviour(|behaviour| behaviour.checks_certificates = false);
    world.annotate("web", "default-tls-container-ref", "https://kms/v1/secrets/x");
    let run = world.run("web").await;
    assert!(
        run.complaint().contains("keymanager client is not initialized"),
        "{}",
        run.complaint()
    );
    world.configure(|options| options.container_store = bowline_openstack::ContainerStore::External);
    world.run("web").await.settled();
}

/// Every listener of the Service would be one that ends TLS.
#[tokio::test(start_paused = true)]
async fn tls_beside_a_port_that_is_not_tcp_is_refused_before_anything_is_asked() {
    for protocol in ["UDP", "SCTP"] {
        let mut world = over(builder().build());
        world.put(service("web", &[("TCP", 443, 30443), (protocol, 53, 30053)]));
        let reference = format!("https://kms/v1/secrets/{}", world.sim.add_secret("web"));
        let told = async |world: &World| {
            let (run, calls) = world.calls_of(world.run("web")).await;
            assert!(calls.is_empty(), "{:?}", in_short(&calls));
            run.complaint().to_owned()
        };
        world.configure(|options| options.tls_container = Some(reference.clone()));
        let text = told(&world).await;
        let expected = format!(
            "port 53/{protocol} cannot be balanced with default-tls-container-ref of [LoadBalancer] in cloud.conf: "
        );
        assert!(text.starts_with(&expected), "{text}");
        // As that text says.
        world.annotate("web", "default-tls-container-ref", "");
        world.run("web").await.settled();
        world.annotate("web", "default-tls-container-ref", &reference);
        let run = world.run("web").await;
        let expected = format!(
            "port 53/{protocol} cannot be balanced with annotation loadbalancer.openstack.org/default-tls-container-ref: "
        );
        assert!(run.complaint().starts_with(&expected), "{run:#?}");
        world.add_node("node-2");
        let (_, writes) = world.writes_of(world.run("web")).await;
        assert_eq!(in_short(&writes), ["octavia.members.replace"; 2]);
        world.remove_annotation("web", "default-tls-container-ref");
        world.configure(|options| options.tls_container = None);
        world.run("web").await.settled();
        world.assert_settled("web").await;
    }
}

/// The catalog is read anew at times, once for all Services.
#[tokio::test(start_paused = true)]
async fn a_missing_key_manager_costs_few_logins_however_many_services_want_it() {
    for services in [1, 10] {
        let world = over(builder().without(Service::KeyManager).build());
        let began = world.sim.journal().mark();
        let names: Vec<String> = (0..services).map(|index| format!("s{index}")).collect();
        for name in &names {
            world.put(service(name, &[("TCP", 443, 30443)]));
            world.annotate(name, "default-tls-container-ref", "https://kms/v1/secrets/x");
        }
        // For 20 minutes.
        for _ in 0..120 {
            futures::future::join_all(names.iter().map(|name| world.run(name))).await;
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        let all = world.sim.journal().since(began);
        let logins = all.iter().filter(|call| call.path.ends_with("/auth/tokens"));
        // The first one, and after 0.5, 1, 2, 4, 5 and 5 minutes more.
        assert_eq!(logins.count(), 7, "{services}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_no_proof() {
    let world = over(builder().build());
    let id = world.sim.add_secret("web");
    world.annotate(
        "web",
        "default-tls-container-ref",
        &format!("https://kms/v1/secrets/{id}"),
    );
    world
        .sim
        .faults()
        .add(Fault::path("/key-manager/v1/secrets/*").always().status(500));
    let run = world.run("web").await;
    assert!(run.complaint().contains("500"), "{run:#?}");
    assert!(world.sim.load_balancers().is_empty());
}

/// A world with a Service of this port, and with a key manager that stopped to answer when it was made.
async fn with_a_store_that_is_down(certificate_at_first: bool) -> World {
    let world = over(builder().build());
    let reference = format!("https://kms/v1/secrets/{}", world.sim.add_secret("web"));
    if certificate_at_first {
        world.annotate("web", "default-tls-container-ref", &reference);
    }
    world.run("web").await.settled();
    world.annotate("web", "default-tls-container-ref", &reference);
    let fault = Fault::path("/key-manager/v1/secrets/*").always().status(500);
    world.sim.faults().add(fault);
    world
}

#[tokio::test(start_paused = true)]
async fn members_follow_the_nodes_while_the_store_does_not_answer() {
    for certificate_at_first in [true, false] {
        let mut world = with_a_store_that_is_down(certificate_at_first).await;
        let address = world.annotation("web", "load-balancer-address").unwrap();
        world.add_node("node-2");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert_eq!(in_short(&writes), ["octavia.members.replace"]);
        assert!(
            run.complaint().contains("failed to get the certificate"),
            "{run:#?}"
        );
        let status = run.published_although_refused.unwrap();
        assert_eq!(status.ingress[0].ip.as_deref(), Some(address.as_str()));
        let (_, writes) = world.writes_of(world.run("web")).await;
        assert!(writes.is_empty());
        let listener = world.sim.snapshot().load_balancers[0].listeners[0].clone();
        assert_eq!(listener.protocol == "TERMINATED_HTTPS", certificate_at_first);
        assert_eq!(listener.pool.unwrap().members.len(), 2);
        world.sim.faults().clear();
        world.run("web").await.settled();
        let listener = world.sim.snapshot().load_balancers[0].listeners[0].clone();
        assert_eq!(listener.protocol, "TERMINATED_HTTPS");
        world.assert_settled("web").await;
    }
}
