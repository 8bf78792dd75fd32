//! What a request is signed with, and whether it is.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;

/// What a value keeps unescaped beside letters and digits.
const KEPT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'*');

/// The text that is signed: all parameters but the signature, sorted by name as sent, values escaped, in lower case.
fn signed_text(parameters: &[(String, String)]) -> String {
    let mut sorted: Vec<&(String, String)> = parameters
        .iter()
        .filter(|(name, _)| !name.eq_ignore_ascii_case("signature"))
        .collect();
    sorted.sort();
    let pairs: Vec<String> = sorted
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, &KEPT)))
        .collect();
    pairs.join("&").to_lowercase()
}

/// Whether a signature, which is base64, is the one of these parameters. Takes the same time wherever they differ.
pub(crate) fn is_valid(secret: &str, parameters: &[(String, String)], signature: &str) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    BASE64_STANDARD
        .decode(signature)
        .is_ok_and(|tag| hmac::verify(&key, signed_text(parameters).as_bytes(), &tag).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> Vec<(String, String)> {
        url::form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect()
    }

    #[test]
    fn read_with_characters_of_all_kinds_is_verified() {
        let query = "apiKey=Example-Api_Key.01&command=listVirtualMachines&expires=2030-01-02T03%3A04%3A05Z&\
                     name=worker%2001*a~b%2Fc&response=json&signatureversion=3&\
                     signature=eIW30ymgqfVmrvH9NLooWWKR41w%3D";
        let parameters = parameters(query);
        let secret = "Example-Secret_Key.02";
        assert!(is_valid(secret, &parameters, "eIW30ymgqfVmrvH9NLooWWKR41w="));
        assert!(!is_valid("another", &parameters, "eIW30ymgqfVmrvH9NLooWWKR41w="));
        assert!(!is_valid(
            secret,
            &parameters[1..],
            "eIW30ymgqfVmrvH9NLooWWKR41w="
        ));
        assert!(!is_valid(secret, &parameters, "no base64"));
    }

    #[test]
    fn write_is_signed_in_lower_case() {
        let form = "algorithm=roundrobin&apiKey=AK&cidrlist=10.0.0.0%2F8%2C192.168.0.0%2F16&\
                    command=createLoadBalancerRule&expires=2030-01-02T03%3A04%3A05Z&name=a1b2-tcp-80&networkid=n&\
                    openfirewall=false&privateport=30080&protocol=tcp&publicipid=i&publicport=80&response=json&\
                    signatureversion=3";
        let parameters = parameters(form);
        assert_eq!(
            signed_text(&parameters),
            "algorithm=roundrobin&apikey=ak&cidrlist=10.0.0.0%2f8%2c192.168.0.0%2f16&command=createloadbalancerrule&\
             expires=2030-01-02t03%3a04%3a05z&name=a1b2-tcp-80&networkid=n&openfirewall=false&privateport=30080&\
             protocol=tcp&publicipid=i&publicport=80&response=json&signatureversion=3"
        );
        assert!(is_valid("SK", &parameters, "6WTZt0zbZjCxdf9VwxpBEVmS0m4="));
    }

    #[test]
    fn blank_is_never_a_plus() {
        assert_eq!(signed_text(&parameters("b=x+y&a=%C3%84")), "a=%c3%84&b=x%20y");
    }
}
