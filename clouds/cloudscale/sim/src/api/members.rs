//! `/v1/load-balancers/pools/<pool>/members`

use uuid::Uuid;

use super::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::given;
use crate::model::Member;
use crate::wire::Wire;

impl Call<'_> {
    pub(super) fn members(&mut self, pool: &str, rest: &[&str]) -> Answer {
        let pool = path_id(pool)?;
        let balancer = self
            .state
            .balancer_of_pool(pool)
            .ok_or_else(ApiError::not_found)?;
        match (self.method(), rest) {
            ("GET", []) => self.list(self.state.members_of(pool), |it| &it.tags, Wire::member),
            ("POST", []) => self.create_member(pool, balancer),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let member = self.state.members.get(&uuid).filter(|member| member.pool == pool);
                let member = member.ok_or_else(ApiError::not_found)?;
                match method {
                    "GET" => return self.one(&self.wire().member(member)),
                    "PATCH" => {
                        let mut fields = self.patch(false)?;
                        fields.forbid(&["protocol_port", "monitor_port", "address", "subnet"]);
                        let (name, enabled, tags) =
                            (fields.text("name"), fields.flag("enabled"), fields.tags());
                        fields.check()?;
                        if let Some(member) = self.state.members.get_mut(&uuid) {
                            member.name = name.unwrap_or_else(|| member.name.clone());
                            member.enabled = enabled.unwrap_or(member.enabled);
                            member.tags = tags.unwrap_or_else(|| member.tags.clone());
                        }
                    }
                    "DELETE" => {
                        self.state.members.shift_remove(&uuid);
                    }
                    _ => return self.wrong_method(),
                }
                self.state.touch(balancer);
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn create_member(&mut self, pool: Uuid, balancer: Uuid) -> Answer {
        let mut fields = self.new_fields(&["name", "protocol_port", "address", "subnet"])?;
        let name = fields.text("name");
        let protocol_port = fields.port("protocol_port");
        let null = fields
            .value("monitor_port")
            .is_none_or(serde_json::Value::is_null);
        let monitor_port = if null { None } else { fields.port("monitor_port") };
        let address = fields.address("address");
        let subnet = fields.uuid("subnet");
        if let Some(uuid) = subnet {
            match self.state.subnets.get(&uuid) {
                None => fields.refuse("subnet", format!("Subnet \"{uuid}\" does not exist.")),
                Some(subnet) if address.is_some_and(|address| !subnet.cidr.contains(&address)) => {
                    fields.refuse(
                        "address",
                        "The address is not a valid IP for the specified subnet.",
                    );
                }
                Some(_) => {}
            }
        }
        let enabled = fields.flag("enabled").unwrap_or(true);
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let (address, protocol_port) = (given(address, "address")?, given(protocol_port, "protocol_port")?);
        let same = |member: &Member| member.address == address && member.protocol_port == protocol_port;
        if !self.state.behaviour.duplicate_members && self.state.members_of(pool).any(same) {
            return Err(ApiError::detail(
                "A member with this address and protocol_port already exists.",
            ));
        }
        let most = self.state.behaviour.quota.members_per_pool;
        ApiError::unless_full(most, self.state.members_of(pool).count(), "members")?;
        let (uuid, created_at) = self.birth();
        let member = Member {
            uuid,
            pool,
            name: given(name, "name")?,
            enabled,
            created_at,
            protocol_port,
            monitor_port,
            address,
            subnet: given(subnet, "subnet")?,
            tags,
            healthy: None,
            monitor_status: None,
        };
        self.state.members.insert(uuid, member.clone());
        self.state.touch(balancer);
        self.created(&self.wire().member(&member))
    }
}
