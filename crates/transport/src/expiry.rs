//! When credentials end, as they say it themselves.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The part of a token that is looked at.
#[derive(Deserialize)]
struct Claims {
    exp: i64,
}

/// The end of a certificate's validity, in seconds since 1970; `None`: it cannot be understood.
pub fn end_of_certificate(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// The end of a token's validity, in seconds since 1970; `None`: it does not tell. Tokens of ServiceAccounts and those of many
/// identity providers do.
pub fn end_of_token(token: &str) -> Option<i64> {
    let claims = token.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    Some(serde_json::from_slice::<Claims>(&claims).ok()?.exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_tells_its_end_or_nothing() {
        let token = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        for (token, end) in [
            (
                token(r#"{"aud":["x"],"exp":1790000000,"iat":1}"#),
                Some(1_790_000_000),
            ),
            (token(r#"{"aud":["x"]}"#), None),
            (token("7"), None),
            ("opaque".to_owned(), None),
            ("a.!.c".to_owned(), None),
        ] {
            assert_eq!(end_of_token(&token), end, "{token}");
        }
    }

    #[test]
    fn a_certificate_tells_its_end() {
        let mut params = rcgen::CertificateParams::new(vec!["x".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let made = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        assert_eq!(end_of_certificate(made.der()), Some(1_893_456_000));
        assert_eq!(end_of_certificate(&CertificateDer::from(vec![1, 2, 3])), None);
    }
}
