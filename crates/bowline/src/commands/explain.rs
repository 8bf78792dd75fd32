//! `cloud-controller-manager explain`: say of a Service or a Node why it is as it is, and change nothing.

use bowline_manager::doctor::{self, Manifests, Progress};
use bowline_manager::why::{Why, render_json, render_text};

use super::Surroundings;
use super::doctor::{build, patient, status_of};
use super::reading::{self, Reading};
use super::terminal::Terminal;
use crate::args::{ExplainOptions, Options, OutputForm};

/// Prints what is known of the objects; gives the exit status: 0 nothing is wrong with them, 1 one is in trouble or nothing could be
/// found out, 2 something is to be done or under way.
pub fn explain(options: Options, explain: &ExplainOptions, surroundings: Surroundings) -> u8 {
    let terminal = Terminal::of_stdout(&surroundings.environment);
    let work = async |progress: &Progress| whys(&options, explain, surroundings, progress).await;
    let whys = match reading::telling(&options, explain.has_log, work).flatten() {
        Ok(whys) => whys,
        Err(error) => return super::complain(&[error], ""),
    };
    let text = match explain.output {
        OutputForm::Text => terminal.dress(&render_text(&whys)),
        OutputForm::Json => render_json(&whys) + "\n",
    };
    super::show(&text, status_of(whys.iter().map(Why::outcome)))
}

async fn whys(
    options: &Options,
    explain: &ExplainOptions,
    surroundings: Surroundings,
    progress: &Progress,
) -> Result<Vec<Why>, String> {
    let files = reading::files(&explain.files)?;
    let reading = Reading::new(options, surroundings);
    let cloud = build(&reading, &mut Vec::new(), progress).await;
    let mut patient = patient(&reading, cloud, "explain", progress).await;
    patient.manifests = Manifests {
        files,
        namespace: explain.namespace.clone(),
    };
    doctor::explain(&patient, &explain.targets).await
}
