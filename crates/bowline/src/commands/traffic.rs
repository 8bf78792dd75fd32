//! `cloud-controller-manager check traffic`: make a Service, see whether traffic comes through, and remove it again.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::CancellationToken;
use bowline_cloud_provider::plan::render_text as render_plans;
use bowline_kube_io::{Kube, OpenGate};
use bowline_manager::doctor::{
    Check, Cloud, Outcome, Patient, Progress, Target, explain, render_json_of, render_text,
};
use bowline_manager::orphans::Search;
use bowline_manager::traffic::{self, Trial};
use bowline_manager::why;

use super::doctor::{build, patient, status_of};
use super::orphans::ask;
use super::plan::plan_reports;
use super::reading::{self, Reading};
use super::run::Signals;
use super::terminal::Terminal;
use super::{Surroundings, exit};
use crate::args::{Options, OutputForm, PlanOptions, TrafficOptions};

/// Between two looks at the API server.
const PAUSE: Duration = Duration::from_secs(1);

/// Prints the checks; gives the exit status: 0 all is well, 1 a check failed or it was interrupted, 2 there are warnings, or checks were
/// skipped.
pub fn check_traffic(options: Options, traffic: TrafficOptions, surroundings: Surroundings) -> u8 {
    let terminal = Terminal::of_stdout(&surroundings.environment);
    let (output, has_log) = (traffic.output, traffic.has_log);
    let work = async |progress: &Progress| Box::pin(tried(&options, traffic, surroundings, progress)).await;
    let (checks, is_whole) = match reading::telling(&options, has_log, work).flatten() {
        Ok(checks) => checks,
        Err(error) => return super::complain(&[error], ""),
    };
    let text = match output {
        OutputForm::Text => terminal.dress(&render_text(&checks)),
        OutputForm::Json => render_json_of(traffic::SCHEMA, &checks) + "\n",
    };
    super::show(&text, if is_whole { status(&checks) } else { exit::FAILURE })
}

/// What was not looked at may be broken.
fn status(checks: &[Check]) -> u8 {
    let outcomes = checks.iter().map(|check| match check.outcome {
        Outcome::Skipped => Outcome::Warning,
        outcome => outcome,
    });
    status_of(outcomes)
}

/// The checks, and whether it was gone through to the end.
async fn tried(
    options: &Options,
    of_traffic: TrafficOptions,
    surroundings: Surroundings,
    progress: &Progress,
) -> Result<(Vec<Check>, bool), String> {
    if is_pod(&surroundings) {
        reading::talk(
            "this is a pod: in many clusters kube-proxy answers for the load balancer here, so nothing is learned of it. Run it elsewhere",
        );
    }
    let run = format!("{:08x}", surroundings.seed as u32);
    let reading = Reading::new(options, surroundings.clone());
    let kube = reading.kube("check traffic").await?.with_gate(Arc::new(OpenGate));
    let cloud = build(&reading, &mut Vec::new(), progress).await;
    let search = search(&reading, &cloud, kube.clone()).await;
    let patient = patient(&reading, cloud, "check traffic", progress).await;
    let explain = |service| {
        let patient = &patient;
        let lines: traffic::Lines<'_> = Box::pin(why_of(patient, Target::Service(service)));
        lines
    };
    let trial = Trial {
        kube,
        wanted: of_traffic.wanted.clone(),
        run,
        patience: of_traffic.patience,
        pause: PAUSE,
        search,
        explain: &explain,
        progress: progress.clone(),
        interrupt: CancellationToken::new(),
    };
    let permitted = trial.permitted().await;
    if permitted.outcome == Outcome::Failed {
        return Ok((vec![permitted], true));
    }
    let mut checks = vec![permitted];
    checks.extend(of_earlier(&trial, &of_traffic).await?);
    show_plan(&trial, options, surroundings).await;
    if !is_agreed(&of_traffic)? {
        return Err("nothing was made".to_owned());
    }
    let Some(more) = until_signalled(&trial).await? else {
        return Ok((checks, false));
    };
    checks.extend(more);
    Ok((checks, !trial.interrupt.is_cancelled()))
}

