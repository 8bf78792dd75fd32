use std::fs;

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

use super::*;
use crate::client::{Kube, KubeOptions};
use crate::clock::{SystemClock, TokioClock};
use crate::connect::ConnectOptions;
use crate::connect::credentials::Credentials;

/// A plugin that is a shell script. Each run adds a line to the file `runs` of its folder, whose name it is given.
struct Script {
    folder: tempfile::TempDir,
    credentials: Credentials,
    clock: Arc<dyn Clock>,
}

impl Script {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let exec = json!({
            "command": "/bin/sh",
            "args": ["-c", format!("cd \"$FOLDER\"; echo run >> runs; {script}")],
            "env": [{"name": "FOLDER", "value": folder.path()}],
        });
        let plugin = Plugin::new(serde_json::from_value(exec).unwrap());
        Self {
            folder,
            credentials: Credentials {
                plugin: Some(plugin),
                ..Credentials::default()
            },
            clock: Arc::new(SystemClock),
        }
    }

    /// Prints the contents of a file.
    fn saying(status: &Value) -> Self {
        let new = Self::new("cat answer");
        new.say(status);
        new
    }

    fn say(&self, status: &Value) {
        let answer = json!({"kind": "ExecCredential", "apiVersion": VERSION, "status": status});
        fs::write(self.folder.path().join("answer"), answer.to_string()).unwrap();
    }

    async fn refresh(&self) -> Result<(), String> {
        self.credentials.refresh(&self.clock).await
    }

    fn token(&self) -> Option<String> {
        let header = self.credentials.authorization()?;
        Some(header.to_str().unwrap().to_owned())
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.folder.path().join("runs"));
        runs.map_or(0, |runs| runs.lines().count())
    }

    fn plugin(&self) -> &Plugin {
        self.credentials.plugin.as_ref().unwrap()
    }

    /// As if the last run were long ago.
    fn pause(&self) {
        self.plugin().state().started = None;
    }
}

#[tokio::test]
async fn a_plugin_is_run_once_for_all_who_ask() {
    let script = Script::saying(&json!({"token": "first"}));
    let all = futures::future::join_all((0..10).map(|_| script.refresh())).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    script.pause();
    script.refresh().await.unwrap();
    assert_eq!(
        (script.token().as_deref(), script.runs()),
        (Some("Bearer first"), 1)
    );
    let shown = format!("{:?} {:?}", script.plugin(), script.credentials.authorization());
    assert!(!shown.contains("first"), "{shown}");
}

#[tokio::test]
async fn the_end_of_what_a_plugin_says_is_not_told_because_it_is_run_again_before() {
    // Its claims are {"exp":1790000000}.
    let script = Script::saying(&json!({"token": "e30.eyJleHAiOjE3OTAwMDAwMDB9.x"}));
    script.refresh().await.unwrap();
    assert!(script.token().is_some());
    assert_eq!(script.credentials.ends(), []);
}

#[tokio::test]
async fn what_is_refused_is_asked_for_again_after_a_pause() {
    let script = Script::saying(&json!({"token": "first"}));
    script.refresh().await.unwrap();
    script.say(&json!({"token": "second"}));
    let refused = script.credentials.presented();
    let is_renewed = async || script.credentials.are_renewed(&refused, &script.clock).await;
    assert!(!is_renewed().await);
    assert_eq!(
        (script.token().as_deref(), script.runs()),
        (Some("Bearer first"), 1)
    );
    script.pause();
    assert!(is_renewed().await);
    // Others who were refused at the same time find it done.
    script.pause();
    assert!(is_renewed().await);
    assert_eq!(
        (script.token().as_deref(), script.runs()),
        (Some("Bearer second"), 2)
    );
}

#[tokio::test]
async fn an_answer_that_ends_soon_is_used_while_it_is_replaced() {
    let soon = Timestamp::now() + Duration::from_secs(30);
    let script = Script::saying(&json!({"token": "first", "expirationTimestamp": soon}));
    script.refresh().await.unwrap();
    script.say(&json!({"token": "second", "expirationTimestamp": soon}));
    script.pause();
    script.refresh().await.unwrap();
    assert_eq!(script.token().as_deref(), Some("Bearer first"));
    let run = script.plugin().state().run.clone().unwrap();
    run.await;
    assert_eq!(
        (script.token().as_deref(), script.runs()),
        (Some("Bearer second"), 2)
    );
}

