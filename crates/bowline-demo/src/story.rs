//! The story: nodes, a Service with its balancer, and in the fixed form everything that can happen to them after that.

use std::collections::BTreeSet;
use std::net::IpAddr;

use anyhow::{Context as _, bail, ensure};
use bowline_cloud_kit::Mark;
use serde_json::{Value, json};

use crate::api::Patch;
use crate::reporter;
use crate::stage::Stage;
use crate::visitor;
use crate::web::{COLLECTION, NAMESPACE, PATH, PORT, SERVICE, service};
use crate::what_if::{self, WhatIf};

mod announced;
mod checks;
mod routes;
mod upheaval;

/// From the first Nodes to pages from all of them; answers with the balancer's address.
pub(crate) async fn beginning(stage: &Stage) -> anyhow::Result<IpAddr> {
    nodes_are_initialised(stage).await?;
    routes::nodes_are_reached(stage).await?;
    let planned = plan_is_shown(stage).await?;
    let address = service_gets_its_address(stage).await?;
    plan_was_followed(stage, planned).await?;
    all_instances_answer(stage, address, PORT).await?;
    Ok(address)
}

/// The whole fixed story.
pub(crate) async fn whole(stage: &Stage) -> anyhow::Result<()> {
    let address = beginning(stage).await?;
    nothing_is_written_without_need(stage).await?;
    upheaval::port_is_added(stage, address).await?;
    upheaval::server_is_stopped(stage, address).await?;
    upheaval::server_is_deleted(stage, address).await?;
    upheaval::outage_is_survived(stage, address).await?;
    upheaval::service_is_deleted(stage, address).await
}

async fn nodes_are_initialised(stage: &Stage) -> anyhow::Result<()> {
    stage.narrator().chapter("Nodes get their place in the cloud");
    for instance in stage.cloud().instances() {
        let name = &instance.name;
        let what = format!("{name} is initialised as its server says");
        checks::check(stage, &what, async || {
            let node = stage.api().read(&format!("/api/v1/nodes/{name}")).await?;
            checks::node_is(&node, &instance)
        })
        .await?;
    }
    Ok(())
}

/// What was planned.
struct Planned {
    /// Before it.
    begun: Mark,
    /// How many changes in the cloud.
    changes: usize,
}

impl Planned {
    /// How often the cloud was written to since.
    fn written(&self, stage: &Stage) -> usize {
        let since = stage.cloud().journal().since(self.begun);
        since.iter().filter(|entry| entry.write).count()
    }
}

/// The Service is there without a balancer first, so that the plan can be made before anything happens.
async fn plan_is_shown(stage: &Stage) -> anyhow::Result<Planned> {
    let narrator = stage.narrator();
    narrator.chapter("A Service, and what it would take to balance it");
    let begun = stage.cloud().journal().mark();
    stage
        .api()
        .create(COLLECTION, &service())
        .await
        .context("cannot create the Service")?;
    let view = WhatIf::start(stage.api().clone(), what_if::balanced(NAMESPACE, SERVICE)).await?;
    let plan = stage
        .manager()
        .plan(&view.url(), NAMESPACE, SERVICE)
        .await
        .context("no plan")?;
    narrator.tell("what if its type were LoadBalancer? `cloud-controller-manager plan` says:");
    narrator.quote(&plan.text());
    stage.board().planned("the Service becomes a LoadBalancer", &plan);
    let changes = plan.cloud_changes();
    let planned = Planned { begun, changes };
    let result = match (changes, planned.written(stage)) {
        (0, _) => Err(anyhow::anyhow!("the plan changes nothing")),
        (_, 0) => Ok(planned),
        (_, written) => Err(anyhow::anyhow!("the cloud was written to {written} times")),
    };
    checks::verdict(
        stage,
        &format!(
            "the plan creates {} and has not touched the cloud",
            stage.cloud().words().made
        ),
        result,
    )
}

/// All writes since the plan were for this Service.
async fn plan_was_followed(stage: &Stage, planned: Planned) -> anyhow::Result<()> {
    checks::calm(stage).await;
    let (written, changes) = (planned.written(stage), planned.changes);
    let result = if written == changes {
        Ok(())
    } else {
        Err(anyhow::anyhow!("{written} writes, {changes} planned"))
    };
    checks::verdict(
        stage,
        "the cloud was written to as often as the plan says",
        result,
    )
}

async fn service_gets_its_address(stage: &Stage) -> anyhow::Result<IpAddr> {
    stage.narrator().chapter("The Service becomes a LoadBalancer");
    let change = json!({ "spec": { "type": "LoadBalancer" } });
    stage
        .api()
        .patch(PATH, Patch::Merge, &change)
        .await
        .context("cannot change the Service")?;
    checks::check(stage, "the Service has an address", async || {
        let service = stage.api().read(PATH).await?;
        let addresses = reporter::addresses(&service);
        // Of several the IPv4 one can be reached here: it is in the loopback range.
        let address = addresses
            .iter()
            .filter_map(|text| text.parse().ok())
            .find(IpAddr::is_ipv4);
        address.with_context(|| format!("its addresses are {addresses:?}"))
    })
    .await
}

/// Visits until each instance that runs has answered, or the one that has all the traffic.
async fn all_instances_answer(stage: &Stage, address: IpAddr, port: u16) -> anyhow::Result<()> {
    if stage.cloud().announcer().is_some() {
        return announced::announcing_instance_answers(stage, address, port).await;
    }
    let what = format!("all servers answer at {address}:{port}");
    let mut answered = BTreeSet::new();
    checks::check(stage, &what, async || {
        let page = visitor::visit(stage.cloud(), address, port).await?;
        let instance = visitor::instance(&page).with_context(|| format!("a strange page: {page}"))?;
        answered.insert(instance.to_owned());
        let instances = stage.cloud().instances();
        let silent: Vec<_> = instances
            .iter()
            .filter(|instance| !answered.contains(&instance.name))
            .map(|instance| instance.name.as_str())
            .collect();
        ensure!(silent.is_empty(), "no answer yet from {}", silent.join(", "));
        Ok(())
    })
    .await
}

/// A change that means nothing to a balancer is looked at, and leads to no write.
async fn nothing_is_written_without_need(stage: &Stage) -> anyhow::Result<()> {
    stage.narrator().chapter("A change that does not matter");
    let mark = stage.cloud().journal().mark();
    let change = json!({ "metadata": { "annotations": { "example.com/note": "nothing to do" } } });
    let annotated = stage
        .api()
        .patch(PATH, Patch::Merge, &change)
        .await
        .context("cannot annotate the Service")?;
    checks::check(stage, "the manager looks at the Service again", async || {
        let since = stage.cloud().journal().since(mark);
        ensure!(!since.is_empty(), "the cloud is not asked");
        Ok(())
    })
    .await?;
    checks::calm(stage).await;
    let result = async {
        let since = stage.cloud().journal().since(mark);
        let written: Vec<_> = since
            .iter()
            .filter(|entry| entry.write)
            .map(|entry| stage.cloud().describe(entry))
            .collect();
        if !written.is_empty() {
            bail!("the cloud was written to: {}", written.join(", "));
        }
        let now = stage.api().read(PATH).await?;
        let version = |service: &Value| service["metadata"]["resourceVersion"].clone();
        ensure!(version(&now) == version(&annotated), "the Service was written to");
        Ok(())
    };
    checks::verdict(
        stage,
        "nothing is written, neither to the cloud nor to the Service",
        result.await,
    )?;
    announced::entry_is_kept(stage).await
}
