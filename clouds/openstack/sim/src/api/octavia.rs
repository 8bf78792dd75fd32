//! Octavia: `/v2.0/lbaas`

use std::net::IpAddr;

use bowline_cloud_kit::service::json;
use http::StatusCode;
use serde_json::{Value, json as value};

use super::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Id;
use crate::model::balancing::{Listener, LoadBalancer, Monitor, Part, Pool, Provisioning};
use crate::model::network::FixedIp;
use crate::place::Place;
use crate::query::next_link;
use crate::state::State;

mod kind;
mod listeners;
mod load_balancers;
mod members;
mod monitors;
mod pools;
mod protocols;
mod tree;
mod vip;

/// Filters that every list knows.
const COMMON: &str = "id name description project_id tenant_id provisioning_status operating_status \
                      admin_state_up protocol_port";

/// Fields that came with a version of the API after v2.0.
const SINCE: [(&str, u32); 12] = [
    ("timeout_client_data", 1),
    ("timeout_member_connect", 1),
    ("timeout_member_data", 1),
    ("timeout_tcp_inspect", 1),
    ("tags", 5),
    ("flavor_id", 6),
    ("http_version", 10),
    ("domain_name", 10),
    ("allowed_cidrs", 12),
    ("availability_zone", 14),
    ("additional_vips", 26),
    ("vip_sg_ids", 29),
];

/// Words that came with a version of the API.
const WORDS_SINCE: [(&str, u32); 4] = [
    ("SOURCE_IP_PORT", 13),
    ("PROXYV2", 22),
    ("SCTP", 23),
    ("PROMETHEUS", 25),
];

