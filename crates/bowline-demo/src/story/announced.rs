//! What is particular where no balancer spreads traffic: one instance announces the address and takes all of it.

use std::net::IpAddr;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::checks;
use crate::cloud::Instance;
use crate::stage::Stage;
use crate::visitor;
use crate::web::{PATH, PORT};

/// Visits until an instance has answered, and it is the one that announces the address.
pub(super) async fn announcing_instance_answers(
    stage: &Stage,
    address: IpAddr,
    port: u16,
) -> anyhow::Result<()> {
    let what = format!("the server that announces {address} answers at port {port}");
    checks::check(stage, &what, async || {
        let instance = instance_that_answers(stage, address, port).await?;
        let announcing = stage.cloud().announcing().context("no server announces it")?;
        ensure!(instance == announcing.name, "{instance} answers");
        Ok(())
    })
    .await
}

/// Visits until another instance than the lost one answers.
pub(super) async fn another_instance_answers(
    stage: &Stage,
    address: IpAddr,
    lost: &Instance,
) -> anyhow::Result<()> {
    let what = format!(
        "another server than {} announces {address} and answers",
        lost.name
    );
    checks::check(stage, &what, async || {
        let instance = instance_that_answers(stage, address, PORT).await?;
        ensure!(instance != lost.name, "{instance} still answers");
        Ok(())
    })
    .await
}

async fn instance_that_answers(stage: &Stage, address: IpAddr, port: u16) -> anyhow::Result<String> {
    let page = visitor::visit(stage.cloud(), address, port).await?;
    let instance = visitor::instance(&page).with_context(|| format!("a strange page: {page}"))?;
    Ok(instance.to_owned())
}

/// The announcer completes the status with ports and takes its address off and on again when they are lost, so the manager
/// must leave them there.
pub(super) async fn entry_is_kept(stage: &Stage) -> anyhow::Result<()> {
    if stage.cloud().announcer().is_none() {
        return Ok(());
    }
    let service = stage.api().read(PATH).await?;
    let ports = &service["status"]["loadBalancer"]["ingress"][0]["ports"];
    checks::verdict(
        stage,
        "the manager keeps the entry that kube-vip has made in the status",
        has_ports(ports),
    )
}

fn has_ports(ports: &Value) -> anyhow::Result<()> {
    let wanted = json!([{ "port": PORT, "protocol": "TCP" }]);
    ensure!(*ports == wanted, "its ports are {ports}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_lost_its_ports_is_found_out() {
        assert!(has_ports(&json!([{ "port": 8080, "protocol": "TCP" }])).is_ok());
        assert!(has_ports(&Value::Null).is_err());
    }
}
