use bowline_cloud_provider::k8s::{LoadBalancerIngress, LoadBalancerStatus, ServiceSpec, ServiceStatus};
use bowline_cloud_provider::{ClusterFacts, Node};
use bowline_cloudscale_client::PoolId;
use jiff::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::load_balancer::annotations::annotation_table;
use crate::load_balancer::intent::HttpWish;

const CONTEXT: Context<'static> = Context {
    cluster_name_annotation: "cluster",
};

fn facts(annotations: &[(&str, &str)], is_wanted: bool) -> ServiceFacts {
    let mut service = Service::default();
    service.metadata.name = Some("web".into());
    service.metadata.uid = Some("u1".into());
    let pairs = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    service.metadata.annotations = Some(pairs.collect());
    let port = ServicePort {
        port: 80,
        node_port: Some(30080),
        ..ServicePort::default()
    };
    service.spec = Some(ServiceSpec {
        type_: Some("LoadBalancer".into()),
        ports: Some(vec![port]),
        ..ServiceSpec::default()
    });
    ServiceFacts {
        service: Arc::new(service),
        is_wanted,
        has_begun: false,
        nodes: Arc::from([Arc::new(Node::named("n1"))]),
        services: Arc::new(Vec::<Arc<Service>>::new()),
        cluster: Arc::new(cluster()),
        now: Timestamp::UNIX_EPOCH,
    }
}

/// The same Service, whose status shows an address.
fn shown(mut facts: ServiceFacts) -> ServiceFacts {
    let ingress = LoadBalancerIngress {
        ip: Some("192.0.2.1".into()),
        ..LoadBalancerIngress::default()
    };
    let load_balancer = LoadBalancerStatus {
        ingress: Some(vec![ingress]),
    };
    Arc::make_mut(&mut facts.service).status = Some(ServiceStatus {
        load_balancer: Some(load_balancer),
        ..ServiceStatus::default()
    });
    facts
}

fn cluster() -> ClusterFacts {
    ClusterFacts {
        name: "kubernetes".into(),
        uid: None,
        server_version: None,
        holder: String::new(),
    }
}

