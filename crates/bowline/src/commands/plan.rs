//! `cloud-controller-manager plan`: print what would be done for Services, and do nothing.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome, render_json, render_text};
use bowline_cloud_provider::{ClusterFacts, ServiceKey, ServiceList};
use bowline_kube_io::Kube;
use bowline_manager::cluster;
use bowline_manager::controllers::ControllerName;
use bowline_manager::doctor::{Cloud, Manifests, put_in, tell_last_tries};
use bowline_manager::plan::{PlanInput, plan_nothing, plan_services};

use super::reading::{self, Reading};
use super::terminal::Terminal;
use super::{Surroundings, exit};
use crate::args::{Options, OutputForm, PlanOptions};
use crate::providers;

/// Prints the plans; gives the exit status: 0 nothing to do, 2 changes or a cloud that is busy, 1 a plan could not be
/// made or a person has to change something first.
pub fn plan(options: Options, plan: &PlanOptions, surroundings: Surroundings) -> u8 {
    let terminal = Terminal::of_stdout(&surroundings.environment);
    let work = async || plan_reports(&options, plan, surroundings).await;
    let reports = match reading::block_on(&options, plan.has_log, work).flatten() {
        Ok(reports) => reports,
        Err(error) => return super::complain(&[error], ""),
    };
    let text = match plan.output {
        OutputForm::Text => terminal.dress(&render_text(&reports)),
        OutputForm::Json => render_json(&reports) + "\n",
    };
    super::show(&text, status(&reports))
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
    let reading = Reading::new(options, surroundings);
    let options = &reading.options;
    if !options.manager.controllers.includes(ControllerName::Service) {
        reading::talk(
            "--controllers switches service-lb-controller off: a manager with these flags does nothing of this",
        );
    }
    let kube = reading.kube("plan").await?;
    let site = reading.site(providers::Calls::ToRead);
    let built = providers::build(&options.provider, &site).await;
    let shown = site.shown.take().unwrap_or_default();
    for remark in shown.remarks {
        reading::talk(&format!("the cloud's configuration: {remark}"));
    }
    if built
        .as_ref()
        .is_ok_and(|it| !providers::may_run(&**it, &options.provider))
    {
        reading::talk(providers::UNTAGGED);
    }
    let built = match built {
        Ok(provider) => Cloud::signed_in(provider, Duration::ZERO, shown.refused)
            .await
            .usable(),
        Err(error) => Err(error.to_string()),
    };
    let built = built.and_then(|(provider, refused)| {
        for refused in refused {
            reading::talk(&format!("nothing can be planned in {refused}"));
        }
        let none = || {
            format!(
                "cloud provider {:?} makes no load balancers as it is configured; see the manual of the cloud",
                provider.name()
            )
        };
        let load_balancer = provider.load_balancer().ok_or_else(none)?;
        Ok((provider, load_balancer))
    });
    let uid = match &built {
        Ok((provider, _)) => cluster::uid(&kube, &**provider).await?,
        Err(_) => None,
    };
    let mut input = input(&kube, options, uid, reading.holder()).await?;
    let manifests = Manifests {
        files: reading::files(&plan.files)?,
        namespace: "default".to_owned(),
    };
    let of_files = manifests.services(&input.services.services)?;
    put_in(&mut input.services.services, &of_files);
    let mut only = plan.services.clone();
    only.extend(of_files.iter().map(|service| ServiceKey::of(service)));
    let mut reports = match built {
        Ok((_, load_balancer)) => plan_services(&load_balancer, &input, &only).await,
        // What the cluster shows is told all the same.
        Err(error) => match plan_nothing(&input, &only, &error) {
            reports if reports.is_empty() => return Err(error),
            reports => reports,
        },
    };
    tell_last_tries(&kube, &input, &mut reports).await;
    Ok(reports)
}

async fn input(
    kube: &Kube,
    options: &Options,
    uid: Option<String>,
    holder: String,
) -> Result<PlanInput, String> {
    let unread = |what| move |error| format!("reading {what}: {error}");
    let services = kube.list_services().await.map_err(unread("Services"))?;
    let nodes = kube.list_nodes().await.map_err(unread("Nodes"))?;
    let cluster = Arc::new(ClusterFacts {
        name: options.manager.cluster_name.clone(),
        uid,
        server_version: kube.server_version().await.ok(),
        holder,
    });
    Ok(PlanInput {
        services: ServiceList {
            services,
            classes: options.manager.service_classes.clone(),
        },
        nodes,
        cluster,
        now: kube.clock().now(),
    })
}

fn status(reports: &[PlanReport]) -> u8 {
    use ReportedOutcome::{Failed, Refused};
    let is_failed = |report: &PlanReport| matches!(report.outcome, Failed { .. } | Refused { .. });
    match reports.iter().any(is_failed) {
        true => exit::FAILURE,
        false if reports.iter().all(PlanReport::is_idle) => exit::SUCCESS,
        false => exit::TO_DO,
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
            last_try: None,
            ailments: Vec::new(),
            shown: Default::default(),
            address_change: None,
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
        let not_served = report(ReportedOutcome::NotServed {
            because: "its type is ClusterIP".into(),
        });
        assert_eq!(status(&[not_served]), exit::SUCCESS);
        assert_eq!(status(&[settled(&[]), settled(&["192.0.2.1"])]), exit::TO_DO);
        assert_eq!(status(&[waiting]), exit::TO_DO);
        assert_eq!(status(&[settled(&["192.0.2.1"]), failed]), exit::FAILURE);
    }
}
