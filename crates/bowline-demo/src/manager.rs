//! The manager itself, as its binary would run it: the same words on the command line, the same reading of them, a
//! runtime of its own. Only the environment and the request to stop are handed in instead of taken from the process.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bowline::args::{self, Invocation, LoggingOptions};
use bowline::{commands, logging};
use bowline_cloud_provider::Environment;
use bowline_cloud_provider::plan::{PlanReport, ReportedStep, render_text};
use jiff::Timestamp;
use serde_json::Value;
use tracing::Dispatch;

use crate::cloud::Cloud;
use process::{Process, surroundings};

mod process;
mod steps;

pub(crate) use process::Life;
pub(crate) use steps::{Listener, StepNews, What};

/// A manager that runs on a thread of its own until it is stopped or dropped.
pub(crate) struct Manager {
    /// What the manifest says, the program's name first.
    manifest: Vec<String>,
    /// What a local run needs besides.
    local: Vec<String>,
    /// The one of them that names the cloud's file, if the cloud has one.
    config: Option<String>,
    environment: Environment,
    seed: u64,
    url: String,
    log: Option<PathBuf>,
    process: Process,
}

/// What the word `plan` says.
#[derive(Clone, Debug)]
pub(crate) struct Plan(Vec<PlanReport>);

impl Plan {
    /// What it prints.
    pub(crate) fn text(&self) -> String {
        render_text(&self.0)
    }

    /// One report for each object.
    pub(crate) fn reports(&self) -> &[PlanReport] {
        &self.0
    }

    /// How many changes it would make in the cloud. The others are to Kubernetes objects.
    pub(crate) fn cloud_changes(&self) -> usize {
        let waves = self.0.iter().flat_map(|report| &report.waves);
        let steps = waves.flat_map(|wave| &wave.steps);
        steps.filter(|step| !is_for_kubernetes(step)).count()
    }
}

/// Those steps run one by one for each object.
fn is_for_kubernetes(step: &ReportedStep) -> bool {
    step.lanes.iter().any(|lane| lane.starts_with("kubernetes/"))
}

/// Where the log goes.
pub(crate) enum Log {
    Stderr,
    File(PathBuf),
}

impl Manager {
    /// Starts it for a cloud. `directory` is for files that may vanish with the demo; each step that it makes is told to
    /// `listener`.
    pub(crate) fn start(
        cloud: &dyn Cloud,
        directory: &Path,
        kubeconfig: &Path,
        log: Log,
        seed: u64,
        listener: Listener,
    ) -> anyhow::Result<Self> {
        let manifest = command(cloud.manifest())?;
        let config = config_flag(cloud, directory)?;
        let port = free_port()?;
        let mut local = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
        ];
        local.extend(config.clone());
        local.extend(cloud.flags());
        let environment: Environment = cloud.environment().into_iter().collect();
        let line: Vec<String> = manifest.iter().chain(&local).cloned().collect();
        let options = match args::read(&line) {
            Invocation::Run(options) => options,
            Invocation::Wrong { errors, .. } => bail!("the manifest's command line: {}", errors.join("; ")),
            _ => {
                bail!("the manifest's command runs no manager")
            }
        };
        let (log, path) = start_log(&options.logging, log)?;
        let log = steps::tell_of_steps(log, listener);
        let process = Process::start(*options, environment.clone(), seed, log)?;
        Ok(Self {
            manifest,
            local,
            config,
            environment,
            seed,
            url: format!("https://127.0.0.1:{port}"),
            log: path,
            process,
        })
    }

    /// What it was started with, in lines.
    pub(crate) fn command_line(&self) -> String {
        format!("{}\n  {}", self.manifest.join(" "), self.local.join(" "))
    }

    /// Where health and metrics are served.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The file with the log, if there is one.
    pub(crate) fn log_file(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// What the word `plan` says about a Service of the cluster at this address.
    pub(crate) async fn plan(&self, master: &str, namespace: &str, name: &str) -> anyhow::Result<Plan> {
        let (program, flags) = self.manifest.split_first().context("no command")?;
        let mut line = vec![program.clone(), "plan".to_owned()];
        line.extend(flags.iter().chain(&self.config).cloned());
        line.push(format!("--master={master}"));
        line.push(format!("--service={namespace}/{name}"));
        let (options, plan) = match args::read(&line) {
            Invocation::Plan(options, plan) => (options, plan),
            Invocation::Wrong { errors, .. } => bail!("{}", errors.join("; ")),
            _ => {
                bail!("`{}` is no plan", line.join(" "))
            }
        };
        let surroundings = surroundings(&self.environment, self.seed);
        let reports = commands::plan_reports(&options, &plan, surroundings).await;
        Ok(Plan(reports.map_err(anyhow::Error::msg)?))
    }

    pub(crate) fn life(&self) -> Life {
        self.process.life()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.life() == Life::Ended
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        self.process.ended().await;
    }

    /// Ends it without a word; it is started again soon.
    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    /// Asks it to end, and waits so long; whether it has ended.
    pub(crate) async fn stop(&self, deadline: Duration) -> bool {
        self.process.stop();
        tokio::time::timeout(deadline, self.ended()).await.is_ok()
    }
}