#[tokio::test]
async fn an_answer_that_has_ended_is_waited_for_and_stays_if_there_is_no_other() {
    let past = Timestamp::now() - Duration::from_secs(30);
    let script = Script::saying(&json!({"token": "first", "expirationTimestamp": past}));
    script.refresh().await.unwrap();
    fs::write(script.folder.path().join("answer"), "hunter2").unwrap();
    script.pause();
    script.refresh().await.unwrap();
    assert_eq!(
        (script.token().as_deref(), script.runs()),
        (Some("Bearer first"), 2)
    );
    script.say(&json!({"token": "second"}));
    script.pause();
    script.refresh().await.unwrap();
    assert_eq!(script.token().as_deref(), Some("Bearer second"));
}

#[tokio::test]
async fn a_certificate_is_taken_and_replaced() {
    let status = || {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["me".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        json!({"clientCertificateData": certificate, "clientKeyData": key.serialize_pem()})
    };
    let script = Script::saying(&status());
    script.refresh().await.unwrap();
    let first = script.credentials.presented();
    script.say(&status());
    script.pause();
    assert!(script.credentials.are_renewed(&first, &script.clock).await);
    assert!(!script.credentials.keys().is_same(&first.keys));
}

#[tokio::test]
async fn it_is_told_what_it_is_asked_for() {
    let script = Script::new(r#"echo "$KUBERNETES_EXEC_INFO" > asked; echo '{"status": {"token": "x"}}'"#);
    script.refresh().await.unwrap();
    let asked = fs::read_to_string(script.folder.path().join("asked")).unwrap();
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(
        asked,
        json!({"kind": "ExecCredential", "apiVersion": VERSION, "spec": {"interactive": false}})
    );
}

#[tokio::test]
async fn nothing_that_it_says_is_repeated() {
    for (script, expected) in [
        (
            "echo hunter2; echo hunter2 >&2; exit 3",
            "failed with exit status: 3; run it by hand",
        ),
        ("echo 'token: [hunter2'", "gave no answer that can be read"),
        ("echo hunter2", "gave no answer that can be read"),
        (
            r#"echo '{"status": {"token": ["hunter2"]}}'"#,
            "(`token`: a text is expected",
        ),
        (
            r#"echo '{"status": {"token": "x", "expirationTimestamp": "hunter2"}}'"#,
            "a time of expiration that is no time",
        ),
        (
            r#"echo '{"status": {"token": "hunter\u00012"}}'"#,
            "`token`: it holds characters",
        ),
        (
            r#"echo '{"status": {"clientKeyData": "hunter2"}}'"#,
            "`clientKeyData` one is missing",
        ),
        (
            r#"echo '{"status": {"clientKeyData": "hunter2", "clientCertificateData": "hunter2"}}'"#,
            "no certificate in PEM",
        ),
        (r#"echo '{"status": {}}'"#, "neither a token nor a certificate"),
        ("echo '{}'", "there is no `status`"),
    ] {
        let plugin = Script::new(script);
        let error = plugin.refresh().await.unwrap_err();
        assert!(
            error.starts_with("the credential plugin of the kubeconfig ") && error.contains(expected),
            "{script}: {error}"
        );
        assert!(!error.contains("hunter"), "{script}: {error}");
        // It is not run again at once, and whoever asks meanwhile hears the same.
        assert_eq!(plugin.refresh().await, Err(error));
        assert_eq!(plugin.runs(), 1);
    }
}

#[tokio::test]
async fn a_plugin_that_cannot_be_started_is_told() {
    for (exec, expected) in [
        (json!({}), "has no `command`"),
        (
            json!({"command": "/does/not/exist"}),
            "cannot be started by its `command` `/does/not/exist`: ",
        ),
    ] {
        let plugin = Plugin::new(serde_json::from_value(exec).unwrap());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let error = plugin.refresh(&clock).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_hangs_is_given_up_after_30_seconds() {
    let mut script = Script::new("sleep 1000");
    script.clock = Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH));
    let begun = Instant::now();
    let error = script.refresh().await.unwrap_err();
    assert!(error.contains("gave no answer within 30 s"), "{error}");
    assert!(begun.elapsed() < TIME + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_a_plugin_says_so() {
    let exec = "{command: /bin/sleep, args: ['1000'], apiVersion: v1}";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:1'}}}}]\nusers: [{{name: a, user: {{exec: {exec}}}}}]\n"
    );
    fs::write(&path, text).unwrap();
    let target = ConnectOptions {
        kubeconfig: Some(path),
        ..ConnectOptions::default()
    };
    let kube = Kube::connect(&target, KubeOptions::new("test/1")).await.unwrap();
    let kube = kube.with_timeout(Duration::from_secs(5));
    let error = kube.is_healthy().await.unwrap_err().to_string();
    assert!(
        error.contains("plugin of the kubeconfig has not answered yet"),
        "{error}"
    );
}
