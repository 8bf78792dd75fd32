//! The secure port's flags: what is served with which certificates and which TLS, and who may read it.

use bowline_manager::config::{
    AccessConfig, CertificateSource, CipherSuites, FrontProxyConfig, FrontProxyHeaders, Groups, Lookup,
    NamedCertificate, ServingConfig, TlsConfig,
};

use super::features;
use super::parse::Flags;
use super::validate::Checks;

/// Resolves the flags of the secure port; `None`: nothing is served.
pub(super) fn resolve(flags: &Flags, checks: &mut Checks<'_>) -> Option<ServingConfig> {
    let port = checks.port("secure-port");
    webhooks(flags, checks, port);
    let certificate = certificate(flags, checks, "");
    let named_certificates = named_certificates(flags, checks, "");
    let tls = tls(flags, checks, "");
    let streams = checks.at_least("http2-max-streams-per-connection", 0);
    let access = access(flags, checks);
    (port != 0).then(|| ServingConfig {
        address: flags.ip("bind-address"),
        port,
        shares_port: flags.switch("permit-port-sharing"),
        certificate,
        named_certificates,
        tls,
        http2: !flags.switch("disable-http2-serving"),
        http2_streams: u32::try_from(streams).ok().filter(|streams| *streams > 0),
        profiling: flags.switch("profiling"),
        access,
    })
}

/// The flags of webhooks are checked as those of the secure port are. No webhook is built in, so none can be enabled.
fn webhooks(flags: &Flags, checks: &mut Checks<'_>, port: u16) {
    let webhook_port = checks.port("webhook-secure-port");
    if port != 0 && port == webhook_port {
        checks.fault(format!(
            "--secure-port and --webhook-secure-port must differ, both are {port}"
        ));
    }
    for entry in flags.list("webhooks") {
        let name = entry.strip_prefix('-').unwrap_or(&entry);
        if entry != "*" {
            checks.fault(format!("{name:?} is not in the list of known webhooks"));
        }
    }
    certificate(flags, checks, "webhook-");
    named_certificates(flags, checks, "webhook-");
    tls(flags, checks, "webhook-");
}

fn certificate(flags: &Flags, checks: &mut Checks<'_>, prefix: &str) -> CertificateSource {
    let [certificate, key, directory] =
        ["tls-cert-file", "tls-private-key-file", "cert-dir"].map(|name| format!("{prefix}{name}"));
    match (flags.path(&certificate), flags.path(&key)) {
        (Some(certificate), Some(key)) => CertificateSource::Files { certificate, key },
        (None, None) => flags
            .path(&directory)
            .map_or(CertificateSource::Memory, CertificateSource::Directory),
        _ => {
            checks.fault(format!("--{certificate} and --{key} must be given together"));
            CertificateSource::Memory
        }
    }
}

/// Reads `cert,key` and `cert,key:pattern,pattern`.
fn named_certificates(flags: &Flags, checks: &mut Checks<'_>, prefix: &str) -> Vec<NamedCertificate> {
    let name = format!("{prefix}tls-sni-cert-key");
    let mut named = Vec::new();
    for entry in flags.list(&name) {
        let (files, patterns) = entry.split_once(':').unwrap_or((&entry, ""));
        match files.split_once(',') {
            Some((certificate, key)) if !certificate.is_empty() && !key.is_empty() && !key.contains(',') => {
                named.push(NamedCertificate {
                    certificate: certificate.into(),
                    key: key.into(),
                    names: patterns
                        .split(',')
                        .map(str::trim)
                        .filter(|pattern| !pattern.is_empty())
                        .map(str::to_owned)
                        .collect(),
                });
            }
            _ => checks.fault(format!(
                "--{name}: {entry:?} is not of the form cert,key or cert,key:pattern,pattern"
            )),
        }
    }
    named
}

fn tls(flags: &Flags, checks: &mut Checks<'_>, prefix: &str) -> TlsConfig {
    let suites = format!("{prefix}tls-cipher-suites");
    let groups = format!("{prefix}tls-curve-preferences");
    let (names, numbers) = (flags.list(&suites), flags.ints(&groups));
    TlsConfig {
        requires_tls13: checks.tls_version(&format!("{prefix}tls-min-version")),
        cipher_suites: (!names.is_empty())
            .then(|| {
                CipherSuites::parse(&names).map_err(|error| checks.fault(format!("--{suites}: {error}")))
            })
            .and_then(Result::ok),
        groups: (!numbers.is_empty())
            .then(|| Groups::parse(&numbers).map_err(|error| checks.fault(format!("--{groups}: {error}"))))
            .and_then(Result::ok),
    }
}

fn access(flags: &Flags, checks: &mut Checks<'_>) -> AccessConfig {
    checks.request_headers();
    let always_allowed = flags.list("authorization-always-allow-paths");
    for path in &always_allowed {
        if path.trim_end_matches('*').contains('*') || path.ends_with("**") {
            checks.fault(format!(
                "--authorization-always-allow-paths: only trailing * allowed in {path:?}"
            ));
        }
    }
    let headers = FrontProxyHeaders {
        allowed_names: flags.list("requestheader-allowed-names"),
        username: flags.list("requestheader-username-headers"),
        uid: flags.list("requestheader-uid-headers"),
        group: flags.list("requestheader-group-headers"),
        extra_prefix: flags.list("requestheader-extra-headers-prefix"),
    };
    let lookup = if flags.switch("authentication-skip-lookup") {
        Lookup::Skipped
    } else if flags.switch("authentication-tolerate-lookup-failure") {
        Lookup::Tolerated
    } else {
        Lookup::Required
    };
    AccessConfig {
        always_allowed,
        token_ttl: checks.pause("authentication-token-webhook-cache-ttl"),
        granted_ttl: checks.pause("authorization-webhook-cache-authorized-ttl"),
        refused_ttl: checks.pause("authorization-webhook-cache-unauthorized-ttl"),
        client_ca: flags.path("client-ca-file"),
        front_proxy: flags
            .path("requestheader-client-ca-file")
            .map(|ca| FrontProxyConfig { ca, headers }),
        lookup,
        front_proxy_uids: features::is_on(&flags.gates("feature-gates"), "RemoteRequestHeaderUID"),
    }
}
