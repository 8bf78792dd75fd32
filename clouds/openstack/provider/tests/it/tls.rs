//! TLS that ends at the load balancer.

use std::time::Duration;

use bowline_openstack_sim::{OpenstackSim, Service};

use crate::world::{World, builder, service};

fn over(sim: OpenstackSim) -> World {
    let mut world = World::over(sim);
    world.add_node("node-1");
    world.put(service("web", &[("TCP", 443, 30443)]));
    world
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
    world.configure(|options| options.container_store = "external".to_owned());
    world.run("web").await.settled();
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
