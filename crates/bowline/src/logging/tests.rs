use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::plan::NoteKind;
use bowline_kube_io::{ConnectOptions, EventSink, Kube, KubeOptions, ObjectRef};

use super::*;
use crate::args::SplitStream;

fn noon() -> Timestamp {
    "2026-11-21T12:00:00.123456Z".parse().unwrap()
}

fn logged(options: LoggingOptions, work: impl FnOnce()) -> String {
    let sink = Arc::new(Mutex::new(Vec::new()));
    tracing::subscriber::with_default(log(options, sink.clone(), noon), work);
    let bytes = sink.lock().unwrap().clone();
    // Process and line numbers differ from build to build.
    String::from_utf8(bytes)
        .unwrap()
        .replace(&format!("{:>7}", std::process::id()), "    PID")
}

fn options(format: LoggingFormat, verbosity: u8) -> LoggingOptions {
    LoggingOptions {
        is_quiet: false,
        format,
        verbosity,
        modules: Vec::new(),
        split: None,
    }
}

fn talk() {
    let span = tracing::info_span!("reconcile", service = "default/web", attempt = 2);
    let _guard = span.enter();
    tracing::info!(step = "create-pool(tcp/web)", took = 1.5, "Applied");
    tracing::debug!("Why");
    tracing::trace!("Payload");
    tracing::warn!(err = %"no \"route\"", attempt = 3, "Will retry");
}

#[test]
fn text_lines_have_klog_s_form() {
    let text = logged(options(LoggingFormat::Text, 0), talk);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].starts_with("I1121 12:00:00.123456     PID tests.rs:"),
        "{text}"
    );
    assert!(
        lines[0]
            .ends_with(r#"] "Applied" service="default/web" attempt=2 step="create-pool(tcp/web)" took=1.5"#),
        "{text}"
    );
    assert!(lines[1].starts_with('W'), "{text}");
    assert!(
        lines[1].ends_with(r#"] "Will retry" service="default/web" attempt=3 err="no \"route\"""#),
        "{text}"
    );
}

#[test]
fn json_lines_are_objects_with_the_usual_keys() {
    let text = logged(options(LoggingFormat::Json, 6), talk);
    let objects: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects.len(), 4, "{text}");
    assert_eq!(objects[0]["ts"], 1_795_262_400_123.456);
    assert_eq!(objects[0]["msg"], "Applied");
    assert_eq!(objects[0]["v"], 0);
    assert_eq!(objects[0]["service"]["namespace"], "default");
    assert_eq!(objects[2]["v"], 6);
    assert!(objects[0]["caller"].as_str().unwrap().starts_with("tests.rs:"));
}

#[test]
fn verbosity_opens_debug_at_four_and_trace_at_six() {
    let lines = |verbosity| {
        logged(options(LoggingFormat::Text, verbosity), talk)
            .lines()
            .count()
    };
    assert_eq!([0, 3, 4, 5, 6].map(lines), [2, 2, 3, 3, 4]);
}

#[test]
fn requests_to_the_secure_port_are_shown_from_three_on() {
    let lines = |verbosity| {
        let request = || tracing::debug!(target: bowline_manager::HTTP_LOG, "HTTP");
        logged(options(LoggingFormat::Text, verbosity), request)
            .lines()
            .count()
    };
    assert_eq!([2, 3].map(lines), [0, 1]);
}

#[test]
fn what_a_cloud_answered_is_shown_from_two_on_and_whole_from_three_on() {
    let lines = |verbosity| {
        let answers = || {
            tracing::debug!(target: bowline_cloud_provider::ANSWER_LOG, "found");
            tracing::debug!(target: bowline_cloud_provider::DATA_LOG, "all of it");
        };
        logged(options(LoggingFormat::Text, verbosity), answers)
            .lines()
            .count()
    };
    assert_eq!([0, 1, 2, 3, 4].map(lines), [0, 0, 1, 2, 2]);
}

#[test]
fn what_a_client_does_wrong_fills_no_log_below_eight() {
    let lines = |verbosity| {
        let talk = || tracing::warn!(target: "h2::proto::ping_pong", "recv PING ack that we never sent");
        logged(options(LoggingFormat::Text, verbosity), talk)
            .lines()
            .count()
    };
    assert_eq!([0, 7, 8].map(lines), [0, 0, 1]);
}

#[test]
fn other_crates_stay_quiet_below_eight() {
    let lines = |verbosity| {
        let talk = || tracing::debug!(target: "hyper::proto", "parsed");
        logged(options(LoggingFormat::Text, verbosity), talk)
            .lines()
            .count()
    };
    assert_eq!([7, 8].map(lines), [0, 1]);
}

