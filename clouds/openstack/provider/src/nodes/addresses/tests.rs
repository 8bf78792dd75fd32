use super::*;

/// The server of the specification's worked example.
const SERVER: &str = r#"{
    "id": "s", "accessIPv4": "198.51.100.9", "accessIPv6": "2001:db8:1::82", "metadata": {"hostname": "H"},
    "addresses": {
        "private": [
            {"addr": "10.0.0.32", "OS-EXT-IPS:type": "fixed"},
            {"addr": "198.51.100.36", "OS-EXT-IPS:type": "floating"},
            {"addr": "10.0.0.31"}],
        "also-private": [{"addr": "10.0.0.64"}],
        "public": [{"addr": "198.51.100.35"}, {"addr": "2001:db8:0:5::84"}]}}"#;

const PORT: &str = r#"{"id": "p", "network_id": "n", "status": "ACTIVE", "fixed_ips": [
    {"subnet_id": "x", "ip_address": "10.0.0.32"}, {"subnet_id": "x", "ip_address": "10.0.0.31"}]}"#;

fn shown(server: &str, port: &str, trunks: &[TrunkAddress], options: &NodeOptions) -> Vec<String> {
    let server: Server = serde_json::from_str(server).unwrap();
    let port: Port = serde_json::from_str(port).unwrap();
    of_server(&server, &[&port], trunks, options)
        .into_iter()
        .map(|known| {
            let kind = match known.kind {
                AddressType::InternalIp => "in",
                AddressType::ExternalIp => "ex",
                _ => "host",
            };
            format!("{kind} {}", known.address)
        })
        .collect()
}

fn example(options: &NodeOptions) -> Vec<String> {
    shown(SERVER, PORT, &[], options)
}

fn public() -> NodeOptions {
    NodeOptions {
        public_networks: vec!["public".to_owned()],
        ..NodeOptions::default()
    }
}

#[test]
fn ports_come_first_and_networks_in_the_order_of_their_names() {
    assert_eq!(
        example(&public()),
        [
            "in 10.0.0.32",
            "in 10.0.0.31",
            "ex 198.51.100.9",
            "ex 2001:db8:1::82",
            "host H",
            "in 10.0.0.64",
            "ex 198.51.100.36",
            "ex 198.51.100.35",
            "ex 2001:db8:0:5::84",
        ]
    );
}

#[test]
fn ranges_sort_addresses_and_what_is_in_none_stands_behind() {
    let options = NodeOptions {
        sort_order: ["10.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"]
            .map(|range| range.parse().unwrap())
            .to_vec(),
        ..public()
    };
    assert_eq!(
        example(&options),
        [
            "in 10.0.0.31",
            "in 10.0.0.32",
            "in 10.0.0.64",
            "ex 198.51.100.9",
            "ex 198.51.100.35",
            "ex 198.51.100.36",
            "ex 2001:db8:0:5::84",
            "ex 2001:db8:1::82",
            "host H",
        ]
    );
    let reversed = NodeOptions {
        sort_order: vec!["2001:db8::/32".parse().unwrap()],
        ..public()
    };
    assert_eq!(
        example(&reversed)[..4],
        [
            "ex 2001:db8:0:5::84",
            "ex 2001:db8:1::82",
            "in 10.0.0.32",
            "in 10.0.0.31"
        ]
    );
}

#[test]
fn named_internal_networks_are_the_only_ones() {
    let options = NodeOptions {
        internal_networks: vec!["also-private".to_owned()],
        ..NodeOptions::default()
    };
    assert_eq!(
        example(&options),
        [
            "ex 198.51.100.9",
            "ex 2001:db8:1::82",
            "host H",
            "in 10.0.0.64",
            "ex 198.51.100.36"
        ]
    );
}

#[test]
fn a_public_network_makes_what_its_port_told_external() {
    let options = NodeOptions {
        public_networks: vec!["private".to_owned()],
        ..NodeOptions::default()
    };
    let addresses = example(&options);
    assert!(!addresses.contains(&"in 10.0.0.32".to_owned()), "{addresses:?}");
    assert!(addresses.contains(&"ex 10.0.0.32".to_owned()), "{addresses:?}");
}

#[test]
fn no_ipv6_of_any_source_where_that_is_switched_off() {
    let options = NodeOptions {
        without_ipv6: true,
        ..NodeOptions::default()
    };
    let port = PORT.replace("10.0.0.31", "fd00::1");
    let trunk = TrunkAddress {
        network: "vlan".to_owned(),
        address: "fd00::2".to_owned(),
    };
    let addresses = shown(SERVER, &port, &[trunk], &options);
    assert!(
        addresses.iter().all(|known| !known.contains(':')),
        "{addresses:?}"
    );
}

#[test]
fn a_port_that_carries_no_traffic_tells_nothing() {
    let server = r#"{"id": "s", "addresses": {"private": [{"addr": "10.0.0.31"}]}}"#;
    let addresses = shown(
        server,
        &PORT.replace("ACTIVE", "DOWN"),
        &[],
        &NodeOptions::default(),
    );
    assert_eq!(addresses, ["in 10.0.0.31"]);
}

#[test]
fn an_address_of_a_trunk_is_one_of_its_network() {
    let trunk = |network: &str, address: &str| TrunkAddress {
        network: network.to_owned(),
        address: address.to_owned(),
    };
    let trunks = [trunk("vlan100", "10.1.0.5"), trunk("also-private", "10.0.0.65")];
    let addresses = shown(SERVER, PORT, &trunks, &public());
    assert_eq!(
        addresses[5..],
        [
            "in 10.0.0.64",
            "in 10.0.0.65",
            "ex 198.51.100.36",
            "ex 198.51.100.35",
            "ex 2001:db8:0:5::84",
            "in 10.1.0.5",
        ]
    );
}

/// A name that no network has leaves every Node without an internal address, and nothing else tells.
#[test]
fn what_settings_choose_and_a_server_lacks_is_named_with_the_networks_that_it_has() {
    let options = |internal: &str, public: &str, range: &str| NodeOptions {
        internal_networks: vec![internal.to_owned()],
        public_networks: vec![public.to_owned()],
        sort_order: vec![range.parse().unwrap()],
        source: "cloud.conf".to_owned(),
        ..NodeOptions::default()
    };
    let server: Server = serde_json::from_str(SERVER).unwrap();
    let told = |options: &NodeOptions| {
        let addresses = of_server(&server, &[], &[], options);
        unmatched(&server, &[], &addresses, options)
    };
    assert_eq!(
        told(&options("private", "public", "10.0.0.0/24")),
        Unmatched::default()
    );
    assert_eq!(
        told(&options("privat", "pub", "10.9.0.0/16")),
        Unmatched {
            lacks: vec![
                "an address in the network `privat` (internal-network-name in cloud.conf)".to_owned(),
                "an address in the network `pub` (public-network-name in cloud.conf)".to_owned(),
                "an address in 10.9.0.0/16 (address-sort-order in cloud.conf)".to_owned(),
            ],
            networks: ["also-private", "private", "public"].map(str::to_owned).to_vec(),
        }
    );
}
