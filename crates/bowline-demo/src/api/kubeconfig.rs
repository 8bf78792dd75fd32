//! The part of a kubeconfig that test control planes use: one server, its authority, a client certificate or nothing.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;

use super::Endpoint;
use crate::service;

/// The endpoint of the current context.
pub(super) fn endpoint(text: &str) -> anyhow::Result<Endpoint> {
    let config: Value = serde_saphyr::from_str(text).context("the kubeconfig is not YAML")?;
    let current = config["current-context"]
        .as_str()
        .context("the kubeconfig has no current context")?;
    let context = named(&config, "contexts", "context", current)?;
    let of_context = |list, field| {
        let name = context[field].as_str().unwrap_or_default();
        named(&config, list, field, name)
    };
    let (cluster, user) = (of_context("clusters", "cluster")?, of_context("users", "user")?);
    let server = cluster["server"].as_str().context("the cluster has no server")?;
    if let Some(authority) = server.strip_prefix("http://") {
        return Ok(Endpoint::plain(authority.trim_end_matches('/')));
    }
    let Some(authority) = server.strip_prefix("https://") else {
        bail!("`{server}` is no address of a server");
    };
    let authority = authority.trim_end_matches('/');
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
    Ok(Endpoint::tls(authority, tls(cluster, user)?, name))
}

fn named<'a>(config: &'a Value, list: &str, field: &str, name: &str) -> anyhow::Result<&'a Value> {
    service::list(&config[list])
        .find(|entry| entry["name"] == name)
        .map(|entry| &entry[field])
        .with_context(|| format!("the kubeconfig has no {field} `{name}`"))
}

fn tls(cluster: &Value, user: &Value) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&data(cluster, "certificate-authority-data")?) {
        roots.add(certificate.context("the cluster's authority is no certificate")?)?;
    }
    let chain = CertificateDer::pem_slice_iter(&data(user, "client-certificate-data")?)
        .collect::<Result<Vec<_>, _>>()
        .context("the user's certificate is none")?;
    let key =
        PrivateKeyDer::from_pem_slice(&data(user, "client-key-data")?).context("the user's key is none")?;
    let config =
        ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
    Ok(config)
}

fn data(object: &Value, field: &str) -> anyhow::Result<Vec<u8>> {
    let text = object[field]
        .as_str()
        .with_context(|| format!("the kubeconfig has no {field}"))?;
    BASE64
        .decode(text)
        .with_context(|| format!("{field} is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_servers_kubeconfig_is_understood() {
        let text = bowline_kube_api::KubeApi::kubeconfig("127.0.0.1:6443".parse().unwrap());
        assert_eq!(endpoint(&text).unwrap().authority(), "127.0.0.1:6443");
    }

    #[test]
    fn what_is_missing_is_named() {
        let text = r#"{"current-context": "a", "contexts": [{"name": "b", "context": {}}]}"#;
        let error = endpoint(text).unwrap_err().to_string();
        assert_eq!(error, "the kubeconfig has no context `a`");
    }
}