impl State {
    /// Those of these words that Octavia's API is new enough for.
    fn words(&self, words: &[&'static str]) -> Vec<&'static str> {
        let since = |word: &str| WORDS_SINCE.iter().find(|(name, _)| *name == word);
        let is_offered = |word: &&'static str| since(word).is_none_or(|(_, minor)| self.offers(*minor));
        words.iter().copied().filter(is_offered).collect()
    }

    /// Whether Octavia's API is as new as v2.`minor`.
    pub(crate) fn offers(&self, minor: u32) -> bool {
        self.behaviour.octavia_minor_version >= minor
    }
}

/// The load balancer that a write changes: while it is under way, every other one is refused.
pub(super) fn lane(state: &State, place: &Place<'_>, body: &[u8]) -> Option<Id> {
    if place.service != crate::options::Service::LoadBalancer {
        return None;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let named = |root: &str, field: &str| body[root][field].as_str().and_then(path_id);
    let of_pool = |pool: Option<Id>| pool.and_then(|it| state.balancer_of_pool(it));
    let of_listener = |id: Option<Id>| {
        id.and_then(|it| state.listeners.get(&it))
            .map(|it| it.load_balancer)
    };
    let balancer = match place.below_version()? {
        ["loadbalancers", id] => path_id(id),
        ["listeners"] => named("listener", "loadbalancer_id"),
        ["listeners", id] => of_listener(path_id(id)),
        ["pools"] => named("pool", "loadbalancer_id").or_else(|| of_listener(named("pool", "listener_id"))),
        ["pools", id, ..] => of_pool(path_id(id)),
        ["healthmonitors"] => of_pool(named("healthmonitor", "pool_id")),
        ["healthmonitors", id] => of_pool(
            path_id(id)
                .and_then(|id| state.monitors.get(&id))
                .map(|it| it.pool),
        ),
        _ => None,
    };
    balancer.filter(|id| state.load_balancers.contains_key(id))
}

/// What a part has to know about its load balancer.
#[derive(Clone, Debug)]
struct Parent {
    id: Id,
    project: String,
    provider: String,
    /// The addresses of the load balancer, the first one first.
    vips: Vec<FixedIp>,
    /// Whether a person set security groups on its address.
    has_groups: bool,
}

impl Parent {
    fn of(balancer: &LoadBalancer) -> Self {
        let further = balancer.additional_vips.iter().copied();
        Self {
            id: balancer.part.id,
            project: balancer.part.meta.project.clone(),
            provider: balancer.provider.clone(),
            vips: std::iter::once(balancer.vip.fixed_ip).chain(further).collect(),
            has_groups: !balancer.vip_groups.is_empty(),
        }
    }

    /// Whether an address is of the family of one of the load balancer's.
    fn has_family_of(&self, address: IpAddr) -> bool {
        let is_v4 = address.is_ipv4();
        self.vips.iter().any(|it| it.address.is_ipv4() == is_v4)
    }

    /// Something that the driver for OVN does not do. As in the source of ovn-octavia-provider.
    fn unless_ovn(&self, is_asked: bool, why: impl std::fmt::Display) -> Result<(), ApiError> {
        match is_asked && self.provider == "ovn" {
            false => Ok(()),
            true => Err(ApiError::unsupported("ovn", why)),
        }
    }

    /// The same of Octavia's own driver. As in `amphora_driver/v2/driver.py`.
    fn unless_amphora(&self, is_asked: bool, why: impl std::fmt::Display) -> Result<(), ApiError> {
        match is_asked && self.provider != "ovn" {
            false => Ok(()),
            true => Err(ApiError::unsupported(&self.provider, why)),
        }
    }
}

impl Call<'_> {
    pub(super) fn load_balancing(&mut self, rest: &[&str]) -> Answer {
        match rest {
            ["loadbalancers", rest @ ..] => self.objects::<LoadBalancer>(rest),
            ["listeners", rest @ ..] => self.objects::<Listener>(rest),
            ["pools", pool, "members", rest @ ..] => self.members(pool, rest),
            ["pools", rest @ ..] => self.objects::<Pool>(rest),
            ["healthmonitors", rest @ ..] => self.objects::<Monitor>(rest),
            ["quotas", _] if self.method() == "GET" => {
                // Load Balancer API v2, "Show Project Quota"; of what is simulated.
                let quota = self.state.behaviour.quota;
                let most = |most: Option<usize>| most.map_or(value!(-1), |most| value!(most));
                let quota = value!({
                    "load_balancer": most(quota.load_balancers),
                    "listener": most(quota.listeners),
                    "pool": most(quota.pools),
                    "member": most(quota.members),
                    "health_monitor": most(quota.health_monitors),
                });
                self.one("quota", quota)
            }
            _ => self.no_such_path(),
        }
    }

    /// That an object has no other fields than these, as far as the API is new enough for them.
    fn only(&self, fields: &Fields, names: [&str; 3]) -> Result<(), ApiError> {
        let is_offered = |name: &&str| {
            let since = SINCE.iter().find(|(field, _)| field == name);
            since.is_none_or(|(_, minor)| self.state.offers(*minor))
        };
        let names = names.into_iter().flat_map(str::split_whitespace);
        let offered: Vec<&str> = names.filter(is_offered).collect();
        fields.only(&offered.join(" "))
    }

    /// An object without the fields that an old API does not have, or this cloud's leaves out.
    fn dated(&self, mut object: Value) -> Value {
        if let Some(fields) = object.as_object_mut() {
            for name in &self.state.behaviour.octavia_omits {
                fields.remove(name);
            }
            for (name, _) in SINCE.iter().filter(|(_, minor)| !self.state.offers(*minor)) {
                fields.remove(*name);
            }
        }
        object
    }

    /// A list of those objects that pass the filters of the query but those of these names, which were applied already.
    fn octavia_list(&self, collection: &str, filters: &str, applied: &[&str], objects: Vec<Value>) -> Answer {
        let known = COMMON.split_whitespace().chain(filters.split_whitespace());
        let known: Vec<&str> = known.chain(applied.iter().copied()).collect();
        if self.query.unknown(&known).is_some() {
            let text = "One or more arguments are either duplicate or invalid";
            return Err(ApiError::octavia(StatusCode::BAD_REQUEST, text));
        }
        let query = self.query.without(applied);
        let mut passing: Vec<Value> = objects.into_iter().filter(|it| query.passes(it)).collect();
        let place = |it: &Value| ["created_at", "id"].map(|key| it[key].as_str().map(str::to_owned));
        passing.sort_by_cached_key(place);
        let passing = passing.into_iter().map(|it| self.dated(it)).collect();
        let page = self
            .query
            .page(passing, self.state.behaviour.octavia_page_size, false);
        let page = page.map_err(|unknown| {
            let text = format!("Supplied pagination marker '{}' is not valid.", unknown.0);
            ApiError::octavia(StatusCode::BAD_REQUEST, text)
        })?;
        let links = page.next.map(|marker| {
            let href = self.href(&self.query.sorted_after(&marker, page.limit));
            next_link(&href)
        });
        let objects: Vec<Value> = page.objects.into_iter().map(|it| self.query.trim(it)).collect();
        let links = links.unwrap_or_else(|| value!([]));
        let body = value!({ collection: objects, format!("{collection}_links"): links });
        Ok(json(StatusCode::OK, &body))
    }

    /// The load balancer of a part, in whatever state.
    fn parent(&self, balancer: Id) -> Result<Parent, ApiError> {
        let found = self.state.load_balancers.get(&balancer).map(Parent::of);
        found.ok_or_else(|| ApiError::immutable("Load Balancer", balancer))
    }

    /// The load balancer of a part that is to be written: it must be `ACTIVE`. What is wrong with the part itself, and its quota, comes
    /// before that, but for batches of members.
    fn mutable(&self, balancer: Id) -> Result<Parent, ApiError> {
        let found = self.state.load_balancers.get(&balancer);
        let found = found.filter(|it| it.part.status == Provisioning::Active);
        let found = found.map(Parent::of);
        found.ok_or_else(|| ApiError::immutable("Load Balancer", balancer))
    }

    /// A pool whose members or monitor are to be written: its own state is looked at first.
    fn mutable_pool(&self, id: Id) -> Result<(Pool, Parent), ApiError> {
        let pool = self.state.pools.get(&id);
        let text = format!("Pool {id} not found.");
        let pool = pool.ok_or_else(|| ApiError::octavia(StatusCode::NOT_FOUND, text))?;
        if pool.part.status != Provisioning::Active {
            return Err(ApiError::immutable("Pool", id));
        }
        Ok((pool.clone(), self.mutable(pool.load_balancer)?))
    }

    /// Notes that a part of a load balancer was written.
    fn touch(&mut self, balancer: Id) {
        self.state.begin_part(balancer);
    }

    /// Notes that a pool or what is below it was written: the listeners that use it change too, and so are as good as new if they were in
    /// `ERROR` (`test_and_set_lb_and_listeners_prov_status` of Octavia).
    fn touch_pool(&mut self, pool: Id) {
        let using = self.state.listeners.values_mut().filter(|it| it.reaches(pool));
        for listener in using {
            listener.part.status = Provisioning::PendingUpdate;
        }
        if let Some(own) = self.state.pools.get_mut(&pool).map(|it| &mut it.part)
            && own.status == Provisioning::Active
        {
            own.status = Provisioning::PendingUpdate;
        }
        if let Some(balancer) = self.state.balancer_of_pool(pool) {
            self.touch(balancer);
        }
    }
}

/// Changes what every object has as a body says; a change of it is under way from now on.
fn patch_part(part: &mut Part, fields: &Fields, now: &str) -> Result<(), ApiError> {
    if fields.has("name") {
        part.name = fields.text("name")?.unwrap_or_default();
    }
    if fields.has("description") {
        part.meta.description = fields.text("description")?.unwrap_or_default();
    }
    if let Some(tags) = fields.texts("tags")? {
        part.meta.tags = tags;
    }
    if let Some(is_up) = fields.flag("admin_state_up")? {
        part.is_up = is_up;
    }
    part.status = Provisioning::PendingUpdate;
    part.meta.touch(now);
    Ok(())
}
