//! Addresses that a Service shows and loses by a plan: whoever goes by one of them has to follow.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

/// The addresses that a status shows and will not show any more, and what it shows instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AddressChange {
    /// What is shown by now and goes.
    pub from: Vec<String>,
    /// What comes, in words where the cloud chooses it; empty if nothing does.
    pub to: Vec<String>,
}

impl AddressChange {
    /// The difference between what is shown and what is wanted; `None` if no address goes. Of names nobody knows where they lead.
    #[must_use]
    pub fn between(shown: &[String], wanted: &[String]) -> Option<Self> {
        let parsed = |text: &String| text.parse::<IpAddr>().ok();
        let is_wanted = |address| wanted.iter().any(|it| parsed(it) == Some(address));
        let is_gone = |it: &&String| parsed(it).is_some_and(|address| !is_wanted(address));
        let from: Vec<String> = shown.iter().filter(is_gone).cloned().collect();
        let to = wanted.iter().filter(|it| !shown.contains(it)).cloned().collect();
        (!from.is_empty()).then_some(Self { from, to })
    }
}

impl fmt::Display for AddressChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = match self.to.is_empty() {
            true => "no address".to_owned(),
            false => self.to.join(", "),
        };
        write!(f, "{} becomes {to}", self.from.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_goes_is_told_with_what_comes() {
        let all = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let told = |shown: &[&str], wanted: &[&str]| {
            let change = AddressChange::between(&all(shown), &all(wanted));
            change.map(|it| it.to_string())
        };
        assert_eq!(told(&[], &["192.0.2.1"]), None);
        assert_eq!(told(&["192.0.2.1"], &["2001:db8::1", "192.0.2.1"]), None);
        assert_eq!(told(&["lb.example.com"], &["192.0.2.1"]), None);
        assert_eq!(
            told(&["192.0.2.1"], &["a new address"]).as_deref(),
            Some("192.0.2.1 becomes a new address")
        );
        assert_eq!(
            told(&["192.0.2.1", "2001:db8::1"], &["2001:db8::1"]).as_deref(),
            Some("192.0.2.1 becomes no address")
        );
    }
}
