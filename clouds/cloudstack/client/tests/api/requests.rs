//! What is sent: every command with its parameters.

use bowline_cloudstack_client::{
    Algorithm, Association, Deleted, Detail, Lookup, NewFilter, NewLoadBalancerRule, NewStickinessPolicy,
    PublicIpQuery, RuleProtocol, RuleQuery, RuleUpdate, VirtualMachineQuery,
};

use crate::answers::{API_KEY, Answer, Api};

const EMPTY: &str = r#"{"listresponse":{}}"#;
const TAKEN: &str = r#"{"response":{"jobid":"j1","id":"o1"}}"#;

fn new_rule() -> NewLoadBalancerRule {
    NewLoadBalancerRule {
        name: "a1-tcp-443".to_owned(),
        algorithm: Algorithm::RoundRobin,
        protocol: RuleProtocol::Tcp,
        public_ip: "i".into(),
        public_port: 443,
        private_port: 31443,
        network: "n".into(),
        cidrs: Some(vec!["10.0.0.0/8".to_owned(), "192.168.0.0/16".to_owned()]),
    }
}

#[tokio::test]
async fn every_read_has_its_parameters_and_those_that_know_projects_carry_it() {
    let api = Api::new(vec![Answer::ok(EMPTY); 15]);
    let client = api.client_in(Some("5f0c8b1e-7f2a-4f0d-9a55-0d6a3c1f2b10"));
    for query in [
        VirtualMachineQuery::All(Detail::Networks),
        VirtualMachineQuery::Own("pool-a-7".to_owned()),
    ] {
        client.virtual_machines(&query).await.unwrap();
    }
    assert_eq!(
        client.virtual_machine(&"v".into()).await.unwrap(),
        Lookup::Unlisted
    );
    assert_eq!(client.network(&"n".into()).await.unwrap(), None);
    for query in [
        PublicIpQuery::Address("203.0.113.77".to_owned()),
        PublicIpQuery::Allocated,
    ] {
        client.public_ip_addresses(&query).await.unwrap();
    }
    assert_eq!(client.public_ip_address(&"i".into()).await.unwrap(), None);
    for query in [RuleQuery::Named("a1".to_owned()), RuleQuery::On("i".into())] {
        client.load_balancer_rules(&query).await.unwrap();
    }
    client.load_balancer_rule_instances(&"r".into()).await.unwrap();
    client.stickiness_policies(&"r".into()).await.unwrap();
    client.firewall_rules(&"i".into()).await.unwrap();
    client.port_forwarding_rules(Some(&"i".into())).await.unwrap();
    assert_eq!(client.network_acl_list(&"l".into()).await.unwrap(), None);
    client.network_acls(&"l".into()).await.unwrap();
    let project = "projectid=5f0c8b1e-7f2a-4f0d-9a55-0d6a3c1f2b10";
    assert_eq!(
        api.take_commands(),
        [
            format!("GET listVirtualMachines details=min,nics listall=true {project}"),
            format!("GET listVirtualMachines name=pool-a-7 {project}"),
            format!("GET listVirtualMachines id=v listall=true {project}"),
            format!("GET listNetworks id=n listall=true {project}"),
            format!(
                "GET listPublicIpAddresses allocatedonly=false ipaddress=203.0.113.77 listall=true {project}"
            ),
            format!("GET listPublicIpAddresses listall=true {project}"),
            format!("GET listPublicIpAddresses id=i listall=true {project}"),
            format!("GET listLoadBalancerRules keyword=a1 listall=true {project}"),
            format!("GET listLoadBalancerRules listall=true {project} publicipid=i"),
            "GET listLoadBalancerRuleInstances id=r".to_owned(),
            "GET listLBStickinessPolicies lbruleid=r".to_owned(),
            format!("GET listFirewallRules ipaddressid=i listall=true {project}"),
            format!("GET listPortForwardingRules ipaddressid=i listall=true {project}"),
            format!("GET listNetworkACLLists id=l listall=true {project}"),
            format!("GET listNetworkACLs aclid=l listall=true {project}"),
        ]
    );
}

