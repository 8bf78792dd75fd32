//! The load balancer of one Service, in five moves.
//!
//! | move | what is in it |
//! | --- | --- |
//! | below all | `annotations`, `names`; `features` of Octavia and its providers; `members`, `subnets`, `tags`, `security_groups`, `vip_ports`; `step`, one write as data |
//! | `intent` | what the Service asks for, and what is wrong with it |
//! | `observed`, `memory` | what the cloud said, and what a reconcile remembers beside that |
//! | `evidence` | whose a load balancer, a listener or a pool is |
//! | `observe` | the reads, and what they are for; `leaks`, `made_groups`, `past` and `under_way` outlive a reconcile |
//! | `plan` | what comes next; `remedies` for what the cloud refuses |
//! | `apply`, `learned`, `learn` | one write, its answer, and what that tells |
//! | `status` | what is published |
//!
//! `reconciler` puts them together, and `reaper` is the background work beside it. `orphans` finds what no Service has, and
//! `complaints` says what is wrong with a Service without asking a cloud.

pub(crate) mod annotations;
mod apply;
pub(crate) mod complaints;
mod evidence;
mod features;
mod intent;
mod leaks;
mod learn;
mod learned;
mod made_groups;
mod members;
mod memory;
mod names;
mod observe;
mod observed;
mod orphans;
mod past;
mod plan;
mod reaper;
pub(crate) mod reconciler;
mod remedies;
mod security_groups;
mod status;
mod step;
mod subnets;
mod tags;
mod under_way;
mod vip_ports;
