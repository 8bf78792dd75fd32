//! `/v2.0/lbaas/pools`

use http::StatusCode;

use super::kind::Written;
use super::protocols::{ALGORITHMS, PERSISTENCE_KINDS, POOL_PROTOCOLS, check_pool, word};
use super::{Parent, patch_part};
use crate::api::Call;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Id;
use crate::model::balancing::{Algorithm, LoadBalancer, Persistence, Pool, PoolProtocol, Provisioning};

impl Written for Pool {
    // What follows `tags` is understood and not kept.
    const TAKEN: &'static str = "name description admin_state_up lb_algorithm session_persistence tags \
         tls_container_ref ca_tls_container_ref crl_container_ref tls_enabled tls_ciphers tls_versions \
         alpn_protocols";
    const FIXED: &'static str = "protocol listener_id loadbalancer_id project_id tenant_id";
    const FILTERS: &'static str = "protocol lb_algorithm listeners healthmonitor_id";
    const KEY: &'static str = "loadbalancer_id";

    fn key(&self) -> String {
        self.load_balancer.to_string()
    }

    fn create(call: &mut Call<'_>) -> Result<Id, ApiError> {
        let fields = call.new_fields::<Self>()?;
        let named = fields.id("loadbalancer_id")?;
        let listener = match fields.id("listener_id")? {
            None => None,
            Some(id) => match call.state.listeners.get(&id).cloned() {
                // Octavia asks nobody whether it is there.
                None if named.is_none() => {
                    let text = "'NoneType' object has no attribute 'load_balancer_id'";
                    return Err(ApiError::octavia_failure(text));
                }
                found => found,
            },
        };
        let balancer = listener.as_ref().map(|it| it.load_balancer).or(named);
        let balancer = balancer
            .ok_or_else(|| ApiError::invalid("Must provide at least one of: loadbalancer_id, listener_id"))?;
        call.found::<LoadBalancer>(&balancer.to_string())?;
        let parent = call.parent(balancer)?;
        let pool = call.new_pool(&fields, &parent, "")?;
        if let Some(listener) = &listener {
            check_pool(listener.protocol, pool.protocol)?;
        }
        check_persistence(pool.persistence.as_ref(), pool.protocol)?;
        call.check_quota::<Self>(&parent.project, 1)?;
        if listener.as_ref().is_some_and(|it| it.default_pool.is_some()) {
            return Err(ApiError::octavia_conflict(
                "This listener already has a default pool",
            ));
        }
        call.mutable(balancer)?;
        check_algorithm(&parent, &fields, pool.algorithm)?;
        let id = pool.part.id;
        call.state.pools.insert(id, pool);
        call.state.keep_clients(balancer);
        let listener = listener.and_then(|it| call.state.listeners.get_mut(&it.part.id));
        if let Some(listener) = listener {
            listener.default_pool = Some(id);
            listener.part.status = Provisioning::PendingUpdate;
        }
        call.touch(balancer);
        Ok(id)
    }

    fn change(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        let fields = call.changed_fields::<Self>()?;
        let Some(mut pool) = call.state.pools.get(&id).cloned() else {
            return Ok(());
        };
        let persistence: Option<Persistence> = read_persistence(&fields)?;
        check_persistence(persistence.as_ref(), pool.protocol)?;
        let parent = call.mutable(pool.load_balancer)?;
        call.change_pool(&mut pool, &fields, &parent)?;
        check_algorithm(&parent, &fields, pool.algorithm)?;
        patch_part(&mut pool.part, &fields, &call.state.clock.rfc3339_seconds())?;
        let balancer = pool.load_balancer;
        call.state.pools.insert(id, pool);
        call.touch_pool(id);
        call.state.keep_clients(balancer);
        // The driver asks for what is only there if the request names it (`pool_update` of ovn-octavia-provider).
        let breaks = fields.has("session_persistence") && !fields.has("admin_state_up");
        if breaks && parent.provider == "ovn" {
            call.state.fail_part(balancer);
        }
        Ok(())
    }

    fn remove(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        let balancer = call.state.balancer_of_pool(id).unwrap_or_default();
        let policies = call.state.listeners_of(balancer).flat_map(|it| &it.redirects);
        if let Some(policy) = policies.copied().find(|it| it.pool == id) {
            let text = format!("Pool {id} is in use by L7 policy {}", policy.id);
            return Err(ApiError::octavia_conflict(text));
        }
        call.mutable(balancer)?;
        call.begin_to_delete::<Self>(id);
        let has_more = call.state.monitor_of(id).is_some() || call.state.members_of(id).next().is_some();
        call.touch_pool(id);
        call.state.end_in_steps(balancer, has_more.then_some(id));
        Ok(())
    }
}

