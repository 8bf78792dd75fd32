use std::sync::Arc;

use bowline_base::log::Log;
use bowline_cloud_provider::{
    AddressType, CloudProvider, ErrorKind, Instance, InstanceAnswer, InstanceQuery, InstanceResult, Node,
    NodeAddress, PowerState, Purpose,
};
use bowline_cloudstack::CloudStack;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{
    AddressSpec, CloudstackSim, NetworkSpec, NicSpec, Owner, ProjectSpec, UserSpec, VmSpec, VmState,
};
use tracing::Level;

use crate::site::Site;

fn unnamed(name: &str) -> Arc<Node> {
    Arc::new(Node::named(name))
}

fn with_id(name: &str, id: &str) -> Arc<Node> {
    Arc::new(Node {
        provider_id: Some(id.into()),
        ..Node::named(name)
    })
}

fn with_own_id(name: &str, id: &str) -> Arc<Node> {
    with_id(name, &format!("external-cloudstack://{id}"))
}

async fn ask_all(provider: &CloudStack, nodes: &[Arc<Node>], purpose: Purpose) -> Vec<InstanceResult> {
    let queries: Vec<InstanceQuery> = nodes
        .iter()
        .map(|node| InstanceQuery {
            node: Arc::clone(node),
            purpose,
        })
        .collect();
    provider.instances().unwrap().instances(&queries).await
}

async fn ask(provider: &CloudStack, node: &Arc<Node>, purpose: Purpose) -> InstanceResult {
    let answers = ask_all(provider, std::slice::from_ref(node), purpose).await;
    answers.into_iter().next().unwrap()
}

