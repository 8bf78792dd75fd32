use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport};
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment};
use bowline_cloudscale::{Cloudscale, EVENTS, annotation_table};
use bowline_cloudscale_client::{Settings, SettingsError};
use bowline_cloudscale_sim::CloudscaleSim;

fn start(sim: &CloudscaleSim, environment: &[(&str, &str)]) -> Result<Cloudscale, SettingsError> {
    let environment: Environment = environment.iter().copied().collect();
    Cloudscale::from_environment(&environment, &CloudConfig::Absent, |settings: &Settings, _| {
        let mut config = CloudHttpConfig::new("cloudscale", "test");
        settings.configure(&mut config);
        Ok(CloudHttp::new(config, Transport::memory(sim.service())))
    })
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_starts_and_nothing_is_asked() {
    let sim = CloudscaleSim::builder().build();
    for environment in [&[][..], &[("CLOUDSCALE_ACCESS_TOKEN", "")]] {
        let Err(error) = start(&sim, environment) else {
            panic!("started")
        };
        assert_eq!(error.to_string(), "no CLOUDSCALE_ACCESS_TOKEN configured");
    }
    assert!(sim.journal().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_start_makes_no_call_and_offers_instances_and_balancers_only() {
    let sim = CloudscaleSim::builder().build();
    let cloud = start(&sim, &[("CLOUDSCALE_ACCESS_TOKEN", "abcdEFGH")]).unwrap();
    assert_eq!((cloud.name(), cloud.has_cluster_id()), ("cloudscale", false));
    assert!(cloud.instances().is_some() && cloud.load_balancer().is_some());
    assert!(cloud.routes().is_none() && cloud.background_work().is_empty());
    assert!(sim.journal().is_empty());
}

#[test]
fn the_reference_tables_are_public() {
    assert!(!annotation_table().is_empty());
    assert!(EVENTS.iter().any(|event| event.reason == "NoValidNodes"));
}