#[test]
fn spans_of_other_crates_are_kept_only_where_their_lines_are() {
    let kept = |verbosity| {
        let mut kept = [false; 2];
        logged(options(LoggingFormat::Text, verbosity), || {
            let of_a_frame = tracing::trace_span!(target: "h2::codec::framed_read", "poll_next");
            kept = [tracing::info_span!("reconcile"), of_a_frame].map(|span| !span.is_disabled());
        });
        kept
    };
    assert_eq!([0, 7, 8].map(kept), [[true, false], [true, false], [true, true]]);
}

#[test]
fn a_module_pattern_raises_single_files() {
    let mut options = options(LoggingFormat::Text, 0);
    options.modules = vec![("te*s".to_owned(), 4)];
    assert_eq!(logged(options.clone(), talk).lines().count(), 3);
    options.modules = vec![("te?".to_owned(), 4)];
    assert_eq!(logged(options, talk).lines().count(), 2);
}

/// What comes out of a split log: the info lines that were written, and the others.
fn split(format: LoggingFormat, buffer: usize) -> (Streams, impl Fn() -> [String; 2]) {
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let [info, others] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let split = SplitStream {
        buffer,
        flush_period: Duration::from_secs(5),
    };
    let streams = Streams::split(split, Shared(Arc::clone(&info)), others.clone());
    let log = log_to(options(format, 0), streams.clone(), noon);
    tracing::subscriber::with_default(log, || {
        talk();
        tracing::error!("Gave up");
    });
    let text = |sink: &Arc<Mutex<Vec<u8>>>| String::from_utf8(sink.lock().unwrap().clone()).unwrap();
    (streams, move || [text(&info), text(&others)])
}

#[test]
fn a_split_stream_keeps_info_lines_apart() {
    let (_, written) = split(LoggingFormat::Text, 0);
    let letters =
        written().map(|text| -> String { text.lines().filter_map(|line| line.chars().next()).collect() });
    assert_eq!(letters, ["I", "WE"]);
}

#[test]
fn in_json_a_warning_is_no_error() {
    let (_, written) = split(LoggingFormat::Json, 0);
    assert_eq!(written().map(|text| text.lines().count()), [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_buffer_holds_info_lines_back_until_the_next_flush_and_no_others() {
    let (streams, written) = split(LoggingFormat::Text, 1 << 16);
    let lines = || written().map(|text| text.lines().count());
    assert_eq!(lines(), [0, 2]);
    let flushing = tokio::time::timeout(Duration::from_millis(4_900), streams.keep_flushed());
    assert!(flushing.await.is_err());
    assert_eq!(lines(), [0, 2]);
    let flushing = tokio::time::timeout(Duration::from_millis(5_100), streams.keep_flushed());
    assert!(flushing.await.is_err());
    assert_eq!(lines(), [1, 2]);
}

#[test]
fn verbosity_changes_while_the_process_runs() {
    let verbosity = Verbosity::new(0);
    let sink = Arc::new(Mutex::new(Vec::new()));
    let log = log_with(
        options(LoggingFormat::Text, 0),
        verbosity.clone(),
        Streams::one(sink.clone()),
        noon,
    );
    tracing::subscriber::with_default(log, || {
        let mut lines = Vec::new();
        for level in [0, 4, 0] {
            verbosity.set(level);
            sink.lock().unwrap().clear();
            talk();
            lines.push(String::from_utf8_lossy(&sink.lock().unwrap()).lines().count());
        }
        assert_eq!(lines, [2, 3, 2]);
    });
}

#[test]
fn an_event_has_the_keys_of_the_go_managers() {
    let nowhere = ConnectOptions {
        master: Some("127.0.0.1:1".to_owned()),
        ..ConnectOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let kube = runtime
        .block_on(Kube::connect(&nowhere, KubeOptions::new("test")))
        .unwrap();
    let (events, _writer) = EventSink::channel(kube, "");
    let record = || {
        let service = ObjectRef {
            kind: "Service",
            api_version: "v1",
            namespace: "default".into(),
            name: "web".into(),
            uid: "1".into(),
        };
        let recorder = events.recorder("service-controller");
        recorder.record(
            &service,
            NoteKind::Normal,
            "EnsuredLoadBalancer",
            "Ensured load balancer",
        );
    };
    let text = logged(options(LoggingFormat::Text, 0), record);
    let whole = r#"] "Event occurred" controller="service-controller" object="default/web" fieldPath="" kind="Service" apiVersion="v1" type="Normal" reason="EnsuredLoadBalancer" message="Ensured load balancer""#;
    assert!(text.trim_end().ends_with(whole), "{text}");
    let line: serde_json::Value =
        serde_json::from_str(&logged(options(LoggingFormat::Json, 0), record)).unwrap();
    assert_eq!(
        line["object"],
        serde_json::json!({ "name": "web", "namespace": "default" })
    );
    assert_eq!(
        (&line["msg"], &line["message"]),
        (&"Event occurred".into(), &"Ensured load balancer".into())
    );
}
