//! An embedded Kubernetes API server for the kinds that a cloud controller manager touches.
//!
//! It keeps objects in memory under one growing revision and serves them to `kube` clients in the same process (see
//! [`KubeApi::service`]) and to everybody else over a socket ([`KubeApi::serve`]). What a client can see of a real
//! server is kept: defaults, allocation of addresses and ports, validation, conflicts, finalizers, subresources,
//! watches with their expiry, and the wording of errors. The rules are those of Kubernetes 1.37; where the sources of
//! `kube-apiserver` decide a detail, the module names the place.
//!
//! Time is the runtime's: with a stopped clock nothing expires until a test advances it. Every random choice comes
//! from a seed.
//!
//! # Known gaps
//!
//! - **server-side apply**: answered with 415; there are no `managedFields`.
//! - **schemas**: unknown fields are kept instead of dropped or refused, and only the fields that matter to a cloud
//!   controller manager have their types checked. OpenAPI lists paths, not fields.
//! - **admission**: only that of namespaces which are missing or being deleted. No webhooks, no quotas, no taint for
//!   new Nodes that are not ready.
//! - **RBAC**: a table of permits stands in for roles and bindings ([`Access`]).
//! - **encodings**: answers are JSON only. Bodies may be JSON or, for the kinds a controller manager writes, protobuf;
//!   no CBOR and no YAML.
//! - **dual stack**: the cluster is IPv4 only, its Service range is 10.96.0.0/16.
//! - **other controllers**: nobody fills Endpoints, empties namespaces, or collects garbage; `propagationPolicy` is
//!   ignored. Events do not expire. Pods are deleted at once.

mod access;
mod canonical;
mod clock;
mod column;
mod core;
mod faults;
mod field;
mod handle;
mod journal;
mod kind;
mod meta;
mod names;
mod patch;
mod path;
mod protobuf;
mod registry;
mod request;
mod schema;
mod selector;
mod serve;
mod service;
mod status;
mod store;
mod strategy;
mod table;

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;

pub use crate::access::{Access, Attributes, Permit, User};
pub use crate::faults::{Effect, Fault, Faults};
pub use crate::journal::{Exchange, Journal};
pub use crate::kind::Kind;
pub use crate::serve::ServerHandle;
pub use crate::service::{ApiBody, ApiService, BoxError};
pub use crate::status::Status;
pub use crate::strategy::KINDS;

use crate::core::Core;

/// Minor version that is played unless another is asked for.
pub const DEFAULT_MINOR: u32 = 37;

/// Changes that are kept for watches unless another number is asked for. A long test writes some thousands.
const DEFAULT_HISTORY: usize = 100_000;

/// Settings of a server that is not yet built.
#[derive(Clone, Debug)]
pub struct Builder {
    minor: u32,
    seed: u64,
    start: Option<Timestamp>,
    history: usize,
    access: Access,
}

impl Builder {
    /// Minor of the Kubernetes version to play, e.g. 37 for 1.37.
    pub fn version(mut self, minor: u32) -> Self {
        self.minor = minor;
        self
    }

    /// Seed of UIDs, generated names, cluster IPs and node ports. 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Wall time at which the server starts; from there it follows the runtime's clock. The present unless set.
    pub fn start_time(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// Number of changes to keep for watches before the oldest expire.
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Makes a bearer token known, and from then on refuses requests without a known one.
    pub fn token(self, token: &str, user: User) -> Self {
        self.access.add_token(token, user);
        self.access.require_auth(true);
        self
    }

    /// Adds a permit; see [`Access::permit`].
    pub fn permit(self, permit: Permit) -> Self {
        self.access.permit(permit);
        self
    }

    /// Builds the server, with the namespaces and the Service that every cluster has.
    pub fn build(self) -> KubeApi {
        let start = self.start.unwrap_or_else(Timestamp::now);
        KubeApi {
            core: Arc::new(Core::new(self.minor, self.seed, start, self.history, self.access)),
        }
    }
}

/// A handle on an embedded API server. Clones share the server.
#[derive(Clone)]
pub struct KubeApi {
    core: Arc<Core>,
}

impl KubeApi {
    /// Settings to start from.
    pub fn builder() -> Builder {
        Builder {
            minor: DEFAULT_MINOR,
            seed: 0,
            start: None,
            history: DEFAULT_HISTORY,
            access: Access::default(),
        }
    }

    /// The server as a service, for `kube::Client::new(api.service(), "default")`.
    pub fn service(&self) -> ApiService {
        ApiService::new(Arc::clone(&self.core))
    }

    /// Serves HTTP/1.1 and HTTP/2 without TLS.
    ///
    /// # Errors
    ///
    /// If the listener has no local address.
    pub fn serve(&self, listener: TcpListener) -> std::io::Result<ServerHandle> {
        ServerHandle::start(Arc::clone(&self.core), listener, None)
    }

