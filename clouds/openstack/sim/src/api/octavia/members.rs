//! `/v2.0/lbaas/pools/<pool>/members`

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::tree::Tree;
use super::{Parent, patch_part};
use crate::api::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::{Dialect, Fields};
use crate::model::Id;
use crate::model::balancing::{Member, Pool, Provisioning};

/// Fields that are taken at any time.
const SETTINGS: [&str; 9] = [
    "name",
    "admin_state_up",
    "weight",
    "backup",
    "monitor_address",
    "monitor_port",
    "tags",
    "vnic_type",
    "request_sriov",
];
const FIXED: [&str; 5] = ["address", "protocol_port", "subnet_id", "project_id", "tenant_id"];
const FILTERS: [&str; 6] = [
    "address",
    "subnet_id",
    "weight",
    "backup",
    "monitor_address",
    "monitor_port",
];

impl Member {
    /// Whether it is the same target.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.pool, self.address, self.port) == (other.pool, other.address, other.port)
    }

    pub(super) fn conflict(&self) -> ApiError {
        ApiError::octavia_conflict(format!(
            "Another member on this pool is already using ip {} on protocol_port {}",
            self.address, self.port
        ))
    }
}

impl Call<'_> {
    pub(super) fn members(&mut self, pool: &str, rest: &[&str]) -> Answer {
        let pool_id = self.pool(pool)?;
        match (self.method(), rest) {
            ("GET", []) => {
                let shown = self.state.members_of(pool_id);
                let shown = shown.map(|it| self.wire().member(it)).collect();
                self.octavia_list("members", &FILTERS, &[], shown)
            }
            ("POST", []) => {
                let (pool, parent) = self.mutable_pool(pool_id)?;
                let fields = self.octavia_fields("member", &[&SETTINGS[..], &FIXED[..]].concat())?;
                let member = self.new_member(&fields, &pool, &parent)?;
                if self.state.members_of(pool_id).any(|it| it.is_like(&member)) {
                    return Err(member.conflict());
                }
                let id = member.part.id;
                let tree = Tree {
                    members: vec![member],
                    ..Tree::default()
                };
                self.check_tree(&tree, &parent)?;
                tree.insert(self.state);
                self.touch_pool(pool_id);
                self.octavia_created("member", self.shown_member(id))
            }
            ("PUT", []) => self.replace_members(pool_id),
            ("GET", [id]) => {
                let id = self.member(pool_id, id)?;
                self.octavia_one("member", self.shown_member(id))
            }
            ("PUT", [id]) => {
                let id = self.member(pool_id, id)?;
                let (_, parent) = self.mutable_pool(pool_id)?;
                let fields = self.octavia_fields("member", &SETTINGS)?;
                if let Some(mut member) = self.state.members.get(&id).cloned() {
                    self.change_member(&mut member, &fields, &parent)?;
                    patch_part(&mut member.part, &fields, &self.state.clock.rfc3339_seconds())?;
                    self.state.members.insert(id, member);
                    self.touch_pool(pool_id);
                }
                self.octavia_one("member", self.shown_member(id))
            }
            ("DELETE", [id]) => {
                let id = self.member(pool_id, id)?;
                self.mutable_pool(pool_id)?;
                if let Some(member) = self.state.members.get_mut(&id) {
                    member.part.status = Provisioning::PendingDelete;
                }
                self.touch_pool(pool_id);
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    fn member(&self, pool: Id, id: &str) -> Result<Id, ApiError> {
        let member = path_id(id).and_then(|id| self.state.members.get(&id));
        let member = member.filter(|it| it.pool == pool);
        self.check_part(member.map(|it| &it.part), "Member", id)
    }

    fn shown_member(&self, id: Id) -> Value {
        let member = self.state.members.get(&id);
        member.map_or(Value::Null, |it| self.wire().member(it))
    }

    pub(super) fn new_member(
        &self,
        fields: &Fields,
        pool: &Pool,
        parent: &Parent,
    ) -> Result<Member, ApiError> {
        self.only(fields, &[&SETTINGS[..], &FIXED[..]].concat())?;
        let address = fields.given("address", fields.address("address")?)?;
        let port = fields.given("protocol_port", fields.port("protocol_port")?)?;
        let subnet = fields.id("subnet_id")?;
        let known =
            subnet.is_none_or(|id| self.state.subnets.get(&id).is_some_and(|it| self.sees_subnet(it)));
        if let Some(subnet) = subnet.filter(|_| !known) {
            let text = format!("Subnet {subnet} not found.");
            return Err(ApiError::octavia(StatusCode::BAD_REQUEST, text));
        }
        let why =
            "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer.";
        parent.unless_ovn(!parent.has_family_of(address), why)?;
        let first = parent
            .vips
            .first()
            .and_then(|it| self.state.subnets.get(&it.subnet));
        let is_near = first.is_some_and(|it| it.cidr.contains(&address));
        let why = "Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member creation with \
                   OVN Provider Driver if it is not the same as LB VIP subnet";
        parent.unless_ovn(subnet.is_none() && !is_near, why)?;
        let name = fields.text("name")?.unwrap_or_default();
        let tags = fields.texts("tags")?.unwrap_or_default();
        let mut part = self.state.part(&parent.project, name, String::new(), tags);
        part.is_up = fields.flag("admin_state_up")?.unwrap_or(true);
        let mut member = Member {
            part,
            pool: pool.part.id,
            address,
            port,
            subnet,
            monitor_port: None,
            monitor_address: None,
            weight: 1,
            is_backup: false,
            healthy: None,
        };
        self.change_member(&mut member, fields, parent)?;
        Ok(member)
    }

    fn change_member(&self, member: &mut Member, fields: &Fields, parent: &Parent) -> Result<(), ApiError> {
        if let Some(weight) = fields.small("weight", 0, 256)? {
            member.weight = weight;
        }
        if let Some(is_backup) = fields.flag("backup")? {
            member.is_backup = is_backup;
        }
        if fields.has("monitor_port") {
            member.monitor_port = fields.port("monitor_port")?;
        }
        if fields.has("monitor_address") {
            member.monitor_address = fields.address("monitor_address")?;
        }
        let has_monitor = member.monitor_port.is_some() || member.monitor_address.is_some();
        let why = "OVN Load Balancer does not support different member monitor address or port.";
        parent.unless_ovn(has_monitor, why)
    }

    /// The whole set at once: members are matched by address and port. With `additive_only` none is removed.
    ///
    /// As in `MembersController.put` of Octavia's `api/v2/controllers/member.py`, whose entries are `MemberPOST`s of `types/member.py`: what
    /// an entry leaves out gets its default also where the member is there. The subnet, the name and tags have none and stay. One that is
    /// there twice in the set is a 400, a new one a 409.
    fn replace_members(&mut self, pool_id: Id) -> Answer {
        let (pool, parent) = self.mutable_pool(pool_id)?;
        let fields = self.member_set()?;
        let mut new = Vec::new();
        let mut changed: Vec<Member> = Vec::new();
        for fields in fields {
            let member = self.new_member(&fields, &pool, &parent)?;
            if changed.iter().any(|it| member.is_like(it)) {
                return Err(ApiError::invalid(
                    "Member must be updated only once in the same request.",
                ));
            }
            if new.iter().any(|it| member.is_like(it)) {
                return Err(member.conflict());
            }
            let known = self.state.members_of(pool_id).find(|it| it.is_like(&member));
            match known.cloned() {
                None => new.push(member),
                Some(mut known) => {
                    patch_part(&mut known.part, &fields, &self.state.clock.rfc3339_seconds())?;
                    known.part.is_up = member.part.is_up;
                    changed.push(Member {
                        monitor_port: member.monitor_port,
                        monitor_address: member.monitor_address,
                        weight: member.weight,
                        is_backup: member.is_backup,
                        ..known
                    });
                }
            }
        }
        let tree = Tree {
            members: new,
            ..Tree::default()
        };
        self.check_tree(&tree, &parent)?;
        let kept: Vec<Id> = changed.iter().map(|it| it.part.id).collect();
        if !self.query.flag("additive_only") {
            let others = self.state.members.values_mut();
            let others = others.filter(|it| it.pool == pool_id && !kept.contains(&it.part.id));
            others.for_each(|it| it.part.status = Provisioning::PendingDelete);
        }
        for member in changed {
            self.state.members.insert(member.part.id, member);
        }
        tree.insert(self.state);
        self.touch_pool(pool_id);
        let mut reply = http::Response::new(Bytes::new());
        *reply.status_mut() = StatusCode::ACCEPTED;
        Ok(reply)
    }

    /// The members of a body: a list, not an object.
    fn member_set(&self) -> Result<Vec<Fields>, ApiError> {
        let body = Fields::whole(Dialect::Octavia, self.request.body())?;
        body.only(&["members"])?;
        body.given("members", body.objects("members")?)
    }
}
