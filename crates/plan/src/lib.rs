//! Plans as data.
//!
//! A cloud does not "ensure" a load balancer: it *answers* with a [`Plan`]. The answer is the next [`Wave`] of steps, or
//! *settled* with what is to be published, or *wait*, or *look again*, or *refused*. Because a step is plain data with a label, an
//! [`Impact`] and the [`Lane`]s it needs, the same plan can be printed, counted, predicted and applied:
//!
//! ```text
//! plan, predict the wave, plan again, until settled    prints every wave   (the `plan` command)
//! plan, apply the wave, plan again from true answers   changes the world   (the service controller)
//! ```
//!
//! What to do next about a call that failed is a [`Class`], one for all clouds. It stands here because the HTTP stack and the
//! contract both need it and neither may know the other. So do [`Pairs`], the small map of what clouds and Kubernetes note on objects,
//! and [`series`](crate::series!), the form in which every crate declares what it counts.
//!
//! This crate is pure: no runtime, no IO, no clock, no randomness. It does not know Kubernetes and it knows no cloud.

mod answer;
mod diff;
mod event;
mod failure;
mod moved;
mod pairs;
mod render;
mod series;
mod step;

pub use answer::{Answer, Note, NoteKind, Plan, Refusal, RefusedBy, Wave};
pub use diff::{Diff, diff};
pub use event::EventSpec;
pub use failure::{AtRest, Class, Classified, speaks_of_limit, speaks_of_no_address};
pub use moved::AddressChange;
pub use pairs::Pairs;
pub use render::{
    Ailment, PlanReport, ReportedOutcome, ReportedStep, ReportedWave, Shown, render_json, render_text,
};
pub use step::{Impact, Lane, Step, StepView};
