use std::collections::BTreeMap;

use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::{
    AddressType, ClusterFacts, Node, NodeAddress, Service, ServiceFacts, ServicesView,
};
use bowline_plan::Refusal;

use super::read::read;
use super::*;
use crate::config::{ClassOptions, FloatingOptions, PlacementOptions};
use crate::load_balancer::annotations as keys;

fn service(annotations: &[(&str, &str)]) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = Some("default".into());
    service.metadata.name = Some("web".into());
    service.metadata.uid = Some("u-1".into());
    let annotations = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    service.metadata.annotations = Some(annotations.collect());
    let spec = service.spec.get_or_insert_default();
    spec.type_ = Some("LoadBalancer".into());
    spec.ip_families = Some(vec!["IPv4".into()]);
    spec.ports = Some(vec![ServicePort {
        port: 80,
        node_port: Some(30080),
        ..ServicePort::default()
    }]);
    service
}

fn facts(service: Service) -> ServiceFacts {
    let node = Node {
        addresses: vec![NodeAddress::new(AddressType::InternalIp, "10.0.0.11")],
        ..Node::named("node-1")
    };
    let cluster = ClusterFacts {
        name: "lab".into(),
        uid: None,
        server_version: None,
        holder: "test".into(),
    };
    let services: Arc<dyn ServicesView> = Arc::new(Vec::new());
    ServiceFacts::of(
        Arc::new(service),
        vec![Arc::new(node)].into(),
        services,
        Arc::new(cluster),
        jiff::Timestamp::UNIX_EPOCH,
    )
}

fn read_with(options: LoadBalancerOptions, service: Service) -> Result<Box<Wanted>, Refusal> {
    match read(&Arc::new(options), &facts(service))? {
        Intent::Wanted(wanted) => Ok(wanted),
        Intent::Absent(_) => panic!("a load balancer is wanted"),
    }
}

fn wanted(options: LoadBalancerOptions, annotations: &[(&str, &str)]) -> Box<Wanted> {
    read_with(options, service(annotations)).unwrap()
}

/// Options and a class `dmz` that all name something else.
fn configured() -> LoadBalancerOptions {
    let placement = |prefix: &str| PlacementOptions {
        network: Some(format!("{prefix}-net").into()),
        subnet: Some(format!("{prefix}-subnet").into()),
        member_subnet: Some(format!("{prefix}-members").into()),
    };
    let floating = |prefix: &str| FloatingOptions {
        network: Some(format!("{prefix}-ext").into()),
        subnet: Some(format!("{prefix}-pub").into()),
        ..FloatingOptions::default()
    };
    LoadBalancerOptions {
        placement: placement("option"),
        floating: floating("option"),
        classes: BTreeMap::from([(
            "dmz".to_owned(),
            ClassOptions {
                placement: placement("class"),
                floating: floating("class"),
            },
        )]),
        ..LoadBalancerOptions::default()
    }
}

