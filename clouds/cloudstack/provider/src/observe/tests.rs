//! What is known where lists are behind what was written.

use bowline_cloud_provider::Memory;

use super::*;
use crate::cidrs::Cidrs;
use crate::learn;
use crate::names::IpProtocol;
use crate::objects::{AclRef, AddressRef, Opening};

const OPENING: Opening = Opening {
    protocol: IpProtocol::Tcp,
    port: 443,
};

fn rule(id: &str) -> FirewallRule {
    FirewallRule {
        id: id.into(),
        opening: OPENING,
        sources: Cidrs::default(),
        is_going: false,
    }
}

fn item(id: &str) -> AclItem {
    AclItem {
        id: id.into(),
        opening: OPENING,
        sources: Cidrs::default(),
        has_reason: false,
        is_going: false,
    }
}

fn address(id: &str) -> AddressRef {
    AddressRef {
        id: id.into(),
        ip: "203.0.113.1".to_owned(),
    }
}

fn list() -> AclRef {
    AclRef {
        id: "acl".into(),
        name: "tier-acl".to_owned(),
    }
}

fn nothing() -> Seen {
    Seen {
        observed: Observed::default(),
        memory: Memory::default(),
    }
}

/// A step was made; what it made has this ID.
fn done(seen: &mut Seen, step: &CloudStep, id: &str) {
    let made = learn::Made {
        id: Some(id.to_owned()),
        ip: None,
    };
    learn::done(seen, step, made);
}

fn open_firewall(seen: &mut Seen, at: &str, id: &str) {
    let step = CloudStep::OpenFirewall {
        address: address(at),
        opening: OPENING,
        sources: Vec::new(),
        stands_in: false,
    };
    done(seen, &step, id);
}

fn close(seen: &mut Seen, id: &str) {
    let rule = CloudStep::CloseFirewall {
        address: address("ip-1"),
        opening: OPENING,
        rule: id.into(),
        is_replaced: false,
    };
    let item = CloudStep::CloseAcl {
        list: list(),
        item: item(id),
        twin: None,
        is_replaced: false,
    };
    done(seen, &rule, "");
    done(seen, &item, "");
}

fn see_firewall(seen: &mut Seen, at: &str, rules: Vec<FirewallRule>) {
    see(seen, Fact::Firewall(at.into(), rules));
}

fn see_acl(seen: &mut Seen, list: &str, items: Vec<AclItem>) {
    see(seen, Fact::Acl(list.into(), items));
}

#[test]
fn a_list_that_is_behind_shows_what_was_opened_and_nothing_that_was_closed() {
    let mut seen = nothing();
    for id in ["new", "listed", ""] {
        open_firewall(&mut seen, "ip-1", id);
        let step = CloudStep::OpenAcl {
            list: list(),
            network: "n1".into(),
            opening: OPENING,
            sources: Vec::new(),
        };
        done(&mut seen, &step, id);
    }
    close(&mut seen, "closed");
    see_firewall(&mut seen, "ip-1", vec![rule("closed"), rule("listed")]);
    see_firewall(&mut seen, "ip-2", Vec::new());
    see_acl(&mut seen, "acl", vec![item("closed"), item("listed")]);
    see_acl(&mut seen, "another", Vec::new());
    assert_eq!(seen.firewalls["ip-1"], [rule("listed"), rule("new")]);
    assert_eq!(seen.firewalls["ip-2"], []);
    assert_eq!(seen.acls["acl"], [item("listed"), item("new")]);
    assert_eq!(seen.acls["another"], []);
}

#[test]
fn with_an_address_what_was_opened_on_it_is_gone() {
    let mut seen = nothing();
    for id in ["ip-1", "ip-2"] {
        open_firewall(&mut seen, id, &format!("of-{id}"));
    }
    let release = CloudStep::Release {
        address: address("ip-1"),
        is_live: true,
    };
    learn::predict(&mut seen, &release);
    for id in ["ip-1", "ip-2"] {
        see_firewall(&mut seen, id, Vec::new());
    }
    assert_eq!(seen.firewalls["ip-1"], []);
    assert_eq!(seen.firewalls["ip-2"], [rule("of-ip-2")]);
}

#[test]
fn what_was_closed_is_not_seen_again() {
    let mut seen = nothing();
    see_firewall(&mut seen, "ip-1", vec![rule("x")]);
    see_acl(&mut seen, "acl", vec![item("x")]);
    close(&mut seen, "x");
    see_firewall(&mut seen, "ip-1", vec![rule("x")]);
    see_acl(&mut seen, "acl", vec![item("x")]);
    assert_eq!(seen.firewalls["ip-1"], []);
    assert_eq!(seen.acls["acl"], []);
}
