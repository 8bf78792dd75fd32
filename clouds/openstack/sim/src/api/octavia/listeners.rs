//! `/v2.0/lbaas/listeners`

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::kind::Written;
use super::protocols::{LISTENER_PROTOCOLS, check_pool, word};
use super::tree::Tree;
use super::{Parent, patch_part};
use crate::api::{Call, path_id};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Id;
use crate::model::balancing::{Listener, ListenerProtocol, ListenerSettings, LoadBalancer};

/// The longest time-out in milliseconds: 24 days.
const MAX_TIMEOUT: i64 = 24 * 86_400 * 1_000;

/// Headers that a listener can add for its members.
const HEADERS: [&str; 10] = [
    "X-Forwarded-For",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-SSL-Client-Verify",
    "X-SSL-Client-Has-Cert",
    "X-SSL-Client-DN",
    "X-SSL-Client-CN",
    "X-SSL-Issuer",
    "X-SSL-Client-SHA1",
    "X-SSL-Client-Not-Before",
];

impl Written for Listener {
    // What follows `tags` is understood and not kept.
    const TAKEN: &'static str = "name description admin_state_up connection_limit default_pool_id \
         insert_headers default_tls_container_ref sni_container_refs timeout_client_data \
         timeout_member_connect timeout_member_data timeout_tcp_inspect allowed_cidrs tags \
         client_ca_tls_container_ref client_authentication client_crl_container_ref tls_ciphers \
         tls_versions alpn_protocols hsts_max_age hsts_include_subdomains hsts_preload default_pool";
    const FIXED: &'static str = "protocol protocol_port loadbalancer_id project_id tenant_id";
    const FILTERS: &'static str = "protocol default_pool_id connection_limit";
    const KEY: &'static str = "loadbalancer_id";

    fn key(&self) -> String {
        self.load_balancer.to_string()
    }

    fn create(call: &mut Call<'_>) -> Result<Id, ApiError> {
        let fields = call.new_fields::<Self>()?;
        let balancer = fields.given("loadbalancer_id", fields.id("loadbalancer_id")?)?;
        call.found::<LoadBalancer>(&balancer.to_string())?;
        let parent = call.parent(balancer)?;
        call.check_quota::<Self>(&parent.project, 1)?;
        call.mutable(balancer)?;
        if fields.has("default_pool") {
            // Octavia's description of a listener knows the field, and nothing else does.
            let text = "'dict' object has no attribute '_sa_instance_state'";
            return Err(ApiError::octavia_failure(text));
        }
        let mut tree = Tree::default();
        call.grow_listener(&mut tree, &fields, &parent)?;
        let id = tree.listeners.first().map(|it| it.part.id).unwrap_or_default();
        tree.insert(call.state);
        call.touch(balancer);
        Ok(id)
    }

    fn change(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        let fields = call.changed_fields::<Self>()?;
        if let Some(listener) = call.state.listeners.get(&id).cloned() {
            let parent = call.parent(listener.load_balancer)?;
            let changed = call.changed_listener(listener, &fields, &parent)?;
            call.mutable(parent.id)?;
            call.state.listeners.insert(id, changed);
            call.touch(parent.id);
        }
        Ok(())
    }

    fn remove(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        let balancer = call.state.listeners.get(&id).map(|it| it.load_balancer);
        let balancer = balancer.unwrap_or_default();
        call.mutable(balancer)?;
        call.begin_to_delete::<Self>(id);
        call.touch(balancer);
        Ok(())
    }
}