#[tokio::test]
async fn every_write_has_its_parameters_and_only_the_association_carries_the_project() {
    let api = Api::new(vec![Answer::ok(TAKEN); 16]);
    let client = api.client_in(Some("-1"));
    let started = client
        .associate_ip_address(&Association::Network("n".into()), None)
        .await
        .unwrap();
    assert_eq!((started.job, started.id), ("j1".into(), Some("o1".into())));
    client
        .associate_ip_address(&Association::Vpc("v".into()), Some("203.0.113.77"))
        .await
        .unwrap();
    assert_eq!(
        client.disassociate_ip_address(&"i".into()).await.unwrap(),
        Deleted::Started("j1".into())
    );
    client.create_load_balancer_rule(&new_rule()).await.unwrap();
    let unrestricted = NewLoadBalancerRule {
        cidrs: None,
        protocol: RuleProtocol::TcpProxy,
        algorithm: Algorithm::Source,
        ..new_rule()
    };
    client.create_load_balancer_rule(&unrestricted).await.unwrap();
    let change = RuleUpdate {
        name: Some("a1-tcp-80".to_owned()),
        ..RuleUpdate::default()
    };
    client
        .update_load_balancer_rule(&"r".into(), &change)
        .await
        .unwrap();
    let change = RuleUpdate {
        name: None,
        algorithm: Some(Algorithm::Source),
        protocol: Some(RuleProtocol::Udp),
        cidrs: Some(vec![]),
    };
    client
        .update_load_balancer_rule(&"r".into(), &change)
        .await
        .unwrap();
    client.delete_load_balancer_rule(&"r".into()).await.unwrap();
    let machines = ["v1".into(), "v2".into()];
    client
        .assign_to_load_balancer_rule(&"r".into(), &machines)
        .await
        .unwrap();
    client
        .remove_from_load_balancer_rule(&"r".into(), &machines[..1])
        .await
        .unwrap();
    let sticky = NewStickinessPolicy {
        name: "a1-tcp-443".to_owned(),
        method: "LbCookie".to_owned(),
        params: [("nocache", "true"), ("mode", "insert")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    client
        .create_stickiness_policy(&"r".into(), &sticky)
        .await
        .unwrap();
    client.delete_stickiness_policy(&"p".into()).await.unwrap();
    let filter = NewFilter {
        protocol: "udp".to_owned(),
        port: 53,
        cidrs: vec!["0.0.0.0/0".to_owned()],
    };
    client.create_firewall_rule(&"i".into(), &filter).await.unwrap();
    client.delete_firewall_rule(&"f".into()).await.unwrap();
    let filter = NewFilter {
        protocol: "tcp".to_owned(),
        port: 443,
        cidrs: vec!["192.0.2.0/24".to_owned(), "198.51.100.0/24".to_owned()],
    };
    client
        .create_network_acl(&"l".into(), &"n".into(), &filter)
        .await
        .unwrap();
    client.delete_network_acl(&"a".into()).await.unwrap();
    assert_eq!(
        api.take_commands(),
        [
            "POST associateIpAddress networkid=n projectid=-1",
            "POST associateIpAddress ipaddress=203.0.113.77 projectid=-1 vpcid=v",
            "POST disassociateIpAddress id=i",
            "POST createLoadBalancerRule algorithm=roundrobin cidrlist=10.0.0.0/8,192.168.0.0/16 name=a1-tcp-443 \
             networkid=n openfirewall=false privateport=31443 protocol=tcp publicipid=i publicport=443",
            "POST createLoadBalancerRule algorithm=source name=a1-tcp-443 networkid=n openfirewall=false \
             privateport=31443 protocol=tcp-proxy publicipid=i publicport=443",
            "POST updateLoadBalancerRule id=r name=a1-tcp-80",
            "POST updateLoadBalancerRule algorithm=source cidrlist= id=r protocol=udp",
            "POST deleteLoadBalancerRule id=r",
            "POST assignToLoadBalancerRule id=r virtualmachineids=v1,v2",
            "POST removeFromLoadBalancerRule id=r virtualmachineids=v1",
            "POST createLBStickinessPolicy lbruleid=r methodname=LbCookie name=a1-tcp-443 param[0].name=mode \
             param[0].value=insert param[1].name=nocache param[1].value=true",
            "POST deleteLBStickinessPolicy id=p",
            "POST createFirewallRule cidrlist=0.0.0.0/0 endport=53 ipaddressid=i protocol=udp startport=53",
            "POST deleteFirewallRule id=f",
            "POST createNetworkACL aclid=l action=Allow cidrlist=192.0.2.0/24,198.51.100.0/24 endport=443 \
             networkid=n protocol=tcp startport=443 traffictype=Ingress",
            "POST deleteNetworkACL id=a",
        ]
    );
}

#[tokio::test]
async fn a_read_has_all_in_the_query_and_a_write_all_in_the_form() {
    let api = Api::new([Answer::ok(EMPTY), Answer::ok(TAKEN)]);
    let client = api.client();
    client
        .virtual_machines(&VirtualMachineQuery::All(Detail::All))
        .await
        .unwrap();
    client.delete_firewall_rule(&"f".into()).await.unwrap();
    let seen = api.take_seen();
    let key = "q7J-not%2Ba%2Freal-key-93";
    assert!(
        seen[0].line.starts_with(&format!(
            "GET https://cloud.example/client/api?apiKey={key}&command=listVirtualMachines&expires="
        )),
        "{}",
        seen[0].line
    );
    assert!(seen[0].body.is_empty());
    assert_eq!(seen[1].line, "POST https://cloud.example/client/api");
    assert_eq!(
        seen[1].headers["content-type"],
        "application/x-www-form-urlencoded"
    );
    assert!(
        seen[1].body.starts_with(&format!(
            "apiKey={key}&command=deleteFirewallRule&expires=2030-01-02T03%3A04%3A05Z&id=f"
        )),
        "{}",
        seen[1].body
    );
    assert!(!format!("{client:?}").contains(API_KEY));
}

#[tokio::test]
async fn a_project_given_by_name_is_looked_up_once() {
    let projects = r#"{"listprojectsresponse":{"count":2,"project":[{"id":"p1","name":"production"},{"id":"p2","name":"prod"}]}}"#;
    let api = Api::new([Answer::ok(projects), Answer::ok(EMPTY), Answer::ok(EMPTY)]);
    let client = api.client_in(Some("prod"));
    client.network(&"n".into()).await.unwrap();
    client.clone().network(&"m".into()).await.unwrap();
    assert_eq!(
        api.take_commands(),
        [
            "GET listProjects name=prod",
            "GET listNetworks id=n listall=true projectid=p2",
            "GET listNetworks id=m listall=true projectid=p2",
        ]
    );
}

#[tokio::test]
async fn cookies_come_back_whatever_the_answer_was() {
    let refusal = r#"{"listresponse":{"errorcode":530,"errortext":"no"}}"#;
    let api = Api::new([
        Answer::Header(200, ("set-cookie", "srv=a; Path=/client"), EMPTY.to_owned()),
        Answer::Header(530, ("set-cookie", "srv=b"), refusal.to_owned()),
        Answer::ok(EMPTY),
    ]);
    let client = api.client();
    for _ in 0..3 {
        let _ = client.firewall_rules(&"i".into()).await;
    }
    let seen = api.take_seen();
    let sent: Vec<_> = seen
        .iter()
        .map(|seen| seen.headers.get("cookie").map(|value| value.to_str().unwrap()))
        .collect();
    assert_eq!(sent, [None, Some("srv=a"), Some("srv=b")]);
}
