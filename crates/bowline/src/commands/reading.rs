//! What the commands that only read have in common: where the cluster is, a closed gate, and where the log goes.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use bowline_cloud_http::{CancellationToken, Silences};
use bowline_kube_io::{ConnectError, Dates, Kube, KubeMetrics, SystemClock};
use bowline_manager::FencingGate;
use bowline_manager::doctor::Progress;

use super::{Surroundings, Untaken, connect, terminal};
use crate::args::{LoggingOptions, Options};
use crate::{logging, providers};

/// The variable in which people tell `kubectl` where their cluster is.
const KUBECONFIG: &str = "KUBECONFIG";

/// A command that only reads.
pub(super) struct Reading {
    /// The options, with the kubeconfig of the environment where none is given.
    pub(super) options: Options,
    surroundings: Surroundings,
    /// What time it is at the cloud.
    pub(super) dates: Dates,
}

impl Reading {
    pub(super) fn new(options: &Options, surroundings: Surroundings) -> Self {
        let mut options = options.clone();
        if let Some((path, source)) = kubeconfig_of_environment(&options, &surroundings) {
            options.kube.kubeconfig = Some(path);
            options.kube.kubeconfig_source = source;
        }
        Self {
            options,
            surroundings,
            dates: Dates::default(),
        }
    }

    /// The API server. No write passes here nor the provider's own gate, so nothing can be written by mistake.
    ///
    /// # Errors
    ///
    /// It is not said where it is, or the credentials cannot be read.
    pub(super) async fn kube(&self, word: &str) -> Result<Kube, String> {
        let gate = Arc::new(FencingGate::closed(Arc::new(SystemClock)));
        let kube = connect::api_server(&self.options, &self.surroundings, gate, KubeMetrics::default());
        kube.await.map_err(|error| match error {
            ConnectError::NotConfigured => {
                format!("{error}; {word} also takes the kubeconfig of ${KUBECONFIG}")
            }
            error => error.to_string(),
        })
    }

    /// What a provider is built from.
    pub(super) fn site(&self, calls: providers::Calls) -> providers::Site {
        let Options {
            version,
            program,
            provider,
            ..
        } = &self.options;
        providers::Site {
            environment: self.surroundings.environment.clone(),
            calls,
            metrics: bowline_cloud_http::Metrics::default(),
            shutdown: CancellationToken::new(),
            user_agent: version.user_agent(program),
            version: version.git_version.clone(),
            base_url: provider.base_url.clone(),
            user_agents: provider.user_agents.clone(),
            balances: true,
            makes_routes: self.options.manager.makes_routes(),
            series: providers::Series::default(),
            seed: self.surroundings.seed,
            shown: providers::Shown::default(),
            dates: self.dates.clone(),
            silences: Silences::default(),
            starts_anyway: !provider.several.is_empty(),
            copies: self.surroundings.copies.clone(),
        }
    }

    /// What could not be taken from the deployed manager.
    pub(super) fn untaken(&self) -> &Untaken {
        &self.surroundings.untaken
    }

    /// Who this process is.
    pub(super) fn holder(&self) -> String {
        self.surroundings.identity.holder.clone()
    }
}

/// The contents of these files, each with its name; `-` is stdin.
///
/// # Errors
///
/// Which cannot be read, and why.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = |path: &PathBuf| {
        let contents = match path.to_str() {
            Some("-") => {
                let mut contents = Vec::new();
                let read = std::io::stdin().read_to_end(&mut contents);
                read.map(|_| contents)
            }
            _ => std::fs::read(path),
        };
        let name = path.display().to_string();
        match contents {
            Ok(contents) => Ok((name, contents)),
            Err(error) => Err(format!("--filename {name}: {error}")),
        }
    };
    paths.iter().map(read).collect()
}

/// Says on stderr what the reader of a command has to know. stdout is for what it prints.
pub(super) fn talk(text: &str) {
    // Nobody is left to tell if stderr is gone.
    let _ = std::io::stderr().write_all(format!("note: {text}\n").as_bytes());
}

/// Runs the command. No line of the log is written unless it is asked for.
///
/// # Errors
///
/// There is no runtime.
pub(super) fn block_on<T>(
    options: &Options,
    has_log: bool,
    work: impl AsyncFnOnce() -> T,
) -> Result<T, String> {
    telling(options, has_log, async |_| work().await)
}

/// The same, for work that says what it is at: shown on stderr if it takes longer than a second.
///
/// # Errors
///
/// There is no runtime.
pub(super) fn telling<T>(
    options: &Options,
    has_log: bool,
    work: impl AsyncFnOnce(&Progress) -> T,
) -> Result<T, String> {
    logging::start(LoggingOptions {
        split: None,
        is_quiet: !has_log,
        ..options.logging.clone()
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("could not start the runtime: {error}"))?;
    let progress = Progress::default();
    let result = runtime.block_on(async {
        tokio::select! {
            biased;
            result = work(&progress) => result,
            never = terminal::show(&progress) => match never {},
        }
    });
    runtime.shutdown_background();
    Ok(result)
}

/// The kubeconfig that the environment names, as for `kubectl`, and by what: of several in `$KUBECONFIG` the first that is there; else,
/// outside of a pod, the one in the home directory.
///
/// Only for a person's command: where the manager runs as a daemon, its flags and its pod say where the cluster is.
fn kubeconfig_of_environment(
    options: &Options,
    surroundings: &Surroundings,
) -> Option<(PathBuf, &'static str)> {
    if options.kube.kubeconfig.is_some() || options.kube.master.is_some() {
        return None;
    }
    let list = surroundings.environment.value(KUBECONFIG).unwrap_or_default();
    let paths: Vec<PathBuf> = std::env::split_paths(list)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    let mut there = paths.iter().filter(|path| path.exists());
    // If none of them is there, the error names the first one.
    let Some(used) = there.next().or(paths.first()).cloned() else {
        return kubeconfig_of_home(surroundings);
    };
    if there.next().is_some() {
        talk(&format!(
            "of the files in $KUBECONFIG only the first one is read: {}",
            used.display()
        ));
    }
    Some((used, "$KUBECONFIG"))
}

/// The file that `kubectl` looks for, unless this is a pod.
pub(super) fn kubeconfig_of_home(surroundings: &Surroundings) -> Option<(PathBuf, &'static str)> {
    let value = |name| {
        surroundings
            .environment
            .value(name)
            .filter(|value| !value.is_empty())
    };
    let path = PathBuf::from(value("HOME")?).join(".kube/config");
    (value("KUBERNETES_SERVICE_HOST").is_none() && path.exists()).then_some((path, "~/.kube/config"))
}
