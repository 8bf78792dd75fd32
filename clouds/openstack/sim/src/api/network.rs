//! Neutron: `/v2.0`

use bowline_cloud_kit::service::json;
use http::StatusCode;
use serde_json::{Value, json as value};

use super::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::{Dialect, Fields};
use crate::model::network::{Network, Subnet};
use crate::model::{Id, Meta};
use crate::state::State;

mod floating_ips;
mod ports;
mod routers;
mod security_groups;

/// Filters that every list knows.
const COMMON: &str = "id name description project_id tenant_id status revision_number";

impl State {
    /// Whether Neutron says that it can do something.
    pub(crate) fn has_extension(&self, alias: &str) -> bool {
        self.behaviour.extensions.iter().any(|it| it == alias)
    }
}

impl Call<'_> {
    pub(super) fn network(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", ["extensions"]) => Ok(json(StatusCode::OK, &self.wire().extensions())),
            ("GET", ["networks"]) => {
                let shown = self.state.networks.values().filter(|it| self.sees_network(it));
                let shown = shown.map(|it| self.wire().network(it)).collect();
                self.neutron_list("networks", "router:external shared", shown)
            }
            ("GET", ["networks", id]) => {
                let network = path_id(id).and_then(|id| self.state.networks.get(&id));
                let network = network.filter(|it| self.sees_network(it));
                let network = network.ok_or_else(|| ApiError::no("NetworkNotFound", "Network", id))?;
                self.one("network", self.wire().network(network))
            }
            ("GET", ["subnets"]) => {
                let shown = self.state.subnets.values().filter(|it| self.sees_subnet(it));
                let shown = shown.map(|it| self.wire().subnet(it)).collect();
                let filters = "network_id cidr ip_version gateway_ip enable_dhcp";
                self.neutron_list("subnets", filters, shown)
            }
            ("GET", ["subnets", id]) => {
                let subnet = path_id(id).and_then(|id| self.state.subnets.get(&id));
                let subnet = subnet.filter(|it| self.sees_subnet(it));
                let subnet = subnet.ok_or_else(|| ApiError::no("SubnetNotFound", "Subnet", id))?;
                self.one("subnet", self.wire().subnet(subnet))
            }
            ("GET", ["quotas", project, "details.json"]) => self.network_quota(project),
            (_, ["ports", rest @ ..]) => self.ports(rest),
            (_, ["routers", rest @ ..]) => self.routers(rest),
            (_, ["floatingips", rest @ ..]) => self.floating_ips(rest),
            (_, ["security-groups", rest @ ..]) => self.security_groups(rest),
            (_, ["security-group-rules", rest @ ..]) => self.security_group_rules(rest),
            _ => self.no_such_path(),
        }
    }

    /// Networking API v2.0, "Show quota details for a tenant"; of what is simulated.
    fn network_quota(&self, project: &str) -> Answer {
        let own = self.state.floating_ips.values();
        let used = own.filter(|it| it.meta.project == project).count();
        let limit = self.state.behaviour.quota.floating_ips;
        let limit = limit.map_or(value!(-1), |most| value!(most));
        let floating = value!({ "limit": limit, "used": used, "reserved": 0 });
        Ok(json(
            StatusCode::OK,
            &value!({ "quota": { "floatingip": floating } }),
        ))
    }

    pub(super) fn sees_network(&self, network: &Network) -> bool {
        network.is_external || network.is_shared || self.sees(&network.meta.project)
    }

    pub(super) fn sees_subnet(&self, subnet: &Subnet) -> bool {
        let network = self.state.networks.get(&subnet.network);
        let is_open = network.is_some_and(|it| self.sees_network(it)) && !subnet.is_hidden;
        is_open || self.sees(&subnet.meta.project)
    }

    fn neutron_fields(&self, root: &str) -> Result<Fields, ApiError> {
        Fields::parse(Dialect::Neutron, root, self.request.body())
    }

    /// A list of those objects that pass the filters of the query, or a page of it.
    fn neutron_list(&self, collection: &str, filters: &str, objects: Vec<Value>) -> Answer {
        let known = COMMON.split_whitespace().chain(filters.split_whitespace());
        let unknown = self.query.unknown(&known.collect::<Vec<_>>());
        if let Some(name) = unknown.filter(|_| self.state.has_extension("filter-validation")) {
            let text = format!("['{name}'] is invalid attribute for filtering");
            return Err(ApiError::bad_input(text));
        }
        let mut passing: Vec<Value> = objects.into_iter().filter(|it| self.query.passes(it)).collect();
        passing.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
        if let Some(limit) = self
            .query
            .first("limit")
            .filter(|it| it.parse::<usize>().is_err())
        {
            let text = format!("Bad limit request: Limit must be an integer 0 or greater and not '{limit}'.");
            return Err(ApiError::neutron(StatusCode::BAD_REQUEST, "BadRequest", text));
        }
        let begins_anew = ["security_groups", "floatingips", "subnets"].contains(&collection);
        let page = self
            .query
            .page(passing, self.state.behaviour.neutron_page_size, begins_anew);
        let page = page.map_err(|unknown| {
            let (kind, what) = kind_of(collection);
            ApiError::no(kind, what, unknown.0)
        })?;
        let mut links = Vec::new();
        let mut link = |rel: &str, query: &str| links.push(value!({ "rel": rel, "href": self.href(query) }));
        if let Some(marker) = &page.next {
            link("next", &self.query.after(marker, page.limit));
        }
        // Also before the first page.
        if let Some(first) = page.objects.first().filter(|_| page.limit.is_some()) {
            let first = first["id"].as_str().unwrap_or_default();
            let query = self.query.after(first, page.limit);
            link("previous", &format!("{query}&page_reverse=True"));
        }
        let objects: Vec<Value> = page.objects.into_iter().map(|it| self.query.trim(it)).collect();
        let mut body = value!({ collection: objects });
        if !links.is_empty() {
            body[format!("{collection}_links")] = Value::from(links);
        }
        Ok(json(StatusCode::OK, &body))
    }

    /// `If-Match: revision_number=5` lets a write through only while the object is at that revision.
    fn check_revision(&self, meta: &Meta) -> Result<(), ApiError> {
        let wanted = self.header("if-match");
        let Some(wanted) = wanted.filter(|_| self.state.has_extension("revision-if-match")) else {
            return Ok(());
        };
        let number = wanted
            .strip_prefix("revision_number=")
            .and_then(|it| it.parse().ok());
        let Some(number): Option<u64> = number else {
            let text = format!("Invalid value for If-Match header: {wanted}");
            return Err(ApiError::neutron(StatusCode::BAD_REQUEST, "BadRequest", text));
        };
        match number == meta.revision {
            true => Ok(()),
            false => {
                let text = format!(
                    "Constrained to {number}, but current revision is {}",
                    meta.revision
                );
                let status = StatusCode::PRECONDITION_FAILED;
                Err(ApiError::neutron(status, "RevisionNumberConstraintFailed", text))
            }
        }
    }
}

/// What Neutron calls an object that is not there, by its list.
fn kind_of(collection: &str) -> (&'static str, &'static str) {
    match collection {
        "networks" => ("NetworkNotFound", "Network"),
        "subnets" => ("SubnetNotFound", "Subnet"),
        "ports" => ("PortNotFound", "Port"),
        "routers" => ("RouterNotFound", "Router"),
        "floatingips" => ("FloatingIPNotFound", "Floating IP"),
        "security_groups" => ("SecurityGroupNotFound", "Security group"),
        _ => ("SecurityGroupRuleNotFound", "Security group rule"),
    }
}

fn no_port(id: impl std::fmt::Display) -> ApiError {
    ApiError::no("PortNotFound", "Port", id)
}

/// A group that is not there has words of its own.
fn no_group(id: impl std::fmt::Display) -> ApiError {
    let text = format!("Security group {id} does not exist");
    ApiError::neutron(StatusCode::NOT_FOUND, "SecurityGroupNotFound", text)
}

/// The addresses of a network or subnet are used up.
fn exhausted(network: Id) -> ApiError {
    let text = format!("No more IP addresses available on network {network}.");
    ApiError::neutron(StatusCode::CONFLICT, "IpAddressGenerationFailure", text)
}
