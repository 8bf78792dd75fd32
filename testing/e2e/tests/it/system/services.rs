//! Services on cloudscale.ch whose point takes a whole manager: several Services or a node at once, the version of the API
//! server, rights, two managers and one lease. What one Service leads to is tested beside the provider.

use bowline_cloudscale_sim::CloudscaleSim;
use bowline_conformance::cloud::Stage;
use bowline_kube_api::KubeApi;

use super::objects::{OnCloudscale, web};
use super::staged::play_all;
use super::world::{Cloudscale, World};

#[tokio::test(start_paused = true)]
async fn what_takes_a_whole_manager() {
    play_all::<Stage<Cloudscale>>("whole", "cloudscale").await;
}

#[tokio::test(start_paused = true)]
async fn the_ip_mode_is_told_to_servers_that_know_it() {
    for (minor, expected) in [(36, Some("VIP")), (31, Some("VIP")), (28, None)] {
        let sim = CloudscaleSim::builder().seed(7).build();
        let mut world = World::of(Cloudscale(sim), KubeApi::builder().version(minor), 7);
        world.add_nodes(1);
        world.apply(web());
        world.annotate("web", "ip-mode", "VIP");
        world.start();
        world.settled("web").await;
        // What was sent: what is stored has the defaults of the server's own version.
        let sent = world.api.journal().of("patch", "services");
        let mut sent = sent
            .iter()
            .filter_map(|it| it.body.as_ref()?.pointer("/status/loadBalancer/ingress"));
        let ingress = sent.next_back().unwrap().as_array().unwrap();
        for entry in ingress {
            assert_eq!(entry["ipMode"].as_str(), expected, "1.{minor}: {entry}");
        }
        assert_eq!(ingress.len(), 2);
    }
}