impl Call<'_> {
    pub(super) fn new_listener(&self, fields: &Fields, parent: &Parent) -> Result<Listener, ApiError> {
        self.only(fields, [Listener::TAKEN, Listener::FIXED, ""])?;
        let protocol: Option<ListenerProtocol> =
            fields.word("protocol", &self.state.words(&LISTENER_PROTOCOLS))?;
        let protocol = fields.given("protocol", protocol)?;
        let port = fields.given("protocol_port", fields.port("protocol_port")?)?;
        let carried = [
            ListenerProtocol::Tcp,
            ListenerProtocol::Udp,
            ListenerProtocol::Sctp,
        ];
        let why = format!("OVN provider does not support {} protocol", word(protocol));
        parent.unless_ovn(!carried.contains(&protocol), why)?;
        let settings = self.settings(fields, ListenerSettings::default(), protocol, parent)?;
        let part = self.new_part(fields, &parent.project)?;
        let default_pool = self.default_pool(fields, protocol, parent)?;
        Ok(Listener {
            part,
            load_balancer: parent.id,
            protocol,
            port,
            default_pool,
            redirects: Vec::new(),
            settings,
        })
    }

    fn changed_listener(
        &self,
        mut listener: Listener,
        fields: &Fields,
        parent: &Parent,
    ) -> Result<Listener, ApiError> {
        listener.settings = self.settings(fields, listener.settings, listener.protocol, parent)?;
        if fields.has("default_pool_id") {
            listener.default_pool = self.default_pool(fields, listener.protocol, parent)?;
        }
        patch_part(&mut listener.part, fields, &self.state.clock.rfc3339_seconds())?;
        Ok(listener)
    }

    fn default_pool(
        &self,
        fields: &Fields,
        protocol: ListenerProtocol,
        parent: &Parent,
    ) -> Result<Option<Id>, ApiError> {
        let Some(id) = fields.id("default_pool_id")? else {
            return Ok(None);
        };
        let pool = self
            .state
            .pools
            .get(&id)
            .filter(|it| it.load_balancer == parent.id);
        let text = format!("Pool {id} not found.");
        let pool = pool.ok_or_else(|| ApiError::octavia(http::StatusCode::NOT_FOUND, text))?;
        check_pool(protocol, pool.protocol)?;
        Ok(Some(id))
    }

    /// The settings that a body changes; `null` goes back to what a new listener has.
    fn settings(
        &self,
        fields: &Fields,
        mut settings: ListenerSettings,
        protocol: ListenerProtocol,
        parent: &Parent,
    ) -> Result<ListenerSettings, ApiError> {
        let new = ListenerSettings::default();
        if fields.has("connection_limit") {
            let limit = fields.number("connection_limit", -1, i64::from(i32::MAX))?;
            settings.connection_limit = limit.unwrap_or(new.connection_limit);
        }
        for (name, target, usual) in [
            (
                "timeout_client_data",
                &mut settings.timeout_client_data_ms,
                new.timeout_client_data_ms,
            ),
            (
                "timeout_member_connect",
                &mut settings.timeout_member_connect_ms,
                new.timeout_member_connect_ms,
            ),
            (
                "timeout_member_data",
                &mut settings.timeout_member_data_ms,
                new.timeout_member_data_ms,
            ),
            (
                "timeout_tcp_inspect",
                &mut settings.timeout_tcp_inspect_ms,
                new.timeout_tcp_inspect_ms,
            ),
        ] {
            if fields.has(name) {
                *target = fields.small(name, 0, MAX_TIMEOUT)?.unwrap_or(usual);
            }
        }
        if fields.has("insert_headers") {
            settings.insert_headers = insert_headers(fields, protocol)?;
        }
        if fields.has("default_tls_container_ref") {
            settings.tls_container = fields.text("default_tls_container_ref")?;
        }
        if fields.has("sni_container_refs") {
            settings.sni_containers = fields.texts("sni_container_refs")?.unwrap_or_default();
        }
        self.check_certificates(&settings, protocol)?;
        if fields.has("allowed_cidrs") {
            let cidrs = fields.texts("allowed_cidrs")?.filter(|it| !it.is_empty());
            parent.unless_ovn(
                cidrs.is_some(),
                "OVN provider does not support allowed_cidrs option",
            )?;
            if cidrs.is_some() && parent.has_groups {
                let text = "Allowed CIDRs are not allowed when using custom VIP Security Groups.";
                return Err(ApiError::invalid(text));
            }
            settings.allowed_cidrs = match cidrs {
                None => None,
                Some(cidrs) => Some(read_cidrs(fields, &cidrs, parent)?),
            };
        }
        Ok(settings)
    }

    fn check_certificates(
        &self,
        settings: &ListenerSettings,
        protocol: ListenerProtocol,
    ) -> Result<(), ApiError> {
        let references = settings.tls_container.iter().chain(&settings.sni_containers);
        let references: Vec<&String> = references.collect();
        match protocol {
            ListenerProtocol::TerminatedHttps if references.is_empty() => {
                return Err(ApiError::invalid(
                    "An SNI or default certificate container reference must be provided for TERMINATED_HTTPS protocol \
                     listeners.",
                ));
            }
            ListenerProtocol::TerminatedHttps => {}
            _ if references.is_empty() => return Ok(()),
            other => {
                let text = format!(
                    "Certificate container references are not allowed on {} protocol listeners.",
                    word(other)
                );
                return Err(ApiError::invalid(text));
            }
        }
        let is_known = |reference: &&&String| {
            let id = reference.rsplit('/').next().and_then(path_id);
            id.is_some_and(|id| {
                self.state.containers.contains_key(&id) || self.state.secrets.contains_key(&id)
            })
        };
        let unknown = references.iter().find(|it| !is_known(it));
        match unknown.filter(|_| self.state.behaviour.checks_certificates) {
            None => Ok(()),
            Some(unknown) => {
                let text = format!("Could not retrieve certificate: ['{unknown}']");
                Err(ApiError::octavia(http::StatusCode::BAD_REQUEST, text))
            }
        }
    }
}

/// Only what speaks HTTP can add headers.
fn insert_headers(fields: &Fields, protocol: ListenerProtocol) -> Result<BTreeMap<String, String>, ApiError> {
    let headers: BTreeMap<String, String> = fields
        .read("insert_headers", "is not an object of strings")?
        .unwrap_or_default();
    let speaks_http = matches!(
        protocol,
        ListenerProtocol::Http | ListenerProtocol::TerminatedHttps
    );
    if !headers.is_empty() && !speaks_http {
        let option = format!("a {} protocol listener.", word(protocol));
        return Err(ApiError::invalid_option("insert-headers", option));
    }
    // Nobody looks at the values.
    match headers.keys().all(|name| HEADERS.contains(&name.as_str())) {
        true => Ok(headers),
        false => {
            let names: Vec<String> = headers.keys().map(|name| format!("'{name}'")).collect();
            let value = format!("dict_keys([{}])", names.join(", "));
            Err(ApiError::invalid_option(value, "insert_headers"))
        }
    }
}

/// Each range must be of the family of one of the load balancer's addresses, and is kept without the bits of a host.
fn read_cidrs(fields: &Fields, cidrs: &[String], parent: &Parent) -> Result<Vec<String>, ApiError> {
    let mut ranges = Vec::new();
    for text in cidrs {
        let range: Option<IpNet> = text.parse().ok();
        let range = range.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        let reason = "Value should be IPv4 or IPv6 CIDR format";
        let range = range.ok_or_else(|| fields.bad("allowed_cidrs", reason))?.trunc();
        if !parent.has_family_of(range.addr()) {
            let vips = parent.vips.iter().map(|it| format!("'{}'", it.address));
            let vips: Vec<String> = vips.collect();
            return Err(ApiError::invalid(format!(
                "CIDR {range} IP version incompatible with all VIPs [{}] IP version.",
                vips.join(", ")
            )));
        }
        ranges.push(range.to_string());
    }
    Ok(ranges)
}