fn wanted_of(annotations: &[(&str, &str)]) -> Wanted {
    match read(&CONTEXT, &facts(annotations, true)) {
        Ok(Intent::Wanted(wanted)) => *wanted,
        Ok(Intent::Unclear(_) | Intent::Absent(_)) => panic!("not wanted"),
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Row 3 of `docs/guides/add-an-annotation.md`: the compiler does not ask for it.
#[test]
fn every_setting_of_a_listener_names_its_annotation() {
    let wanted = wanted_of(&[]);
    let listener = wanted.ports[0].create_listener(PoolId(Uuid::nil()), &wanted);
    let fields = serde_json::to_value(&listener).unwrap();
    let told_by_the_port = ["name", "pool", "protocol", "protocol_port", "tags"];
    let mut fields = fields.as_object().unwrap().keys();
    let without =
        fields.find(|field| !told_by_the_port.contains(&field.as_str()) && keys::of_field(field).is_none());
    assert_eq!(without, None);
}

#[test]
fn without_annotations_everything_is_as_live_balancers_have_it() {
    let wanted = wanted_of(&[]);
    assert_eq!(
        (wanted.flavor.as_str(), wanted.zone, wanted.vips.len()),
        ("lb-standard", None, 0)
    );
    let port = &wanted.ports[0];
    assert_eq!(
        (
            port.backend.pool_name.as_str(),
            port.algorithm.as_str(),
            port.pool_protocol.as_str()
        ),
        ("tcp", "round_robin", "tcp")
    );
    assert_eq!(
        (port.listener_name.as_str(), port.backend.monitor_port),
        ("tcp/80", 30080)
    );
    let listener = wanted.listener;
    let timeouts = (
        listener.timeout_client_data_ms,
        listener.timeout_member_connect_ms,
        listener.timeout_member_data_ms,
    );
    assert_eq!(
        (timeouts, listener.allowed_cidrs.len()),
        ((50_000, 5_000, 50_000), 0)
    );
    let monitor = wanted.monitor;
    let numbers = (
        monitor.delay_s,
        monitor.timeout_s,
        monitor.up_threshold,
        monitor.down_threshold,
    );
    assert_eq!(
        (monitor.kind.as_str(), numbers, monitor.http),
        ("tcp", (2, 1, 2, 3), HttpWish::None)
    );
    assert_eq!(wanted.publish, Publish::Addresses(Some(IpMode::Proxy)));
    assert!(wanted.notes.is_empty());
}

#[test]
fn a_blank_in_the_http_annotation_counts_as_something() {
    let (kind, http) = (keys::MONITOR_TYPE.key, keys::MONITOR_HTTP.key);
    assert_eq!(
        wanted_of(&[(kind, "http"), (http, "{}")]).monitor.http,
        HttpWish::Defaults
    );
    let wish = wanted_of(&[(kind, "http"), (http, "{ }")]).monitor.http;
    assert_eq!(
        (wish.resolved(), matches!(wish, HttpWish::Exactly(_))),
        (HttpWish::Defaults.resolved(), true)
    );
    // A check that is not HTTP has no use for it.
    assert_eq!(
        wanted_of(&[(http, r#"{"version":"1.0"}"#)]).monitor.http,
        HttpWish::None
    );
}

#[test]
fn a_null_list_of_addresses_is_empty() {
    assert!(
        wanted_of(&[
            (keys::VIP_ADDRESSES.key, "null"),
            (keys::FLOATING_IPS.key, "null")
        ])
        .vips
        .is_empty()
    );
}

#[test]
fn an_uninteresting_class_still_counts_as_one() {
    let mut facts = facts(&[], true);
    Arc::make_mut(&mut facts.service)
        .spec
        .get_or_insert_default()
        .load_balancer_class = Some(String::new());
    assert_eq!(
        read(&CONTEXT, &facts)
            .err()
            .map(|refusal| refusal.reason)
            .as_deref(),
        Some("not supported LoadBalancerClass: ")
    );
}

#[test]
fn what_cannot_be_read_is_told_with_its_key_its_value_and_what_it_must_be() {
    for (suffix, value, told) in [
        (
            "health-monitor-delay-s",
            "abc",
            "cannot convert abc to int (KEY): it must be a whole number, 1 or more",
        ),
        (
            "timeout-client-data-ms",
            "-1",
            "cannot convert -1 to int (KEY): it must be a whole number, 0 or more",
        ),
        (
            "timeout-client-data-ms",
            "99999999999999999999",
            "cannot convert 99999999999999999999 to int (KEY): it is too large",
        ),
        (
            "listener-allowed-cidrs",
            "192.0.2.0/24",
            r#"not a valid JSON string list: 192.0.2.0/24 (KEY): invalid type: floating point `192.0`, expected a sequence at line 1 column 5 (it must be a JSON list of networks in CIDR notation, such as ["192.0.2.0/24"])"#,
        ),
        (
            "listener-allowed-cidrs",
            r#"["192.0.2.1"]"#,
            "`192.0.2.1` is not a network in CIDR notation, such as 192.0.2.0/24 (KEY)",
        ),
        (
            "listener-allowed-subnets",
            "{}",
            r#"not a valid JSON string list: {} (KEY): invalid type: map, expected a sequence at line 1 column 0 (it must be a JSON list of UUIDs, such as ["2db69ba3-1864-4608-853a-0771b6885a3a"])"#,
        ),
        (
            "floating-ips",
            r#"["x"]"#,
            r#"could not parse KEY: `x` is not an address in CIDR notation (it must be a JSON list of IP addresses, such as ["198.51.100.7/32"], and is `["x"]`)"#,
        ),
        (
            "vip-addresses",
            "{",
            r#"failed to parse KEY: EOF while parsing an object at line 1 column 1 (it must be a JSON list of objects with subnet and address, such as [{"address": "10.0.0.7"}], and is `{`)"#,
        ),
        (
            "vip-addresses",
            r#"[{"address": "x"}]"#,
            "failed to parse KEY: `x` is not an IP address",
        ),
        (
            "health-monitor-http",
            "null",
            r#"invalid json in KEY: invalid type: null, expected a map (it must be a JSON object, such as {"url_path": "/livez", "expected_codes": ["200"]}, and is `null`)"#,
        ),
        (
            "node-selector",
            "a==b==c",
            "unable to parse selector: found '==', expected: ',' or 'end of string' (KEY) (it must be a label selector, such as pool=web or zone in (a, b), and is `a==b==c`)",
        ),
        (
            "name",
            " ",
            "unable to get load balancer for web: no load balancer with empty name found (KEY must not be blank)",
        ),
        (
            "pool-algorithm",
            "best",
            "unsupported value 'best' of KEY, must be one of: round_robin, least_connections, source_ip",
        ),
    ] {
        let key = format!("{}{suffix}", keys::PREFIX);
        let refusal = read(&CONTEXT, &facts(&[(&key, value)], true)).err().unwrap();
        assert_eq!(refusal.reason, told.replace("KEY", &key));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_by_its_key_and_never_blocks_a_removal(
        index in 0usize..24,
        text in prop_oneof![".{0,12}", r#"[\[\]{}":,a-z0-9./ -]{0,16}"#],
    ) {
        let spec = &annotation_table()[index];
        let annotations = [(spec.key, text.as_str())];
        prop_assert!(matches!(read(&CONTEXT, &facts(&annotations, false)), Ok(Intent::Absent(_))));
        let facts = facts(&annotations, true);
        let refusal = read(&CONTEXT, &facts).err().map(|refusal| refusal.reason);
        prop_assert!(refusal.as_ref().is_none_or(|reason| reason.contains(spec.key)), "{refusal:?}");
        // Of one that is served, the same is told, and members follow unless just they are in doubt.
        let decides_members = [keys::NODE_SELECTOR.key, keys::LISTENER_ALLOWED_SUBNETS.key].contains(&spec.key);
        match read(&CONTEXT, &shown(facts)) {
            Ok(Intent::Wanted(_)) => prop_assert_eq!(refusal, None),
            Ok(Intent::Unclear(unclear)) => {
                prop_assert_eq!(refusal, Some(unclear.refusal.reason));
                prop_assert!(!decides_members);
                prop_assert_eq!((unclear.membership.nodes.len(), unclear.backends.len()), (1, 1));
            }
            Ok(Intent::Absent(_)) => prop_assert!(false, "absent"),
            Err(told) => {
                prop_assert!(decides_members && told.to_string().ends_with("do not follow the Nodes"));
                prop_assert_eq!(refusal, Some(told.reason));
            }
        }
    }
}
