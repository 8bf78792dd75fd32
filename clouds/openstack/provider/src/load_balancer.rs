//! The load balancer of one Service, in five moves.
//!
//! | move | what is in it |
//! | --- | --- |
//! | below all | `annotations`, `names`; `features` of Octavia and its providers; `members`, `subnets`, `security_groups`, `vip_ports`; `step`, one write as data |
//! | `intent` | what the Service asks for, and what is wrong with it |
//! | `observe` | what the cloud says, and what a reconcile remembers; `leaks`, `made_groups` and `under_way` outlive it |
//! | `evidence` | whose a load balancer, a listener or a pool is |
//! | `plan` | what comes next; `remedies` for what the cloud refuses |
//! | `apply`, `learn` | one write, and what its answer tells |
//! | `status` | what is published |
//!
//! `reconciler` puts them together, and `reaper` is the background work beside it.

pub(crate) mod annotations;
mod apply;
pub(crate) mod complaints;
mod evidence;
mod features;
mod intent;
mod leaks;
mod learn;
mod made_groups;
mod members;
mod names;
mod observe;
mod orphans;
mod plan;
mod reaper;
pub(crate) mod reconciler;
mod remedies;
mod security_groups;
mod status;
mod step;
mod subnets;
mod under_way;
mod vip_ports;
