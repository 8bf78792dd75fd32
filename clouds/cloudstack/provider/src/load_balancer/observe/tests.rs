//! What is known where lists are behind what was written.

use bowline_cloud_provider::Memory;
use bowline_cloudstack_client::FirewallRuleId;

use super::learn;
use super::observed::{Fact, Observed, Seen, see};
use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::names::IpProtocol;
use crate::load_balancer::objects::{
    AddressRef, Firewall, FirewallId, FirewallList, FirewallRule, IngressPort,
};
use crate::load_balancer::step::{CloudStep, Opening};

const INGRESS: IngressPort = IngressPort {
    protocol: IpProtocol::Tcp,
    port: 443,
};

fn rule(id: &str) -> FirewallRule {
    FirewallRule {
        id: id.into(),
        ingress: INGRESS,
        sources: Cidrs::default(),
        has_reason: false,
        is_new: false,
        is_going: false,
    }
}

fn address(id: &str) -> AddressRef {
    AddressRef {
        id: id.into(),
        ip: "203.0.113.1".to_owned(),
    }
}

fn acl() -> Firewall {
    Firewall {
        id: FirewallId::Acl("acl".into()),
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
    learn::done(seen, step, FirewallRuleId::from(id).into());
}

fn at(id: &str) -> Firewall {
    Firewall::of(&address(id))
}

fn open(seen: &mut Seen, at: &Firewall, id: &str) {
    let step = CloudStep::Open(Opening {
        at: at.clone(),
        network: "n1".into(),
        ingress: INGRESS,
        sources: Vec::new(),
        stands_in: false,
    });
    done(seen, &step, id);
}

fn close(seen: &mut Seen, at: &Firewall, id: &str) {
    let step = CloudStep::close(at, &rule(id), false);
    done(seen, &step, "");
}

fn see_firewall(seen: &mut Seen, at: &Firewall, rules: Vec<FirewallRule>) {
    let listed = FirewallList {
        rules,
        ..FirewallList::default()
    };
    see(seen, Fact::Firewall(at.id.clone(), listed));
}

#[test]
fn a_list_that_is_behind_shows_what_was_opened_and_nothing_that_was_closed() {
    for of in [at("ip-1"), acl()] {
        let mut seen = nothing();
        for id in ["new", "listed", ""] {
            open(&mut seen, &of, id);
        }
        close(&mut seen, &of, "closed");
        see_firewall(&mut seen, &of, vec![rule("closed"), rule("listed")]);
        see_firewall(&mut seen, &at("ip-2"), Vec::new());
        assert_eq!(seen.firewalls[&of.id], [rule("listed"), rule("new")]);
        assert_eq!(seen.firewalls[&at("ip-2").id], []);
    }
}

#[test]
fn with_an_address_what_was_opened_on_it_is_gone() {
    let mut seen = nothing();
    for id in ["ip-1", "ip-2"] {
        open(&mut seen, &at(id), &format!("of-{id}"));
    }
    let release = CloudStep::release(&address("ip-1"), true);
    learn::predict(&mut seen, &release);
    for id in ["ip-1", "ip-2"] {
        see_firewall(&mut seen, &at(id), Vec::new());
    }
    assert_eq!(seen.firewalls[&at("ip-1").id], []);
    assert_eq!(seen.firewalls[&at("ip-2").id], [rule("of-ip-2")]);
}

#[test]
fn what_was_closed_is_not_seen_again() {
    for of in [at("ip-1"), acl()] {
        let mut seen = nothing();
        see_firewall(&mut seen, &of, vec![rule("x")]);
        close(&mut seen, &of, "x");
        see_firewall(&mut seen, &of, vec![rule("x")]);
        assert_eq!(seen.firewalls[&of.id], []);
    }
}
