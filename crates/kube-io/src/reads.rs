//! Reads: single objects, and lists in pages.

mod pages;

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::{Node, NodeName, ServerVersion, Service, ServiceKey};
use serde::Deserialize;

use crate::cache::{Cache, CacheKey, ServiceCache};
use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, LONGEST_ANSWER, node_path, object_path, segment};
use crate::shape::{Bearer, Found, Listing, Shown, names, read, version_number};
use crate::waits::is_passing;
use pages::Pages;

/// Objects per page. A page of 100 large Nodes is 3 MiB of JSON, which is in memory only while it is converted.
const PAGE: usize = 100;

/// The most bytes of a page. Of one that is longer, fewer objects are asked for.
const LONGEST_PAGE: usize = 8 << 20;

/// How often a list is begun again because its continuation expired while it was read.
const LIST_ATTEMPTS: usize = 3;

/// A kind of object that is listed and watched.
pub(crate) trait Listed: CacheKey + Sized {
    /// The plural, for the path.
    const PLURAL: &'static str;
    /// The kind of a list of them.
    const LIST: &'static str;

    /// Reads one object, as far as it can be understood.
    ///
    /// # Errors
    ///
    /// It does not tell which object it is: it lacks its name, UID or version.
    fn decode(bytes: &[u8], kube: &Kube) -> Result<Shown<Self>, KubeError>;

    /// The key of these two; `None` if it lacks one of them.
    fn key_of(namespace: &str, name: &str) -> Option<Self::Key>;

    /// Namespace and name of a key; an empty namespace is none.
    fn names_of(key: &Self::Key) -> (&str, &str);
}

impl Listed for Node {
    const PLURAL: &'static str = "nodes";
    const LIST: &'static str = "NodeList";

    fn decode(bytes: &[u8], kube: &Kube) -> Result<Shown<Self>, KubeError> {
        crate::node::decode(bytes, &kube.link.strings)
    }

    fn key_of(_: &str, name: &str) -> Option<NodeName> {
        (!name.is_empty()).then(|| NodeName::new(name))
    }

    fn names_of(key: &NodeName) -> (&str, &str) {
        ("", key.as_str())
    }
}

impl Listed for Service {
    const PLURAL: &'static str = "services";
    const LIST: &'static str = "ServiceList";

    fn decode(bytes: &[u8], _: &Kube) -> Result<Shown<Self>, KubeError> {
        crate::service::decode(bytes)
    }

    fn key_of(namespace: &str, name: &str) -> Option<ServiceKey> {
        (!namespace.is_empty() && !name.is_empty()).then(|| ServiceKey::new(namespace, name))
    }

    fn names_of(key: &ServiceKey) -> (&str, &str) {
        (&key.namespace, &key.name)
    }
}

/// The error with the kind and the name of the object.
pub(crate) fn about<T: Listed>(error: KubeError, key: &T::Key) -> KubeError {
    let name = match T::names_of(key) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    error.about(T::LIST.trim_end_matches("List"), &name)
}

/// Reads the answer to a request for this very object.
pub(crate) fn decode_answer<T: Listed>(
    answer: &[u8],
    key: &T::Key,
    kube: &Kube,
) -> Result<Arc<T>, KubeError> {
    let object = T::decode(answer, kube).and_then(|Shown { object, trouble }| match trouble {
        _ if object.key() != *key => Err(KubeError::Decode("the answer is about another object".into())),
        Some(trouble) => Err(trouble),
        None => Ok(object),
    });
    object.map_err(|error| about::<T>(error, key))
}

