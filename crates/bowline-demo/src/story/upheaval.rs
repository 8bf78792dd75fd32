//! What happens to the Service and its servers later: changes, losses, an outage, the end.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bowline_cloud_kit::dataplane::Transport;
use serde_json::{Value, json};

use super::{announced, checks, routes};
use crate::api::Patch;
use crate::cloud::{INSTANCES, Instance};
use crate::reporter;
use crate::service::list;
use crate::stage::Stage;
use crate::visitor;
use crate::web::{PATH, PORT, SERVICE};

/// Added while all is well.
const SECOND_PORT: u16 = 8081;
/// Added while the cloud's API is out.
const THIRD_PORT: u16 = 8082;

/// The event of a Service that is as it should be.
const SYNCED: &str = "EnsuredLoadBalancer";

/// How long the end of a balancer may take. A cloud may look only twice a minute for what is to be given back.
const RELEASE: Duration = Duration::from_secs(90);

/// How many visits in a row must succeed for traffic to count as undisturbed: each server that is left is met.
const VISITS: usize = 6;

pub(super) async fn port_is_added(stage: &Stage, address: IpAddr) -> anyhow::Result<()> {
    stage.narrator().chapter("A second port");
    add_port(stage, "alt", SECOND_PORT).await?;
    checks::check(stage, &format!("port {SECOND_PORT} answers"), async || {
        visitor::visit(stage.cloud(), address, SECOND_PORT).await
    })
    .await?;
    undisturbed(stage, address, "port 8080 answers as before").await?;
    checks::calm(stage).await;
    Ok(())
}

async fn add_port(stage: &Stage, name: &str, port: u16) -> anyhow::Result<()> {
    let port = json!({ "name": name, "protocol": "TCP", "port": port, "targetPort": PORT });
    let patch = json!([{ "op": "add", "path": "/spec/ports/-", "value": port }]);
    stage
        .api()
        .patch(PATH, Patch::Json, &patch)
        .await
        .context("cannot add a port")?;
    Ok(())
}

async fn undisturbed(stage: &Stage, address: IpAddr, what: &str) -> anyhow::Result<()> {
    checks::check(stage, what, async || {
        for _ in 0..VISITS {
            visitor::visit(stage.cloud(), address, PORT).await?;
        }
        Ok(())
    })
    .await
}

/// The instance whose loss matters most: the one that takes all traffic, where one does.
fn victim(stage: &Stage, otherwise: &str) -> anyhow::Result<Instance> {
    let named = || {
        let instances = stage.cloud().instances();
        instances.into_iter().find(|instance| instance.name == otherwise)
    };
    let announcing = stage.cloud().announcing();
    announcing
        .or_else(named)
        .with_context(|| format!("the cloud has lost {otherwise}"))
}

pub(super) async fn server_is_stopped(stage: &Stage, address: IpAddr) -> anyhow::Result<()> {
    let [_, second, _] = INSTANCES;
    let stopped = victim(stage, second)?;
    let instance = stopped.name.as_str();
    stage.narrator().chapter("A server is stopped");
    stage.cloud().project().switch_instance(instance, false);
    stage
        .narrator()
        .tell(format!("cloud   (by hand) {instance} is powered off"));
    checks::check(
        stage,
        &format!("{instance} is tainted, not deleted"),
        async || {
            let node = stage.api().read(&format!("/api/v1/nodes/{instance}")).await?;
            ensure!(reporter::is_shut_down(&node), "it is not tainted");
            Ok(())
        },
    )
    .await?;
    if stage.cloud().announcer().is_some() {
        announced::another_instance_answers(stage, address, &stopped).await?;
    }
    Ok(())
}

pub(super) async fn server_is_deleted(stage: &Stage, address: IpAddr) -> anyhow::Result<()> {
    let [_, _, third] = INSTANCES;
    let deleted = victim(stage, third)?;
    let (instance, lost) = (&deleted.name, &deleted.address());
    stage.narrator().chapter("Another server is deleted");
    stage.cloud().project().delete_instance(instance);
    stage
        .narrator()
        .tell(format!("cloud   (by hand) {instance} is deleted"));
    let path = format!("/api/v1/nodes/{instance}");
    let what = format!("the Node {instance} is deleted");
    checks::check(stage, &what, async || {
        let node = stage.api().find(&path).await?;
        ensure!(node.is_none(), "it is still there");
        Ok(())
    })
    .await?;
    let proofs = stage.cloud().proofs_of_absence(&deleted.provider_id);
    let result = match proofs {
        2.. => Ok(()),
        _ => Err(anyhow::anyhow!(
            "the cloud said {proofs} times that the server is gone"
        )),
    };
    checks::verdict(stage, "the cloud had said twice that the server is gone", result)?;
    checks::check(
        stage,
        &format!("no {} sends traffic to {lost}", stage.cloud().words().front),
        async || {
            let targets = stage.cloud().targets();
            ensure!(!targets.contains(lost), "traffic goes to {targets:?}");
            Ok(())
        },
    )
    .await?;
    routes::node_is_forgotten(stage, instance).await?;
    undisturbed(stage, address, "the server that is left answers every visit").await?;
    checks::calm(stage).await;
    Ok(())
}

