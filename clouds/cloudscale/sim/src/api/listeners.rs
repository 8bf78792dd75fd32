//! `/v1/load-balancers/listeners`

use ipnet::IpNet;
use uuid::Uuid;

use super::{Answer, Call, found, path_id};
use crate::error::ApiError;
use crate::fields::{Fields, given};
use crate::model::{Listener, ListenerProtocol};
use crate::wire::Wire;

const PROTOCOLS: [&str; 2] = ["tcp", "udp"];
/// One day, in milliseconds. Assumed: the API names no limit.
const MAX_TIMEOUT_MS: u32 = 86_400_000;

/// The fields that can be changed later.
struct Changes {
    allowed_cidrs: Option<Vec<String>>,
    client_data: Option<u32>,
    member_connect: Option<u32>,
    member_data: Option<u32>,
}

fn changes(fields: &mut Fields, masks_host_bits: bool) -> Changes {
    // null means no restriction, as the empty list does.
    let null = fields
        .value("allowed_cidrs")
        .is_some_and(serde_json::Value::is_null);
    let mut allowed_cidrs = if null {
        Some(Vec::new())
    } else {
        fields.texts("allowed_cidrs")
    };
    for cidr in allowed_cidrs.iter_mut().flatten() {
        // Host bits are an error, as for any network address; what is kept has one spelling. Assumed.
        let network = cidr.parse::<IpNet>().ok();
        match network.filter(|net| masks_host_bits || net.addr() == net.network()) {
            Some(network) => *cidr = network.trunc().to_string(),
            None => fields.refuse(
                "allowed_cidrs",
                format!("Enter a valid network address in CIDR notation: {cidr:?}."),
            ),
        }
    }
    let mut timeout = |name: &str| fields.number(name, 0, MAX_TIMEOUT_MS);
    Changes {
        client_data: timeout("timeout_client_data_ms"),
        member_connect: timeout("timeout_member_connect_ms"),
        member_data: timeout("timeout_member_data_ms"),
        allowed_cidrs,
    }
}

impl Call<'_> {
    pub(super) fn listeners(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => self.list(self.state.listeners.values(), |it| &it.tags, Wire::listener),
            ("POST", []) => self.create_listener(),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let listener = found(&self.state.listeners, &uuid)?;
                let balancer = listener.load_balancer;
                match method {
                    "GET" => return self.one(&self.wire().listener(listener)),
                    "PATCH" => self.patch_listener(listener.clone())?,
                    "DELETE" => {
                        self.state.listeners.shift_remove(&uuid);
                    }
                    _ => return self.wrong_method(),
                }
                self.state.touch(balancer);
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn patch_listener(&mut self, mut listener: Listener) -> Result<(), ApiError> {
        let mut fields = self.patch(false)?;
        fields.forbid(&["pool"]);
        if !self.state.behaviour.listener_port_patchable {
            fields.forbid(&["protocol", "protocol_port"]);
        }
        let masks = self.state.behaviour.masks_host_bits;
        let (name, tags, changes) = (fields.text("name"), fields.tags(), changes(&mut fields, masks));
        listener.protocol = fields.word("protocol", &PROTOCOLS).unwrap_or(listener.protocol);
        listener.protocol_port = fields.port("protocol_port").unwrap_or(listener.protocol_port);
        fields.check()?;
        self.refuse_taken_port(&listener)?;
        listener.name = name.unwrap_or(listener.name);
        listener.tags = tags.unwrap_or(listener.tags);
        listener.allowed_cidrs = changes.allowed_cidrs.unwrap_or(listener.allowed_cidrs);
        listener.timeout_client_data_ms = changes.client_data.unwrap_or(listener.timeout_client_data_ms);
        listener.timeout_member_connect_ms = changes
            .member_connect
            .unwrap_or(listener.timeout_member_connect_ms);
        listener.timeout_member_data_ms = changes.member_data.unwrap_or(listener.timeout_member_data_ms);
        self.state.listeners.insert(listener.uuid, listener);
        Ok(())
    }

    fn create_listener(&mut self) -> Answer {
        let mut fields = self.new_fields(&["name", "pool", "protocol", "protocol_port"])?;
        let name = fields.text("name");
        let pool: Option<Uuid> = fields.uuid("pool");
        let balancer = pool.and_then(|pool| self.state.balancer_of_pool(pool));
        if let Some(uuid) = pool
            && balancer.is_none()
        {
            fields.refuse("pool", format!("Not found: pool \"{uuid}\"."));
        }
        let protocol: Option<ListenerProtocol> = fields.word("protocol", &PROTOCOLS);
        let protocol_port = fields.port("protocol_port");
        let changes = changes(&mut fields, self.state.behaviour.masks_host_bits);
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let (uuid, created_at) = self.birth();
        let listener = Listener {
            uuid,
            load_balancer: given(balancer, "pool")?,
            pool,
            name: given(name, "name")?,
            created_at,
            protocol: given(protocol, "protocol")?,
            protocol_port: given(protocol_port, "protocol_port")?,
            allowed_cidrs: changes.allowed_cidrs.unwrap_or_default(),
            timeout_client_data_ms: changes.client_data.unwrap_or(50_000),
            timeout_member_connect_ms: changes.member_connect.unwrap_or(5_000),
            timeout_member_data_ms: changes.member_data.unwrap_or(50_000),
            tags,
        };
        self.refuse_taken_port(&listener)?;
        let most = self.state.behaviour.quota.listeners_per_load_balancer;
        let all = self.state.listeners.values();
        let count = all
            .filter(|it| it.load_balancer == listener.load_balancer)
            .count();
        ApiError::unless_full(most, count, "listeners")?;
        self.state.listeners.insert(uuid, listener.clone());
        self.state.touch(listener.load_balancer);
        self.created(&self.wire().listener(&listener))
    }

    fn refuse_taken_port(&self, listener: &Listener) -> Result<(), ApiError> {
        let same = |other: &Listener| {
            other.uuid != listener.uuid
                && other.load_balancer == listener.load_balancer
                && (other.protocol, other.protocol_port) == (listener.protocol, listener.protocol_port)
        };
        if self.state.behaviour.unique_listener_ports && self.state.listeners.values().any(same) {
            let text = "A listener with this protocol and protocol_port already exists on the load balancer.";
            return Err(ApiError::field("protocol_port", text));
        }
        Ok(())
    }
}
