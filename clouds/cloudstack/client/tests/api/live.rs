//! The client against a server that is there, such as CloudStack's own simulator.
//!
//! The connection comes from the variables that the Go manager's acceptance tests take it from: `CS_API_URL`, `CS_API_KEY`,
//! `CS_SECRET_KEY`, `CS_PROJECT_ID` and `CS_SSL_NO_VERIFY`.
#![expect(clippy::expect_used, reason = "what helps a test may fail it")]

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Secret, SocketOptions, Transport};
use bowline_cloudstack_client::{
    Class, Client, Detail, Keys, Lookup, Project, Settings, VirtualMachineQuery,
};

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn client() -> Client {
    let keys = Keys {
        api_key: Secret::new(variable("CS_API_KEY")),
        secret_key: Secret::new(variable("CS_SECRET_KEY")),
        doubt: String::new(),
    };
    let project = Project::parse(&variable("CS_PROJECT_ID"));
    let settings = Settings::new(&variable("CS_API_URL"), keys, project).expect("CS_API_URL");
    let sockets = SocketOptions {
        verifies_certificates: variable("CS_SSL_NO_VERIFY") != "true",
        ..SocketOptions::default()
    };
    let mut config = CloudHttpConfig::new("external-cloudstack", "bowline/test");
    config.reads_only = true;
    let http = CloudHttp::new(config, Transport::sockets(&sockets).expect("TLS"));
    Client::new(http, &settings, None, Arc::new(jiff::Timestamp::now))
}

#[tokio::test]
#[ignore = "needs a CloudStack server and its keys in the environment; changes nothing"]
async fn a_server_takes_our_signatures_and_tells_what_is_not_there() {
    let client = client();
    let capabilities = client.capabilities().await.expect("good keys");
    assert!(capabilities.version.is_some());
    let all = VirtualMachineQuery::All(Detail::All);
    let machines = client.virtual_machines(&all).await.expect("a whole list");
    for machine in machines.items.iter().take(1) {
        let one = client.virtual_machine(&machine.id).await.expect("an answer");
        assert_eq!(one.found().map(|one| one.name), Some(machine.name.clone()));
    }
    let nobody = "00000000-0000-4000-8000-000000000000".into();
    assert_eq!(
        client.virtual_machine(&nobody).await.expect("a proof"),
        Lookup::Unknown
    );
    match client.management_servers().await {
        Ok(servers) => assert!(!servers.is_empty()),
        Err(error) => assert_eq!(error.class, Class::Denied),
    }
}