impl Call<'_> {
    /// `nested` are fields that one within another object has too.
    pub(super) fn new_pool(&self, fields: &Fields, parent: &Parent, nested: &str) -> Result<Pool, ApiError> {
        self.only(fields, [Pool::TAKEN, Pool::FIXED, nested])?;
        let protocol: Option<PoolProtocol> = fields.word("protocol", &self.state.words(&POOL_PROTOCOLS))?;
        let protocol = fields.given("protocol", protocol)?;
        let carried = [PoolProtocol::Tcp, PoolProtocol::Udp, PoolProtocol::Sctp];
        let why = format!("OVN provider does not support {} protocol", word(protocol));
        parent.unless_ovn(!carried.contains(&protocol), why)?;
        let algorithm: Option<Algorithm> = fields.word("lb_algorithm", &self.state.words(&ALGORITHMS))?;
        let part = self.new_part(fields, &parent.project)?;
        let mut pool = Pool {
            part,
            load_balancer: parent.id,
            protocol,
            algorithm: fields.given("lb_algorithm", algorithm)?,
            persistence: None,
        };
        self.change_pool(&mut pool, fields, parent)?;
        Ok(pool)
    }

    /// What a body says about how connections are spread.
    fn change_pool(&self, pool: &mut Pool, fields: &Fields, parent: &Parent) -> Result<(), ApiError> {
        if let Some(algorithm) = fields.word("lb_algorithm", &self.state.words(&ALGORITHMS))? {
            pool.algorithm = algorithm;
        }
        let why = format!("OVN provider does not support {} algorithm", word(pool.algorithm));
        parent.unless_ovn(pool.algorithm != Algorithm::SourceIpPort, why)?;
        if fields.has("session_persistence") {
            pool.persistence = read_persistence(fields)?;
        }
        let Some(persistence) = &pool.persistence else {
            return Ok(());
        };
        let why = format!(
            "OVN provider does not support {} session persistence. Only SOURCE_IP type is supported.",
            persistence.kind
        );
        parent.unless_ovn(persistence.kind != "SOURCE_IP", why)
    }
}

fn read_persistence(fields: &Fields) -> Result<Option<Persistence>, ApiError> {
    let read: Option<Persistence> = fields.read("session_persistence", "is not a session persistence")?;
    let unknown = read
        .as_ref()
        .filter(|it| !PERSISTENCE_KINDS.contains(&it.kind.as_str()));
    match unknown {
        None => Ok(read),
        Some(unknown) => {
            let text = format!(
                "Invalid input for field/attribute type. Value: '{}'. Value should be one of: {}",
                unknown.kind,
                PERSISTENCE_KINDS.join(", ")
            );
            Err(ApiError::octavia(StatusCode::BAD_REQUEST, text))
        }
    }
}

/// What Octavia's own driver does not have: it looks at pools that are written by themselves, not at those of a new load balancer.
fn check_algorithm(parent: &Parent, fields: &Fields, algorithm: Algorithm) -> Result<(), ApiError> {
    let is_asked = fields.has("lb_algorithm") && algorithm == Algorithm::SourceIpPort;
    parent.unless_amphora(
        is_asked,
        "Amphora provider does not support SOURCE_IP_PORT algorithm.",
    )
}

/// Octavia looks at pools that are written by themselves, not at those of a new load balancer.
fn check_persistence(persistence: Option<&Persistence>, protocol: PoolProtocol) -> Result<(), ApiError> {
    let Some(persistence) = persistence else {
        return Ok(());
    };
    let kind = persistence.kind.as_str();
    let is_plain = matches!(protocol, PoolProtocol::Udp | PoolProtocol::Sctp);
    let is_timed = persistence.persistence_timeout.is_some() || persistence.persistence_granularity.is_some();
    let wrong = match (kind, &persistence.cookie_name) {
        (kind, _) if is_plain && kind != "SOURCE_IP" => {
            format!("Session persistence of type {kind} is not supported for UDP/SCTP protocol pools.")
        }
        _ if is_timed && !is_plain => {
            "persistence_timeout and persistence_granularity is only for UDP and SCTP protocol pools."
                .to_owned()
        }
        ("APP_COOKIE", None) => {
            "Field \"cookie_name\" must be specified when using the \"APP_COOKIE\" session persistence type."
                .to_owned()
        }
        ("SOURCE_IP" | "HTTP_COOKIE", Some(_)) => {
            "Field \"cookie_name\" can only be specified with session persistence of type \"APP_COOKIE\"."
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(ApiError::invalid(wrong))
}
