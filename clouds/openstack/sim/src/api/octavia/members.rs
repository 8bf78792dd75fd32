//! `/v2.0/lbaas/pools/<pool>/members`

use std::net::IpAddr;

use bytes::Bytes;
use http::StatusCode;

use super::protocols::{check_reserved, word};
use super::{Parent, patch_part};
use crate::api::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::{Dialect, Fields};
use crate::model::Id;
use crate::model::balancing::{Member, Pool, PoolProtocol};

/// Fields that are taken at any time.
const TAKEN: &str = "name admin_state_up weight backup monitor_address monitor_port tags \
     vnic_type request_sriov";
const FIXED: &str = "address protocol_port subnet_id project_id tenant_id";
const DEFAULT_WEIGHT: u16 = 1;
const FILTERS: &str = "address subnet_id weight backup monitor_address monitor_port";

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
        let found = path_id(pool).and_then(|id| self.state.pools.get(&id));
        if found.is_none() {
            return Err(ApiError::no_pool_of_members(pool));
        }
        let pool_id = self.found::<Pool>(pool)?;
        match (self.method(), rest) {
            ("GET", []) => self.list(FILTERS, &[], |it: &Member| it.pool == pool_id),
            ("POST", []) => {
                let fields = self.member_fields(FIXED)?;
                let balancer = self.state.balancer_of_pool(pool_id).unwrap_or_default();
                let project = self.parent(balancer)?.project;
                if let Some(address) = fields.address("address")? {
                    check_reserved(address)?;
                }
                self.check_subnet(fields.id("subnet_id")?)?;
                self.check_quota::<Member>(&project, 1)?;
                let (pool, parent) = self.mutable_pool(pool_id)?;
                let member = self.new_member(&fields, &pool, &parent)?;
                if self.state.members_of(pool_id).any(|it| it.is_like(&member)) {
                    return Err(member.conflict());
                }
                self.check_families(&pool, &parent, [member.address])?;
                self.check_near(&parent, &[&member], "creation")?;
                let id = member.part.id;
                self.state.members.insert(id, member);
                self.touch_pool(pool_id);
                self.show_made::<Member>(id)
            }
            ("PUT", []) => self.replace_members(pool_id),
            ("GET", [id]) => self.show::<Member>(self.member(pool_id, id)?),
            ("PUT", [id]) => {
                let id = self.member(pool_id, id)?;
                let (_, parent) = self.mutable_pool(pool_id)?;
                let fields = self.member_fields("")?;
                if let Some(mut member) = self.state.members.get(&id).cloned() {
                    self.change_member(&mut member, &fields, &parent)?;
                    patch_part(&mut member.part, &fields, &self.state.clock.rfc3339_seconds())?;
                    self.state.members.insert(id, member);
                    self.touch_pool(pool_id);
                }
                self.show::<Member>(id)
            }
            ("DELETE", [id]) => {
                let id = self.member(pool_id, id)?;
                self.mutable_pool(pool_id)?;
                self.begin_to_delete::<Member>(id);
                self.touch_pool(pool_id);
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    /// One of this pool.
    fn member(&self, pool: Id, id: &str) -> Result<Id, ApiError> {
        let found = path_id(id).filter(|id| self.state.members.get(id).is_some_and(|it| it.pool == pool));
        let text = format!("Member {id} not found.");
        found.ok_or_else(|| ApiError::octavia(StatusCode::NOT_FOUND, text))?;
        self.found::<Member>(id)
    }

    pub(super) fn new_member(
        &self,
        fields: &Fields,
        pool: &Pool,
        parent: &Parent,
    ) -> Result<Member, ApiError> {
        self.only(fields, [TAKEN, FIXED, ""])?;
        let address = fields.given("address", fields.address("address")?)?;
        let port = fields.given("protocol_port", fields.port("protocol_port")?)?;
        let subnet = fields.id("subnet_id")?;
        let why =
            "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer.";
        parent.unless_ovn(!parent.has_family_of(address), why)?;
        let part = self.new_part(fields, &parent.project)?;
        let mut member = Member {
            part,
            pool: pool.part.id,
            address,
            port,
            subnet,
            monitor_port: None,
            monitor_address: None,
            weight: DEFAULT_WEIGHT,
            is_backup: false,
            began_watched: self.state.monitor_of(pool.part.id).is_some(),
            healthy: None,
        };
        self.change_member(&mut member, fields, parent)?;
        Ok(member)
    }

    fn change_member(&self, member: &mut Member, fields: &Fields, parent: &Parent) -> Result<(), ApiError> {
        if fields.has("weight") {
            member.weight = fields.small("weight", 0, 256)?.unwrap_or(DEFAULT_WEIGHT);
        }
        if fields.has("backup") {
            member.is_backup = fields.flag("backup")?.unwrap_or_default();
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

    /// A subnet that a new member names.
    fn check_subnet(&self, subnet: Option<Id>) -> Result<(), ApiError> {
        let is_seen = |id: &Id| self.state.subnets.get(id).is_some_and(|it| self.sees_subnet(it));
        match subnet.filter(|id| !is_seen(id)) {
            None => Ok(()),
            Some(id) => {
                let text = format!("Subnet {id} not found.");
                Err(ApiError::octavia(StatusCode::BAD_REQUEST, text))
            }
        }
    }

    /// OVN's driver wants to know the subnet of a member that is not in the first address's; those of a new load balancer it takes for its.
    fn check_near(&self, parent: &Parent, members: &[&Member], what: &str) -> Result<(), ApiError> {
        let first = parent
            .vips
            .first()
            .and_then(|it| self.state.subnets.get(&it.subnet));
        let is_near = |it: &&Member| first.is_some_and(|subnet| subnet.cidr.contains(&it.address));
        let is_far = members.iter().any(|it| it.subnet.is_none() && !is_near(it));
        let why = format!(
            "Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member {what} with OVN \
             Provider Driver if it is not the same as LB VIP subnet"
        );
        parent.unless_ovn(is_far, why)
    }

    /// What carries datagrams does not translate between the families (`_validate_members` of Octavia's own driver).
    fn check_families(
        &self,
        pool: &Pool,
        parent: &Parent,
        members: impl IntoIterator<Item = IpAddr>,
    ) -> Result<(), ApiError> {
        let is_plain = matches!(pool.protocol, PoolProtocol::Udp | PoolProtocol::Sctp);
        let mut listeners = self.state.listeners_of(parent.id);
        let is_used = listeners.any(|it| it.reaches(pool.part.id));
        let mut members = members.into_iter();
        let is_mixed = is_plain && is_used && members.any(|it| !parent.has_family_of(it));
        let why = format!(
            "This provider doesn't support mixing IPv4 and IPv6 addresses for its VIP and members in {} load balancers.",
            word(pool.protocol)
        );
        parent.unless_amphora(is_mixed, why)
    }

    /// The whole set at once: members are matched by address and port. With `additive_only` none is removed.
    ///
    /// As in `MembersController.put` of Octavia's `api/v2/controllers/member.py`, whose entries are `MemberPOST`s of `types/member.py`: what
    /// an entry leaves out gets its default also where the member is there. The subnet, the name and tags have none and stay. One that is
    /// there twice in the set is a 400, a new one a 409.
    fn replace_members(&mut self, pool_id: Id) -> Answer {
        let fields = self.member_set()?;
        let (pool, parent) = self.mutable_pool(pool_id)?;
        let mut new = Vec::new();
        let mut changed: Vec<Member> = Vec::new();
        for fields in fields {
            let member = self.new_member(&fields, &pool, &parent)?;
            let known = self.state.members_of(pool_id).find(|it| it.is_like(&member));
            match known.cloned() {
                None => {
                    check_reserved(member.address)?;
                    new.push(member);
                }
                Some(_) if changed.iter().any(|it| member.is_like(it)) => {
                    let text = "Member must be updated only once in the same request.";
                    return Err(ApiError::invalid(text));
                }
                Some(mut known) => {
                    patch_part(&mut known.part, &fields, &self.state.clock.rfc3339_seconds())?;
                    known.part.is_up = member.part.is_up;
                    changed.push(Member {
                        // An unknown one is taken, too.
                        subnet: member.subnet.or(known.subnet),
                        monitor_port: member.monitor_port,
                        monitor_address: member.monitor_address,
                        weight: member.weight,
                        is_backup: member.is_backup,
                        ..known
                    });
                }
            }
        }
        let is_kept = |it: &Member| changed.iter().any(|kept| kept.part.id == it.part.id);
        let goes = |it: &Member| it.pool == pool_id && !is_kept(it);
        let going: Vec<Id> = match self.query.flag("additive_only") {
            true => Vec::new(),
            false => self
                .state
                .members
                .values()
                .filter(|it| goes(it))
                .map(|it| it.part.id)
                .collect(),
        };
        let mut reply = http::Response::new(Bytes::new());
        *reply.status_mut() = StatusCode::ACCEPTED;
        if going.is_empty() && new.is_empty() && changed.is_empty() {
            return Ok(reply);
        }
        self.check_quota::<Member>(&parent.project, new.len().saturating_sub(going.len()))?;
        for (at, member) in new.iter().enumerate() {
            self.check_subnet(member.subnet)?;
            if new[..at].iter().any(|it| member.is_like(it)) {
                return Err(member.conflict());
            }
        }
        let all: Vec<&Member> = new.iter().chain(&changed).collect();
        self.check_families(&pool, &parent, all.iter().map(|it| it.address))?;
        self.check_near(&parent, &all, "batch update")?;
        let requests = going.len() + new.len() + changed.len();
        let later: Vec<Id> = going.iter().copied().filter(|_| requests > 1).collect();
        for id in going {
            self.begin_to_delete::<Member>(id);
        }
        for member in changed {
            self.state.members.insert(member.part.id, member);
        }
        self.state
            .members
            .extend(new.into_iter().map(|it| (it.part.id, it)));
        self.touch_pool(pool_id);
        self.state.end_in_steps(parent.id, later);
        Ok(reply)
    }

    fn member_fields(&self, more: &str) -> Result<Fields, ApiError> {
        let fields = Fields::parse(Dialect::Octavia, "member", self.request.body())?;
        self.only(&fields, [TAKEN, more, ""])?;
        Ok(fields)
    }

    /// The members of a body: a list, not an object.
    fn member_set(&self) -> Result<Vec<Fields>, ApiError> {
        let body = Fields::whole(Dialect::Octavia, "members_", self.request.body())?;
        body.only("members")?;
        let members = body.objects("members")?;
        members.ok_or_else(|| ApiError::octavia_failure("'UnsetType' object is not iterable"))
    }
}
