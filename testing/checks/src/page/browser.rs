//! A headless Chromium, and one page in it.
//!
//! The DevTools protocol goes through two pipes (`--remote-debugging-pipe`): JSON messages that end with a zero byte, read by the
//! browser from descriptor 3 and written to 4. So nothing listens, and no WebSocket is needed.
//! Source: <https://chromedevtools.github.io/devtools-protocol/>, and `content/browser/devtools/devtools_pipe_handler.cc`.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// From one look at a condition to the next.
const PERIOD: Duration = Duration::from_millis(100);

/// A browser with one page.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    last_id: u64,
    /// What the page asked for.
    requests: Vec<String>,
    /// What went wrong in it.
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts this program.
    ///
    /// # Errors
    ///
    /// If it does not start or does not speak the protocol.
    pub async fn start(program: &str) -> Result<Self> {
        let profile = tempfile::Builder::new().prefix("bowline-page-").tempdir()?;
        let flags = [
            "--headless=new",
            "--remote-debugging-pipe",
            // As root, which a container's user is, Chromium has no sandbox. It only ever opens our own page.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
        ];
        // The shell gives the browser its pipes as descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 >/dev/null </dev/null", "sh", program])
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let input = child.stdin.take().context("no way to the browser")?;
        let output = child.stdout.take().context("no way from the browser")?;
        let mut browser = Self {
            child,
            input,
            output: BufReader::new(output),
            session: String::new(),
            last_id: 0,
            requests: Vec::new(),
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser
            .call("Target.createTarget", json!({ "url": "about:blank" }))
            .await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach).await?;
        browser.session = session["sessionId"].as_str().context("no session")?.to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({})).await?;
        }
        Ok(browser)
    }

    /// Sends a command and waits for its answer; what the page says meanwhile is noted.
    async fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input
            .write_all(&bytes)
            .await
            .context("the browser has gone")?;
        loop {
            let mut bytes = Vec::new();
            tokio::time::timeout(PATIENCE, self.output.read_until(0, &mut bytes))
                .await
                .with_context(|| format!("no answer to {method} in {} s", PATIENCE.as_secs()))??;
            ensure!(bytes.pop() == Some(0), "the browser has ended");
            let message: Value = serde_json::from_slice(&bytes)?;
            if message["id"] == id {
                ensure!(
                    message["error"].is_null(),
                    "{method}: {}",
                    message["error"]["message"]
                );
                return Ok(message["result"].clone());
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.to_owned());
            }
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(parameters["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                self.complaints.push(parameters["args"].to_string());
            }
            _ => {}
        }
    }

    /// Goes to an address.
    ///
    /// # Errors
    ///
    /// If the browser cannot.
    pub async fn open(&mut self, url: &str) -> Result<()> {
        let answer = self.call("Page.navigate", json!({ "url": url })).await?;
        ensure!(answer["errorText"].is_null(), "{url}: {}", answer["errorText"]);
        Ok(())
    }

    /// The value of an expression in the page.
    ///
    /// # Errors
    ///
    /// If it throws.
    pub async fn value(&mut self, expression: &str) -> Result<Value> {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters).await?;
        if let Some(details) = answer.get("exceptionDetails") {
            bail!("{expression}: {}", details["exception"]["description"]);
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true.
    ///
    /// # Errors
    ///
    /// If it is not in time.
    pub async fn until(&mut self, what: &str, expression: &str, patience: Duration) -> Result<()> {
        let end = Instant::now() + patience;
        while self.value(expression).await? != true {
            if Instant::now() >= end {
                let text = self.value("document.body.innerText").await?;
                bail!(
                    "not in {} s: {what}; the page says:\n{}",
                    patience.as_secs(),
                    text.as_str().unwrap_or_default()
                );
            }
            tokio::time::sleep(PERIOD).await;
        }
        Ok(())
    }

    /// Presses a key as a person does.
    ///
    /// # Errors
    ///
    /// If the browser has gone.
    pub async fn press(&mut self, key: &str, code: u32) -> Result<()> {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            if kind == "keyDown" {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Clicks into the middle of the first element of a selector, once it is there and works.
    ///
    /// # Errors
    ///
    /// If there is none in time.
    pub async fn click(&mut self, selector: &str) -> Result<()> {
        let quoted = Value::from(selector);
        let there = format!(
            "(e => e !== null && e.ariaDisabled !== 'true' && e.offsetParent !== null)(document.querySelector({quoted}))"
        );
        self.until(&format!("{selector} can be pressed"), &there, PATIENCE)
            .await?;
        let place = format!(
            "(e => {{ e.scrollIntoView({{ block: 'center' }}); const b = e.getBoundingClientRect(); \
             return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.querySelector({quoted}))"
        );
        let place = self.value(&place).await?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event).await?;
        }
        Ok(())
    }

    /// Chooses the size of the window in pixels, and light or dark.
    ///
    /// # Errors
    ///
    /// If the browser has gone.
    pub async fn look(&mut self, width: u32, height: u32, scheme: &str) -> Result<()> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size).await?;
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }))
            .await?;
        Ok(())
    }

    /// A picture of the window, as PNG.
    ///
    /// # Errors
    ///
    /// If the browser makes none.
    pub async fn picture(&mut self) -> Result<Vec<u8>> {
        let answer = self
            .call(
                "Page.captureScreenshot",
                json!({ "format": "png", "optimizeForSpeed": false }),
            )
            .await?;
        let data = answer["data"].as_str().context("no picture")?;
        Ok(base64::engine::general_purpose::STANDARD.decode(data)?)
    }

    /// What the page asked for so far.
    #[must_use]
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    /// What went wrong in the page since this was asked last.
    pub fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    /// Ends the browser and waits for it.
    pub async fn close(mut self) {
        let _ = self.call("Browser.close", json!({})).await;
        let _ = tokio::time::timeout(PATIENCE, self.child.wait()).await;
    }
}
