//! Starts the real kube-apiserver and etcd for tests.
//!
//! The two programs are [`bowline_base::go`]. A [`ControlPlane`] is one API server
//! with an etcd of its own on free ports of the loopback address, ready in seconds, and gone when the value is
//! dropped or the test process dies, however it dies.
//!
//! There is no controller manager, scheduler or kubelet: objects change only when a test changes them.

mod audit;
mod binaries;
mod build;
mod certificates;
mod client;
mod kubeconfig;
mod server;

pub use audit::{AuditEvent, AuditLogError};
pub use binaries::{Binaries, Missing, binaries, binaries_or_skip};
pub use bowline_base::go::{BuildError, UnknownVersion, Version};
pub use bowline_base::server::{ProcessError, in_ci};
pub use build::build;
pub use certificates::CertificateError;
pub use client::ClientError;
pub use kubeconfig::Kubeconfig;
pub use server::{ControlPlane, Options, StartError};
