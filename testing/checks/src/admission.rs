//! Admission policies for Services: what `kubectl apply` complains of, made from the tables of annotations.
//!
//! A policy is a `ValidatingAdmissionPolicy`: the API server evaluates it by itself, so it takes no webhook and no certificate.
//! [`policies`] makes one of values and, where a cloud cannot change everything later, one of changes for each cloud.
//! [`template`] is the file of the chart that holds them; the objects under `deploy/` come out of the chart.
//!
//! What a policy refuses, the reader of that cloud refuses too, or says that it has no effect, or the cloud refuses it. The other
//! way round there are gaps, because CEL reads no JSON and no regular expressions of others: the tests list them by name.
//! Nothing of this is in the manager.

mod cel;
mod check;
mod clouds;
mod policy;
mod yaml;

pub use policy::{Part, Policy, Validation, policies};
pub use yaml::{TEMPLATE, template};
