//! Signatures (CloudStack developer's guide, "How to sign an API call"; signature version 3).

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bowline_cloud_http::Secret;
use jiff::{Timestamp, ToSpan};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

/// What stands unescaped in a value: RFC 3986's unreserved characters, and the asterisk, as the server's own encoder has
/// it.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'*');

/// How long a signature is good for. Some servers refuse more than 15 minutes, so this leaves room for a clock that is
/// fast.
const VALID_MINUTES: i64 = 10;

/// The keys of a user.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Says who asks. It is as good as a name, and not shown all the same.
    pub api_key: Secret,
    /// Signs. It is never sent.
    pub secret_key: Secret,
    /// What may be wrong with how they are written in their file, for when they are refused; mostly empty.
    pub doubt: String,
}

/// The parameters of a command, sorted by name as they are signed.
#[derive(Clone, Default)]
pub(crate) struct Parameters(BTreeMap<Cow<'static, str>, String>);

/// The parameters of a command with its signature.
pub(crate) struct Signed {
    parameters: Parameters,
    /// The signature as it is: base64.
    pub(crate) signature: Secret,
}

impl Parameters {
    pub(crate) fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds what every command carries, and signs.
    pub(crate) fn sign(mut self, command: &'static str, keys: &Keys, now: Timestamp) -> Signed {
        self.set("apiKey", keys.api_key.expose());
        self.set("command", command);
        self.set("response", "json");
        self.set("signatureversion", "3");
        self.set("expires", expires(now));
        let key = hmac::Key::new(
            hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            keys.secret_key.expose().as_bytes(),
        );
        let text = self.canonical().to_ascii_lowercase();
        let signature = STANDARD.encode(hmac::sign(&key, text.as_bytes()));
        Signed {
            parameters: self,
            signature: Secret::new(signature),
        }
    }

    /// All parameters, values escaped, names as they are.
    fn canonical(&self) -> String {
        self.0
            .iter()
            .map(|(name, value)| format!("{name}={}", escaped(value)))
            .collect::<Vec<_>>()
            .join("&")
    }
}

impl Signed {
    /// The query of a `GET`: what was signed, then the signature.
    pub(crate) fn query(&self) -> String {
        let signature = escaped(self.signature.expose());
        format!("{}&signature={signature}", self.parameters.canonical())
    }

    /// The form of a `POST`: everything, sorted.
    pub(crate) fn form(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut pairs: Vec<(&str, &str)> = self
            .parameters
            .0
            .iter()
            .map(|(name, value)| (&**name, value.as_str()))
            .collect();
        pairs.push(("signature", self.signature.expose()));
        pairs.sort_unstable();
        pairs.into_iter()
    }
}

/// A value as it stands in a query.
pub(crate) fn escaped(value: &str) -> String {
    utf8_percent_encode(value, ESCAPED).to_string()
}

fn expires(now: Timestamp) -> String {
    now.saturating_add(VALID_MINUTES.minutes())
        .unwrap_or(Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes before the vectors expire.
    fn now() -> Timestamp {
        "2030-01-02T02:54:05Z".parse().unwrap()
    }

    fn signed(command: &'static str, keys: (&str, &str), pairs: &[(&'static str, &str)]) -> Signed {
        let mut parameters = Parameters::default();
        for (name, value) in pairs {
            parameters.set(*name, *value);
        }
        let keys = Keys {
            api_key: Secret::new(keys.0),
            secret_key: Secret::new(keys.1),
            doubt: String::new(),
        };
        parameters.sign(command, &keys, now())
    }

    #[test]
    fn a_get_is_signed_as_the_vector_says() {
        let signed = signed(
            "listVirtualMachines",
            ("Example-Api_Key.01", "Example-Secret_Key.02"),
            &[("name", "worker 01*a~b/c")],
        );
        assert_eq!(
            signed.query(),
            "apiKey=Example-Api_Key.01&command=listVirtualMachines&expires=2030-01-02T03%3A04%3A05Z\
             &name=worker%2001*a~b%2Fc&response=json&signatureversion=3&signature=eIW30ymgqfVmrvH9NLooWWKR41w%3D"
        );
    }

    #[test]
    fn a_post_is_signed_as_the_vector_says_and_carries_the_plain_signature() {
        let signed = signed(
            "createLoadBalancerRule",
            ("AK", "SK"),
            &[
                ("algorithm", "roundrobin"),
                ("cidrlist", "10.0.0.0/8,192.168.0.0/16"),
                ("name", "a1b2-tcp-80"),
                ("networkid", "n"),
                ("openfirewall", "false"),
                ("privateport", "30080"),
                ("protocol", "tcp"),
                ("publicipid", "i"),
                ("publicport", "80"),
            ],
        );
        let form: Vec<_> = signed.form().collect();
        assert!(form.is_sorted());
        assert!(form.contains(&("signature", "6WTZt0zbZjCxdf9VwxpBEVmS0m4=")));
        assert!(form.contains(&("cidrlist", "10.0.0.0/8,192.168.0.0/16")));
    }

    #[test]
    fn names_are_sorted_by_bytes_and_values_escaped_in_utf_8() {
        let signed = signed("x", ("k", "s"), &[("zone", "Zürich +1"), ("Account", "a&b=c")]);
        assert!(
            signed.query().starts_with("Account=a%26b%3Dc&apiKey=k&command=x"),
            "{}",
            signed.query()
        );
        assert!(signed.query().contains("&zone=Z%C3%BCrich%20%2B1&signature="));
    }
}
