//! The BMC API: many servers, another prefix, and what the seed decides.

use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim};

use crate::support::{Caller, account, text};

const SERVERS: &str = "/bmc/v1/servers";

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
