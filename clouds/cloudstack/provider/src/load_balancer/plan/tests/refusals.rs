//! What cannot be served is said before anything is made.

use super::*;

#[test]
fn what_is_wrong_is_found_before_anything_is_made() {
    type Change = fn(&mut World);
    let cases: [(&str, Change); 12] = [
        ("requested load balancer with no ports", |world| {
            world.spec(|spec| spec["ports"] = json!([]))
        }),
        ("unsupported load balancer protocol: SCTP", |world| {
            world.spec(|spec| spec["ports"][0]["protocol"] = json!("SCTP"))
        }),
        ("unsupported load balancer affinity: Often", |world| {
            world.spec(|spec| spec["sessionAffinity"] = json!("Often"))
        }),
        ("has no node port", |world| {
            world.spec(|spec| spec["ports"][0]["nodePort"] = json!(0))
        }),
        ("port 443 is asked for twice as tcp", |world| {
            world.spec(|spec| spec["ports"][1] = spec["ports"][0].clone())
        }),
        (
            "invalid CIDR 10.9.0.0/33 in annotation service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs:",
            |world| world.annotate(SOURCE_CIDRS.key, "10.9.0.0/33"),
        ),
        ("invalid CIDR  in annotation", |world| {
            world.annotate(SOURCE_CIDRS.key, "10.0.0.0/8,")
        }),
        ("has networks of IPv6 only", |world| {
            world.spec(|spec| spec["loadBalancerSourceRanges"] = json!(["::/0"]))
        }),
        // Only an empty text is an empty list.
        ("invalid CIDR  in annotation", |world| {
            world.annotate(SOURCE_CIDRS.key, " ")
        }),
        (
            "none of the hosts matched the list of VMs retrieved from CS API",
            |world| world.nodes = vec!["other"],
        ),
        ("found hosts that belong to different networks", |world| {
            let instances = world.observed.instances.take().unwrap();
            let mut instances: Vec<Instance> = instances.iter().cloned().collect();
            instances[2].networks = vec!["n2".into()];
            world.observed.instances = Some(Arc::new(member_index(instances)));
        }),
        ("offers no load balancing", |world| {
            let mut network = (**world.observed.networks["n1"].as_ref().unwrap()).clone();
            network.services.remove("Lb");
            world
                .observed
                .networks
                .insert("n1".into(), Some(Arc::new(network)));
        }),
    ];
    for (text, change) in cases {
        let mut world = World::new();
        change(&mut world);
        let complaint = world.run().unwrap_err();
        assert!(complaint.contains(text), "{text}: {complaint}");
        assert!(world.labels.is_empty(), "{text}");
    }
}
