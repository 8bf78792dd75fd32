//! What is known where lists are behind what was written.

use super::*;
use crate::cidrs::Cidrs;
use crate::learn;
use crate::names::IpProtocol;
use crate::objects::{AclRef, Opening};

const OPENING: Opening = Opening {
    protocol: IpProtocol::Tcp,
    port: 443,
};

fn rule(id: &str) -> FirewallRule {
    FirewallRule {
        id: id.to_owned(),
        opening: OPENING,
        sources: Cidrs::default(),
        is_going: false,
    }
}

fn item(id: &str) -> AclItem {
    AclItem {
        id: id.to_owned(),
        opening: OPENING,
        sources: Cidrs::default(),
        has_reason: false,
        is_going: false,
    }
}

#[test]
fn a_list_that_is_behind_shows_what_was_opened_and_nothing_that_was_closed() {
    let mut observed = Observed::default();
    for id in ["new", "listed", ""] {
        observed.open(Opened::Firewall("ip-1".to_owned(), rule(id)));
        observed.open(Opened::Acl("acl".to_owned(), item(id)));
    }
    observed.close("closed");
    observed.see_firewall("ip-1", vec![rule("closed"), rule("listed")]);
    observed.see_firewall("ip-2", Vec::new());
    observed.see_acl("acl", vec![item("closed"), item("listed")]);
    observed.see_acl("another", Vec::new());
    assert_eq!(observed.firewalls["ip-1"], [rule("listed"), rule("new")]);
    assert_eq!(observed.firewalls["ip-2"], []);
    assert_eq!(observed.acls["acl"], [item("listed"), item("new")]);
    assert_eq!(observed.acls["another"], []);
}

#[test]
fn with_an_address_what_was_opened_on_it_is_gone() {
    let mut observed = Observed::default();
    for id in ["ip-1", "ip-2"] {
        observed.open(Opened::Firewall(id.to_owned(), rule(&format!("of-{id}"))));
    }
    let release = CloudStep::Release {
        address: AddressRef {
            id: "ip-1".to_owned(),
            ip: "203.0.113.1".to_owned(),
        },
        is_live: true,
    };
    learn::predict(&mut observed, &release);
    for id in ["ip-1", "ip-2"] {
        observed.see_firewall(id, Vec::new());
    }
    assert_eq!(observed.firewalls["ip-1"], []);
    assert_eq!(observed.firewalls["ip-2"], [rule("of-ip-2")]);
}

#[test]
fn what_was_closed_is_not_seen_again() {
    let mut observed = Observed::default();
    observed.see_firewall("ip-1", vec![rule("f")]);
    observed.see_acl("acl", vec![item("i")]);
    let address = AddressRef {
        id: "ip-1".to_owned(),
        ip: "203.0.113.1".to_owned(),
    };
    let list = AclRef {
        id: "acl".to_owned(),
        name: "tier-acl".to_owned(),
    };
    let closings = [
        CloudStep::CloseFirewall {
            address,
            opening: OPENING,
            rule: "f".to_owned(),
            is_replaced: false,
        },
        CloudStep::CloseAcl {
            list,
            item: item("i"),
            twin: None,
            is_replaced: false,
        },
    ];
    for closing in &closings {
        learn::predict(&mut observed, closing);
    }
    observed.see_firewall("ip-1", vec![rule("f")]);
    observed.see_acl("acl", vec![item("i")]);
    assert_eq!(observed.firewalls["ip-1"], []);
    assert_eq!(observed.acls["acl"], []);
}
