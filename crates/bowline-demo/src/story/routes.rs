//! What is particular where Nodes have routes: the cloud sends the traffic for the pods of a Node to its instance.

use anyhow::ensure;

use super::checks;
use crate::stage::Stage;

/// Each Node gets a pod network, and the cloud a route to it.
pub(super) async fn nodes_are_reached(stage: &Stage) -> anyhow::Result<()> {
    if stage.cloud().routes().is_none() {
        return Ok(());
    }
    stage.narrator().chapter("Pod networks get their routes");
    for instance in stage.cloud().instances() {
        let name = &instance.name;
        checks::check(
            stage,
            &format!("the pods of {name} are reached through it"),
            async || {
                let node = stage.api().read(&format!("/api/v1/nodes/{name}")).await?;
                let network = node["spec"]["podCIDR"].as_str().unwrap_or_default();
                let routes = stage.cloud().routes().unwrap_or_default();
                let target = routes.get(network);
                ensure!(target == Some(name), "`{network}` is sent to {target:?}");
                let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
                let mut conditions = conditions.filter(|it| it["type"] == "NetworkUnavailable");
                ensure!(
                    conditions.any(|it| it["status"] == "False"),
                    "the Node does not say so"
                );
                Ok(())
            },
        )
        .await?;
    }
    // All of it is told within this chapter.
    checks::calm(stage).await;
    Ok(())
}

/// No traffic is sent to the instance of a Node that is deleted.
pub(super) async fn node_is_forgotten(stage: &Stage, name: &str) -> anyhow::Result<()> {
    if stage.cloud().routes().is_none() {
        return Ok(());
    }
    checks::check(
        stage,
        &format!("the route to the pods of {name} is gone"),
        async || {
            let routes = stage.cloud().routes().unwrap_or_default();
            let left = stage.cloud().instances().len();
            ensure!(routes.len() == left, "the routes are {routes:?}");
            Ok(())
        },
    )
    .await
}
