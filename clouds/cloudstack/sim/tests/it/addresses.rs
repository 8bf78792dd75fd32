//! Public addresses.

use bowline_cloudstack_sim::{AddressSpec, AddressState, NetworkSpec, Owner, ProjectSpec, UserSpec, VpcSpec};
use serde_json::json;

use crate::support::{Caller, cloud, each, text};

#[tokio::test(start_paused = true)]
async fn free_address_becomes_the_networks_and_free_again() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let wish = [
        ("ipaddress", "203.0.113.77"),
        ("listall", "true"),
        ("allocatedonly", "false"),
    ];
    let found = caller.get("listPublicIpAddresses", &wish).await;
    let free = &found["publicipaddress"][0];
    assert_eq!((&found["count"], &free["state"]), (&json!(1), &json!("Free")));
    assert_eq!((free.get("allocated"), free.get("account")), (None, None));
    assert_eq!(
        caller.get("listPublicIpAddresses", &wish[..1]).await,
        json!({}),
        "allocated ones only, unless told otherwise"
    );
    let network = sim.network();
    let wish_for = [("networkid", network.as_str()), ("ipaddress", "203.0.113.77")];
    let made = caller.run("associateIpAddress", &wish_for).await.unwrap();
    let held = &made["ipaddress"];
    assert_eq!(held["id"], free["id"]);
    assert_eq!(
        (&held["state"], &held["associatednetworkid"]),
        (&json!("Allocated"), &json!(network))
    );
    assert_eq!(held["allocated"], "2026-01-01T00:00:00+0000");
    assert_ne!(held["networkid"], json!(network), "that is the public network");
    assert_eq!(caller.refusal("associateIpAddress", &wish_for).await.0, 431);
    let unknown = [("networkid", network.as_str()), ("ipaddress", "192.0.2.1")];
    assert_eq!(caller.refusal("associateIpAddress", &unknown).await.0, 431);

    let id = text(&held["id"]);
    let released = caller.run("disassociateIpAddress", &[("id", &id)]).await;
    assert_eq!(released, Ok(json!({ "success": true })));
    assert_eq!(
        sim.address("203.0.113.77".parse().unwrap()).unwrap().state,
        AddressState::Free
    );
    assert_eq!(
        caller.refusal("disassociateIpAddress", &[("id", &id)]).await.0,
        431
    );
    assert_eq!(
        caller.refusal("disassociateIpAddress", &[("id", "7f")]).await.0,
        431
    );
}

#[tokio::test(start_paused = true)]
async fn addresses_run_out_in_two_ways() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let network = sim.network();
    let wish = [("networkid", network.as_str())];
    sim.set_behaviour(|it| it.quota.addresses = Some(2));
    let first = caller.associate().await;
    assert_eq!(
        caller.refusal("associateIpAddress", &wish).await.0,
        535,
        "source NAT counts"
    );
    assert!(sim.release_address(&first) && !sim.release_address(&first));
    caller.associate().await;
    sim.set_behaviour(|it| it.quota.addresses = None);
    sim.exhaust_addresses();
    assert_eq!(caller.refusal("associateIpAddress", &wish).await.0, 533);
    assert_eq!(
        caller
            .refusal("associateIpAddress", &[("networkid", "7f")])
            .await
            .0,
        431
    );
    assert_eq!(caller.refusal("associateIpAddress", &[]).await.0, 431);
}

#[tokio::test(start_paused = true)]
async fn source_nat_address_stays() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let found = caller
        .get("listPublicIpAddresses", &[("issourcenat", "true")])
        .await;
    let id = text(&found["publicipaddress"][0]["id"]);
    let refused = caller
        .run("disassociateIpAddress", &[("id", &id)])
        .await
        .unwrap_err();
    assert_eq!(refused.0, 431);
    assert_eq!(
        caller.get("listPublicIpAddresses", &[("id", &id)]).await["count"],
        1
    );
    assert!(sim.addresses().is_empty(), "the handle leaves it out");
}

