//! The Paper provider: a whole provider for an invented cloud, in as few lines as it takes.
//!
//! It is the worked example of `docs/guides/new-provider.md`, and it is complete: machines, balancers and routes, behind
//! the same contract and held by the same conformance suite as the providers of real clouds.
//!
//! ```text
//! intent (pure)     what a Service asks for, checked as a whole
//! observe           two listings, shared by all who ask together
//! planning (pure)   the first wave that has a step
//! step              one write, as data; learn and predict say what it changes
//! ```

mod balancers;
mod events;
mod instances;
mod intent;
mod observe;
mod orphans;
mod planning;
mod provider;
pub mod provider_id;
mod routes;
mod step;

pub use events::EVENTS;
pub use provider::Paper;
pub use provider_id::PROVIDER_NAME;
