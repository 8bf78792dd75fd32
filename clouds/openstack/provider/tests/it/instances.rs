use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::{
    AddressType, CloudProvider as _, ErrorKind, FoundBy, Instance, InstanceAnswer, InstanceQuery,
    InstanceResult, Node, NodeAddress, PowerState, Purpose,
};
use bowline_openstack::OpenStack;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::{NetworkSpec, NicSpec, OpenstackSim, ServerSpec, SubnetSpec};

use crate::cloud::{calls, options_in, provider, started};
use crate::world::{builder, in_one_page};

fn sim() -> OpenstackSim {
    builder().build()
}

fn query(node: &Arc<Node>, purpose: Purpose) -> InstanceQuery {
    InstanceQuery {
        node: Arc::clone(node),
        purpose,
    }
}

fn unnamed(name: &str) -> Arc<Node> {
    Arc::new(Node::named(name))
}

fn with_id(name: &str, id: &str) -> Arc<Node> {
    Arc::new(Node {
        provider_id: Some(id.into()),
        ..Node::named(name)
    })
}

async fn ask(cloud: &OpenStack, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
    cloud.instances().unwrap().instances(queries).await
}

async fn ask_one(cloud: &OpenStack, node: &Arc<Node>, purpose: Purpose) -> InstanceResult {
    ask(cloud, &[query(node, purpose)]).await.remove(0)
}

