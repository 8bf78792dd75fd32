//! The BMC API.

use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim, ServerSpec, ServerStatus};
use serde_json::json;

use crate::support::{Caller, NETWORK, account, text};

const SERVERS: &str = "/bmc/v1/servers";

#[tokio::test(start_paused = true)]
async fn server_has_the_fields_of_the_api() {
    let sim = account();
    let id = sim.add_server(ServerSpec {
        instance_type: Some("s3.c3.large".into()),
        private_addresses: Some(vec!["10.9.0.3".into()]),
        public_addresses: Some(vec!["192.0.2.71".into(), "2001:db8:7::71".into()]),
        ..ServerSpec::on(NETWORK, "Worker-NLD-03")
    });
    assert!(id.len() == 24 && id.bytes().all(|it| it.is_ascii_hexdigit()));
    let caller = Caller::new(&sim).await;
    let (status, server) = caller.get(&format!("{SERVERS}/{id}")).await;
    assert_eq!(status, 200);
    for (field, value) in [
        ("id", json!(id)),
        ("status", json!("powered-on")),
        ("hostname", json!("Worker-NLD-03")),
        ("type", json!("s3.c3.large")),
        ("location", json!("NLD")),
        ("privateIpAddresses", json!(["10.9.0.3"])),
        ("publicIpAddresses", json!(["192.0.2.71", "2001:db8:7::71"])),
        ("networkType", json!("PUBLIC_AND_PRIVATE")),
        ("provisionedOn", json!("2026-01-01T00:00:00.000Z")),
    ] {
        assert_eq!(server[field], value, "{field}");
    }
    let networks = &server["networkConfiguration"]["publicNetworkConfiguration"]["publicNetworks"];
    assert_eq!(networks[0]["id"], NETWORK);
    assert_eq!(caller.get(SERVERS).await.1, json!([server]));
}

#[tokio::test(start_paused = true)]
async fn private_only_server_has_no_field_for_public_addresses() {
    let sim = account();
    sim.add_server(ServerSpec {
        public_addresses: Some(Vec::new()),
        ..ServerSpec::new("p")
    });
    let (_, list) = Caller::new(&sim).await.get(SERVERS).await;
    assert_eq!(list[0].get("publicIpAddresses"), None);
    assert_eq!(list[0]["networkType"], "PRIVATE_ONLY");
}

#[tokio::test(start_paused = true)]
async fn id_that_is_not_there_is_denied() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let id = sim.add_server(ServerSpec::new("a"));
    assert!(sim.remove_server(&id));
    for status in [403, 404] {
        sim.set_behaviour(|it| it.missing_status = status);
        let (found, answer) = caller.get(&format!("{SERVERS}/{id}")).await;
        assert_eq!(found, status);
        assert!(text(&answer["message"]).contains(&id));
    }
    assert!(!sim.remove_server(&id));
}

#[tokio::test(start_paused = true)]
async fn id_is_one_encoded_segment() {
    let sim = account();
    let mut spec = ServerSpec::new("odd");
    spec.id = Some("a/b".to_owned());
    sim.add_server(spec);
    let caller = Caller::new(&sim).await;
    assert_eq!(caller.get(&format!("{SERVERS}/a%2Fb")).await.0, 200);
    assert_eq!(caller.get(&format!("{SERVERS}/a/b")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn status_is_any_word() {
    let sim = account();
    let id = sim.add_server(ServerSpec::new("a"));
    let caller = Caller::new(&sim).await;
    for (status, word) in [
        (ServerStatus::PoweredOff, "powered-off"),
        (ServerStatus::Reinstating, "reinstating"),
        (ServerStatus::Other("frozen".to_owned()), "frozen"),
    ] {
        sim.set_server_status(&id, status);
        assert_eq!(caller.get(SERVERS).await.1[0]["status"], word);
    }
}

#[tokio::test(start_paused = true)]
async fn five_hundred_servers_come_in_one_list_with_addresses_of_their_own() {
    let sim = account();
    assert_eq!(sim.add_servers("node", 500).len(), 500);
    let (_, list) = Caller::new(&sim).await.get(SERVERS).await;
    let list = list.as_array().unwrap();
    let mut addresses: Vec<String> = list.iter().map(|it| text(&it["privateIpAddresses"][0])).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!((list.len(), addresses.len()), (500, 500));
    assert_eq!(list[499]["hostname"], "node-500");
}

#[tokio::test(start_paused = true)]
async fn everything_is_below_the_prefix() {
    let sim = PhoenixnapSim::builder().prefix("/x/").build();
    sim.add_network(NetworkSpec::new("n"));
    let caller = Caller::with_token(&sim, "none");
    assert_eq!(caller.get("/x/bmc/v1/servers").await.0, 401);
    assert_eq!(caller.get("/bmc/v1/servers").await.0, 404);
    assert_eq!(sim.journal().count_operation("servers.list"), 1);
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_same_history() {
    let history = async |seed| {
        let sim = PhoenixnapSim::builder().seed(seed).build();
        sim.add_servers("n", 2);
        let caller = Caller::new(&sim).await;
        caller.buy().await;
        (
            caller.get(SERVERS).await.1,
            caller.get("/ips/v1/ip-blocks").await.1,
        )
    };
    assert_eq!(history(7).await, history(7).await);
    assert_ne!(history(7).await, history(8).await);
}
