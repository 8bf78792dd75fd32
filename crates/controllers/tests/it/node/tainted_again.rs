//! Nodes that somebody taints or labels anew.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_node_that_is_tainted_again_is_initialised_again_and_tried_until_that_works() {
    let cluster = cluster();
    cluster.join("n1").await;
    cluster.pass(SECOND).await;
    cluster.outage(Some(CloudError::new(ErrorKind::Transient, "bad gateway")));
    cluster.edit("n1", |node| {
        node["spec"]["taints"] =
            json!([{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]);
    });
    cluster
        .within(SECOND * 60, "tried several times", |c| c.asked("n1") >= 4)
        .await;
    assert!(!cluster.is_initialized("n1"));
    assert_eq!(cluster.count_events("NodeInitFailed"), 1);
    cluster.outage(None);
    cluster.initialized_within(SECOND * 61, "n1").await;
}

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

#[tokio::test(start_paused = true)]
async fn who_puts_the_taint_back_again_and_again_is_told_of_and_met_less_and_less_often() {
    let cluster = cluster();
    cluster.join("n1").await;
    let before = cluster.writes();
    let rounds = || cluster.writes() - before;
    let begun = Instant::now();
    while begun.elapsed() < SECOND * 300 && rounds() < 50 {
        cluster.edit("n1", |node| {
            node["spec"]["taints"] = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
        });
        cluster.initialized_within(SECOND * 301, "n1").await;
    }
    // Five times at once, then after 5, 15, 35, 75, 155 and 315 s.
    assert_eq!(rounds(), 11);
    assert_eq!(
        cluster.asked("n1"),
        1 + 5,
        "the cloud is not asked for the sake of a fight"
    );
    assert!(cluster.count_events("NodeInitFailed") > 0);
    assert_eq!(cluster.count_events("ChangedBack"), 1);
}

#[tokio::test(start_paused = true)]
async fn who_changes_one_name_of_a_label_again_and_again_is_met_less_and_less_often() {
    let cluster = cluster();
    cluster.join("n1").await;
    let (before, begun) = (cluster.writes(), Instant::now());
    let rounds = || cluster.writes() - before;
    while begun.elapsed() < SECOND * 300 && rounds() < 50 {
        cluster.edit("n1", |node| node["metadata"]["labels"][TYPE_BETA] = json!("mine"));
        cluster
            .within(SECOND * 301, "one value again", |c| {
                c.label("n1", TYPE) == c.label("n1", TYPE_BETA)
            })
            .await;
    }
    assert_eq!(rounds(), 11);
    assert_eq!(cluster.count_events("ChangedBack"), 1);
}

#[tokio::test(start_paused = true)]
async fn who_mixes_taint_and_labels_in_separate_writes_is_met_less_and_less_often() {
    type Edit = fn(&mut Value);
    let strip: Edit = |node| {
        let labels = node["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove(ZONE);
    };
    let taint: Edit = |node| node["spec"]["taints"] = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
    let other: Edit = |node| {
        let labels = &mut node["metadata"]["labels"];
        labels["rack"] = json!(if labels["rack"] == "a" { "b" } else { "a" });
    };
    for mix in [
        [strip, taint],
        [taint, strip],
        [strip, other],
        [taint, other],
        [other, taint],
    ] {
        let cluster = cluster();
        let mut metadata = metadata(&["10.1.0.1"]);
        metadata.zone = "z1".into();
        cluster.instances.run("n1", metadata);
        cluster.put(new_node("n1"));
        cluster.initialized("n1").await;
        let (before, begun) = (cluster.writes(), Instant::now());
        while begun.elapsed() < SECOND * 300 {
            for edit in mix {
                cluster.edit("n1", edit);
                cluster.pass(SECOND / 10).await;
            }
        }
        let writes = cluster.writes() - before;
        let asked = cluster.asked("n1");
        // Of each part five at once, then seven by the schedule; and five questions more where both are there.
        assert!((10..=25).contains(&writes), "{writes} writes, {asked} questions");
        assert!(asked <= 1 + 10, "{writes} writes, {asked} questions");
        assert!((1..=2).contains(&cluster.count_events("ChangedBack")));
        cluster
            .within(SECOND * 301, "whole in the end", |c| {
                c.is_initialized("n1") && c.label("n1", ZONE).is_some()
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_node_that_waits_do_not_have_the_cloud_asked_without_end() {
    let cluster = cluster();
    cluster.put(new_node("n1")); // the cloud shows no instance
    let begun = Instant::now();
    for change in 0.. {
        if begun.elapsed() > SECOND * 300 {
            break;
        }
        cluster.edit("n1", |node| {
            node["metadata"]["labels"]["step"] = json!(change.to_string());
        });
        cluster.pass(SECOND / 5).await;
    }
    let asked = cluster.asked("n1");
    assert!((5..25).contains(&asked), "{asked} questions in five minutes");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_taint_a_webhook_keeps_is_told_of_and_tried_less_and_less_often() {
    // A webhook that keeps the taint alone, and one that keeps everything: then nothing is stored, and no watch shows anything.
    let taint: fn(&mut Value) =
        |node| node["spec"]["taints"] = json!([{"key": UNINITIALIZED, "effect": "NoSchedule"}]);
    let all: fn(&mut Value) = |node| {
        let new = new_node("n1");
        node["metadata"]["labels"] = new["metadata"]["labels"].clone();
        (node["spec"], node["status"]) = (new["spec"].clone(), new["status"].clone());
    };
    for (keep, synced) in [(taint, 1), (all, 0)] {
        let cluster = cluster();
        let webhook = Fault::new(Effect::Rewrite(keep)).resource("nodes");
        cluster.inject(webhook);
        cluster.begin("n1");
        cluster.pass(SECOND * 300).await;
        assert!(!cluster.is_initialized("n1"));
        // One that changed something is believed until the watch shows what was stored.
        assert_eq!(cluster.count_events("Synced"), synced);
        assert_eq!(cluster.count_events("NodeInitFailed"), 1);
        let asked = cluster.asked("n1");
        assert!((5..15).contains(&asked), "{asked}");
    }
}
