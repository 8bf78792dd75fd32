//! Flags of the secure port and of who may use it.

use super::super::flag::Flag;
use super::super::value::Kind;

pub(super) static SECURE_SERVING: &[Flag] = &[
    Flag::new(
        "bind-address",
        Kind::Ip,
        "0.0.0.0",
        "The address to listen on. An unspecified one means all interfaces and families.",
    ),
    Flag::new(
        "cert-dir",
        Kind::Text,
        "",
        "A directory with cloud-controller-manager.crt and .key. They are made if missing. Empty for a certificate in memory.",
    ),
    Flag::new(
        "disable-http2-serving",
        Kind::Bool,
        "false",
        "Serve HTTP/1.1 only.",
    ),
    Flag::new(
        "http2-max-streams-per-connection",
        Kind::Int,
        "0",
        "Requests under way on one HTTP/2 connection. 0 for the default.",
    ),
    Flag::new(
        "permit-address-sharing",
        Kind::Bool,
        "false",
        "Set SO_REUSEADDR on the port, which is always done.",
    )
    .accepted(),
    Flag::new(
        "permit-port-sharing",
        Kind::Bool,
        "false",
        "Set SO_REUSEPORT on the port, so that several processes can listen on it.",
    ),
    Flag::new(
        "secure-port",
        Kind::Int,
        "10258",
        "The port for health and metrics, over HTTPS. 0 serves nothing.",
    ),
    Flag::new(
        "tls-cert-file",
        Kind::Text,
        "",
        "The certificate with its chain, as PEM. Needs --tls-private-key-file. Both are read again when they change.",
    ),
    Flag::new(
        "tls-cipher-suites",
        Kind::List,
        "",
        "The cipher suites of TLS 1.2 to offer, by name; those of TLS 1.3 are always offered. Empty for the defaults.",
    ),
    Flag::new(
        "tls-curve-preferences",
        Kind::IntList,
        "",
        "The key exchange groups to offer, by number. Empty for the defaults.",
    ),
    Flag::new(
        "tls-min-version",
        Kind::Text,
        "",
        "The oldest TLS version: VersionTLS12 or VersionTLS13. Older ones count as VersionTLS12.",
    ),
    Flag::new(
        "tls-private-key-file",
        Kind::Text,
        "",
        "The private key of --tls-cert-file, as PEM.",
    ),
    Flag::new(
        "tls-sni-cert-key",
        Kind::Repeated,
        "",
        "A further certificate for certain names, as cert,key or cert,key:pattern,pattern.",
    ),
];

pub(super) static AUTHENTICATION: &[Flag] = &[
    Flag::new(
        "authentication-kubeconfig",
        Kind::Text,
        "",
        "The kubeconfig of the cluster that reviews tokens and publishes who vouches for clients. Empty in a pod for the pod's cluster; elsewhere the loops' API server reviews, and nothing is looked up.",
    ),
    Flag::new(
        "authentication-skip-lookup",
        Kind::Bool,
        "false",
        "Do not read missing settings from the cluster.",
    ),
    Flag::new(
        "authentication-token-webhook-cache-ttl",
        Kind::Duration,
        "10s",
        "How long the answer about a token is remembered.",
    ),
    Flag::new(
        "authentication-tolerate-lookup-failure",
        Kind::Bool,
        "false",
        "Only warn if settings cannot be read from the cluster.",
    ),
    Flag::new(
        "client-ca-file",
        Kind::Text,
        "",
        "Certificates that client certificates must be signed by, instead of those that the cluster publishes. Read again when it changes.",
    ),
    Flag::new(
        "requestheader-allowed-names",
        Kind::List,
        "",
        "Common names of front proxies whose user headers are believed. Empty for any that the CA signed.",
    ),
    Flag::new(
        "requestheader-client-ca-file",
        Kind::Text,
        "",
        "Certificates that front proxies must be signed by.",
    ),
    Flag::new(
        "requestheader-extra-headers-prefix",
        Kind::List,
        "x-remote-extra-",
        "Prefixes of headers with further facts about a user.",
    ),
    Flag::new(
        "requestheader-group-headers",
        Kind::List,
        "x-remote-group",
        "Headers that name a user's groups.",
    ),
    Flag::new(
        "requestheader-uid-headers",
        Kind::List,
        "",
        "Headers that name a user's UID.",
    ),
    Flag::new(
        "requestheader-username-headers",
        Kind::List,
        "x-remote-user",
        "Headers that name a user.",
    ),
];

pub(super) static AUTHORIZATION: &[Flag] = &[
    Flag::new(
        "authorization-always-allow-paths",
        Kind::List,
        "/healthz,/readyz,/livez",
        "Paths that everybody may read; a prefix if it ends in an asterisk.",
    ),
    Flag::new(
        "authorization-kubeconfig",
        Kind::Text,
        "",
        "The kubeconfig of the cluster that answers access reviews. Empty in a pod for the pod's cluster, elsewhere for the loops' API server.",
    ),
    Flag::new(
        "authorization-webhook-cache-authorized-ttl",
        Kind::Duration,
        "10s",
        "How long a granted access is remembered.",
    ),
    Flag::new(
        "authorization-webhook-cache-unauthorized-ttl",
        Kind::Duration,
        "10s",
        "How long a refused access is remembered.",
    ),
];

pub(super) static WEBHOOK_SERVING: &[Flag] = &[
    Flag::new(
        "webhook-bind-address",
        Kind::Ip,
        "0.0.0.0",
        "As --bind-address, for webhooks.",
    ),
    Flag::new("webhook-cert-dir", Kind::Text, "", "As --cert-dir, for webhooks."),
    Flag::new(
        "webhook-disable-http2-serving",
        Kind::Bool,
        "false",
        "As --disable-http2-serving, for webhooks.",
    ),
    Flag::new(
        "webhook-secure-port",
        Kind::Int,
        "10260",
        "The port for webhooks. 0 is off. Nothing listens on it as long as no webhook is enabled.",
    ),
    Flag::new(
        "webhook-tls-cert-file",
        Kind::Text,
        "",
        "As --tls-cert-file, for webhooks.",
    ),
    Flag::new(
        "webhook-tls-cipher-suites",
        Kind::List,
        "",
        "As --tls-cipher-suites, for webhooks.",
    ),
    Flag::new(
        "webhook-tls-curve-preferences",
        Kind::IntList,
        "",
        "As --tls-curve-preferences, for webhooks.",
    ),
    Flag::new(
        "webhook-tls-min-version",
        Kind::Text,
        "",
        "As --tls-min-version, for webhooks.",
    ),
    Flag::new(
        "webhook-tls-private-key-file",
        Kind::Text,
        "",
        "As --tls-private-key-file, for webhooks.",
    ),
    Flag::new(
        "webhook-tls-sni-cert-key",
        Kind::Repeated,
        "",
        "As --tls-sni-cert-key, for webhooks.",
    ),
];

pub(super) static WEBHOOK: &[Flag] = &[Flag::new(
    "webhooks",
    Kind::List,
    "",
    "The webhooks to serve, as in --controllers.",
)];
