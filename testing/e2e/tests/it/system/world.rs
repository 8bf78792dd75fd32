//! The conformance suite's world around cloudscale.ch.

use bowline_conformance::cloud::CloudUnderTest;

pub(crate) use bowline_conformance::cloud::SECOND;
pub(crate) use bowline_conformance::clouds::Cloudscale;

/// A cluster and cloudscale.ch on one clock.
pub(crate) type World = bowline_conformance::cloud::World<Cloudscale>;

/// What the managers know the API by. Must not appear anywhere but in the `Authorization` header.
pub(crate) const TOKEN: &str = Cloudscale::SECRET;
