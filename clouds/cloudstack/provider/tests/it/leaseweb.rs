//! Nodes as Leaseweb's manager v1.8.1 has them. Its load balancers are in `scenarios/leaseweb.scenario`.

use bowline_cloud_provider::{CloudProvider as _, InstanceAnswer, InstanceQuery, Purpose};
use bowline_cloudstack_sim::VmSpec;

use crate::site::Site;
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn nodes_look_as_it_has_them_where_the_file_says_so() {
    let site = Site::new().with("compatible-with = leaseweb\n");
    site.sim.add_vm(VmSpec::new("cp-a"));
    let world = World::around(site).await;
    let vm = world.sim.vm_named("cp-a").unwrap();
    let query = InstanceQuery {
        node: world.nodes().remove(0),
        purpose: Purpose::Metadata,
    };
    let instances = world.cloud.instances().unwrap();
    let answer = instances.instances(&[query]).await.remove(0).unwrap();
    let InstanceAnswer::Present(instance) = answer else {
        panic!("{answer:?}")
    };
    let metadata = instance.metadata;
    // That of a Node which has one is never changed.
    assert_eq!(
        metadata.provider_id,
        Some(format!("external-cloudstack://{}", vm.id))
    );
    assert_eq!((&*metadata.zone, &*metadata.region), ("Zurich-1", ""));
    let unnamed = InstanceQuery {
        node: std::sync::Arc::new(bowline_cloud_provider::Node::named("cp-a")),
        purpose: Purpose::Metadata,
    };
    let answer = instances.instances(&[unnamed]).await.remove(0).unwrap();
    let InstanceAnswer::Present(instance) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(
        instance.metadata.provider_id,
        Some(format!("cloudstack:///{}", vm.id))
    );
}
