//! Objects as the API server shows them, for the commands that a person runs; the manager's own role does not grant these reads.

use std::collections::BTreeMap;

use bowline_transport::pem;
use serde::Deserialize;
use serde_json::Value;

use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, object_path, segment};
use crate::shape::read;

/// Objects that are asked for at once: one page, and what is beyond is left out.
const MOST: usize = 2_000;

#[derive(Deserialize)]
struct Secret {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
}

impl Kube {
    /// The values of a Secret by their keys; `None` if there is no such Secret.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not read it.
    pub async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, Vec<u8>>>, KubeError> {
        let path = object_path("api/v1", namespace, "secrets", name);
        match self.exchange(Call::get(path)).await {
            Ok(body) => {
                let decoded = |(key, value): (String, String)| match pem::from_base64(&value) {
                    Ok(value) => Ok((key, value)),
                    Err(error) => Err(KubeError::Decode(format!(
                        "the key `{key}` of the Secret: {error}"
                    ))),
                };
                let data = read::<Secret>(&body)?.data;
                data.into_iter().map(decoded).collect::<Result<_, _>>().map(Some)
            }
            Err(KubeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects of a kind of the core group in all namespaces, by the plural of its name.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list them.
    pub async fn plain_objects(&self, plural: &str) -> Result<Vec<Value>, KubeError> {
        let path = format!("/api/v1/{}?limit={MOST}", segment(plural));
        let List { items } = read(&self.exchange(Call::get(path)).await?)?;
        Ok(items)
    }

    /// What a pod's secure port answers, asked through the API server.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not, or what the pod answers.
    pub async fn ask_pod(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
        path: &str,
    ) -> Result<String, KubeError> {
        let path = format!(
            "/api/v1/namespaces/{}/pods/https:{}:{port}/proxy{path}",
            segment(namespace),
            segment(pod)
        );
        let body = self.exchange(Call::get(path)).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}
