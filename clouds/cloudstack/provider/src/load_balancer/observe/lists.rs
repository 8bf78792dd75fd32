//! What belongs to one thing: the rules of a balancer, the members of a rule, the rules of a firewall.

use std::collections::BTreeSet;

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{ApiError, Client, RuleId, RuleQuery, VirtualMachineId};

use super::wire;
use crate::load_balancer::names;
use crate::load_balancer::objects::{FirewallId, FirewallList, Rule};

/// The rules that bear the name of a balancer. The API's search finds more.
pub(crate) async fn rules_of(client: &Client, balancer: &str) -> Result<Vec<Rule>, ApiError> {
    let query = RuleQuery::Named(balancer.to_owned());
    let rules = client.load_balancer_rules(&query).await?;
    let is_own = |rule: &Rule| names::is_rule(balancer, &rule.name);
    Ok(rules.iter().map(wire::rule).filter(is_own).collect())
}

/// The rules of a firewall that let ports in.
pub(crate) async fn firewall_of(client: &Client, at: &FirewallId) -> Result<FirewallList, ApiError> {
    Ok(match at {
        FirewallId::Address(address) => {
            let rules = client.firewall_rules(address).await?;
            FirewallList {
                rules: rules.iter().filter_map(wire::firewall_rule).collect(),
                ranges: rules.iter().filter_map(wire::port_range).collect(),
            }
        }
        FirewallId::Acl(list) => {
            let items = client.network_acls(list).await?;
            FirewallList {
                rules: items.iter().filter_map(wire::acl_item).collect(),
                ranges: Vec::new(),
            }
        }
    })
}

/// The members of a rule.
pub(crate) async fn members_of(
    client: &Client,
    rule: &RuleId,
) -> Result<BTreeSet<VirtualMachineId>, ApiError> {
    let members = client.load_balancer_rule_instances(rule).await?;
    Ok(members.into_iter().map(|instance| instance.id).collect())
}

/// What is read, or the failure with these words in front of it.
pub(super) async fn saying<T, E: Into<CloudError>>(
    words: &str,
    read: impl Future<Output = Result<T, E>>,
) -> Result<T, CloudError> {
    read.await.map_err(|error| error.into().context(words))
}
