//! TLS that ends at the load balancer.

use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::{OpenstackSim, Service};

use crate::world::{World, service};

fn over(sim: OpenstackSim) -> World {
    let mut world = World::over(sim);
    world.add_node("node-1");
    world.put(service("web", &[("TCP", 443, 30443)]));
    world
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_there_is_used() {
    let world = over(OpenstackSim::builder().seed(7).build());
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
    let world = over(OpenstackSim::builder().seed(7).build());
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
    let mut world = over(
        OpenstackSim::builder()
            .seed(7)
            .without(Service::KeyManager)
            .build(),
    );
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

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_no_proof() {
    let world = over(OpenstackSim::builder().seed(7).build());
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
    assert!(
        matches!(run.outcome, crate::world::Outcome::Failed(_)),
        "{run:#?}"
    );
    assert!(world.sim.load_balancers().is_empty());
}
