//! The manager that is measured.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Request;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::nodes;
use crate::simulator::{CLOUD_CONFIG, Kind, TOKEN};
use crate::wait;
use crate::world::World;

/// A command line, in which the world is yet to be filled in.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    command: Vec<String>,
    /// Whether it has the flags of whichever cloud there is.
    pub(crate) is_ours: bool,
    /// What its image sets.
    environment: Vec<(String, String)>,
}

impl Subject {
    /// Our manager.
    pub(crate) fn ours(program: &Path, environment: Vec<(String, String)>) -> Self {
        let flags = ["--kubeconfig={kubeconfig}", "--secure-port={secure_port}"];
        let program = program.display().to_string();
        Self {
            name: "bowline",
            command: std::iter::once(program).chain(flags.map(str::to_owned)).collect(),
            is_ours: true,
            environment,
        }
    }

    /// Somebody else's, by its command line. Words are separated by blanks.
    pub(crate) fn peer(line: &str) -> Result<Self> {
        let command: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        anyhow::ensure!(!command.is_empty(), "the peer's command is empty");
        Ok(Self {
            name: "peer",
            command,
            is_ours: false,
            environment: Vec::new(),
        })
    }

    /// Whether it can be told of this cloud.
    pub(crate) fn knows(&self, cloud: Kind) -> bool {
        self.is_ours || cloud.is_for(&self.command.join(" "))
    }

    /// Starts it in a world, with more flags.
    pub(crate) fn start(&self, world: &World, flags: &[&str], logs: Option<&Path>) -> Result<Manager> {
        let secure_port = free_port()?;
        let scratch = tempfile::tempdir()?;
        let cloud_config = scratch.path().join("cloud.conf");
        world.cloud.configure(&cloud_config)?;
        let fill = |word: &str| {
            word.replace("{kubeconfig}", &world.plane.admin().path().display().to_string())
                .replace("{api_url}", world.cloud.url())
                .replace("{token}", TOKEN)
                .replace(CLOUD_CONFIG, &cloud_config.display().to_string())
                .replace("{secure_port}", &secure_port.to_string())
        };
        let of_cloud = if self.is_ours {
            world.cloud.kind().flags()
        } else {
            &[]
        };
        let words = self.command.iter().map(String::as_str);
        let mut words = words.chain(of_cloud.iter().copied()).map(fill);
        let program = words.next().context("no program")?;
        let log = match logs {
            Some(directory) => {
                fs::create_dir_all(directory)?;
                directory.join(format!("{}-{secure_port}.log", self.name))
            }
            None => scratch.path().join("log"),
        };
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let begun = Instant::now();
        let child = Command::new(&program)
            .args(words)
            .args(flags)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("CLOUDSCALE_API_URL", world.cloud.url())
            .env("CLOUDSCALE_ACCESS_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        Ok(Manager {
            child,
            begun,
            secure_port,
            log,
            _scratch: scratch,
        })
    }
}

/// A running manager; killed when dropped.
pub(crate) struct Manager {
    child: Child,
    /// When it was started.
    pub(crate) begun: Instant,
    secure_port: u16,
    log: PathBuf,
    _scratch: TempDir,
}

impl Manager {
    /// Its process id.
    pub(crate) fn id(&self) -> Result<u32> {
        self.child.id().context("the manager has ended")
    }

    /// Waits until it leads, and tells since when: the lease has the microsecond.
    pub(crate) async fn leading(&mut self, world: &World) -> Result<Instant> {
        let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
        let acquired = wait::until("the manager leads", Duration::from_millis(10), async || {
            self.check_alive()?;
            let list: Value = world.client.request(Request::get(path).body(Vec::new())?).await?;
            let leases = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let held = leases.iter().find(|lease| {
                let name = lease["metadata"]["name"].as_str().unwrap_or_default();
                let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                // The API server holds a lease of its own.
                !name.starts_with("apiserver-") && !holder.is_empty()
            });
            Ok(held.and_then(|lease| lease["spec"]["acquireTime"].as_str().map(str::to_owned)))
        })
        .await?;
        Ok(Instant::now() - nodes::since(acquired.parse()?))
    }

    /// Waits until `/healthz` is answered with 200, and tells how long that took from the start.
    pub(crate) async fn healthy(&mut self) -> Result<Duration> {
        let mut config = kube::Config::new(format!("https://127.0.0.1:{}", self.secure_port).parse()?);
        config.accept_invalid_certs = true; // it signs its own
        config.default_retry = false;
        let client = kube::Client::try_from(config)?;
        wait::until("the manager is healthy", Duration::from_millis(1), async || {
            self.check_alive()?;
            let asked = Request::get("/healthz").body(Vec::new())?;
            Ok(client.request_text(asked).await.is_ok().then_some(()))
        })
        .await?;
        Ok(self.begun.elapsed())
    }

    /// Ends it with a signal, and tells when it had ended.
    pub(crate) async fn end(mut self, signal: Signal) -> Result<Instant> {
        let id = Pid::from_raw(i32::try_from(self.id()?)?).context("no process id")?;
        kill_process(id, signal).context("cannot send a signal to the manager")?;
        self.child.wait().await?;
        Ok(Instant::now())
    }

    fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last_words = lines[lines.len().saturating_sub(10)..].join("\n");
            bail!("the manager ended, {status}; its last words:\n{last_words}");
        }
        Ok(())
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