fn is_pod(surroundings: &Surroundings) -> bool {
    let host = surroundings.environment.value("KUBERNETES_SERVICE_HOST");
    host.is_some_and(|host| !host.is_empty())
}

async fn search(reading: &Reading, cloud: &Cloud, kube: Kube) -> Result<Search, String> {
    match cloud {
        Cloud::Built(provider, _) | Cloud::Partly(provider, ..) => {
            let name = &reading.options.manager.cluster_name;
            Search::of_cluster(&**provider, kube, name, &reading.holder()).await
        }
        Cloud::Refused(why) => Err(why.to_string()),
        Cloud::Unusable(why) | Cloud::Hidden(why) => Err(why.clone()),
    }
}

/// What `explain` says, line by line.
async fn why_of(patient: &Patient<'_>, target: Target) -> Vec<String> {
    let text = match explain(patient, &[target]).await {
        Ok(whys) => why::render_text(&whys),
        Err(error) => error,
    };
    text.lines().map(str::to_owned).collect()
}

/// Removes what earlier trials left, if a person wants that. What may be under way is removed only after a question.
async fn of_earlier(trial: &Trial<'_>, of_traffic: &TrafficOptions) -> Result<Vec<Check>, String> {
    let mut checks = Vec::new();
    for earlier in traffic::earlier(&trial.kube).await? {
        let begun = earlier.since.map(|since| format!(", begun at {since}"));
        reading::talk(&format!(
            "an earlier trial left {}{}",
            earlier.place(),
            begun.unwrap_or_default()
        ));
        let is_removed = match of_traffic.is_sure {
            true => !earlier.is_young,
            false => ask("Remove it? It may be under way. Only \"yes\" does:").as_deref() == Some("yes"),
        };
        if is_removed {
            checks.extend(earlier.remove(trial).await);
        } else {
            reading::talk(&format!("it stays; remove it with: {}", earlier.commands()));
        }
    }
    Ok(checks)
}

/// Shows on stderr what is going to be made, in the cluster and in the cloud.
async fn show_plan(trial: &Trial<'_>, options: &Options, surroundings: Surroundings) {
    let plans = match planned(trial, options, surroundings).await {
        Ok(text) => text,
        Err(error) => format!("what is made in the cloud is not known: {error}\n"),
    };
    let text = format!("This will make {}.\n{plans}", trial.summary());
    // Nobody is left to tell if stderr is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

async fn planned(trial: &Trial<'_>, options: &Options, surroundings: Surroundings) -> Result<String, String> {
    let unwritten = |error: std::io::Error| error.to_string();
    let mut file = tempfile::NamedTempFile::new().map_err(unwritten)?;
    file.write_all(trial.manifest().to_string().as_bytes())
        .map_err(unwritten)?;
    let plan = PlanOptions {
        services: Vec::new(),
        files: vec![file.path().to_owned()],
        output: OutputForm::Text,
        has_log: false,
    };
    let reports = plan_reports(options, &plan, surroundings).await?;
    Ok(render_plans(&reports))
}

fn is_agreed(of_traffic: &TrafficOptions) -> Result<bool, String> {
    if of_traffic.is_sure {
        return Ok(true);
    }
    match ask("Make this? It may cost money. Only \"yes\" does:") {
        Some(answer) => Ok(answer == "yes"),
        None => Err("nobody is there to be asked: --yes makes it without a question".to_owned()),
    }
}

/// Runs the trial. The first signal has it remove what it made; the second one ends it at once, and there are no checks.
async fn until_signalled(trial: &Trial<'_>) -> Result<Option<Vec<Check>>, String> {
    let mut signals = Signals::listen().map_err(|error| format!("could not listen to signals: {error}"))?;
    let mut run = Box::pin(trial.run());
    tokio::select! {
        biased;
        checks = &mut run => return Ok(Some(checks)),
        _ = signals.next() => {
            reading::talk("interrupted: what was made is removed. Interrupt once more to end at once and to leave it");
            trial.interrupt.cancel();
        }
    }
    tokio::select! {
        biased;
        checks = run => Ok(Some(checks)),
        _ = signals.next() => {
            reading::talk(&format!("ended: what was made is left. Remove it with: {}", trial.commands()));
            Ok(None)
        }
    }
}