#[tokio::test(start_paused = true)]
async fn release_takes_every_rule_and_tag_along() {
    let (sim, vms) = cloud();
    let caller = Caller::new(&sim);
    let (address, kept) = (caller.associate().await, caller.associate().await);
    for (address, name) in [(&address, "a"), (&kept, "b")] {
        caller.rule(address, name, 80).await;
        let wish = [
            ("ipaddressid", address.as_str()),
            ("protocol", "tcp"),
            ("startport", "80"),
        ];
        caller.run("createFirewallRule", &wish).await.unwrap();
    }
    sim.add_port_forwarding(&address, 22, &vms[0]);
    sim.tag_address(&address, "k", "v");
    caller
        .run("disassociateIpAddress", &[("id", &address)])
        .await
        .unwrap();
    assert_eq!(sim.rules().len(), 1);
    assert_eq!(sim.firewall_rules().len(), 1);
    assert_eq!(sim.rules()[0].address, kept);
    assert_eq!(caller.get("listPortForwardingRules", &[]).await, json!({}));
    assert_eq!(caller.get("listTags", &[]).await, json!({}));
    assert_eq!(sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn address_of_a_vpc_is_in_a_tier_while_it_has_rules() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let vpc = sim.add_vpc(VpcSpec::new("vpc"));
    let list = sim.add_acl_list("tier-acl", &vpc);
    let tier = sim.add_network(NetworkSpec::tier("web", &vpc, &list));
    let other = sim.add_network(NetworkSpec::tier("db", &vpc, &list));
    let refused = caller
        .refusal("associateIpAddress", &[("networkid", &tier)])
        .await;
    assert!(
        refused.0 == 431 && refused.1.contains("Specify vpcId"),
        "{refused:?}"
    );
    let made = caller
        .run("associateIpAddress", &[("vpcid", &vpc)])
        .await
        .unwrap();
    let id = text(&made["ipaddress"]["id"]);
    assert_eq!(made["ipaddress"].get("associatednetworkid"), None);
    assert_eq!(made["ipaddress"]["vpcid"], vpc);

    let network = async || {
        let found = caller.get("listPublicIpAddresses", &[("id", &id)]).await;
        found["publicipaddress"][0]["associatednetworkid"].clone()
    };
    assert_eq!(
        caller.try_rule(&id, "a", 80, &[]).await.unwrap_err().0,
        431,
        "no tier is named"
    );
    let outside = sim.network();
    assert_eq!(
        caller
            .try_rule(&id, "a", 80, &[("networkid", &outside)])
            .await
            .unwrap_err()
            .0,
        431
    );
    let in_tier = [("networkid", tier.as_str())];
    let one = caller.try_rule(&id, "a", 80, &in_tier).await.unwrap();
    let two = caller.try_rule(&id, "b", 81, &in_tier).await.unwrap();
    assert_eq!(network().await, json!(tier));
    // One tier per address, whichever is asked for.
    let elsewhere = [("networkid", other.as_str())];
    let three = caller.try_rule(&id, "c", 82, &elsewhere).await.unwrap();
    assert_eq!(three["loadbalancer"]["networkid"], json!(tier));
    sim.set_behaviour(|it| it.other_tiers_conflict = true);
    let refused = caller.try_rule(&id, "d", 83, &elsewhere).await;
    assert_eq!(refused.unwrap_err().0, 537);
    let wish = [
        ("ipaddressid", id.as_str()),
        ("protocol", "tcp"),
        ("startport", "80"),
    ];
    assert_eq!(caller.refusal("createFirewallRule", &wish).await.0, 431);
    assert_eq!(caller.get("listFirewallRules", &wish[..1]).await, json!({}));
    for rule in [one, two, three] {
        assert_eq!(network().await, json!(tier));
        let rule = text(&rule["loadbalancer"]["id"]);
        caller
            .run("deleteLoadBalancerRule", &[("id", &rule)])
            .await
            .unwrap();
    }
    assert_eq!(network().await, json!(null));
    let found = caller.get("listVPCs", &[("id", &vpc)]).await;
    assert_eq!(each(&found, "vpc", "name"), ["vpc"]);
    let found = caller.get("listNetworks", &[("vpcid", &vpc)]).await;
    assert_eq!(each(&found, "network", "aclname"), ["tier-acl", "tier-acl"]);
}

#[tokio::test(start_paused = true)]
async fn address_of_somebody_else_is_not_seen_and_not_touched() {
    let (sim, _) = cloud();
    sim.add_user(UserSpec::new("o", "s").account("other"));
    let other = Owner::Account("other".to_owned());
    let foreign = sim.take_address(AddressSpec {
        owner: Some(other),
        ..AddressSpec::at("203.0.113.90".parse().unwrap())
    });
    let (user, them) = (Caller::new(&sim), Caller::with_keys(&sim, "o", "s"));
    let wish = [
        ("ipaddress", "203.0.113.90"),
        ("allocatedonly", "false"),
        ("listall", "true"),
    ];
    assert_eq!(user.get("listPublicIpAddresses", &wish).await, json!({}));
    assert_eq!(them.get("listPublicIpAddresses", &wish).await["count"], 1);
    let refused = user.refusal("disassociateIpAddress", &[("id", &foreign)]).await;
    assert!(
        refused.0 == 531 && refused.1.starts_with("Acct[team]"),
        "{refused:?}"
    );
    let network = sim.network();
    assert_eq!(
        them.refusal("associateIpAddress", &[("networkid", &network)])
            .await
            .0,
        531
    );
    assert_eq!(user.try_rule(&foreign, "a", 80, &[]).await.unwrap_err().0, 531);
}

#[tokio::test(start_paused = true)]
async fn address_of_a_project_is_made_with_and_without_naming_it() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let project = sim.add_project(ProjectSpec::new("prod"));
    let network = sim.add_network(NetworkSpec::of_project("k8s-prod", &project));
    let named = [("networkid", network.as_str()), ("projectid", project.as_str())];
    for wish in [&named[..], &named[..1]] {
        let made = caller.run("associateIpAddress", wish).await.unwrap();
        assert_eq!(made["ipaddress"]["projectid"], project);
        let id = text(&made["ipaddress"]["id"]);
        assert_eq!(
            caller.get("listPublicIpAddresses", &[("id", &id)]).await,
            json!({})
        );
        let with = [("id", id.as_str()), named[1]];
        assert_eq!(caller.get("listPublicIpAddresses", &with).await["count"], 1);
        caller.rule(&id, "a", 80).await;
        let rules = caller
            .get("listLoadBalancerRules", &[("keyword", "a"), named[1]])
            .await;
        assert_eq!(rules["loadbalancerrule"][0]["projectid"], project);
        caller.run("disassociateIpAddress", &[("id", &id)]).await.unwrap();
    }
    let home = sim.network();
    let mixed = [("networkid", home.as_str()), named[1]];
    assert_eq!(caller.refusal("associateIpAddress", &mixed).await.0, 531);
}

#[tokio::test(start_paused = true)]
async fn a_release_takes_what_is_on_the_address_or_leaves_it_or_is_refused() {
    for (refuses, leaves) in [(false, false), (true, false), (false, true)] {
        let (sim, _) = cloud();
        sim.set_behaviour(|it| {
            (it.releases_refuse_rules, it.releases_leave_rules) = (refuses, leaves);
        });
        let caller = Caller::new(&sim);
        let address = caller.associate().await;
        let rule = caller.rule(&address, "a", 80).await;
        let release = [("id", address.as_str())];
        let end = caller.run("disassociateIpAddress", &release).await;
        assert_eq!(end.is_err(), refuses, "{end:?}");
        assert_eq!(sim.rules().len(), usize::from(refuses || leaves));
        if refuses || leaves {
            caller
                .run("deleteLoadBalancerRule", &[("id", &rule)])
                .await
                .unwrap();
            assert!(sim.rules().is_empty());
        }
    }
}
