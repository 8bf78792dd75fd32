//! `demo`: reads the command line, runs the demo, and turns Ctrl-C into its end.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use bowline_demo::{Args, CancellationToken, Narrator};
use tokio::signal::unix::{SignalKind, signal};

/// How long tasks that were left behind may hold up the exit.
const LEFTOVERS: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout, complaints to stderr; if that is closed, nobody reads it anyway.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    let result = runtime.block_on(async {
        let interrupt = CancellationToken::new();
        tokio::spawn(heed_signals(interrupt.clone()));
        let is_styled = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let narrator = Narrator::new(Box::new(std::io::stdout()), is_styled);
        bowline_demo::run(args, narrator, interrupt).await
    });
    runtime.shutdown_timeout(LEFTOVERS);
    result
}

/// The first signal asks for the end, the second one is the end.
#[expect(clippy::exit, reason = "the reader has asked twice")]
async fn heed_signals(interrupt: CancellationToken) {
    let (Ok(mut interrupted), Ok(mut terminated)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    for is_first in [true, false] {
        tokio::select! {
            biased;
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        if is_first {
            interrupt.cancel();
        } else {
            std::process::exit(130);
        }
    }
}

#[expect(clippy::print_stderr, reason = "where a program says why it failed")]
fn complain(error: &anyhow::Error) {
    eprintln!("demo: {error:#}");
}
