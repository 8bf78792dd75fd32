//! What to do about a call to a cloud that failed: one table for events, conditions, `doctor` and `explain`.

use bowline_cloud_provider::{ErrorKind, keys};
use bowline_plan::speaks_of_no_address;

/// A quota or limit.
pub const LIMIT: &str = "a quota or limit of the cloud is reached, or it has no more of this: have the limit raised, delete what nobody needs, or ask for something else";

/// A network or subnet without a free address.
pub const FULL: &str = "a network or subnet has no free address: whoever runs it frees some, or extends it or its allocation pool; or ask for an address elsewhere";

/// The credentials are refused.
pub const UNAUTHENTICATED: &str = "the cloud does not take the credentials, because a token, key or password is wrong, expired or revoked: give the manager new ones";

/// The credentials may not do this.
pub const DENIED: &str = "the cloud does not let these credentials do it: if the text names an address, a network or another object, see that it exists and that this project may use it; else give the manager credentials that may write in the project of this cluster";

/// What a provider says of a command that the role of the manager's account lacks.
const OF_ROLE: &str = "the role of their account allows";

/// What to do about it.
pub const ROLE: &str = "whoever runs the manager has the role of its account changed, so that it allows this";

/// What a client says of a service that refuses the token that a login has just given.
const OF_NEW_TOKEN: &str = "The login succeeded";

/// What to do about it.
pub const NEW_TOKEN: &str = "the credentials are right, and this service alone refuses the tokens of new logins: whoever runs the cloud looks at the service's own settings (on OpenStack those of keystonemiddleware, and the region) and at its clock";

/// The API shows a certificate that is not trusted.
pub const UNTRUSTED: &str = "the certificate of the cloud's API is not trusted here: give the manager the authority that signed it (ca-file in cloud.conf on OpenStack, else a file that SSL_CERT_FILE names), or correct the certificate";

/// The API shows a certificate that is not valid any more.
pub const EXPIRED: &str = "the certificate of the cloud's API has expired: whoever runs that API renews it; if it has not, correct the clock here";

/// The name of the API leads to no address.
pub const UNRESOLVED: &str = "the name of the cloud's API has no address here: if it is right, whoever runs the cluster looks at the DNS of the manager's pod; on the host's network that is the Node's, unless its dnsPolicy is ClusterFirstWithHostNet";

/// A proxy on the way does not take the credentials, or wants some.
pub const PROXY: &str = "the cloud itself was not reached, so its credentials and names are not the cause: whoever runs that proxy lets the manager through, or whoever runs the manager gives HTTPS_PROXY (HTTP_PROXY for an address with http://) of its pods the user and password";

/// The API server asks to be left alone. For the condition only: an event is a write, too.
pub const BUSY: &str = "the API server is busy, or limits the manager's account: whoever runs the cluster looks at what floods it, and at its flow schemas (kubectl get flowschemas); the manager tries again by itself";

/// Somebody takes the status away again and again. For the condition only: the event is another one.
pub const CHANGED_BACK: &str = "whoever runs the program that the text names, such as a GitOps tool or a restore, has it leave this part of the Service alone: it is written again after up to five minutes only";

/// The cloud has not answered a call. For the condition only: the cloud did not fail.
pub const UNANSWERED: &str = "nobody has to do anything: the load balancer is looked at again until then, and a deletion ends after that";

/// What to do where the cloud takes long for each call.
pub const SLOW: &str = "nobody has to do anything, unless it stays: then look at the cloud's own status page, and at what is between the manager and \
    the cloud; see docs/runbooks/BowlineCloudSlow.md";

/// What is said about all failures of a kind; what else is said of one is about it in particular.
pub const ALL: [&str; 9] = [
    LIMIT,
    FULL,
    UNAUTHENTICATED,
    DENIED,
    ROLE,
    UNTRUSTED,
    EXPIRED,
    PROXY,
    UNRESOLVED,
];

/// What to do, where the kind of the failure or its text tells it.
#[must_use]
pub fn about(kind: ErrorKind, text: &str) -> Option<&'static str> {
    match kind {
        ErrorKind::Exhausted if speaks_of_no_address(text) => Some(FULL),
        ErrorKind::Exhausted => Some(LIMIT),
        ErrorKind::Unauthenticated if text.contains(OF_NEW_TOKEN) => Some(NEW_TOKEN),
        ErrorKind::Unauthenticated => Some(UNAUTHENTICATED),
        ErrorKind::Denied if text.contains(OF_ROLE) => Some(ROLE),
        ErrorKind::Denied => Some(DENIED),
        _ => of_the_way(text),
    }
}

/// What to do, where the text tells of something between the manager and the cloud.
#[must_use]
pub fn of_the_way(text: &str) -> Option<&'static str> {
    if text.contains("proxy ") && text.contains("(407)") {
        return Some(PROXY);
    }
    if text.contains("dns error") {
        return Some(UNRESOLVED);
    }
    let is_expired = text.contains("xpired"); // as a word of rustls or in a sentence of it
    let advice = if is_expired { EXPIRED } else { UNTRUSTED };
    text.contains("invalid peer certificate").then_some(advice)
}

/// What to do about the taint of an autoscaler.
#[must_use]
pub fn untaint(name: &str) -> String {
    format!(
        "unless an autoscaler is about to take the Nodes away, whoever runs the cluster takes its taint off each: kubectl taint node {name} {}-",
        keys::TAINT_TO_BE_DELETED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_a_denial_and_an_unknown_certificate_have_remedies_of_their_own() {
        let certificate = "GET /v3: invalid peer certificate: UnknownIssuer";
        for (kind, text, advice) in [
            (
                ErrorKind::Unauthenticated,
                "401 Unauthorized",
                Some(UNAUTHENTICATED),
            ),
            (
                ErrorKind::Unauthenticated,
                "401 Unauthorized. The login succeeded, and the service refuses the new token as well",
                Some(NEW_TOKEN),
            ),
            (ErrorKind::Denied, "403 Forbidden", Some(DENIED)),
            (
                ErrorKind::Denied,
                "see whether the role of their account allows `listVirtualMachines`",
                Some(ROLE),
            ),
            (ErrorKind::Exhausted, "quota", Some(LIMIT)),
            (
                ErrorKind::Exhausted,
                "409 Conflict: No more IP addresses available on network n.",
                Some(FULL),
            ),
            (ErrorKind::Transient, certificate, Some(UNTRUSTED)),
            (
                ErrorKind::Transient,
                "cannot connect: proxy 10.0.0.1:3128: it wants other credentials (407)",
                Some(PROXY),
            ),
            (
                ErrorKind::Transient,
                "GET /v3: invalid peer certificate: Expired",
                Some(EXPIRED),
            ),
            (
                ErrorKind::Transient,
                "GET /v3: cannot connect: dns error: failed to lookup address information",
                Some(UNRESOLVED),
            ),
            (ErrorKind::Transient, "503", None),
        ] {
            assert_eq!(about(kind, text), advice, "{text}");
        }
    }
}
