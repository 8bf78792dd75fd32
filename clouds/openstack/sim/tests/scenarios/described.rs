//! What the published API descriptions say about the bodies of Octavia and Neutron, as the OpenStack project's Rust
//! bindings have them. They are made from the descriptions; nothing here is written by hand but which type is whose.

use openstack_types_load_balancer::v2 as octavia;
use openstack_types_network::v2 as neutron;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Fields that the double answers although the description of the call lacks them, by kind; "" is every kind.
const BEYOND: [(&str, &str); 7] = [
    // Neutron answers the owner under both names. Its description has the older one only, `tenant_id`.
    ("", "project_id"),
    // The extensions of trunks and of rules' tags add these.
    ("port", "trunk_details"),
    ("security_group_rule", "tags"),
    // What a router shows after a change of its extra routes, as recorded from the real service.
    ("router", "enable_default_route_bfd"),
    ("router", "enable_default_route_ecmp"),
    ("router", "enable_snat"),
    ("router", "ha_vr_id"),
];

/// What differs between an object and its description, if anything.
type Check = fn(&str, &Value) -> Option<String>;

/// The object, and how it is described in answers to POST, GET, PUT, and in lists.
struct Kind {
    one: &'static str,
    many: &'static str,
    created: Check,
    read: Check,
    changed: Check,
    listed: Check,
}

macro_rules! kind {
    ($one:literal, $many:literal, $($module:ident)::+, $response:ident) => {
        Kind {
            one: $one,
            many: $many,
            created: differs::<$($module)::+::response::create::$response>,
            read: differs::<$($module)::+::response::get::$response>,
            changed: differs::<$($module)::+::response::set::$response>,
            listed: differs::<$($module)::+::response::list::$response>,
        }
    };
}

const KINDS: [Kind; 13] = [
    kind!(
        "loadbalancer",
        "loadbalancers",
        octavia::loadbalancer,
        LoadbalancerResponse
    ),
    kind!("listener", "listeners", octavia::listener, ListenerResponse),
    kind!("pool", "pools", octavia::pool, PoolResponse),
    kind!("member", "members", octavia::pool::member, MemberResponse),
    kind!(
        "healthmonitor",
        "healthmonitors",
        octavia::healthmonitor,
        HealthmonitorResponse
    ),
    kind!("flavor", "flavors", octavia::flavor, FlavorResponse),
    kind!("port", "ports", neutron::port, PortResponse),
    kind!("network", "networks", neutron::network, NetworkResponse),
    kind!("subnet", "subnets", neutron::subnet, SubnetResponse),
    kind!("router", "routers", neutron::router, RouterResponse),
    kind!(
        "floatingip",
        "floatingips",
        neutron::floatingip,
        FloatingipResponse
    ),
    kind!(
        "security_group",
        "security_groups",
        neutron::security_group,
        SecurityGroupResponse
    ),
    kind!(
        "security_group_rule",
        "security_group_rules",
        neutron::security_group_rule,
        SecurityGroupRuleResponse
    ),
];

/// What differs between the answer to a call and its description. Nothing is said about other services' answers.
pub(crate) fn difference(method: &str, path: &str, body: &Value) -> Option<String> {
    if !["/load-balancer/", "/network/"]
        .iter()
        .any(|it| path.starts_with(it))
    {
        return None;
    }
    let found = KINDS.iter().find_map(|kind| {
        let check = match method {
            "POST" => kind.created,
            "PUT" => kind.changed,
            _ => kind.read,
        };
        if let Some(one) = body.get(kind.one) {
            return check(kind.one, one);
        }
        body.get(kind.many)?
            .as_array()?
            .iter()
            .find_map(|it| (kind.listed)(kind.one, it))
    });
    found.map(|what| format!("{method} {path} is not as it is described: {what}"))
}

/// Whether an object decodes as the described type, and all of it does.
fn differs<T: DeserializeOwned + Serialize>(kind: &str, object: &Value) -> Option<String> {
    let decoded: T = match serde_json::from_value(object.clone()) {
        Ok(decoded) => decoded,
        Err(error) => return Some(format!("{error}\n{object:#}")),
    };
    let described = serde_json::to_value(decoded).ok()?;
    let fields = object.as_object()?;
    let is_beyond = |name: &str| {
        BEYOND
            .iter()
            .any(|(of, field)| (of.is_empty() || *of == kind) && *field == name)
    };
    let unknown: Vec<_> = fields
        .keys()
        .filter(|name| described.get(name).is_none() && !is_beyond(name))
        .collect();
    (!unknown.is_empty()).then(|| format!("fields that are not described: {unknown:?}\n{object:#}"))
}
