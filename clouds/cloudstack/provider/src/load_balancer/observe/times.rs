//! How long is waited for what, and how old a look may be.

use std::time::Duration;

use bowline_cloud_provider::Pauses;

/// The time between two looks at something that the cloud does by itself.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// How old a look may be for an address to be released by it: somebody may have released it and acquired it anew since.
pub(crate) const RECENT: Duration = Duration::from_secs(5);

/// The time between two looks for an address that was asked for without an answer.
pub(crate) const SEARCH: Duration = Duration::from_secs(10);

/// How long an address may be on its way before it is tried to use it as it is. Some servers go on with a job only when it is
/// asked after, and whoever comes after a restart does not know the job.
pub(crate) const TRIED: Duration = Duration::from_secs(4);

/// How long an address may be on its way before it is released: to be acquired anew, if it is needed. Its job began before
/// whoever looks, and should it still end, the server releases the address then.
pub(crate) const RELEASED: Duration = Duration::from_secs(10);

/// How long nothing else may have come of jobs under way before a new Service shows an address at which some of its ports are served.
pub(crate) const HANGS: Duration = Duration::from_secs(10);

/// How long the jobs of an earlier sync are waited for that make something. Then it is found as after a restart. Those that
/// take something away are waited for until they end, because before they begin nothing tells that it goes; the first address of a
/// Service for as long as one whose job is not known.
pub(crate) const INHERITED: Duration = Duration::from_secs(10);

/// How long an address may be on its way back before it is released once more. That fails if the first time is still to come,
/// so it is not tried as soon.
pub(crate) const RELEASED_AGAIN: Duration = Duration::from_secs(20);

/// How long an address may be on its way before people are told.
pub(crate) const SLOW: Duration = Duration::from_secs(30);

/// How long an address may be on its way before a balancer goes on without it. Its job is not known any more: it may have been
/// lost with the server's process, or the server may work on it only when it is asked after.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// How long a list may be behind what was done.
pub(super) const BEHIND: Duration = Duration::from_secs(10);

/// How long a job, or anything else that the cloud does by itself, may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// How long a job may be unheard of while the cloud is in trouble, or out of reach.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// How many answers in a row may be none to the question after a job, as a refusal is, or a page of something in between. The
/// Go manager asked as often.
pub(super) const TRIES: u32 = 3;

/// How long to wait before each look at jobs since the last one was started: half as long again each time.
pub(crate) const POLLS: Pauses = Pauses::of_micros(&[
    200_000, 300_000, 450_000, 675_000, 1_012_500, 1_518_750, 2_278_125, 3_417_188, 5_000_000,
]);
