//! Lists in pages, and their order.

use std::time::Duration;

use bowline_openstack_sim::model::compute::Flavor;
use bowline_openstack_sim::{OpenstackSim, ServerSpec};
use serde_json::Value;

use crate::support::{Caller, LB, balancer};

/// The path of the link of a name, if there is one.
fn link(body: &Value, collection: &str, rel: &str) -> Option<String> {
    let links = body[format!("{collection}_links")].as_array()?;
    let found = links.iter().find(|it| it["rel"] == rel)?;
    let href = found["href"].as_str().unwrap();
    Some(href.strip_prefix("http://cloud.test").unwrap().to_owned())
}

/// How many objects each page has.
async fn pages(caller: &Caller, path: &str, collection: &str) -> Vec<usize> {
    let (mut sizes, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next {
        let (status, body) = caller.get(&path).await;
        assert_eq!(status, 200, "{path}: {body}");
        sizes.push(body[collection].as_array().unwrap().len());
        next = link(&body, collection, "next");
    }
    sizes
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_with_links() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| {
        it.nova_page_size = 2;
        it.neutron_page_size = Some(2);
        it.octavia_page_size = Some(2);
    });
    for number in 1..=4 {
        sim.add_server(ServerSpec::new(format!("node-{number}")));
    }
    let caller = Caller::new(&sim).await;
    // A full page has a next one, even if that is empty.
    assert_eq!(
        pages(&caller, "/compute/v2.1/servers/detail", "servers").await,
        [2, 2, 0]
    );
    assert_eq!(
        pages(&caller, "/compute/v2.1/servers/detail?limit=3", "servers").await,
        [2, 2, 0]
    );
    for name in ["m1.medium", "m1.large"] {
        sim.add_flavor(Flavor {
            id: name.to_owned(),
            name: name.to_owned(),
            vcpus: 2,
            ram_mib: 4_096,
            disk_gib: 20,
        });
    }
    for path in ["/compute/v2.1/flavors", "/compute/v2.1/flavors/detail"] {
        assert_eq!(pages(&caller, path, "flavors").await, [2, 1], "{path}");
    }
    // The router's port is one more.
    assert_eq!(pages(&caller, "/network/v2.0/ports", "ports").await, [2, 2, 1]);
    assert_eq!(
        pages(&caller, "/network/v2.0/ports?limit=1", "ports").await,
        [1, 1, 1, 1, 1, 0]
    );
    let owned = "/network/v2.0/ports?device_owner=compute%3Anova&fields=id";
    assert_eq!(pages(&caller, owned, "ports").await, [2, 2, 0]);
    for name in ["a", "b", "c"] {
        balancer(&caller, name).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(
        pages(&caller, &format!("{LB}/loadbalancers"), "loadbalancers").await,
        [2, 1]
    );
    // Octavia's link has no filters, so whoever follows it has to keep them.
    let named = format!("{LB}/loadbalancers?name=a&limit=1");
    assert_eq!(pages(&caller, &named, "loadbalancers").await, [1, 1, 1, 0]);
    let (_, second) = caller.get("/network/v2.0/ports?limit=2").await;
    let path = link(&second, "ports", "next").unwrap();
    let (_, second) = caller.get(&path).await;
    assert!(link(&second, "ports", "previous").is_some());
    assert_eq!(caller.get("/network/v2.0/ports?marker=nobody").await.0, 404);
    let nobody = "11111111-0000-4000-8000-000000000000";
    for (path, collection) in [
        ("subnets", "subnets"),
        ("security-groups", "security_groups"),
        ("floatingips", "floatingips"),
    ] {
        let (_, whole) = caller.get(&format!("/network/v2.0/{path}")).await;
        let (status, anew) = caller.get(&format!("/network/v2.0/{path}?marker={nobody}")).await;
        assert_eq!((status, &anew[collection]), (200, &whole[collection]));
    }
    assert_eq!(
        caller.get("/compute/v2.1/servers/detail?marker=nobody").await.0,
        400
    );
    assert_eq!(caller.get(&format!("{LB}/pools?marker=nobody")).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn what_was_made_within_a_second_is_listed_in_the_order_of_its_ids() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let ids = async |path: &str, collection: &str| -> Vec<String> {
        let (_, body) = caller.get(path).await;
        let all = body[collection].as_array().unwrap();
        all.iter()
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    };
    for number in 0..8 {
        balancer(&caller, &format!("lb-{number}")).await;
    }
    let of_second = ids(&format!("{LB}/loadbalancers"), "loadbalancers").await;
    let ports = ids("/network/v2.0/ports", "ports").await;
    assert!(
        of_second.is_sorted() && ports.is_sorted(),
        "{of_second:?} {ports:?}"
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    for number in 8..16 {
        balancer(&caller, &format!("lb-{number}")).await;
    }
    let all = ids(&format!("{LB}/loadbalancers"), "loadbalancers").await;
    assert_eq!(all[..8], of_second);
    assert!(!all.is_sorted() && ids("/network/v2.0/ports", "ports").await.is_sorted());
}