pub(super) async fn outage_is_survived(stage: &Stage, address: IpAddr) -> anyhow::Result<()> {
    stage.narrator().chapter("The cloud's API breaks");
    stage.cloud().set_outage(true);
    stage
        .narrator()
        .tell("cloud   (by hand) every API call fails from now on");
    add_port(stage, "late", THIRD_PORT).await?;
    checks::check(
        stage,
        "the Service has the event SyncLoadBalancerFailed",
        async || {
            let failures = events_of(stage, "SyncLoadBalancerFailed").await?;
            ensure!(failures > 0, "there is no such event");
            Ok(())
        },
    )
    .await?;
    undisturbed(stage, address, "traffic goes on meanwhile").await?;
    let failed = events_of(stage, SYNCED).await?;
    stage.cloud().set_outage(false);
    stage.narrator().tell("cloud   (by hand) the API works again");
    checks::check(stage, &format!("port {THIRD_PORT} answers"), async || {
        visitor::visit(stage.cloud(), address, THIRD_PORT).await
    })
    .await?;
    if stage.cloud().announcer().is_some() {
        // Nodes need no cloud to open a port of an address that they announce, so it is no sign of the manager's recovery.
        checks::check(stage, "the Service is synced again", async || {
            let synced = events_of(stage, SYNCED).await?;
            ensure!(synced > failed, "there is no new event {SYNCED}");
            Ok(())
        })
        .await?;
    }
    checks::calm(stage).await;
    Ok(())
}

/// How often this event of the Service happened.
async fn events_of(stage: &Stage, reason: &str) -> anyhow::Result<u64> {
    let events = stage.api().read("/api/v1/events").await?;
    Ok(count_events(&events, reason))
}

fn count_events(events: &Value, reason: &str) -> u64 {
    list(&events["items"])
        .filter(|event| event["reason"] == reason && event["involvedObject"]["name"] == SERVICE)
        .map(|event| event["count"].as_u64().unwrap_or(1))
        .sum()
}

pub(super) async fn service_is_deleted(stage: &Stage, address: IpAddr) -> anyhow::Result<()> {
    stage.narrator().chapter("The Service is deleted");
    let place = stage.cloud().listener(Transport::Tcp, address, PORT);
    stage
        .api()
        .delete(PATH)
        .await
        .context("cannot delete the Service")?;
    checks::check(stage, "the Service is gone, its finalizer removed", async || {
        let service = stage.api().find(PATH).await?;
        ensure!(service.is_none(), "it is still there");
        Ok(())
    })
    .await?;
    checks::check_within(stage, RELEASE, stage.cloud().words().gone, async || {
        let left = stage.cloud().balancers();
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await?;
    let place = place.unwrap_or(SocketAddr::new(address, PORT));
    checks::check(stage, &format!("{address}:{PORT} does not answer"), async || {
        let page = visitor::page(place).await;
        ensure!(page.is_err(), "it answers: {}", page.unwrap_or_default());
        Ok(())
    })
    .await?;
    let complaints = stage.cloud().complaints();
    let result = match complaints.as_slice() {
        [] => Ok(()),
        _ => Err(anyhow::anyhow!("{}", complaints.join("; "))),
    };
    checks::verdict(stage, "nothing is left over in the cloud", result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_the_service_count() {
        let event = |name: &str, count: u64| {
            let object = json!({ "name": name });
            json!({ "reason": SYNCED, "involvedObject": object, "count": count })
        };
        let events = json!({ "items": [event("web", 2), event("other", 4), event("web", 1)] });
        assert_eq!(count_events(&events, SYNCED), 3);
        assert_eq!(count_events(&events, "UpdateLoadBalancerFailed"), 0);
    }
}
