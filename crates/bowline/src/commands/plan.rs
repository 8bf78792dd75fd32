//! `cloud-controller-manager plan`: print what would be done for Services, and do nothing.

use std::path::PathBuf;
use std::sync::Arc;

use bowline_cloud_http::CancellationToken;
use bowline_cloud_provider::ClusterFacts;
use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome, render_json, render_text};
use bowline_kube_io::{ConnectError, Kube, KubeMetrics};
use bowline_manager::FencingGate;
use bowline_manager::cluster;
use bowline_manager::plan::{PlanInput, plan_services};

use super::{Surroundings, connect, exit};
use crate::args::{LoggingOptions, Options, PlanOptions, PlanOutput};
use crate::{logging, providers};

/// The variable in which people tell `kubectl` where their cluster is.
const KUBECONFIG: &str = "KUBECONFIG";

/// Prints the plans; gives the exit status: 0 nothing to do, 2 changes or a cloud that is busy, 1 a plan could not be
/// made or a person has to change something first.
#[must_use]
pub fn plan(options: Options, plan: &PlanOptions, surroundings: Surroundings) -> u8 {
    // stdout is for the plan, and stderr for what its reader has to know, unless the log is asked for.
    logging::start(LoggingOptions {
        split: None,
        is_quiet: !plan.has_log,
        ..options.logging.clone()
    });
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::complain(&[format!("could not start the runtime: {error}")], ""),
    };
    let reports = runtime.block_on(plan_reports(&options, plan, surroundings));
    runtime.shutdown_background();
    match reports {
        Ok(reports) => {
            let text = match plan.output {
                PlanOutput::Text => render_text(&reports),
                PlanOutput::Json => render_json(&reports) + "\n",
            };
            match super::print(&text) {
                exit::SUCCESS => status(&reports),
                failure => failure,
            }
        }
        Err(error) => super::complain(&[error], ""),
    }
}

/// The kubeconfig that the environment names, as for `kubectl`: of several in `$KUBECONFIG` the first that is there.
///
/// Only for a person's command: where the manager runs as a daemon, its flags and its pod say where the cluster is.
fn kubeconfig_of_environment(options: &Options, surroundings: &Surroundings) -> Option<PathBuf> {
    if options.kube.kubeconfig.is_some() || options.kube.master.is_some() {
        return None;
    }
    let list = surroundings.environment.value(KUBECONFIG).unwrap_or_default();
    let paths: Vec<PathBuf> = std::env::split_paths(list)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    let mut there = paths.iter().filter(|path| path.exists());
    // If none of them is there, the error names the first one.
    let used = there.next().or(paths.first())?.clone();
    if there.next().is_some() {
        tracing::warn!(used = %used.display(), "Of the files in $KUBECONFIG only the first one is read");
    }
    Some(used)
}

/// The plans that [`plan`] prints.
///
/// # Errors
///
/// Why none could be made: the configuration, or an API server that does not answer.
pub async fn plan_reports(
    options: &Options,
    plan: &PlanOptions,
    surroundings: Surroundings,
) -> Result<Vec<PlanReport>, String> {
    // The command line alone tells that there is no such cloud.
    providers::check(&options.provider).map_err(|error| error.to_string())?;
    let mut options = options.clone();
    if let Some(path) = kubeconfig_of_environment(&options, &surroundings) {
        options.kube.kubeconfig = Some(path);
        options.kube.kubeconfig_source = "$KUBECONFIG";
    }
    let options = &options;
    // No write passes here nor the provider's own gate, so nothing can be written by mistake.
    let gate = FencingGate::closed();
    let kube = connect::api_server(options, &surroundings, Arc::new(gate), KubeMetrics::default())
        .await
        .map_err(|error| match error {
            ConnectError::NotConfigured => {
                format!("{error}; plan also takes the kubeconfig of ${KUBECONFIG}")
            }
            error => error.to_string(),
        })?;
    let site = providers::Site {
        environment: surroundings.environment,
        calls: providers::Calls::ToRead,
        metrics: bowline_cloud_http::Metrics::default(),
        shutdown: CancellationToken::new(),
        user_agent: options.version.user_agent(&options.program),
        version: options.version.git_version.clone(),
        base_url: options.provider.base_url.clone(),
        user_agents: options.provider.user_agents.clone(),
        balances: true,
        series: providers::Series::default(),
        seed: surroundings.seed,
    };
    let provider = providers::build(&options.provider, &site)
        .await
        .map_err(|error| error.to_string())?;
    let Some(load_balancer) = provider.load_balancer() else {
        return Err(format!(
            "cloud provider {:?} has no load balancers",
            provider.name()
        ));
    };
    let uid = cluster::uid(&kube, &*provider).await?;
    let input = input(&kube, options, uid, surroundings.identity.holder).await?;
    Ok(plan_services(&load_balancer, &input, &plan.services).await)
}

async fn input(
    kube: &Kube,
    options: &Options,
    uid: Option<String>,
    holder: String,
) -> Result<PlanInput, String> {
    let services = kube
        .list_services()
        .await
        .map_err(|error| format!("reading Services: {error}"))?;
    let nodes = kube
        .list_nodes()
        .await
        .map_err(|error| format!("reading Nodes: {error}"))?;
    let cluster = Arc::new(ClusterFacts {
        name: options.manager.cluster_name.clone(),
        uid,
        server_version: kube.server_version().await.ok(),
        holder,
    });
    Ok(PlanInput {
        services,
        nodes,
        cluster,
        now: kube.clock().now(),
    })
}

fn status(reports: &[PlanReport]) -> u8 {
    let is_failed = |report: &PlanReport| {
        matches!(
            report.outcome,
            ReportedOutcome::Failed { .. } | ReportedOutcome::Refused { .. }
        )
    };
    let is_idle = |report: &PlanReport| {
        let publishes_nothing =
            matches!(&report.outcome, ReportedOutcome::Settled { publishes } if publishes.is_empty());
        publishes_nothing && !report.has_changes()
    };
    if reports.iter().any(is_failed) {
        exit::FAILURE
    } else if reports.iter().all(is_idle) {
        exit::SUCCESS
    } else {
        exit::CHANGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: ReportedOutcome) -> PlanReport {
        PlanReport {
            object: "default/web".into(),
            waves: Vec::new(),
            outcome,
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_exit_status_tells_idle_from_changes_from_failures() {
        let settled = |publishes: &[&str]| {
            report(ReportedOutcome::Settled {
                publishes: publishes.iter().map(ToString::to_string).collect(),
            })
        };
        let waiting = report(ReportedOutcome::Waiting {
            reason: "changing".into(),
        });
        let failed = report(ReportedOutcome::Failed { error: "down".into() });
        assert_eq!(status(&[]), exit::SUCCESS);
        assert_eq!(status(&[settled(&[])]), exit::SUCCESS);
        assert_eq!(status(&[settled(&[]), settled(&["192.0.2.1"])]), exit::CHANGES);
        assert_eq!(status(&[waiting]), exit::CHANGES);
        assert_eq!(status(&[settled(&["192.0.2.1"]), failed]), exit::FAILURE);
    }
}
