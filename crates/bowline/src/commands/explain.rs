//! `cloud-controller-manager explain`: say of a Service or a Node why it is as it is, and change nothing.

use bowline_manager::doctor::{self, Outcome};
use bowline_manager::why::{Why, render_json, render_text};

use super::doctor::{build, patient, status_of};
use super::reading::{self, Reading};
use super::{Surroundings, exit};
use crate::args::{ExplainOptions, Options, OutputForm};
use crate::providers;

/// Prints what is known of the objects; gives the exit status: 0 nothing is wrong with them, 1 one is in trouble or nothing could be
/// found out, 2 something is to be done or under way.
#[must_use]
pub fn explain(options: Options, explain: &ExplainOptions, surroundings: Surroundings) -> u8 {
    let told = reading::block_on(&options, explain.has_log, async || {
        whys(&options, explain, surroundings).await
    });
    let whys = match told.flatten() {
        Ok(whys) => whys,
        Err(error) => return super::complain(&[error], ""),
    };
    let text = match explain.output {
        OutputForm::Text => render_text(&whys),
        OutputForm::Json => render_json(&whys) + "\n",
    };
    match super::print(&text) {
        exit::SUCCESS => status_of(whys.iter().map(Why::outcome)),
        failure => failure,
    }
}

async fn whys(
    options: &Options,
    explain: &ExplainOptions,
    surroundings: Surroundings,
) -> Result<Vec<Why>, String> {
    providers::check(&options.provider).map_err(|error| error.to_string())?;
    let reading = Reading::new(options, surroundings);
    let mut checks = Vec::new();
    let cloud = build(&reading, &mut checks).await;
    for failed in checks.iter().filter(|check| check.outcome == Outcome::Failed) {
        tracing::warn!(err = %failed.seen, "The cloud is not asked, only the cluster: the configuration cannot be used");
    }
    doctor::explain(&patient(&reading, cloud, "explain").await, &explain.targets).await
}
