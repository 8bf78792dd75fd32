//! The Kubernetes API: watches, caches, patches, events and the lease.