fn present(answer: InstanceResult) -> Instance {
    match answer.unwrap() {
        InstanceAnswer::Present(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_node_gets_all_that_its_server_says() {
    let sim = sim();
    let id = sim.add_server(ServerSpec {
        zone: Some("az 1".to_owned()),
        ..ServerSpec::new("node-1")
    });
    let cloud = provider(&sim, "").await;
    let by_name = present(ask_one(&cloud, &unnamed("node-1"), Purpose::Metadata).await);
    let metadata = &by_name.metadata;
    assert_eq!(metadata.provider_id, Some(format!("openstack:///{id}")));
    assert_eq!(
        (&*metadata.instance_type, &*metadata.zone, &*metadata.region),
        ("m1.small", "az-1", "RegionOne")
    );
    assert_eq!(
        metadata.addresses,
        [NodeAddress::new(AddressType::InternalIp, "10.0.0.11")]
    );
    assert_eq!(by_name.power, PowerState::On);
    let by_id = with_id("node-1", &format!("openstack:///{id}"));
    let by_id = present(ask_one(&cloud, &by_id, Purpose::Metadata).await);
    assert_eq!(by_id.metadata, by_name.metadata);
    assert_eq!([by_id.found_by, by_name.found_by], [FoundBy::Id, FoundBy::Name]);
}

#[tokio::test(start_paused = true)]
async fn the_provider_id_names_the_region_where_that_is_wanted() {
    let sim = sim();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let options = options_in("", &[("OS_CCM_REGIONAL", "true")]).unwrap();
    let cloud = started(&sim, &options, true).await.unwrap();
    let metadata = present(ask_one(&cloud, &unnamed("node-1"), Purpose::Metadata).await).metadata;
    assert_eq!(metadata.provider_id, Some(format!("openstack://RegionOne/{id}")));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_two_servers_share_is_an_error() {
    let sim = sim();
    sim.add_server(ServerSpec::new("node-1"));
    sim.add_server(ServerSpec::new("node-1"));
    let cloud = provider(&sim, "").await;
    for purpose in [Purpose::Metadata, Purpose::Existence] {
        let error = ask_one(&cloud, &unnamed("node-1"), purpose).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("found more than one instance"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_found_in_any_letter_case_if_no_server_has_it_to_the_letter() {
    let sim = sim();
    let id = |name: &str| Some(format!("openstack:///{}", sim.add_server(ServerSpec::new(name))));
    let capital = id("Node-1");
    let cloud = provider(&sim, "").await;
    let found = async || {
        let found = ask_one(&cloud, &unnamed("node-1"), Purpose::Metadata).await;
        present(found).metadata.provider_id
    };
    assert_eq!(found().await, capital);
    let exact = id("node-1");
    assert_eq!(found().await, exact);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_begins_as_that_of_a_server_is_not_found() {
    let sim = sim();
    sim.add_server(ServerSpec::new("node-11"));
    let cloud = provider(&sim, "").await;
    let error = ask_one(&cloud, &unnamed("node-1"), Purpose::Existence)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("failed to find object"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn only_novas_own_404_proves_that_a_server_is_gone() {
    let sim = sim();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let node = with_id("node-1", &format!("openstack:///{id}"));
    let cloud = provider(&sim, "").await;
    assert!(matches!(
        ask_one(&cloud, &node, Purpose::Existence).await,
        Ok(InstanceAnswer::Present(_))
    ));
    for status in [500, 403] {
        sim.faults()
            .add(Fault::operation("nova.servers.get").status(status));
        let error = ask_one(&cloud, &node, Purpose::Existence).await.unwrap_err();
        assert_ne!(error.kind(), ErrorKind::NotFound, "{error}");
    }
    sim.remove_server(id);
    assert!(matches!(
        ask_one(&cloud, &node, Purpose::Existence).await,
        Ok(InstanceAnswer::Absent(_))
    ));
    // A page of something in between proves nothing.
    let html = Fault::operation("nova.servers.get").html(404);
    sim.faults().add(html);
    assert!(ask_one(&cloud, &node, Purpose::Existence).await.is_err());
    // Several are listed, and what is missing there is asked for.
    let other = sim.add_server(ServerSpec::new("node-2"));
    let other = with_id("node-2", &format!("openstack:///{other}"));
    let answers = ask(
        &cloud,
        &[
            query(&node, Purpose::Existence),
            query(&other, Purpose::Existence),
        ],
    )
    .await;
    assert!(matches!(answers[0], Ok(InstanceAnswer::Absent(_))), "{answers:?}");
    assert!(
        matches!(answers[1], Ok(InstanceAnswer::Present(_))),
        "{answers:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_shutoff_is_shut_down() {
    let sim = sim();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let node = with_id("node-1", &format!("openstack:///{id}"));
    let cloud = provider(&sim, "").await;
    for (status, power) in [
        ("ACTIVE", PowerState::On),
        ("PAUSED", PowerState::On),
        ("SHUTOFF", PowerState::Off),
    ] {
        sim.set_server_status(id, status);
        let found = present(ask_one(&cloud, &node, Purpose::Existence).await);
        assert_eq!(found.power, power, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_of_another_region_or_form_is_an_error_and_one_of_another_cloud_is_left_alone() {
    let sim = sim();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let cloud = provider(&sim, "").await;
    let before = calls(&sim).len();
    let asked = async |text: &str| ask_one(&cloud, &with_id("node-1", text), Purpose::Existence).await;
    let error = asked(&format!("openstack://Other/{id}")).await.unwrap_err();
    assert!(
        error.to_string().contains(
            "didn't match supported region \"RegionOne\"; correct region in [Global] of cloud.conf"
        ),
        "{error}"
    );
    let error = asked(&id.to_string()).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("didn't match expected format \"openstack://region/InstanceID\"; it cannot be changed: delete the Node"),
        "{error}"
    );
    assert!(matches!(asked("other:///x").await, Ok(InstanceAnswer::Foreign)));
    assert_eq!(calls(&sim).len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_initialised_with_few_calls() {
    let sim = builder().private_range("10.0.0.0/16".parse().unwrap()).build();
    in_one_page(&sim);
    let nodes: Vec<Arc<Node>> = (0..1000).map(|index| unnamed(&format!("node-{index}"))).collect();
    for node in &nodes {
        sim.add_server(ServerSpec::new(node.name.as_str()));
    }
    let cloud = provider(&sim, "").await;
    let queries: Vec<_> = nodes.iter().map(|node| query(node, Purpose::Metadata)).collect();
    for answer in ask(&cloud, &queries).await {
        assert!(!present(answer).metadata.addresses.is_empty());
    }
    let calls = calls(&sim);
    assert!(calls.len() <= 10, "{} calls: {calls:?}", calls.len());
}

#[tokio::test(start_paused = true)]
async fn a_server_is_there_while_neutron_is_not() {
    let sim = sim();
    let ids: Vec<_> = ["node-1", "node-2"]
        .map(|name| sim.add_server(ServerSpec::new(name)))
        .to_vec();
    let cloud = provider(&sim, "").await;
    let nodes: Vec<_> = ids
        .iter()
        .map(|id| with_id("node", &format!("openstack:///{id}")))
        .collect();
    let queries = |purpose| nodes.iter().map(|node| query(node, purpose)).collect::<Vec<_>>();
    sim.faults()
        .add(Fault::operation("neutron.ports.list").status(500));
    for answer in ask(&cloud, &queries(Purpose::Existence)).await {
        assert!(matches!(answer, Ok(InstanceAnswer::Present(_))), "{answer:?}");
    }
    sim.faults()
        .add(Fault::operation("neutron.ports.list").status(500));
    for answer in ask(&cloud, &queries(Purpose::Metadata)).await {
        let error = answer.unwrap_err();
        assert!(error.to_string().contains("ports are not known"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn ports_on_a_trunk_give_addresses_and_one_that_cannot_be_read_costs_only_its_own() {
    let sim = sim();
    let network = sim.add_network(NetworkSpec {
        name: "vlan100".to_owned(),
        ..NetworkSpec::default()
    });
    sim.add_subnet(SubnetSpec::new(
        "vlan100",
        network,
        "10.1.0.0/24".parse().unwrap(),
    ));
    let id = sim.add_server(ServerSpec::new("node-1"));
    let parent = sim.ports_of(id)[0].id;
    sim.add_subport(parent, network, 100);
    let cloud = provider(&sim, "").await;
    let by_id = with_id("node-1", &format!("openstack:///{id}"));
    for node in [&unnamed("node-1"), &by_id] {
        let metadata = present(ask_one(&cloud, node, Purpose::Metadata).await).metadata;
        let [first, second] = &metadata.addresses[..] else {
            panic!("{:?}", metadata.addresses);
        };
        assert_eq!(first.address, "10.0.0.11");
        assert_eq!(second.kind, AddressType::InternalIp);
        assert!(second.address.starts_with("10.1.0."), "{second:?}");
    }
    sim.faults()
        .add(Fault::operation("neutron.ports.get").status(500));
    let metadata = present(ask_one(&cloud, &by_id, Purpose::Metadata).await).metadata;
    assert_eq!(
        metadata.addresses,
        [NodeAddress::new(AddressType::InternalIp, "10.0.0.11")]
    );
}

#[tokio::test(start_paused = true)]
async fn ports_of_several_networks_and_the_host_name_come_in_the_go_managers_order() {
    let sim = sim();
    sim.add_server(ServerSpec {
        nics: vec![
            NicSpec {
                is_active: false,
                ..NicSpec::default()
            },
            NicSpec::default(),
        ],
        access_v4: "198.51.100.9".to_owned(),
        metadata: BTreeMap::from([("hostname".to_owned(), "host".to_owned())]),
        ..ServerSpec::new("node-1")
    });
    let cloud = provider(&sim, "").await;
    let metadata = present(ask_one(&cloud, &unnamed("node-1"), Purpose::Metadata).await).metadata;
    let shown: Vec<_> = metadata
        .addresses
        .iter()
        .map(|known| (known.kind.clone(), known.address.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (AddressType::InternalIp, "10.0.0.12"),
            (AddressType::ExternalIp, "198.51.100.9"),
            (AddressType::Hostname, "host"),
            (AddressType::InternalIp, "10.0.0.11"),
        ]
    );
}

const HOST_ID: &str = "topology.openstack.org/host-id";

#[tokio::test(start_paused = true)]
async fn the_host_of_a_server_is_told_and_may_change_and_one_without_a_host_has_no_label() {
    let sim = sim();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let cloud = provider(&sim, "").await;
    for (host, label) in [
        ("0d05c029b693", Some("0d05c029b693")),
        ("8a41", Some("8a41")),
        ("", None),
    ] {
        sim.edit_server(id, |server| host.clone_into(&mut server.host_id));
        let metadata = present(ask_one(&cloud, &unnamed("node-1"), Purpose::Metadata).await).metadata;
        assert_eq!(metadata.additional_labels.get(HOST_ID).map(String::as_str), label);
        assert_eq!(metadata.moving_labels, [HOST_ID]);
    }
}

fn is_absent(answer: InstanceResult) -> bool {
    match answer {
        Ok(answer) => matches!(answer, InstanceAnswer::Absent(_)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            false
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_server_has_proves_an_absence_only_where_the_file_says_so() {
    let sim = sim();
    let other = sim.add_server(ServerSpec::new("node-2"));
    let node = unnamed("node-1");
    let by_default = provider(&sim, "").await;
    assert!(!is_absent(ask_one(&by_default, &node, Purpose::Existence).await));
    let asked_for = provider(&sim, "delete-nodes-without-provider-id = true\n").await;
    assert!(is_absent(ask_one(&asked_for, &node, Purpose::Existence).await));
    assert!(!is_absent(ask_one(&asked_for, &node, Purpose::Metadata).await));
    let fault = Fault::operation("nova.servers.list").status(500);
    sim.faults().add(fault.clone());
    ask_one(&asked_for, &node, Purpose::Existence).await.unwrap_err();
    sim.faults().clear();
    // Where no server is seen at all, the credentials may be others.
    sim.remove_server(other);
    assert!(!is_absent(ask_one(&asked_for, &node, Purpose::Existence).await));
}

#[tokio::test(start_paused = true)]
async fn a_variable_of_a_distributor_keeps_nodes_whose_servers_are_gone() {
    let sim = sim();
    sim.add_server(ServerSpec::new("node-2"));
    let gone = with_id("node-1", "openstack:///0b6f6a52-93a1-4f6d-9d6a-5d3f0f2a7c11");
    for (value, is_gone) in [("1", false), ("", true)] {
        let options = options_in(
            "delete-nodes-without-provider-id = true\n",
            &[("SKIP_NODE_DELETION", value)],
        )
        .unwrap();
        let cloud = started(&sim, &options, true).await.unwrap();
        let nodes = [&gone, &unnamed("node-1")];
        for node in nodes {
            let answer = ask_one(&cloud, node, Purpose::Existence).await;
            assert_eq!(is_absent(answer), is_gone, "{node:?}");
        }
        let is_told = options
            .remarks()
            .iter()
            .any(|it| it.contains("SKIP_NODE_DELETION"));
        assert_eq!(is_told, !is_gone);
    }
}
