use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloud_provider::{CloudConfig, CloudProvider as _, Environment};
use bowline_openstack::Options;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::{OpenstackSim, Service};
use tracing::Level;

use crate::cloud::{calls, options, started};
use crate::world::builder;

#[tokio::test(start_paused = true)]
async fn a_start_logs_in_once_and_looks_for_each_service_once() {
    let sim = builder().build();
    let provider = started(&sim, &options("").unwrap(), true).await.unwrap();
    assert!(provider.instances().is_some() && provider.load_balancer().is_some());
    assert!(provider.routes().is_none(), "no router is named");
    let calls = calls(&sim);
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert_eq!(calls[0], "keystone.tokens.create");
}

#[tokio::test(start_paused = true)]
async fn without_load_balancing_in_the_catalog_only_the_service_controller_keeps_from_a_start() {
    let sim = builder().without(Service::LoadBalancer).build();
    let error = started(&sim, &options("").unwrap(), true).await.err().unwrap();
    let text = error.to_string();
    assert!(
        text.contains("No suitable endpoint could be found in the service catalog"),
        "{text}"
    );
    assert!(started(&sim, &options("").unwrap(), false).await.is_ok());
    let switched_off = options("[LoadBalancer]\nenabled = false\n").unwrap();
    let provider = started(&sim, &switched_off, true).await.unwrap();
    assert!(provider.load_balancer().is_none());
}

#[tokio::test(start_paused = true)]
async fn without_nova_nodes_are_left_alone() {
    let sim = builder().without(Service::Compute).build();
    let provider = started(&sim, &options("").unwrap(), true).await.unwrap();
    assert!(provider.instances().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_ends_the_start() {
    let sim = builder().user("demo", "other").build();
    let error = started(&sim, &options("").unwrap(), true).await.err().unwrap();
    let text = error.to_string();
    assert!(
        text.starts_with("cannot log in to OpenStack: tokens.create"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "requires authentication. The login is made with `username` and `password` of cloud.conf: correct these there, or the \
             options of domain and project, or `auth-url`"
        ),
        "{text}"
    );
    assert_eq!(calls(&sim), ["keystone.tokens.create"]);
}

/// Keystone answers 404 to an application credential that it does not know.
#[tokio::test(start_paused = true)]
async fn an_unknown_application_credential_is_told_in_keystones_words() {
    let sim = builder().build();
    let config = CloudConfig::Given {
        path: "cloud.conf".to_owned(),
        contents: b"[Global]\nauth-url = http://cloud.test/identity/v3\nregion = RegionOne\n\
            application-credential-id = gone\napplication-credential-secret = s\n"
            .to_vec(),
    };
    let options = Options::read(&config, &Environment::default(), &|path| std::fs::read(path)).unwrap();
    let text = started(&sim, &options, true).await.err().unwrap().to_string();
    assert!(
        text.contains(
            "404 Not Found: Could not find Application Credential: gone. The login is made with `application-credential-id` and \
             `application-credential-secret` of cloud.conf: correct these there"
        ),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_another_region_or_interface_are_not_used() {
    let sim = builder().regions(["RegionOne", "Other"]).build();
    assert!(started(&sim, &options("").unwrap(), true).await.is_ok());
    assert!(
        started(&sim, &options("os-endpoint-type = internal").unwrap(), true)
            .await
            .is_ok()
    );
    let nowhere = options("region = Nowhere").unwrap();
    let error = started(&sim, &nowhere, true).await.err().unwrap().to_string();
    assert!(
        error.contains("set `region` to one that the catalog has for it: Other, RegionOne"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn routes_need_a_router_and_an_extension_of_neutron() {
    let sim = builder().build();
    let options = options("[Route]\nrouter-id = some\n").unwrap();
    let with = async |sim: &OpenstackSim| started(sim, &options, true).await.unwrap().routes().is_some();
    assert!(with(&sim).await);
    // What is in trouble may be well again when the first routes are wanted; a refusal stays.
    for (status, are_kept) in [(500, true), (403, false), (404, false)] {
        let fault = Fault::operation("neutron.extensions.list")
            .always()
            .status(status);
        let fault = sim.faults().add(fault);
        assert_eq!(with(&sim).await, are_kept, "{status}");
        sim.faults().remove(fault);
    }
    sim.set_behaviour(|behaviour| behaviour.extensions.clear());
    assert!(!with(&sim).await);
}

/// Meanwhile nobody asks whether the process lives, and the kubelet would end it.
#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_delays_the_start_by_20_seconds_at_most() {
    for path in ["/identity/**", "/network/**", "/load-balancer/**", "/compute/**"] {
        let sim = builder().build();
        sim.faults().add(Fault::path(path).always().hang_before());
        let begun = tokio::time::Instant::now();
        let provider = started(&sim, &options("").unwrap(), true).await.unwrap();
        assert!(begun.elapsed() <= Duration::from_secs(20), "{path}");
        assert!(provider.instances().is_some() && provider.load_balancer().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_router_the_log_says_what_to_set() {
    let sim = builder().build();
    let words = "router-id not set in cloud provider config";
    let (log, _guards) = Log::listen(Level::INFO);
    started(&sim, &options("").unwrap(), true).await.unwrap();
    assert_eq!(log.count(words), 1, "{}", log.text());
    let routed = options("[Route]\nrouter-id = some\n").unwrap();
    started(&sim, &routed, true).await.unwrap();
    assert_eq!(log.count(words), 1, "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn requests_and_answers_are_logged_at_verbosity_6_without_secrets() {
    let sim = builder().user("demo", "hunter2").build();
    for (level, is_shown) in [(Level::DEBUG, false), (Level::TRACE, true)] {
        let (log, _guards) = Log::listen(level);
        let options = options("password = hunter2\n").unwrap();
        started(&sim, &options, true).await.unwrap();
        assert_eq!(log.count("HTTP exchange") > 0, is_shown, "{}", log.text());
        assert_eq!(log.count("auth/tokens") > 0 && log.count("***") > 0, is_shown);
        assert_eq!(log.count("hunter2"), 0, "{}", log.text());
    }
}
