//! Mounts the bodies: each on the embedded server, and on one real server that all share.
//!
//! This is a program of its own instead of a set of test functions, so that the real server is started once, for those
//! who ask for it, and ends in good order.

#![expect(clippy::unwrap_used, reason = "a test program")]

use std::process::ExitCode;
use std::sync::Arc;

use bowline_conformance::api_server::{Arm, BODIES, Body, EMBEDDED_ONLY};
use bowline_control_plane::{Version, binaries_or_leave_out};
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::OnceCell;

/// An arm that is started when the first body wants it.
struct Lazy {
    version: Version,
    started: OnceCell<Arm>,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Runtime::new().unwrap();
    let version = Version::wanted().unwrap();
    let real = Arc::new(Lazy {
        version,
        started: OnceCell::new(),
    });
    let embedded = Arc::new(Arm::Embedded(version));

    let mut trials: Vec<Trial> = BODIES
        .iter()
        .chain(EMBEDDED_ONLY)
        .map(|body| on_embedded(body, &embedded, runtime.handle()))
        .collect();
    if binaries_or_leave_out(version, "the suite of the API server on the real one").is_some() {
        trials.extend(BODIES.iter().map(|body| on_real(body, &real, runtime.handle())));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The trials are gone and with them all others who held it: this ends the server.
    drop(real);
    if conclusion.has_failed() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn on_embedded(body: &'static Body, arm: &Arc<Arm>, runtime: &Handle) -> Trial {
    let (arm, runtime) = (Arc::clone(arm), runtime.clone());
    Trial::test(format!("api_server::embedded::{}", body.name), move || {
        runtime.block_on(arm.check(body));
        Ok(())
    })
}

fn on_real(body: &'static Body, lazy: &Arc<Lazy>, runtime: &Handle) -> Trial {
    let (lazy, runtime) = (Arc::clone(lazy), runtime.clone());
    Trial::test(format!("api_server::real::{}", body.name), move || {
        runtime.block_on(async {
            let arm = lazy.started.get_or_try_init(|| Arm::real(lazy.version)).await;
            arm.unwrap().check(body).await;
        });
        Ok(())
    })
}
