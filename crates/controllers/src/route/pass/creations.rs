//! The routes that come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bowline_cloud_provider::{Node, Route, RouteChange};
use futures::future;
use ipnet::IpNet;

use super::Pass;
use super::deletions::Deletion;
use crate::events;
use crate::route::attempts::{Next, Wish};
use crate::route::calls::{Answer, Calls};
use crate::route::plan::{self, Action, NodeTable};
use crate::route::verdict::{self, Verdict};
use crate::route::{NAME, RouteController};

impl RouteController {
    /// Gives a Node its routes, then says on it whether they are there.
    pub(super) async fn bring_up(
        &self,
        pass: &Pass,
        table: &NodeTable,
        deletions: &BTreeMap<IpNet, Deletion<'_>>,
        calls: &Calls,
    ) {
        let creations = table.networks.iter().map(|network| async move {
            match (&network.destination, network.action) {
                (_, Action::Keep) => true,
                (_, Action::Taken) => false,
                (Ok(destination), _) => {
                    // One destination, one route: what stands in its place goes first.
                    if let Some(deletion) = deletions.get(destination) {
                        deletion.clone().await;
                    }
                    self.create(pass, &table.node, *destination, calls).await
                }
                (Err(text), _) => {
                    tracing::debug!(controller = NAME, node = %table.node.name, text, "Pod network cannot be understood");
                    false
                }
            }
        });
        let is_there = future::join_all(creations).await;
        let open = is_there.iter().filter(|is_there| !**is_there).count();
        self.publish(pass, &table.node, Verdict::of(table.networks.len(), open))
            .await;
    }

    /// Creates a route; gives whether it is there now.
    async fn create(&self, pass: &Pass, node: &Node, destination: IpNet, calls: &Calls) -> bool {
        let wish = Wish::Create(node.name.clone(), destination);
        if !self.is_due(pass, &wish) || self.ctx.stop.is_cancelled() {
            if let Some(text) = self.attempts().again(&wish) {
                self.ctx.event(node, events::FAILED_TO_CREATE_ROUTE.note(text));
            }
            return false;
        }
        if plan::lacks_address(node, &destination) && self.attempts().waits_for_address(&wish) {
            tracing::debug!(controller = NAME, node = %node.name, %destination, "Route waits for an address of the node, which is not initialized yet");
            return false;
        }
        let change = RouteChange::Create {
            name_hint: Arc::clone(&node.uid),
            route: Route {
                name: String::new(),
                target_node: Some(node.name.clone()),
                target_provider_id: node.provider_id.clone(),
                next_hop: None,
                target_addresses: node.addresses.clone(),
                compares_addresses: false,
                destination,
                is_blackhole: false,
                is_incomplete: false,
            },
        };
        let Some(Answer { begun, result }) = calls.make(change).await else {
            return false;
        };
        match result {
            Ok(()) => {
                pass.has_changed.store(true, Ordering::Relaxed);
                self.attempts().succeeded(&wish);
                tracing::info!(controller = NAME, node = %node.name, %destination, "Route created");
                true
            }
            Err(error) => {
                let text = || verdict::failure_text(node, &destination, begun.elapsed(), &error.to_string());
                let say = self.attempts().failed(
                    wish,
                    &error.to_string(),
                    Next::of_write(&error),
                    pass.share,
                    text,
                );
                if let Some(text) = say {
                    tracing::warn!(controller = NAME, node = %node.name, %destination, err = %error, "Failed to create a route; it will be tried again");
                    self.ctx.event(node, events::FAILED_TO_CREATE_ROUTE.note(text));
                }
                false
            }
        }
    }
}