    /// Serves HTTP/1.1 and HTTP/2 with TLS.
    ///
    /// # Errors
    ///
    /// If the listener has no local address.
    pub fn serve_tls(
        &self,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
    ) -> std::io::Result<ServerHandle> {
        ServerHandle::start(Arc::clone(&self.core), listener, Some(tls))
    }

    /// A kubeconfig for a server that listens at `address` without TLS.
    pub fn kubeconfig(address: SocketAddr) -> String {
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: embedded\n  \
               cluster:\n    \
                 server: http://{address}\n\
             contexts:\n\
             - name: embedded\n  \
               context:\n    \
                 cluster: embedded\n    \
                 user: embedded\n    \
                 namespace: default\n\
             users:\n\
             - name: embedded\n  \
               user: {{}}\n\
             current-context: embedded\n"
        )
    }

    /// All objects of a kind, e.g. `Node`, by namespace and name. Nothing for an unknown kind.
    pub fn objects(&self, kind: &str) -> Vec<Value> {
        let Some(kind) = Kind::named(kind) else {
            return Vec::new();
        };
        self.core
            .lock()
            .store
            .all(kind)
            .map(|(_, object)| Value::clone(object))
            .collect()
    }

    /// One object; the namespace is empty for kinds of cluster scope.
    pub fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let kind = Kind::named(kind)?;
        self.core
            .lock()
            .store
            .get(kind, namespace, name)
            .map(|object| Value::clone(object))
    }

    /// Creates an object, or replaces it, with its status. Defaults and validation apply as for any client; no
    /// journal entry is made. A namespaced object without namespace goes to `default`.
    ///
    /// # Errors
    ///
    /// What a client would be told.
    pub fn apply_json(&self, object: Value) -> Result<Value, Status> {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let kind = Kind::named(kind)
            .ok_or_else(|| Status::bad_request(format!("no kind {kind:?} is registered")))?;
        let mut state = self.core.lock();
        self.core
            .registry(&mut state, false)
            .apply(kind, object)
            .map(|object| Value::clone(&object))
    }

    /// Deletes an object as a client would: with finalizers it is only marked. Returns whether it was there.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let Some(kind) = Kind::named(kind) else {
            return false;
        };
        let mut state = self.core.lock();
        let mut registry = self.core.registry(&mut state, false);
        registry
            .delete(kind, namespace, name, &registry::Preconditions::default())
            .is_ok()
    }

    /// Does once what another program does in a real cluster: deletes what is in the namespaces that are being deleted, and those of them
    /// that nothing keeps any more.
    pub fn empty_namespaces(&self) {
        let Some(namespaces) = Kind::named("Namespace") else {
            return;
        };
        let mut state = self.core.lock();
        let leaving = state.store.all(namespaces);
        let leaving = leaving.filter(|(_, it)| path::at(it, "metadata.deletionTimestamp").is_some());
        let leaving: Vec<_> = leaving.map(|(key, _)| key.clone()).collect();
        for key in leaving {
            let mut is_empty = true;
            for kind in KINDS.iter().filter(|kind| kind.namespaced) {
                let all = state.store.all(kind);
                let inside: Vec<_> = all.filter(|((namespace, _), _)| *namespace == key.1).collect();
                let names: Vec<String> = inside.into_iter().map(|((_, name), _)| name.clone()).collect();
                is_empty &= names.is_empty();
                for name in names {
                    let mut registry = self.core.registry(&mut state, false);
                    // One with a finalizer stays for now.
                    let _ = registry.delete(kind, &key.1, &name, &registry::Preconditions::default());
                }
            }
            if is_empty {
                state.store.delete(namespaces, &key);
            }
        }
    }

    /// The requests so far.
    pub fn journal(&self) -> &Journal {
        &self.core.journal
    }

    /// The switches for faults.
    pub fn faults(&self) -> &Faults {
        &self.core.faults
    }

    /// The tables of tokens and permits.
    pub fn access(&self) -> &Access {
        &self.core.access
    }

    /// The revision of the last write, which a list would carry as its `resourceVersion`.
    pub fn revision(&self) -> u64 {
        self.core.lock().store.revision()
    }

    /// Forgets history: watches and pages that want to begin in the past are answered with 410.
    pub fn compact(&self) {
        self.core.lock().store.compact();
    }

    /// Ends all running watches, as a restart of the server does.
    pub fn close_watches(&self) {
        self.core.closed.send_modify(|epoch| *epoch += 1);
    }

    /// Lets all running watches fall silent, as when their server dies without closing its connections. Watches that are
    /// opened later are not concerned.
    pub fn silence_watches(&self) {
        self.core.silenced.send_modify(|epoch| *epoch += 1);
    }

    /// Wall time of the server.
    pub fn now(&self) -> Timestamp {
        self.core.now()
    }
}

impl std::fmt::Debug for KubeApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeApi")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
