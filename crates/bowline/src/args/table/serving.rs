//! Flags of the secure port and of who may use it.

use super::super::flag::Flag;
use super::super::value::Kind;

pub(super) static SECURE_SERVING: &[Flag] = &[
    Flag::new("bind-address", Kind::Ip, "0.0.0.0", "The address to listen on. 0.0.0.0 and :: mean all interfaces, IPv4 and IPv6."),
    Flag::new("cert-dir", Kind::Text, "", "The directory of cloud-controller-manager.crt and cloud-controller-manager.key. Missing files are created. If empty, the certificate is made in memory."),
    Flag::new("disable-http2-serving", Kind::Bool, "false", "Serve HTTP/1.1 only."),
    Flag::new("http2-max-streams-per-connection", Kind::Int, "0", "How many requests may be under way on one HTTP/2 connection. 0 means the default."),
    Flag::new("permit-address-sharing", Kind::Bool, "false", "Set SO_REUSEADDR on the port, which is always done.").accepted(),
    Flag::new("permit-port-sharing", Kind::Bool, "false", "Set SO_REUSEPORT on the port, so that several processes can listen on it."),
    Flag::new("secure-port", Kind::Int, "10258", "The port of the health checks and metrics, over HTTPS. With 0 none is opened."),
    Flag::new("tls-cert-file", Kind::Text, "", "The file of the certificate with its chain, as PEM. Needs --tls-private-key-file. Both files are read again when they change."),
    Flag::new("tls-cipher-suites", Kind::List, "", "The cipher suites of TLS 1.2 to offer, by name. Those of TLS 1.3 are always offered. If empty, the defaults are offered."),
    Flag::new("tls-curve-preferences", Kind::IntList, "", "The key exchange groups to offer, by number. If empty, the defaults are offered."),
    Flag::new("tls-min-version", Kind::Text, "", "The oldest TLS version to accept: VersionTLS12 or VersionTLS13. Older ones mean VersionTLS12."),
    Flag::new("tls-private-key-file", Kind::Text, "", "The file of the private key of --tls-cert-file, as PEM."),
    Flag::new("tls-sni-cert-key", Kind::Repeated, "", "The files of a further certificate and its key, used for certain host names: cert,key or cert,key:pattern,pattern."),
];

pub(super) static AUTHENTICATION: &[Flag] = &[
    Flag::new("authentication-kubeconfig", Kind::Text, "", "The kubeconfig of the cluster that reviews tokens and publishes the certificate authorities of clients. If empty: in a pod, the pod's cluster does both; elsewhere, the API server of the controllers reviews tokens, and no authorities are looked up."),
    Flag::new("authentication-skip-lookup", Kind::Bool, "false", "Do not read missing authentication settings from the cluster."),
    Flag::new("authentication-token-webhook-cache-ttl", Kind::Duration, "10s", "How long the result of a token review is cached."),
    Flag::new("authentication-tolerate-lookup-failure", Kind::Bool, "false", "If authentication settings cannot be read from the cluster, warn and go on."),
    Flag::new("client-ca-file", Kind::Text, "", "The file of the certificate authorities of clients, used instead of those that the cluster publishes. The file is read again when it changes."),
    Flag::new("requestheader-allowed-names", Kind::List, "", "Common names of the front proxies whose user headers are accepted. If empty, any certificate of the CA is accepted."),
    Flag::new("requestheader-client-ca-file", Kind::Text, "", "The file of the certificate authorities of front proxies."),
    Flag::new("requestheader-extra-headers-prefix", Kind::List, "x-remote-extra-", "Prefixes of the headers with further attributes of a user."),
    Flag::new("requestheader-group-headers", Kind::List, "x-remote-group", "The headers with a user's groups."),
    Flag::new("requestheader-uid-headers", Kind::List, "", "The headers with a user's UID."),
    Flag::new("requestheader-username-headers", Kind::List, "x-remote-user", "The headers with a user's name."),
];

pub(super) static AUTHORIZATION: &[Flag] = &[
    Flag::new("authorization-always-allow-paths", Kind::List, "/healthz,/readyz,/livez", "Paths that everybody may read. A path that ends in an asterisk is a prefix."),
    Flag::new("authorization-kubeconfig", Kind::Text, "", "The kubeconfig of the cluster that answers access reviews. If empty: in a pod, the pod's cluster; elsewhere, the API server of the controllers."),
    Flag::new("authorization-webhook-cache-authorized-ttl", Kind::Duration, "10s", "How long a granted access is cached."),
    Flag::new("authorization-webhook-cache-unauthorized-ttl", Kind::Duration, "10s", "How long a refused access is cached."),
];

pub(super) static WEBHOOK_SERVING: &[Flag] = &[
    Flag::new("webhook-bind-address", Kind::Ip, "0.0.0.0", "As --bind-address, for webhooks."),
    Flag::new("webhook-cert-dir", Kind::Text, "", "As --cert-dir, for webhooks."),
    Flag::new("webhook-disable-http2-serving", Kind::Bool, "false", "As --disable-http2-serving, for webhooks."),
    Flag::new("webhook-secure-port", Kind::Int, "10260", "The port of the webhooks. 0 switches it off. It is opened only if a webhook is enabled, and this program has none."),
    Flag::new("webhook-tls-cert-file", Kind::Text, "", "As --tls-cert-file, for webhooks."),
    Flag::new("webhook-tls-cipher-suites", Kind::List, "", "As --tls-cipher-suites, for webhooks."),
    Flag::new("webhook-tls-curve-preferences", Kind::IntList, "", "As --tls-curve-preferences, for webhooks."),
    Flag::new("webhook-tls-min-version", Kind::Text, "", "As --tls-min-version, for webhooks."),
    Flag::new("webhook-tls-private-key-file", Kind::Text, "", "As --tls-private-key-file, for webhooks."),
    Flag::new("webhook-tls-sni-cert-key", Kind::Repeated, "", "As --tls-sni-cert-key, for webhooks."),
];

pub(super) static WEBHOOK: &[Flag] = &[Flag::new("webhooks", Kind::List, "", "The webhooks to serve, as in --controllers.")];