/// The words of the container's command and arguments in a manifest of several documents.
fn command(manifest: &str) -> anyhow::Result<Vec<String>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).context("the manifest is not YAML")?;
    for object in objects {
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        if let Some(words) = container["command"].as_array() {
            let arguments = container["args"].as_array().into_iter().flatten();
            let words = words.iter().chain(arguments).filter_map(Value::as_str);
            return Ok(words.map(|word| expanded(word, &container["env"])).collect());
        }
    }
    bail!("the manifest has no command")
}

/// A word with the values of the container's variables in the place of `$(NAME)`, as a kubelet puts them there.
fn expanded(word: &str, variables: &Value) -> String {
    let variables = variables.as_array().into_iter().flatten();
    variables.fold(word.to_owned(), |word, variable| {
        match (variable["name"].as_str(), variable["value"].as_str()) {
            (Some(name), Some(value)) => word.replace(&format!("$({name})"), value),
            _ => word,
        }
    })
}

/// Writes the file that the manifest mounts, and gives the flag that names it.
fn config_flag(cloud: &dyn Cloud, directory: &Path) -> anyhow::Result<Option<String>> {
    let Some(contents) = cloud.config() else {
        return Ok(None);
    };
    let path = directory.join("cloud-config");
    std::fs::write(&path, contents).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some(format!("--cloud-config={}", path.display())))
}

/// A port that is free now. Somebody may take it before the manager does, which then says so.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// Starts the log of the whole process; gives it, and the file it goes to.
fn start_log(options: &LoggingOptions, log: Log) -> anyhow::Result<(Dispatch, Option<PathBuf>)> {
    let (sink, path): (logging::Sink, _) = match log {
        Log::Stderr => (Arc::new(Mutex::new(std::io::stderr())), None),
        Log::File(path) => {
            let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            (Arc::new(Mutex::new(file)), Some(path))
        }
    };
    let log = Dispatch::new(logging::log(options.clone(), sink, Timestamp::now));
    // A second demo in one process, as tests run it, logs where the first one does, but for its manager.
    let _ = tracing::dispatcher::set_global_default(log.clone());
    Ok((log, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "cloudscale")]
    #[test]
    fn the_deployed_command_line_is_used() {
        let manifest = include_str!("../../../deploy/cloudscale/config.yml");
        assert_eq!(
            command(manifest).unwrap(),
            [
                "cloudscale-cloud-controller-manager",
                "--allow-untagged-cloud",
                "--v=3",
                "--concurrent-service-syncs=2"
            ]
        );
    }

    #[test]
    fn variables_of_the_container_are_put_into_its_command_line() {
        let manifest = "
kind: DaemonSet
spec:
  template:
    spec:
      containers:
      - command: [manager, --cluster-name=$(NAME), '--node-name=$(NODE)']
        env:
        - {name: NAME, value: lab}
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
";
        let expected = ["manager", "--cluster-name=lab", "--node-name=$(NODE)"];
        assert_eq!(command(manifest).unwrap(), expected);
    }

    #[test]
    fn a_manifest_without_a_command_is_refused() {
        let error = command("kind: Service\n---\nkind: Secret\n").unwrap_err();
        assert_eq!(error.to_string(), "the manifest has no command");
    }
}
