//! What follows the Nodes, also where all else stays as it is: members, and the security group around their change.

use bowline_cloud_provider::LoadBalancerStep;
use bowline_openstack_client::ProvisioningStatus;
use bowline_plan::{Answer, Note, Refusal};

use super::Existing;
use super::groups::{self, Groups};
use super::next::{Next, apply, look_again};
use super::parts::PartsPlan;
use super::waiting::wait_for;
use crate::load_balancer::intent::Port;
use crate::load_balancer::observed::is_pending;
use crate::load_balancer::plan::placement;
use crate::load_balancer::step::{CloudStep, PartChange};

impl<'a> Existing<'a> {
    /// What is asked for is refused: members and the security group, of what is served, are as they shall be before that is told.
    pub(super) fn follow(&self) -> Option<Next> {
        let (seen, balancer) = (self.seen, self.balancer);
        let is_served = self.wanted.identity.is_served();
        if is_served && (is_pending(balancer) || seen.memory.own.is_busy) {
            return Some(wait_for(balancer, seen));
        }
        let plan = self.plan_of_parts().filter(|_| is_served)?;
        let mut notes = Vec::new(); // the plan has them
        if let Some(change) = plan.next_of_members() {
            return Some(self.opened(change, &mut notes));
        }
        // The group of a Service that is to leave another load balancer lets that one in.
        let steps = self.of_group(&mut notes).ok().filter(|_| plan.serves())?;
        (!steps.is_empty()).then(|| apply(steps))
    }

    /// What decides about the parts of a load balancer that takes changes.
    pub(super) fn plan_of_parts(&self) -> Option<&PartsPlan<'a>> {
        let (seen, balancer) = (self.seen, self.balancer);
        let plan = || {
            let parts = seen.parts(&balancer.id)?;
            let of = (balancer, self.role);
            Some(PartsPlan::new(self.wanted, self.features, seen, of, parts))
        };
        let is_active = balancer.provisioning_status == ProvisioningStatus::Active;
        self.parts.get_or_init(|| is_active.then(plan).flatten()).as_ref()
    }

    /// The ports that are served, or will be: not those that were added since it cannot be told what is asked for.
    fn served_ports(&self) -> Vec<&Port> {
        let plan = self.plan_of_parts().filter(|_| self.wanted.is_unclear());
        let is_served = |index: usize| plan.as_ref().is_none_or(|plan| plan.serves_port(index));
        let ports = self.wanted.ports.iter().enumerate();
        ports
            .filter(|(index, _)| is_served(*index))
            .map(|(_, port)| port)
            .collect()
    }

    /// A change of a part. Pools are all that tells of a security group that the Service before this one left, so that one goes before
    /// any pool, and this Service's own comes before that.
    pub(super) fn unmarked(&self, change: PartChange, notes: &mut Vec<Note>) -> Next {
        let ends = matches!(change, PartChange::DeletePool { .. });
        let steps = match ends && groups::has_former(&self.wanted.identity, self.seen) {
            true => self.of_group(notes).unwrap_or_default(),
            false => Vec::new(),
        };
        match steps.is_empty() {
            true => self.opened(change, notes),
            false => apply(steps),
        }
    }

    /// A change of a part, as soon as the security group lets traffic to it through. Members of what is served do not wait for what is
    /// opened for other ports: Neutron may not answer.
    pub(super) fn opened(&self, change: PartChange, notes: &mut Vec<Note>) -> Next {
        let opening = self.groups().missing_rules();
        if opening.is_empty() {
            return self.part(change, notes);
        }
        let members = self.plan_of_parts().and_then(PartsPlan::next_of_members);
        let members = members.filter(|change| !opening.iter().any(|rule| change.leads_through(rule)));
        let steps = match members.map(|change| self.part(change, notes)) {
            Some(Answer::Apply(wave)) => wave.into_steps(),
            _ => Vec::new(),
        };
        let opening = opening.into_iter();
        let opening = opening.map(|rule| LoadBalancerStep::Cloud(CloudStep::Group(rule)));
        Answer::apply_or(opening.chain(steps).collect(), look_again)
    }

    fn groups(&self) -> Groups<'_> {
        let there = Some((self.balancer, self.role));
        let subnets = placement::member_subnets(self.wanted, self.seen, there, None);
        let parts = self.plan_of_parts();
        let parts = parts.and_then(|_| self.seen.parts(&self.balancer.id));
        let members = parts
            .into_iter()
            .flat_map(|parts| parts.members.values().flatten());
        Groups {
            reached: members.filter_map(|member| member.address.parse().ok()).collect(),
            wanted: self.wanted,
            seen: self.seen,
            seats: groups::seats(self.wanted, &subnets),
            subnets,
            served: self.served_ports(),
            is_ovn: self.features.is_ovn,
        }
    }

    pub(super) fn of_group(&self, notes: &mut Vec<Note>) -> Result<Vec<CloudStep>, Refusal> {
        let is_managed = self.wanted.identity.options.manages_security_groups;
        if is_managed {
            let _ = (self.seen.ports(), self.seen.subnets()); // read beside the groups
        }
        let groups = self.groups();
        notes.extend(groups.elsewhere_note());
        notes.extend(groups.shared_address_note());
        notes.extend(groups.left_out_note());
        // To switch the option off cleans up; what this reconcile created has nothing to clean up.
        if !is_managed && self.seen.memory.own.created.as_ref() == Some(&self.balancer.id) {
            return Ok(Vec::new());
        }
        Ok(groups.next()?.into_iter().map(CloudStep::Group).collect())
    }
}
