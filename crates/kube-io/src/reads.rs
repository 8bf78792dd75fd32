//! Reads: single objects, and lists in pages.

use std::sync::Arc;

use bowline_cloud_provider::{Node, NodeName, ServerVersion, Service, ServiceKey};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::CacheKey;
use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, segment};
use crate::writes::node_path;

/// Objects per page. A page of 100 large Nodes is 3 MiB of JSON, which is in memory only while it is converted.
const PAGE: usize = 100;

/// How often a list is begun again because its continuation expired while it was read.
const LIST_ATTEMPTS: usize = 3;

/// A kind of object that is listed and watched.
pub(crate) trait Listed: CacheKey + Sized {
    /// The plural, for the path.
    const PLURAL: &'static str;

    /// Reads one object.
    fn decode(bytes: &[u8], kube: &Kube) -> Result<Self, KubeError>;

    /// The key of these two.
    fn key_of(namespace: &str, name: &str) -> Self::Key;
}

impl Listed for Node {
    const PLURAL: &'static str = "nodes";

    fn decode(bytes: &[u8], kube: &Kube) -> Result<Self, KubeError> {
        crate::node::decode(bytes, &kube.link.strings)
    }

    fn key_of(_: &str, name: &str) -> NodeName {
        NodeName::new(name)
    }
}

impl Listed for Service {
    const PLURAL: &'static str = "services";

    fn decode(bytes: &[u8], _: &Kube) -> Result<Self, KubeError> {
        crate::service::decode(bytes)
    }

    fn key_of(namespace: &str, name: &str) -> ServiceKey {
        ServiceKey::new(namespace, name)
    }
}

/// All objects of a kind at one moment.
pub(crate) struct Listing<T: CacheKey> {
    pub(crate) objects: Vec<Arc<T>>,
    /// Objects that are there but could not be understood.
    pub(crate) unreadable: Vec<T::Key>,
    pub(crate) resource_version: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: ListMeta,
    // Read one by one, so that an object that cannot be understood is an error of that object alone.
    #[serde(borrow, default = "Vec::new")]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// The names of an object, for when nothing more can be read of it.
#[derive(Deserialize)]
struct Named {
    metadata: Names,
}

#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    namespace: String,
    name: String,
}

/// The key of an object that does not decode.
pub(crate) fn key_of<T: Listed>(bytes: &[u8]) -> Option<T::Key> {
    let Named { metadata } = serde_json::from_slice(bytes).ok()?;
    Some(T::key_of(&metadata.namespace, &metadata.name))
}

#[derive(Deserialize)]
struct Version {
    major: String,
    minor: String,
}

#[derive(Deserialize)]
struct Uid {
    metadata: UidMeta,
}

#[derive(Deserialize)]
struct UidMeta {
    uid: String,
}

impl Kube {
    /// The version of the API server.
    ///
    /// # Errors
    ///
    /// Also if the answer is no version.
    pub async fn server_version(&self) -> Result<ServerVersion, KubeError> {
        let version: Version = read(&self.exchange(Call::get("/version")).await?)?;
        ServerVersion::parse(&version.major, &version.minor)
            .ok_or_else(|| KubeError::Decode(format!("version {}.{}", version.major, version.minor)))
    }

    /// The UID of a namespace.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] under roles that do not grant it, as those of some Go managers.
    pub async fn namespace_uid(&self, name: &str) -> Result<String, KubeError> {
        let path = format!("/api/v1/namespaces/{}", segment(name));
        let object: Uid = read(&self.exchange(Call::get(path)).await?)?;
        Ok(object.metadata.uid)
    }

    /// Whether the API server says that it is healthy.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn is_healthy(&self) -> Result<(), KubeError> {
        self.exchange(Call::get("/healthz")).await.map(drop)
    }

    /// Reads one Node.
    ///
    /// # Errors
    ///
    /// [`KubeError::NotFound`] if there is none of this name.
    pub async fn node(&self, name: &NodeName) -> Result<Node, KubeError> {
        let answer = self.exchange(Call::get(node_path(name, ""))).await?;
        Node::decode(&answer, self)
    }

    /// All Nodes, in name order.
    ///
    /// # Errors
    ///
    /// Also if a single Node cannot be understood: a list with gaps would be a lie.
    pub async fn list_nodes(&self) -> Result<Vec<Arc<Node>>, KubeError> {
        self.complete_list().await
    }

    /// All Services, in order of namespace and name.
    ///
    /// # Errors
    ///
    /// Also if a single Service cannot be understood: a list with gaps would be a lie.
    pub async fn list_services(&self) -> Result<Vec<Arc<Service>>, KubeError> {
        self.complete_list().await
    }

    async fn complete_list<T: Listed>(&self) -> Result<Vec<Arc<T>>, KubeError> {
        let mut listing = self.list::<T>().await?;
        if let Some(key) = listing.unreadable.first() {
            return Err(KubeError::Decode(format!("{} {key:?}", T::PLURAL)));
        }
        listing.objects.sort_by_key(|object| object.key());
        Ok(listing.objects)
    }

    /// Lists page by page; each page is converted before the next is asked for.
    pub(crate) async fn list<T: Listed>(&self) -> Result<Listing<T>, KubeError> {
        let mut attempt = 1;
        loop {
            match self.list_once().await {
                Err(KubeError::Expired(_)) if attempt < LIST_ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    async fn list_once<T: Listed>(&self) -> Result<Listing<T>, KubeError> {
        let mut listing = Listing {
            objects: Vec::new(),
            unreadable: Vec::new(),
            resource_version: String::new(),
        };
        let mut next = String::new();
        loop {
            // No resource version: with one, the API server answers from its cache and ignores the page size.
            let mut path = format!("/api/v1/{}?limit={PAGE}", T::PLURAL);
            if !next.is_empty() {
                path.push_str("&continue=");
                path.push_str(&segment(&next));
            }
            let answer = self.exchange(Call::get(path)).await?;
            let page: Page<'_> = read(&answer)?;
            for item in page.items {
                match T::decode(item.get().as_bytes(), self) {
                    Ok(object) => listing.objects.push(Arc::new(object)),
                    Err(error) => {
                        let key = key_of::<T>(item.get().as_bytes()).ok_or(error.clone())?;
                        tracing::warn!(kind = T::PLURAL, object = ?key, err = %error, "Object cannot be understood");
                        listing.unreadable.push(key);
                    }
                }
            }
            listing.resource_version = page.metadata.resource_version;
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(listing);
            }
        }
    }
}

pub(crate) fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, KubeError> {
    serde_json::from_slice(answer).map_err(|error| KubeError::Decode(error.to_string()))
}
