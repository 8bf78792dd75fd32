//! What a Node carries that is balanced over. What is said of servers is in `scenarios/instances.scenario`.

use std::collections::BTreeMap;

use bowline_cloud_provider::{CloudProvider, Labels, Node, Selector};

use crate::world::{self, World};

#[test]
fn a_node_that_is_balanced_over_carries_the_id_of_its_server_if_it_is_selected() {
    let mut options = world::options(world::USUAL);
    options.nodes = Selector::parse("pool=edge").unwrap();
    let cloud = world::provider(&World::new().sim, &options);
    let balancers = cloud.load_balancer().unwrap();
    let noted = |id: Option<&str>, pool: &str| {
        let node = Node {
            provider_id: id.map(Into::into),
            labels: Labels::from_iter([("pool", pool)]),
            ..Node::named("worker")
        };
        balancers.node_annotations(&node)
    };
    let expected = BTreeMap::from([("phoenixnap.com/server-id".to_owned(), "64f0".to_owned())]);
    assert_eq!(noted(Some("phoenixnap://64f0"), "edge"), expected);
    for (id, pool) in [
        (Some("phoenixnap://64f0"), "core"),
        (Some("cloudscale://64f0"), "edge"),
        (None, "edge"),
    ] {
        assert_eq!(noted(id, pool), BTreeMap::new(), "{id:?} {pool}");
    }
}
