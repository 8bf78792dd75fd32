//! What to do about a call to a cloud that failed: one table for events, conditions, `doctor` and `explain`.

use bowline_cloud_provider::ErrorKind;

/// A quota or limit.
pub const LIMIT: &str = "a quota or limit of the cloud is reached, or it has no more of this: have the limit raised, delete what nobody needs, or ask for something else";

/// The credentials are refused.
pub const UNAUTHENTICATED: &str = "the cloud does not take the credentials, because a token, key or password is wrong, expired or revoked: give the manager new ones";

/// The credentials may not do this.
pub const DENIED: &str = "the cloud does not let these credentials do it: if the text names an address, a network or another object, see that it exists and that this project may use it; else give the manager credentials that may write in the project of this cluster";

/// The API shows a certificate that is not trusted.
pub const UNTRUSTED: &str = "the certificate of the cloud's API is not trusted here: give the manager the authority that signed it (ca-file in cloud.conf on OpenStack, else a file that SSL_CERT_FILE names), or correct the certificate";

/// What to do, where the kind of the failure or its text tells it.
#[must_use]
pub fn about(kind: ErrorKind, text: &str) -> Option<&'static str> {
    match kind {
        ErrorKind::Exhausted => Some(LIMIT),
        ErrorKind::Unauthenticated => Some(UNAUTHENTICATED),
        ErrorKind::Denied => Some(DENIED),
        _ => about_certificate(text),
    }
}

/// The same, where only a text is left of a failure.
#[must_use]
pub fn about_text(text: &str) -> Option<&'static str> {
    let is_refused = text.contains("401") || text.contains("Unauthorized");
    about_certificate(text).or_else(|| is_refused.then_some(UNAUTHENTICATED))
}

fn about_certificate(text: &str) -> Option<&'static str> {
    text.contains("invalid peer certificate").then_some(UNTRUSTED)
}
