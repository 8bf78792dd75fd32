//! What stands on the wire: objects as the API answers them, and commands' parameters as it takes them.

mod acl;
mod address;
mod filter;
mod firewall;
mod forwarding;
mod ids;
mod network;
mod rule;
mod server;
mod stickiness;
mod virtual_machine;
mod words;

use std::sync::Arc;

use bowline_cloud_http::lenient::{id, list, or_default};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::paging::Listed;

pub use self::acl::{NetworkAcl, NetworkAclList};
pub use self::address::{Association, PublicIpAddress, PublicIpQuery};
pub use self::filter::{Filter, NewFilter};
pub use self::firewall::FirewallRule;
pub use self::forwarding::PortForwardingRule;
pub use self::ids::{
    AclItemId, AclListId, FirewallRuleId, JobId, NetworkId, PortForwardingId, ProjectId, PublicIpId, RuleId,
    StickinessPolicyId, VirtualMachineId, VpcId,
};
pub use self::network::Network;
pub use self::rule::{LoadBalancerRule, NewLoadBalancerRule, RuleQuery, RuleUpdate};
pub(crate) use self::server::Project;
pub use self::server::{Capabilities, ManagementServer};
pub(crate) use self::stickiness::PoliciesOfRules;
pub use self::stickiness::{NewStickinessPolicy, StickinessPolicy};
pub(crate) use self::virtual_machine::Member;
pub use self::virtual_machine::{Detail, Nic, VirtualMachine, VirtualMachineQuery};
pub use self::words::{Algorithm, IpState, RuleProtocol, RuleState, VmState};

/// What is listed: the member of the answer that holds the list, and the field that no two of a list have in common.
macro_rules! listed {
    ($($kind:ident: $key:literal by $id:ident;)*) => {$(
        impl Listed for $kind {
            const KEY: &'static str = $key;

            fn id(&self) -> &str {
                self.$id.as_str()
            }
        }
    )*};
}

listed! {
    FirewallRule: "firewallrule" by id;
    LoadBalancerRule: "loadbalancerrule" by id;
    ManagementServer: "managementserver" by id;
    Network: "network" by id;
    NetworkAcl: "networkacl" by id;
    NetworkAclList: "networkacllist" by id;
    PortForwardingRule: "portforwardingrule" by id;
    Project: "project" by id;
    PublicIpAddress: "publicipaddress" by id;
    VirtualMachine: "virtualmachine" by id;
}

/// Takes a number, or a text that is one, and anything else for none.
pub(crate) fn number_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// Takes a port, as a number or a text, and anything else for none: the API writes some ports this way and some that.
fn port_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    Ok(number_or_none(deserializer)?.and_then(|number| u16::try_from(number).ok()))
}

/// Takes a text, and anything else that is there as it stands, for people.
pub(crate) fn words_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// An empty text is none.
pub(crate) fn text_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// An empty id is none.
pub(crate) fn id_or_none<'de, D: Deserializer<'de>, T: for<'a> From<&'a str>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let id: Option<Id> = Option::deserialize(deserializer)?;
    Ok(id.filter(|id| !id.0.is_empty()).map(|id| T::from(&id.0)))
}

/// The text of an id.
#[derive(Deserialize)]
struct Id(#[serde(deserialize_with = "id")] Arc<str>);

/// Takes `true` and `"true"` for yes.
fn yes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Bool(yes) => yes,
        Value::String(text) => text.eq_ignore_ascii_case("true"),
        _ => false,
    })
}

/// Whether an object may be one of those that were asked for, by a member that the server need not tell: a server may not know
/// a parameter, and then lists more.
pub(crate) fn is_or_unsaid<T: PartialEq>(told: &Option<T>, asked: Option<&T>) -> bool {
    match (told, asked) {
        (Some(told), Some(asked)) => told == asked,
        _ => true,
    }
}

/// A list in one text: the API writes blanks here and commas there.
fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|part| !part.is_empty())
}
