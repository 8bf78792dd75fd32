//! Addresses and networks in one spelling. For comparison: an API need not show them as they were written.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// The one spelling of an address, or of an address with a port; other text without blanks around.
#[must_use]
pub fn of_address(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().map(|address| address.to_string());
    let spelt = address.or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.to_string()));
    match spelt {
        Ok(spelt) if spelt != text => Cow::Owned(spelt),
        _ => Cow::Borrowed(text),
    }
}

/// The one spelling of a network, without the bits of a host in it; other text without blanks around.
#[must_use]
pub fn of_network(text: &str) -> String {
    let text = text.trim();
    text.parse::<IpNet>()
        .map_or_else(|_| text.to_owned(), |network| network.trunc().to_string())
}

/// Whether two lists let the same networks in. Order and repetition mean nothing.
#[must_use]
pub fn same_networks(a: &[String], b: &[String]) -> bool {
    let set = |list: &[String]| list.iter().map(|text| of_network(text)).collect::<BTreeSet<_>>();
    set(a) == set(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        for (text, spelt) in [
            ("FD12:0::9", "fd12::9"),
            ("[fd12:0:0::9]:30999", "[fd12::9]:30999"),
            (" 10.20.0.8:31080", "10.20.0.8:31080"),
            ("tcp/Web", "tcp/Web"),
        ] {
            assert_eq!(of_address(text), spelt);
        }
    }

    #[test]
    fn networks_are_equal_however_they_are_spelt() {
        let texts = |list: &[&str]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
        let same = |a: &[&str], b: &[&str]| same_networks(&texts(a), &texts(b));
        assert!(same(
            &["2001:DB8:0::/32", "10.0.0.5/8", "10.1.2.3/8"],
            &["10.0.0.0/8", "2001:db8::/32"]
        ));
        assert!(same(&["anything"], &[" anything"]));
        assert!(!same(&["10.0.0.0/8"], &["10.0.0.0/9"]));
        assert!(!same(&["10.0.0.0/8"], &[]));
    }
}
