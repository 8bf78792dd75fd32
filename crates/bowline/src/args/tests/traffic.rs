//! The words `check traffic`.

use super::*;

fn with(words: &[&str]) -> Invocation {
    read(&line(&[&["ccm", "check"], words].concat()))
}

fn faults(words: &[&str]) -> Vec<String> {
    match with(&[&["traffic", "--cloud-provider=cloudscale"], words].concat()) {
        Invocation::Wrong { errors, .. } => errors,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_made_is_what_the_flags_say() {
    let words = [
        "traffic",
        "--cloud-provider=cloudscale",
        "--annotation=a/b=c=d,e",
        "--annotation=f=",
        "--exclude-node=worker-1",
        "--timeout=90s",
        "-n",
        "shop",
        "-y",
    ];
    let Invocation::CheckTraffic(_, traffic) = with(&words) else {
        panic!("{:?}", with(&words));
    };
    let wanted = &traffic.wanted;
    let annotations: Vec<(&str, &str)> = wanted
        .annotations
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(annotations, [("a/b", "c=d,e"), ("f", "")]);
    assert_eq!(
        (wanted.namespace.as_deref(), wanted.port, wanted.keeps),
        (Some("shop"), 80, false)
    );
    assert_eq!(wanted.excluded_node, Some(NodeName::new("worker-1")));
    assert!(
        wanted.image.contains(':'),
        "an image without a version is another one tomorrow"
    );
    assert_eq!(
        (traffic.patience, traffic.is_sure),
        (Duration::from_secs(90), true)
    );
}

#[test]
fn what_cannot_be_made_is_an_error() {
    assert_eq!(faults(&["--port=0"]), ["--port must be from 1 to 65535, got 0"]);
    assert_eq!(
        faults(&["--annotation=zone"]),
        ["--annotation must be KEY=VALUE, got \"zone\""]
    );
    assert_eq!(faults(&["--timeout=0s"]), ["--timeout must be more than nothing"]);
    for words in [
        &["--cloud-provider=cloudscale"][..],
        &["--cloud-provider=cloudscale", "weather"],
    ] {
        let Invocation::Wrong { errors, .. } = with(words) else {
            panic!("{words:?}");
        };
        assert_eq!(errors, ["say what to check: traffic"]);
    }
}
