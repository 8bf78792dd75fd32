//! Network ACL lists and items.

use bowline_cloudstack_sim::{AclItemSpec, CloudstackSim, NetworkSpec, VpcSpec};
use serde_json::json;

use crate::support::{Caller, End, cloud, each, text};

struct Tier {
    sim: CloudstackSim,
    caller: Caller,
    list: String,
    tier: String,
}

fn tier() -> Tier {
    let (sim, _) = cloud();
    let vpc = sim.add_vpc(VpcSpec::new("vpc"));
    let list = sim.add_acl_list("tier-acl", &vpc);
    let tier = sim.add_network(NetworkSpec::tier("web", &vpc, &list));
    let caller = Caller::new(&sim);
    Tier {
        sim,
        caller,
        list,
        tier,
    }
}

impl Tier {
    async fn make(&self, more: &[(&str, &str)]) -> End {
        let mut parameters = vec![
            ("aclid", self.list.as_str()),
            ("protocol", "tcp"),
            ("startport", "443"),
        ];
        parameters.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        parameters.extend(more);
        self.caller.run("createNetworkACL", &parameters).await
    }
}

#[tokio::test(start_paused = true)]
async fn item_is_made_behind_the_others() {
    let at = tier();
    at.sim.add_acl_item(AclItemSpec {
        number: Some(7),
        is_allow: false,
        is_ingress: false,
        ..AclItemSpec::new(&at.list, "all", 1)
    });
    let more = [
        ("endport", "443"),
        ("action", "Allow"),
        ("traffictype", "Ingress"),
        ("cidrlist", "0.0.0.0/0"),
    ];
    let made = at.make(&more).await.unwrap();
    let item = &made["networkacl"];
    assert_eq!(
        item,
        &json!({
            "id": item["id"], "protocol": "tcp", "startport": "443", "endport": "443", "cidrlist": "0.0.0.0/0",
            "traffictype": "Ingress", "action": "Allow", "number": 8, "aclid": at.list, "aclname": "tier-acl",
            "state": "Active", "fordisplay": true, "tags": [],
        })
    );
    at.make(&[]).await.unwrap();
    assert_eq!(at.sim.acl_items().len(), 3, "several equal items may exist");
    for (parameter, id) in [("aclid", &at.list), ("networkid", &at.tier)] {
        let found = at
            .caller
            .get("listNetworkACLs", &[(parameter, id), ("listall", "true")])
            .await;
        assert_eq!(found["count"], 3);
        assert_eq!(each(&found, "networkacl", "action"), ["Deny", "Allow", "Allow"]);
    }
    let isolated = at.sim.network();
    let found = at
        .caller
        .get("listNetworkACLs", &[("networkid", &isolated)])
        .await;
    assert_eq!(found, json!({}), "a network without list has no items");
}

#[tokio::test(start_paused = true)]
async fn wrong_items_are_refused_at_once() {
    let at = tier();
    let refused = at.make(&[("protocol", "tcp-proxy")]).await;
    let text = "Invalid protocol [tcp-proxy]. Expected one of: [tcp,udp,icmp,all]";
    assert_eq!(refused, Err((431, text.to_owned())));
    at.make(&[("protocol", "132"), ("number", "3")]).await.unwrap();
    for more in [
        ("protocol", "256"),
        ("number", "3"),
        ("number", "0"),
        ("action", "maybe"),
        ("traffictype", "sideways"),
        ("cidrlist", "x"),
        ("aclid", "7f"),
    ] {
        assert_eq!(at.make(&[more]).await.unwrap_err().0, 431, "{more:?}");
    }
    for name in ["default_allow", "default_deny"] {
        let list = at.sim.acl_list(name).unwrap();
        let refused = at.make(&[("aclid", &list)]).await.unwrap_err();
        assert_eq!(refused, (431, format!("Default ACL {name} cannot be modified")));
    }
    let isolated = at.sim.network();
    let by_network = [("networkid", isolated.as_str()), ("protocol", "tcp")];
    assert_eq!(at.caller.refusal("createNetworkACL", &by_network).await.0, 431);
    let by_network = [("networkid", at.tier.as_str()), ("protocol", "tcp")];
    at.caller.run("createNetworkACL", &by_network).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn item_is_changed_in_place_and_deleted() {
    let at = tier();
    let made = at.make(&[]).await.unwrap();
    let id = text(&made["networkacl"]["id"]);
    let change = [
        ("id", id.as_str()),
        ("cidrlist", "192.0.2.0/24,10.0.0.0/8"),
        ("number", "1"),
    ];
    let changed = at.caller.run("updateNetworkACLItem", &change).await.unwrap();
    let item = &changed["networkacl"];
    assert_eq!(
        (&item["id"], &item["cidrlist"]),
        (&json!(id), &json!("192.0.2.0/24,10.0.0.0/8"))
    );
    assert_eq!(
        (&item["startport"], &item["action"]),
        (&json!("443"), &json!("Allow"))
    );
    at.caller.run("deleteNetworkACL", &[("id", &id)]).await.unwrap();
    for command in ["deleteNetworkACL", "updateNetworkACLItem"] {
        assert_eq!(at.caller.refusal(command, &[("id", &id)]).await.0, 431);
    }
    let id = at.sim.add_acl_item(AclItemSpec::new(&at.list, "udp", 53));
    assert!(at.sim.remove_acl_item(&id) && !at.sim.remove_acl_item(&id));
}

#[tokio::test(start_paused = true)]
async fn lists_are_found_by_id_and_by_tier() {
    let at = tier();
    let found = at.caller.get("listNetworkACLLists", &[("id", &at.list)]).await;
    assert_eq!(each(&found, "networkacllist", "name"), ["tier-acl"]);
    let found = at
        .caller
        .get("listNetworkACLLists", &[("networkid", &at.tier)])
        .await;
    assert_eq!(each(&found, "networkacllist", "id"), [at.list.as_str()]);
    let found = at.caller.get("listNetworkACLLists", &[]).await;
    assert_eq!(
        each(&found, "networkacllist", "name"),
        ["default_allow", "default_deny", "tier-acl"]
    );
    assert_eq!(
        at.caller.refusal("listNetworkACLLists", &[("id", "7f")]).await.0,
        431
    );
}