fn present(answer: InstanceResult) -> Instance {
    match answer.unwrap() {
        InstanceAnswer::Present(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_absent(answer: InstanceResult) {
    assert!(matches!(answer, Ok(InstanceAnswer::Absent(_))), "{answer:?}");
}

fn address(kind: AddressType, text: &str) -> NodeAddress {
    NodeAddress::new(kind, text)
}

#[tokio::test(start_paused = true)]
async fn metadata_are_those_of_the_machine_of_the_nodes_name() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::with_nics(
        "pool-a-7",
        [NicSpec::at("10.1.1.47".parse().unwrap())],
    ));
    let provider = site.start().await.unwrap();
    let metadata = present(ask(&provider, &unnamed("pool-a-7"), Purpose::Metadata).await).metadata;
    assert_eq!(metadata.provider_id, Some(format!("external-cloudstack://{id}")));
    assert_eq!(
        (&*metadata.instance_type, &*metadata.zone, &*metadata.region),
        ("Medium4c8g", "Zurich-1", "Zurich-1")
    );
    assert_eq!(
        metadata.addresses,
        [address(AddressType::InternalIp, "10.1.1.47")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_configured_region_takes_the_place_of_the_zone_and_names_become_legal_labels() {
    let site = Site::built(|builder| builder.zone("Zürich 1")).with("region = eu central\n");
    site.sim.add_vm(VmSpec::new("a"));
    let provider = site.start().await.unwrap();
    let metadata = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await).metadata;
    assert_eq!((&*metadata.zone, &*metadata.region), ("Z-rich-1", "eu-central"));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_cannot_be_a_label_is_told_once_as_long_as_a_machine_has_it() {
    let site = Site::new();
    let zones = ["Zürich 2", "Zürich 3"].map(|name| site.sim.add_zone(name));
    let add = |name: &str, zone: &String| {
        let zone = Some(zone.clone());
        site.sim.add_vm(VmSpec {
            zone,
            ..VmSpec::new(name)
        })
    };
    site.sim.add_vm(VmSpec::new("a"));
    let second = add("b", &zones[0]);
    add("c", &zones[1]);
    let provider = site.start().await.unwrap();
    let nodes = ["a", "b", "c"].map(unnamed);
    let (log, _guards) = Log::listen(Level::WARN);
    let told = async || {
        ask_all(&provider, &nodes, Purpose::Metadata).await;
        let lines = log.take();
        let of = |zone: &str| lines.iter().filter(|line| line.contains(zone)).count();
        (of("Zürich 2"), of("Zürich 3"))
    };
    assert_eq!(told().await, (1, 1));
    assert_eq!(told().await, (0, 0));
    site.sim.expunge_vm(&second);
    assert_eq!(told().await, (0, 0));
    add("b", &zones[0]);
    assert_eq!(told().await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn static_nat_gives_an_external_address_behind_the_internal_one() {
    let site = Site::new();
    let vm = site.sim.add_vm(VmSpec::with_nics(
        "a",
        [NicSpec::at("10.1.1.47".parse().unwrap())],
    ));
    let held = site
        .sim
        .take_address(AddressSpec::at("203.0.113.20".parse().unwrap()));
    site.sim.set_static_nat(&held, Some(&vm));
    let provider = site.start().await.unwrap();
    let metadata = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await).metadata;
    assert_eq!(
        metadata.addresses,
        [
            address(AddressType::InternalIp, "10.1.1.47"),
            address(AddressType::ExternalIp, "203.0.113.20")
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_internal_address_is_that_of_the_default_interface_else_of_the_first() {
    let site = Site::new();
    let storage = site.sim.add_network(NetworkSpec::new("storage"));
    let nics = |name: &str, is_default: bool| {
        let nic = |network: &str, address: &str, is_default| NicSpec {
            network: Some(network.to_owned()),
            address: Some(address.parse().unwrap()),
            is_default,
            ..NicSpec::default()
        };
        VmSpec::with_nics(
            name,
            [
                nic(&storage, "172.20.0.5", false),
                nic(&site.sim.network(), "10.1.1.47", is_default),
            ],
        )
    };
    let vm = site.sim.add_vm(nics("a", false));
    site.sim.edit_vm(&vm, |vm| {
        vm.nics.iter_mut().for_each(|nic| nic.is_default = false)
    });
    let provider = site.start().await.unwrap();
    let metadata = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await).metadata;
    assert_eq!(
        metadata.addresses,
        [address(AddressType::InternalIp, "172.20.0.5")]
    );
    site.sim.edit_vm(&vm, |vm| vm.nics[1].is_default = true);
    let metadata = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await).metadata;
    assert_eq!(
        metadata.addresses,
        [address(AddressType::InternalIp, "10.1.1.47")]
    );
}

#[tokio::test(start_paused = true)]
async fn two_switches_add_the_ipv6_address_and_keep_the_offerings_name() {
    let site = Site::new().with("ipv6-addresses = true\nfull-instance-types = yes\n");
    let nic = NicSpec {
        address: Some("10.1.1.47".parse().unwrap()),
        ipv6: Some("2001:db8::47".parse().unwrap()),
        ..NicSpec::default()
    };
    site.sim.add_vm(VmSpec {
        offering: Some("k8s.large_2-x 4c/8g".into()),
        ..VmSpec::with_nics("a", [nic])
    });
    let provider = site.start().await.unwrap();
    let metadata = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await).metadata;
    assert_eq!(
        metadata.addresses,
        [
            address(AddressType::InternalIp, "10.1.1.47"),
            address(AddressType::InternalIp, "2001:db8::47")
        ]
    );
    assert_eq!(metadata.instance_type, "k8s.large_2-x-4c-8g");
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_an_interface_has_no_metadata_and_is_there_all_the_same() {
    let site = Site::new();
    site.sim.add_vm(VmSpec::with_nics("a", []));
    let provider = site.start().await.unwrap();
    let error = ask(&provider, &unnamed("a"), Purpose::Metadata)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("error retrieving node addresses: instance does not have an internal IP"),
        "{error}"
    );
    present(ask(&provider, &unnamed("a"), Purpose::Existence).await);
}

#[tokio::test(start_paused = true)]
async fn an_administrators_keys_do_not_make_the_hypervisors_name_an_address() {
    let admin = UserSpec::new(CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY).admin();
    let site = Site::built(|builder| builder.user(admin));
    site.sim.add_vm(VmSpec::new("a"));
    let provider = site.start().await.unwrap();
    let metadata = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await).metadata;
    let kinds: Vec<_> = metadata.addresses.iter().map(|address| &address.kind).collect();
    assert_eq!(kinds, [&AddressType::InternalIp]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_name_only_begins_so_is_another_one() {
    let site = Site::new();
    site.sim.add_vm(VmSpec::new("pool-a-70"));
    let provider = site.start().await.unwrap();
    let error = ask(&provider, &unnamed("pool-a-7"), Purpose::Metadata)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().starts_with("instance not found"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn letter_case_and_domain_of_a_nodes_name_do_not_matter() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("Pool-A-7"));
    let provider = site.start().await.unwrap();
    for name in ["pool-a-7", "POOL-A-7.corp.example"] {
        let metadata = present(ask(&provider, &unnamed(name), Purpose::Metadata).await).metadata;
        assert_eq!(
            metadata.provider_id,
            Some(format!("external-cloudstack://{id}")),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_machines_of_a_name_the_accounts_own_counts_and_an_id_decides() {
    let admin = UserSpec::new(CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY).admin();
    let site = Site::built(|builder| builder.user(admin));
    let other = |name: &str| VmSpec {
        owner: Some(Owner::Account("other".to_owned())),
        ..VmSpec::new(name)
    };
    let own = site.sim.add_vm(VmSpec::new("a"));
    let others = site.sim.add_vm(other("a"));
    let provider = site.start().await.unwrap();
    let id = |instance: Instance| instance.metadata.provider_id.unwrap();
    let found = present(ask(&provider, &unnamed("a"), Purpose::Metadata).await);
    assert_eq!(id(found), format!("external-cloudstack://{own}"));
    let found = present(ask(&provider, &with_own_id("a", &others), Purpose::Metadata).await);
    assert_eq!(id(found), format!("external-cloudstack://{others}"));
    site.sim.add_vm(other("b"));
    site.sim.add_vm(VmSpec {
        owner: Some(Owner::Account("third".to_owned())),
        ..VmSpec::new("b")
    });
    for purpose in [Purpose::Metadata, Purpose::Existence] {
        let error = ask(&provider, &unnamed("b"), purpose).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("found more than one instance with the name of node b"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_stopped_machines_are_off_and_only_deleted_ones_are_gone() {
    let site = Site::built(|builder| {
        builder.user(UserSpec::new(CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY).admin())
    });
    let id = site.sim.add_vm(VmSpec::new("a"));
    let provider = site.start().await.unwrap();
    use VmState::*;
    for (state, power) in [
        (Running, PowerState::On),
        (Starting, PowerState::On),
        (Stopping, PowerState::On),
        (Migrating, PowerState::On),
        (Error, PowerState::On),
        (Unknown, PowerState::On),
        (Stopped, PowerState::Off),
        (Shutdown, PowerState::Off),
    ] {
        site.sim.set_vm_state(&id, state);
        for node in [with_own_id("a", &id), unnamed("a")] {
            let instance = present(ask(&provider, &node, Purpose::Existence).await);
            assert_eq!(instance.power, power, "{state:?}");
        }
    }
    site.sim.add_vm(VmSpec::new("b"));
    for state in [Destroyed, Expunging] {
        site.sim.set_vm_state(&id, state);
        for node in [with_own_id("a", &id), unnamed("a")] {
            assert_absent(ask(&provider, &node, Purpose::Existence).await);
            let error = ask(&provider, &node, Purpose::Metadata).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_machine_is_gone_when_neither_its_id_nor_its_name_is_known() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("a"));
    site.sim.add_vm(VmSpec::new("b"));
    let provider = site.start().await.unwrap();
    site.sim.expunge_vm(&id);
    for node in [
        with_own_id("a", &id),
        with_id("a", &format!("cloudstack:///{id}")),
        with_id("a", &id),
        unnamed("a"),
    ] {
        assert_absent(ask(&provider, &node, Purpose::Existence).await);
        let error = ask(&provider, &node, Purpose::Metadata).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    // Another one of the same name: the Node stays.
    let new = site.sim.add_vm(VmSpec::new("a"));
    let found = present(ask(&provider, &with_own_id("a", &id), Purpose::Existence).await);
    assert_eq!(
        found.metadata.provider_id,
        Some(format!("external-cloudstack://{new}"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_spells_its_machine_in_another_way_names_no_other_machine() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("a"));
    let provider = site.start().await.unwrap();
    for text in [
        format!("cloudstack:///{id}"),
        id.to_uppercase(),
        format!("external-cloudstack://{}", id.to_uppercase()),
    ] {
        let found = present(ask(&provider, &with_id("a", &text), Purpose::Metadata).await);
        assert_eq!(found.metadata.provider_id, Some(text));
    }
}

#[tokio::test(start_paused = true)]
async fn what_names_no_machine_proves_no_absence() {
    let site = Site::new();
    site.sim.add_vm(VmSpec::new("b"));
    let provider = site.start().await.unwrap();
    let before = site.sim.journal().mark();
    let answer = ask(&provider, &with_id("a", "aws:///eu/i-1"), Purpose::Existence).await;
    assert_eq!(answer.unwrap(), InstanceAnswer::Foreign);
    assert!(site.sim.journal().since(before).is_empty());
    for id in ["i-1", "external-cloudstack://", "external-cloudstack-u"] {
        let error = ask(&provider, &with_id("a", id), Purpose::Existence)
            .await
            .unwrap_err();
        assert!(error.to_string().contains(&format!("`{id}`")), "{error}");
        // The name shows what is there all the same.
        present(ask(&provider, &with_id("b", id), Purpose::Existence).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_no_proof_for_a_node_without_an_id() {
    let site = Site::new();
    let provider = site.start().await.unwrap();
    let error = ask(&provider, &unnamed("a"), Purpose::Existence)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("which proves nothing"), "{error}");
}

/// Asks about each Node alone, and about all of them together.
async fn existence_both_ways(provider: &CloudStack, nodes: &[Arc<Node>]) -> Vec<InstanceResult> {
    let mut answers = ask_all(provider, nodes, Purpose::Existence).await;
    for node in nodes {
        answers.push(ask(provider, node, Purpose::Existence).await);
    }
    answers
}

#[track_caller]
fn assert_all_unproven(answers: &[InstanceResult]) {
    for answer in answers {
        let error = answer.as_ref().unwrap_err().to_string();
        assert!(error.contains("proves nothing"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_and_an_unknown_id_prove_nothing_together() {
    let site = Site::new();
    let ids = site.sim.add_vms("n", 3);
    let nodes: Vec<_> = ["n-1", "n-2", "n-3"]
        .iter()
        .zip(&ids)
        .map(|(name, id)| with_own_id(name, id))
        .collect();
    let provider = site.start().await.unwrap();
    ask_all(&provider, &nodes, Purpose::Metadata).await;
    ids.iter().for_each(|id| assert!(site.sim.expunge_vm(id)));
    assert_all_unproven(&existence_both_ways(&provider, &nodes).await);
    // As soon as anything is listed the IDs that nothing has are proof.
    site.sim.add_vm(VmSpec::new("other"));
    for answer in existence_both_ways(&provider, &nodes).await {
        assert_absent(answer);
    }
}

#[tokio::test(start_paused = true)]
async fn machines_of_a_wrong_project_prove_nothing_about_those_of_the_cluster() {
    let site = Site::new().with("project-id = wrong\n");
    let (right, wrong) = (ProjectSpec::new("right"), ProjectSpec::new("wrong"));
    let (right, wrong) = (site.sim.add_project(right), site.sim.add_project(wrong));
    let nodes: Vec<_> = ["a", "b"]
        .iter()
        .map(|name| with_own_id(name, &site.sim.add_vm(VmSpec::of_project(*name, &right))))
        .collect();
    site.sim.add_vm(VmSpec::of_project("other", &wrong));
    let provider = site.start().await.unwrap();
    assert_all_unproven(&existence_both_ways(&provider, &nodes).await);
}

#[tokio::test(start_paused = true)]
async fn a_destroyed_machine_that_the_keys_do_not_see_is_gone_if_they_see_that_of_another_node() {
    let site = Site::new();
    let ids = site.sim.add_vms("n", 2);
    let nodes: Vec<_> = ["n-1", "n-2"]
        .iter()
        .zip(&ids)
        .map(|(name, id)| with_own_id(name, id))
        .collect();
    site.sim.set_vm_state(&ids[0], VmState::Destroyed);
    let provider = site.start().await.unwrap();
    assert_all_unproven(&[ask(&provider, &nodes[0], Purpose::Existence).await]);
    let answers = ask_all(&provider, &nodes, Purpose::Existence).await;
    assert!(matches!(
        answers.as_slice(),
        [Ok(InstanceAnswer::Absent(_)), Ok(InstanceAnswer::Present(_))]
    ));
    assert_absent(ask(&provider, &nodes[0], Purpose::Existence).await);
}

#[tokio::test(start_paused = true)]
async fn an_odd_list_proves_nothing_about_what_it_does_not_hold() {
    let other = r#"{"id":"0000-1","name":"other","state":"Running"}"#;
    let theirs = r#"{"id":"0000-2","name":"theirs","state":"Running","projectid":"another"}"#;
    for list in [
        "{}".to_owned(),
        r#"{"count":0}"#.to_owned(),
        r#"{"count":0,"virtualmachine":[]}"#.to_owned(),
        r#"{"virtualmachine":[]}"#.to_owned(),
        // No count, one that is too small, one that is too large, and one without a list.
        format!(r#"{{"virtualmachine":[{other}]}}"#),
        format!(r#"{{"count":1,"virtualmachine":[{other},{theirs}]}}"#),
        format!(r#"{{"count":3,"virtualmachine":[{other}]}}"#),
        r#"{"count":3}"#.to_owned(),
        // Another project's.
        format!(r#"{{"count":1,"virtualmachine":[{theirs}]}}"#),
    ] {
        let site = Site::new().with("project-id = prod\n");
        let project = site.sim.add_project(ProjectSpec::new("prod"));
        let id = site.sim.add_vm(VmSpec::of_project("a", &project));
        let provider = site.start().await.unwrap();
        site.sim.expunge_vm(&id);
        let body = format!(r#"{{"listvirtualmachinesresponse":{list}}}"#);
        let canned = Canned::json(200, &body);
        let lists = Fault::operation("listVirtualMachines")
            .nth(2)
            .always()
            .answer(canned.clone());
        let all = Fault::operation("listVirtualMachines").always().answer(canned);
        for (fault, node) in [
            (lists, with_own_id("a", &id)),
            (all.clone(), with_own_id("a", &id)),
            (all, unnamed("a")),
        ] {
            site.sim.faults().clear();
            site.sim.faults().add(fault);
            let answer = ask(&provider, &node, Purpose::Existence).await;
            assert!(answer.is_err(), "{list}: {answer:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_listed_by_its_id_is_there_whatever_was_said_before() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("renamed"));
    let provider = site.start().await.unwrap();
    let nothing = Canned::json(200, r#"{"listvirtualmachinesresponse":{}}"#);
    site.sim
        .faults()
        .add(Fault::operation("listVirtualMachines").answer(nothing));
    present(ask(&provider, &with_own_id("a", &id), Purpose::Existence).await);
}

#[tokio::test(start_paused = true)]
async fn failures_of_any_kind_are_errors_and_never_an_absence() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("a"));
    site.sim.add_vm(VmSpec::new("b"));
    let provider = site.start().await.unwrap();
    site.sim.expunge_vm(&id);
    for fault in [
        Fault::any().always().status(401),
        Fault::any().always().status(432),
        Fault::any().always().status(530),
        Fault::any().always().status(431),
        Fault::any().always().html(404),
        Fault::any().always().drop_before(),
        // The virtual machine itself is known to be gone, but not whether there is another one of its name.
        Fault::operation("listVirtualMachines")
            .nth(2)
            .always()
            .status(530),
    ] {
        let shown = format!("{fault:?}");
        site.sim.faults().add(fault);
        let answer = ask(&provider, &with_own_id("a", &id), Purpose::Existence).await;
        assert!(answer.is_err(), "{shown}: {answer:?}");
        site.sim.faults().clear();
    }
    site.sim.faults().add(Fault::any().always().status(530));
    let answer = ask(&provider, &unnamed("a"), Purpose::Existence).await;
    assert!(
        answer
            .unwrap_err()
            .to_string()
            .starts_with("error retrieving instance: ")
    );
}

#[tokio::test(start_paused = true)]
async fn three_hundred_nodes_cost_one_list_and_a_call_for_each_that_is_gone() {
    let site = Site::new();
    let ids = site.sim.add_vms("n", 300);
    let provider = site.start().await.unwrap();
    let named = |id: &String| site.sim.vm(id).unwrap().name;
    let nodes: Vec<_> = ids.iter().map(|id| with_own_id(&named(id), id)).collect();
    let mark = site.sim.journal().mark();
    let answers = ask_all(&provider, &nodes, Purpose::Metadata).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(InstanceAnswer::Present(_))))
    );
    assert_eq!(site.sim.calls_since(mark), ["listVirtualMachines"]);
    site.sim.expunge_vm(&ids[7]);
    let mark = site.sim.journal().mark();
    let answers = ask_all(&provider, &nodes, Purpose::Existence).await;
    assert_eq!(
        answers
            .iter()
            .filter(|answer| matches!(answer, Ok(InstanceAnswer::Absent(_))))
            .count(),
        1
    );
    assert_eq!(site.sim.calls_since(mark).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn twelve_hundred_machines_are_read_by_pages() {
    let site = Site::new();
    let ids = site.sim.add_vms("n", 1_200);
    let provider = site.start().await.unwrap();
    let nodes: Vec<_> = ids
        .iter()
        .map(|id| unnamed(&site.sim.vm(id).unwrap().name))
        .collect();
    let mark = site.sim.journal().mark();
    let answers = ask_all(&provider, &nodes, Purpose::Metadata).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(InstanceAnswer::Present(_))))
    );
    assert_eq!(site.sim.calls_since(mark).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_node_with_an_id_costs_one_call() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("a"));
    let provider = site.start().await.unwrap();
    let mark = site.sim.journal().mark();
    present(ask(&provider, &with_own_id("a", &id), Purpose::Metadata).await);
    let entries = site.sim.journal().since(mark);
    assert_eq!(entries.len(), 1);
    assert!(entries[0].query.contains(&("id".to_owned(), id)));
}

#[tokio::test(start_paused = true)]
async fn a_sighting_is_answered_from_the_list_alone() {
    let site = Site::new();
    let id = site.sim.add_vm(VmSpec::new("a"));
    let provider = site.start().await.unwrap();
    present(ask(&provider, &with_own_id("a", &id), Purpose::CredentialCheck).await);
    site.sim.expunge_vm(&id);
    let mark = site.sim.journal().mark();
    let error = ask(&provider, &with_own_id("a", &id), Purpose::CredentialCheck)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(site.sim.calls_since(mark), ["listVirtualMachines"]);
}

#[tokio::test(start_paused = true)]
async fn in_a_project_every_question_carries_its_id_also_if_it_is_given_by_name() {
    let site = Site::new().with("project-id = prod\n");
    let project = site.sim.add_project(ProjectSpec::new("prod"));
    let id = site.sim.add_vm(VmSpec::of_project("a", &project));
    site.sim.add_vm(VmSpec::new("outside"));
    let provider = site.start().await.unwrap();
    let mark = site.sim.journal().mark();
    present(ask(&provider, &unnamed("a"), Purpose::Metadata).await);
    present(ask(&provider, &with_own_id("a", &id), Purpose::Existence).await);
    assert!(
        ask(&provider, &unnamed("outside"), Purpose::Metadata)
            .await
            .is_err()
    );
    for entry in site.sim.journal().since(mark) {
        let carried = ("projectid".to_owned(), project.clone());
        assert!(entry.query.contains(&carried), "{entry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_down_at_start_is_used_when_it_is_back() {
    let site = Site::new().with("project-id = prod\n");
    let project = site.sim.add_project(ProjectSpec::new("prod"));
    site.sim.add_vm(VmSpec::of_project("a", project));
    let down = site.sim.faults().add(Fault::any().always().drop_before());
    let provider = site.start().await.unwrap();
    assert!(ask(&provider, &unnamed("a"), Purpose::Metadata).await.is_err());
    site.sim.faults().remove(down);
    present(ask(&provider, &unnamed("a"), Purpose::Metadata).await);
}