#[test]
fn the_annotation_wins_over_the_class_and_that_over_the_options() {
    let subnet = |annotations: &[(&str, &str)]| {
        let wanted = wanted(configured(), annotations);
        let text = |id: Option<&SubnetId>| id.map(ToString::to_string).unwrap_or_default();
        (
            text(wanted.vip.subnet.as_ref()),
            text(wanted.member_subnet.as_ref()),
        )
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(subnet(&[]), pair("option-subnet", "option-members"));
    let class = (keys::CLASS.key, "dmz");
    assert_eq!(subnet(&[class]), pair("class-subnet", "class-members"));
    let both = [class, (keys::SUBNET.key, "mine"), (keys::MEMBER_SUBNET.key, "")];
    // An empty annotation switches off; then the option `subnet-id` counts for members.
    assert_eq!(subnet(&both), pair("mine", "option-subnet"));
}

#[test]
fn the_class_wins_over_the_annotation_where_floating_ips_come_from() {
    let network = |annotations: &[(&str, &str)]| {
        wanted(configured(), annotations)
            .floating
            .network
            .unwrap()
            .to_string()
    };
    let mine = (keys::FLOATING_NETWORK.key, "mine");
    assert_eq!(network(&[mine]), "mine");
    assert_eq!(network(&[mine, (keys::CLASS.key, "dmz")]), "class-ext");
    assert_eq!(network(&[]), "option-ext");
}

#[test]
fn an_unknown_class_and_wrong_ranges_are_refused_together() {
    let refusal = read_with(
        LoadBalancerOptions::default(),
        service(&[
            (keys::CLASS.key, "no"),
            (keys::SOURCE_RANGES.key, "10.0.0.0/8 nonsense"),
        ]),
    );
    let text = refusal.err().unwrap().to_string();
    assert!(text.starts_with("invalid loadbalancer class \"no\": "), "{text}");
    assert!(text.contains("`nonsense` is not a network"), "{text}");
}

#[test]
fn sources_are_networks_each_once_and_everybody_by_default() {
    let sources = |text: &str| {
        let wanted = wanted(LoadBalancerOptions::default(), &[(keys::SOURCE_RANGES.key, text)]);
        let ranges: Vec<String> = wanted
            .listener
            .sources
            .ranges
            .iter()
            .map(ToString::to_string)
            .collect();
        (ranges, wanted.listener.sources.is_asked)
    };
    assert_eq!(sources(""), (vec!["0.0.0.0/0".to_owned()], false));
    assert_eq!(
        sources("192.168.32.1/24, 10.0.0.0/8 192.168.32.0/24"),
        (vec!["10.0.0.0/8".to_owned(), "192.168.32.0/24".to_owned()], true)
    );
}

#[test]
fn an_option_that_makes_everything_internal_cannot_be_annotated_away() {
    let internal = |option: bool, annotation: &str| {
        let options = LoadBalancerOptions {
            is_internal: option,
            ..LoadBalancerOptions::default()
        };
        wanted(options, &[(keys::INTERNAL.key, annotation)]).is_internal
    };
    assert!(internal(true, "false") && internal(false, "true"));
    assert!(!internal(false, "false") && !internal(false, "yes"));
}

#[test]
fn what_is_to_go_cannot_be_wrong() {
    let mut broken = service(&[
        (keys::CLASS.key, "no"),
        (keys::ID.key, "lb-1"),
        (keys::KEEP_FLOATING_IP.key, "true"),
    ]);
    broken.spec.as_mut().unwrap().type_ = Some("ClusterIP".into());
    let intent = read(&Arc::new(LoadBalancerOptions::default()), &facts(broken)).unwrap();
    let Intent::Absent(identity) = intent else {
        panic!("nothing is wanted")
    };
    assert_eq!(identity.annotated, Some("lb-1".into()));
    assert!(identity.keeps_floating_ip);
}

#[test]
fn a_reference_names_its_kind_and_id_at_its_end() {
    let key = |reference: &str| {
        let wanted = read_with(
            LoadBalancerOptions::default(),
            service(&[(keys::TLS.key, reference)]),
        );
        wanted
            .ok()
            .and_then(|wanted| wanted.listener.tls?.key)
            .map(|key| (key.kind, key.id))
    };
    use bowline_openstack_client::KeyKind;
    assert_eq!(
        key("https://kms/v1/secrets/x"),
        Some((KeyKind::Secret, "x".to_owned()))
    );
    assert_eq!(key("containers/y"), Some((KeyKind::Container, "y".to_owned())));
    for wrong in ["x", "secrets/", "keys/x"] {
        assert_eq!(key(wrong), None, "{wrong}");
    }
}

#[test]
fn as_http_a_number_is_one_listener() {
    let both = |annotations: &[(&str, &str)]| {
        let mut service = service(annotations);
        let ports = service.spec.as_mut().unwrap().ports.as_mut().unwrap();
        ports.push(ServicePort {
            protocol: Some("UDP".into()),
            ..ports[0].clone()
        });
        read_with(LoadBalancerOptions::default(), service)
    };
    assert!(both(&[]).is_ok());
    let text = both(&[(keys::X_FORWARDED_FOR.key, "true")])
        .err()
        .unwrap()
        .to_string();
    assert!(
        text.starts_with("port 80 stands for more than one protocol"),
        "{text}"
    );
}
