//! Mounts the bodies: those about the API server on the embedded one and on one real one that all share, those about
//! clouds on each cloud.
//!
//! This is a program of its own instead of a set of test functions, so that the real server is started once, for those
//! who ask for it, and ends in good order.

#![expect(clippy::unwrap_used, reason = "a test program")]

use std::process::ExitCode;
use std::sync::Arc;

use bowline_conformance::api_server::{Arm, Body, bodies, embedded_only};
use bowline_conformance::cloud::{CloudUnderTest, scenarios};
use bowline_conformance::clouds;
use bowline_control_plane::{Version, binaries_or_skip};
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::{Builder, Handle, Runtime};
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

    let mut trials: Vec<Trial> = bodies()
        .into_iter()
        .chain(embedded_only())
        .map(|body| on_embedded(body, &embedded, runtime.handle()))
        .collect();
    trials.extend(on_cloud::<clouds::Cloudscale>());
    trials.extend(on_cloud::<clouds::CloudStack>());
    trials.extend(on_cloud::<clouds::CloudStack<clouds::Tier>>());
    trials.extend(on_cloud::<clouds::OpenStack>());
    trials.extend(on_cloud::<clouds::OpenStack<clouds::Parts>>());
    trials.extend(on_cloud::<clouds::Paper>());
    trials.extend(on_cloud::<clouds::Phoenixnap>());
    if binaries_or_skip(version).is_some() {
        trials.extend(
            bodies()
                .into_iter()
                .map(|body| on_real(body, &real, runtime.handle())),
        );
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

fn on_embedded(body: Body, arm: &Arc<Arm>, runtime: &Handle) -> Trial {
    let (arm, runtime) = (Arc::clone(arm), runtime.clone());
    Trial::test(format!("api_server::embedded::{}", body.name), move || {
        runtime.block_on(arm.check(&body));
        Ok(())
    })
}

fn on_real(body: Body, lazy: &Arc<Lazy>, runtime: &Handle) -> Trial {
    let (lazy, runtime) = (Arc::clone(lazy), runtime.clone());
    Trial::test(format!("api_server::real::{}", body.name), move || {
        runtime.block_on(async {
            let arm = lazy.started.get_or_try_init(|| Arm::real(lazy.version)).await;
            arm.unwrap().check(&body).await;
        });
        Ok(())
    })
}

/// Every scenario on a cloud; what does not apply to it is listed as ignored, with the reason.
fn on_cloud<C: CloudUnderTest>() -> impl Iterator<Item = Trial> {
    scenarios::<C>().into_iter().map(|scenario| {
        let (name, missing) = (scenario.name.clone(), scenario.missing);
        let trial = Trial::test(name, move || match scenario.missing {
            Some(missing) => Err(format!("not applicable: {missing}").into()),
            None => {
                // One thread and a stopped clock: what takes hours takes milliseconds, and every run is the same.
                let mut runtime = Builder::new_current_thread();
                scenario.play(&runtime.enable_all().start_paused(true).build()?);
                Ok(())
            }
        });
        match missing {
            Some(missing) => trial.with_kind(missing).with_ignored_flag(true),
            None => trial,
        }
    })
}
