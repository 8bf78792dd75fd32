//! The simulated cloud, as a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::journal::{self, Calls, Entry};

/// The token that the simulator knows. It opens nothing else.
pub(crate) const TOKEN: &str = "bench";

/// Where a command line names the configuration of its cloud.
pub(crate) const CLOUD_CONFIG: &str = "{cloud_config}";

const CONFIGURED: &str = "--cloud-config={cloud_config}";

/// Time that each call takes, in milliseconds: what a cloud close by needs at best.
const LATENCY_MILLISECONDS: u32 = 20;

/// Which cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Most rows: its API is the plainest.
    Cloudscale,
    /// Servers, ports and load balancers are three services, and the lists are long.
    OpenStack,
}

/// A cloud that can be started.
pub(crate) struct Program {
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
}

impl Kind {
    /// What its simulator is told besides.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Cloudscale => &["--token", TOKEN, "--lb-ready-after", "0"],
            Self::OpenStack => &[],
        }
    }

    /// The flags by which our manager finds it.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Cloudscale => &["--cloud-provider=cloudscale", "--allow-untagged-cloud"],
            Self::OpenStack => &["--cloud-provider=openstack", CONFIGURED],
        }
    }

    /// What stands in `cloud.conf`.
    fn configuration(self, url: &str) -> String {
        match self {
            Self::Cloudscale => String::new(),
            Self::OpenStack => format!(
                "[Global]\nauth-url = {url}/identity\nusername = demo\npassword = demo\ntenant-name = demo\n\
                 domain-id = default\nregion = RegionOne\n"
            ),
        }
    }

    /// Whether a manager with this command line can be told of it.
    pub(crate) fn is_for(self, line: &str) -> bool {
        line.contains(CLOUD_CONFIG) == (self == Self::OpenStack)
    }
}

/// A running simulator; killed when dropped.
pub(crate) struct Simulator {
    _child: Child,
    kind: Kind,
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Simulator {
    /// Starts one with this many servers, named as the Nodes are. Balancers are ready at once.
    pub(crate) async fn start(program: &Program, servers: u32) -> Result<Self> {
        let mut child = Command::new(&program.path)
            .args(["--listen", "127.0.0.1:0"])
            .args(program.kind.options())
            .args(["--latency", &LATENCY_MILLISECONDS.to_string()])
            .args(["--servers", &servers.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.path.display()))?;
        let output = child.stdout.take().context("the simulator has no output")?;
        let url = BufReader::new(output)
            .lines()
            .next_line()
            .await?
            .context("the simulator ended before it told its address")?;
        Ok(Self {
            _child: child,
            kind: program.kind,
            url: url.trim_end_matches('/').to_owned(),
            http: Client::builder(TokioExecutor::new()).build_http(),
        })
    }

    /// Which cloud it is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Writes the configuration by which a manager finds it.
    pub(crate) fn configure(&self, file: &Path) -> Result<()> {
        std::fs::write(file, self.kind.configuration(&self.url))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The number of the next call.
    pub(crate) async fn mark(&self) -> Result<u64> {
        Ok(journal::next(&self.entries().await?))
    }

    /// The calls since a mark.
    pub(crate) async fn calls_since(&self, mark: u64) -> Result<Calls> {
        Ok(journal::since(&self.entries().await?, mark))
    }

    /// The whole record, JSON.
    pub(crate) async fn journal(&self) -> Result<Bytes> {
        self.get("/_sim/journal").await
    }

    async fn entries(&self) -> Result<Vec<Entry>> {
        serde_json::from_slice(&self.journal().await?).context("the journal cannot be understood")
    }

    /// One cheap call, which takes as long as any other.
    pub(crate) async fn touch(&self) -> Result<()> {
        self.get("/v1/regions").await.map(drop)
    }

    async fn get(&self, path: &str) -> Result<Bytes> {
        let request = http::Request::get(format!("{}{path}", self.url))
            .header(http::header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .body(Full::default())?;
        let response = self.http.request(request).await?;
        anyhow::ensure!(response.status().is_success(), "{path}: {}", response.status());
        Ok(response.into_body().collect().await?.to_bytes())
    }
}
