//! The API server: the embedded one, or a real kube-apiserver in a child process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bowline_kube_api::{KubeApi, ServerHandle};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::args::{Args, Kind};

/// How long the child may take to stop its servers and to remove its files.
const STOP_DEADLINE: Duration = Duration::from_millis(1500);

const NEEDS_GO: &str = "the real control plane did not start. It is built by the Go toolchain the first time (some \
    minutes, then cached): install Go, or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd, or run the \
    demo without `--control-plane real`";

/// A running API server.
pub(crate) struct ControlPlane {
    server: Server,
    kubeconfig: PathBuf,
    api: Api,
}

enum Server {
    Embedded(ServerHandle),
    Real(Process),
}

impl ControlPlane {
    /// Starts one. `directory` is for files that may vanish with the demo.
    pub(crate) async fn start(
        args: &Args,
        directory: &Path,
        interrupt: &CancellationToken,
    ) -> anyhow::Result<Self> {
        match args.control_plane {
            Kind::Embedded => Self::embedded(args.listen, args.seed, directory).await,
            Kind::Real => Self::real(interrupt).await,
        }
    }

    async fn embedded(listen: SocketAddr, seed: u64, directory: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen at {listen} (--listen)"))?;
        let server = KubeApi::builder().seed(seed).build().serve(listener)?;
        let kubeconfig = directory.join("kubeconfig");
        let text = KubeApi::kubeconfig(server.address());
        std::fs::write(&kubeconfig, &text)
            .with_context(|| format!("cannot write {}", kubeconfig.display()))?;
        Ok(Self {
            api: Api::from_kubeconfig(&text)?,
            server: Server::Embedded(server),
            kubeconfig,
        })
    }

    /// It may be built first, so this is the one start that an interrupt has to cut short.
    async fn real(interrupt: &CancellationToken) -> anyhow::Result<Self> {
        let mut process = Process::start()?;
        let started = tokio::select! {
            biased;
            () = interrupt.cancelled() => None,
            kubeconfig = process.kubeconfig() => Some(kubeconfig),
        };
        let Some(kubeconfig) = started else {
            process.stop().await;
            bail!("interrupted");
        };
        let kubeconfig = kubeconfig.context(NEEDS_GO)?;
        let text = std::fs::read_to_string(&kubeconfig)
            .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        Ok(Self {
            api: Api::from_kubeconfig(&text)?,
            server: Server::Real(process),
            kubeconfig,
        })
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where the embedded server can be asked with plain HTTP.
    pub(crate) fn plain_url(&self) -> Option<String> {
        match &self.server {
            Server::Embedded(server) => Some(format!("http://{}", server.address())),
            Server::Real(_) => None,
        }
    }

    pub(crate) async fn stop(self) {
        match self.server {
            Server::Embedded(server) => {
                // It waits for open watches; dropping it does not.
                let _ = tokio::time::timeout(Duration::from_millis(300), server.stop()).await;
            }
            Server::Real(mut process) => process.stop().await,
        }
    }
}

/// The child that runs kube-apiserver and etcd. It is a program of this workspace's tests, not a dependency: what ships
/// needs no test code.
struct Process(Child);

impl Process {
    fn start() -> anyhow::Result<Self> {
        let mut command = command();
        command
            .arg("start")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // A group of its own: Ctrl-C in a terminal reaches us only, and we stop the manager first.
            .process_group(0);
        let child = command
            .spawn()
            .with_context(|| format!("cannot run {:?}", command.as_std().get_program()))?;
        Ok(Self(child))
    }

    /// Waits for the line that names the kubeconfig.
    async fn kubeconfig(&mut self) -> anyhow::Result<PathBuf> {
        let output = self.0.stdout.take().context("it has no output")?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(path) = named_kubeconfig(&line) {
                return Ok(path.into());
            }
        }
        let status = self.0.wait().await?;
        bail!("`control-plane start` ended with {status}; what it said is above")
    }

    async fn stop(&mut self) {
        self.signal(Signal::TERM);
        let _ = tokio::time::timeout(STOP_DEADLINE, self.0.wait()).await;
    }

    /// To the whole group: cargo or the Go toolchain may be at work in it.
    fn signal(&self, signal: Signal) {
        let group = self
            .0
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(group) = group {
            // The only error is that nobody is left.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

/// Also when the demo is stopped while the control plane is being built.
impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
        }
    }
}

/// The built program beside this one, else through cargo.
fn command() -> Command {
    let beside = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name("control-plane"))
        .filter(|path| path.is_file());
    match beside {
        Some(path) => Command::new(path),
        None => {
            let mut cargo = Command::new("cargo");
            cargo.args([
                "run",
                "--quiet",
                "--package",
                "bowline-control-plane",
                "--bin",
                "control-plane",
                "--",
            ]);
            cargo
        }
    }
}

fn named_kubeconfig(line: &str) -> Option<&str> {
    line.trim().strip_prefix("export KUBECONFIG=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_is_found_in_the_programs_output() {
        assert_eq!(named_kubeconfig("export KUBECONFIG=/a/b\n"), Some("/a/b"));
        assert_eq!(named_kubeconfig("Kubernetes 1.36"), None);
    }

    #[tokio::test]
    async fn the_embedded_server_is_reached_through_its_kubeconfig() {
        let directory = tempfile::tempdir().unwrap();
        let args = Args::parse(["demo"]).unwrap();
        let plane = ControlPlane::start(&args, directory.path(), &CancellationToken::new())
            .await
            .unwrap();
        let version = plane.api().read("/version").await.unwrap();
        assert_eq!(version["major"], "1");
        assert!(plane.api().find("/api/v1/nodes/none").await.unwrap().is_none());
        plane.stop().await;
    }
}