#[derive(Deserialize)]
struct Version {
    major: String,
    minor: String,
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
        let uid = names(&self.exchange(Call::get(path)).await?).uid;
        if uid.is_empty() {
            return Err(KubeError::missing("metadata.uid").about("Namespace", name));
        }
        Ok(uid)
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
        decode_answer(&answer, name, self).map(Arc::unwrap_or_clone)
    }

    /// Whether there is a Node of this name. Asked with a list, whose answer is checked as every list is.
    ///
    /// # Errors
    ///
    /// Also if the answer is not one to this question: then nothing is known.
    pub async fn has_node(&self, name: &NodeName) -> Result<bool, KubeError> {
        let found = self.find::<Node>(name).await?;
        Ok(!matches!(found.bearer, Bearer::Nobody))
    }

    /// Whether there is an object of this name; of a Secret nothing but that is asked for.
    ///
    /// # Errors
    ///
    /// Also if what is not found is not this one: then nothing is known.
    pub async fn has(&self, plural: &str, namespace: &str, name: &str) -> Result<bool, KubeError> {
        let path = object_path("api/v1", namespace, plural, name);
        match self.exchange(Call::get(path).for_metadata()).await {
            Ok(_) => Ok(true),
            Err(KubeError::NotFound(text)) if text.contains(&format!("\"{name}\"")) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The Service that bears this name now, asked for as [`has_node`](Self::has_node) asks. The answer is not older than
    /// any Service of the cache.
    ///
    /// # Errors
    ///
    /// Also if the answer is older, or not one to this question: then nothing is known.
    pub async fn find_service(
        &self,
        key: &ServiceKey,
        cache: &ServiceCache,
    ) -> Result<Option<Arc<Service>>, KubeError> {
        let known = cache.all();
        let newest = known
            .iter()
            .filter_map(|known| version_number(known.resource_version()))
            .max();
        let found = self.find::<Service>(key).await?;
        if Some(found.version) < newest {
            let text = "the answer is older than what is known already".to_owned();
            return Err(about::<Service>(KubeError::Decode(text), key));
        }
        match found.bearer {
            Bearer::Nobody => Ok(None),
            Bearer::Object(seen) => Ok(Some(seen.object)),
            Bearer::Nameless(error) => Err(error),
        }
    }

    /// All Nodes, in name order, each as far as it can be understood.
    ///
    /// # Errors
    ///
    /// If there is no list, or it is not believed.
    pub async fn list_nodes(&self) -> Result<Vec<Arc<Node>>, KubeError> {
        self.sorted_list(|_| Ok(())).await
    }

    /// All Nodes, for a proof of what they do not have.
    ///
    /// # Errors
    ///
    /// Also if a single Node cannot be understood: it may have just that.
    pub async fn list_whole_nodes(&self) -> Result<Vec<Arc<Node>>, KubeError> {
        self.sorted_list(|listing: &Listing<Node>| {
            let trouble = |seen: &Shown<Node>| Some(about::<Node>(seen.trouble.clone()?, &seen.object.key()));
            match listing.objects.iter().find_map(trouble) {
                Some(error) => Err(error),
                None if listing.nameless > 0 => Err(KubeError::Decode("one of the Nodes has no name".into())),
                None => Ok(()),
            }
        })
        .await
    }

    /// All Services, in order of namespace and name, each as far as it can be understood.
    ///
    /// # Errors
    ///
    /// If there is no list, or it is not believed.
    pub async fn list_services(&self) -> Result<Vec<Arc<Service>>, KubeError> {
        self.sorted_list(|_| Ok(())).await
    }

    async fn sorted_list<T: Listed>(
        &self,
        check: impl Fn(&Listing<T>) -> Result<(), KubeError>,
    ) -> Result<Vec<Arc<T>>, KubeError> {
        let listing = self.list::<T>(None, true).await?;
        check(&listing)?;
        let objects = listing.objects.into_iter().map(|seen| seen.object);
        let mut objects: Vec<Arc<T>> = objects.collect();
        objects.sort_by_key(|object| object.key());
        Ok(objects)
    }

    /// Lists page by page; each page is converted before the next is asked for. What failed before there is a page is its
    /// caller's matter; later a page is asked for again, or a large list would never be complete where a few requests fail.
    ///
    /// Of what is known in the same version no second copy is kept. If it `is_first`, nothing is known yet that a gap would show
    /// against. Then the objects are counted, too.
    pub(crate) async fn list<T: Listed>(
        &self,
        known: Option<&Cache<T>>,
        is_first: bool,
    ) -> Result<Listing<T>, KubeError> {
        let mut attempt = 1;
        loop {
            match self.list_once(known, is_first).await {
                Err(KubeError::Expired(_)) if attempt < LIST_ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    async fn list_once<T: Listed>(
        &self,
        known: Option<&Cache<T>>,
        is_counted: bool,
    ) -> Result<Listing<T>, KubeError> {
        let mut pages = Pages::of(T::LIST);
        let (mut objects, mut nameless) = (Vec::new(), 0);
        let mut keys = BTreeSet::new();
        let mut limit = PAGE;
        loop {
            // No resource version: with one, the API server answers from its cache and ignores the page size.
            let mut path = format!("/api/v1/{}?limit={limit}", T::PLURAL);
            if !pages.next().is_empty() {
                path.push_str("&continue=");
                path.push_str(&segment(pages.next()));
            }
            let longest = if limit > 1 { LONGEST_PAGE } else { LONGEST_ANSWER };
            let call = || Call::get(&*path).reading(longest);
            let answer = if pages.is_begun() {
                self.read_patiently(call, is_passing).await
            } else {
                self.exchange(call()).await
            };
            let answer = match answer {
                // Whoever may write huge objects must not be able to have the others not listed.
                Err(KubeError::TooLong(_)) if limit > 1 => {
                    limit = (limit / 8).max(1);
                    continue;
                }
                answer => answer?,
            };
            limit = (limit * 2).min(PAGE);
            for item in pages.add(&answer)? {
                match T::decode(item.get().as_bytes(), self) {
                    Ok(seen) if !keys.insert(seen.object.key()) => {
                        return Err(pages.refuse("an object comes twice"));
                    }
                    Ok(mut seen) => {
                        if let Some(known) = known {
                            seen.object = known.as_known(seen.object);
                        }
                        objects.push(seen);
                    }
                    Err(_) => nameless += 1,
                }
            }
            if pages.next().is_empty() {
                if is_counted {
                    self.count::<T>(&pages).await?;
                }
                return Ok(Listing {
                    objects,
                    nameless,
                    resource_version: pages.version().to_owned(),
                });
            }
        }
    }

    /// Checks a list against another answer: a page of one object in the same version, which tells how many more there are.
    /// The first of several pages tells that by itself. An API server that has not reached that version refuses.
    async fn count<T: Listed>(&self, pages: &Pages) -> Result<(), KubeError> {
        if pages.is_counted() {
            return Ok(());
        }
        let (plural, version) = (T::PLURAL, segment(pages.version()));
        let path = format!("/api/v1/{plural}?limit=1&resourceVersion={version}&resourceVersionMatch=Exact");
        let answer = self.read_patiently(|| Call::get(&*path), is_passing).await?;
        pages.count(&answer)
    }

    /// Asks for one object by its name, with a list: the roles grant no `get` of Services. From no cache, so the answer is
    /// not older than the question.
    ///
    /// # Errors
    ///
    /// Also if the answer is not one to this question: then it proves nothing.
    pub(crate) async fn find<T: Listed>(&self, key: &T::Key) -> Result<Found<T>, KubeError> {
        let (namespace, name) = T::names_of(key);
        let scope = match namespace {
            "" => String::new(),
            namespace => format!("namespaces/{}/", segment(namespace)),
        };
        let (plural, name) = (T::PLURAL, segment(name));
        let path = format!("/api/v1/{scope}{plural}?fieldSelector=metadata.name%3D{name}");
        let answer = self.exchange(Call::get(path)).await?;
        let mut pages = Pages::of(T::LIST);
        let items = pages.add(&answer)?;
        let mut bearers = items.iter().map(|item| T::decode(item.get().as_bytes(), self));
        let bearer = match (bearers.next(), bearers.next()) {
            (None, _) => Bearer::Nobody,
            (Some(Ok(seen)), None) if seen.object.key() == *key => Bearer::Object(seen),
            (Some(Ok(_)), None) => {
                let error = KubeError::Decode("the answer is about another object".into());
                Bearer::Nameless(about::<T>(error, key))
            }
            (Some(Err(error)), None) => Bearer::Nameless(about::<T>(error, key)),
            _ => return Err(pages.refuse("one object was asked for by its name, and others came")),
        };
        if !pages.next().is_empty() {
            return Err(pages.refuse("one object was asked for by its name, and others came"));
        }
        let version = version_number(pages.version())
            .ok_or_else(|| pages.refuse("its resourceVersion is no number"))?;
        Ok(Found { bearer, version })
    }
}
