//! The demo's page in a real browser: a headless Chromium is driven through its DevTools protocol.
//!
//! [`browser`] speaks the protocol, [`demo`] starts the demo, [`visit`] presses each button and waits for what it says it does, and
//! [`pictures`] are those of the guide. `cargo xtask page` builds what is needed, installs the browser, and runs it.

pub mod browser;
pub mod demo;
pub mod pictures;
pub mod visit;
