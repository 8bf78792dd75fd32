//! What follows the Nodes, also where all else stays as it is: members, and the security group around their change.

use bowline_openstack_client::ProvisioningStatus;
use bowline_plan::{Note, Refusal, RefusedBy, Step as _};

use super::next::{Next, apply};
use super::parts::PartsPlan;
use super::waiting::wait_for;
use super::{Existing, groups};
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

    /// Why a port is not served as it shall be, though everything else is: its pool or its listener failed, and Octavia
    /// could not mend it.
    pub(super) fn unmended(&self) -> Option<Refusal> {
        let refusal = Refusal::new(self.plan_of_parts()?.unmended()?).by(RefusedBy::Failure);
        Some(refusal.with_remedy(
            "Bowline tries again from time to time to have Octavia mend it; if it stays so, ask the operator of the cloud to look at Octavia's workers, or for a failover (`openstack loadbalancer failover`)",
        ))
    }

    /// Why not all parts are as they shall be, though everything else is: Octavia refused a change, or did not keep it.
    pub(super) fn untaken(&self) -> Option<Refusal> {
        let plan = self.plan_of_parts()?;
        let refused = plan.refused().cloned();
        let mut all = refused.chain(plan.reverted().map(|change| self.reverted(change)));
        let first = all.next()?;
        let more = match all.count() {
            0 => return Some(first),
            1 => "another change".to_owned(),
            others => format!("{others} more changes"),
        };
        let reason = format!("{} (and so for {more})", first.reason);
        Some(Refusal { reason, ..first })
    }

    /// Why it is not known whether all parts are as they shall be, though everything that is known is.
    pub(super) fn unread(&self) -> Option<Refusal> {
        let why = self.plan_of_parts()?.unread()?;
        let text = format!("{why}; what else the load balancer has follows the Service");
        Some(Refusal::new(text).with_remedy("Bowline reads them again from time to time"))
    }

    pub(super) fn reverted(&self, change: PartChange) -> Refusal {
        let step = CloudStep::Part {
            balancer: self.balancer.id.clone(),
            change,
        };
        let refusal = Refusal::new(format!(
            "Octavia answered {}, and {} is not as Bowline wrote it",
            step.label(),
            step.object()
        ));
        refusal.with_remedy(
            "set what the load balancer's provider can keep; it is tried again from time to time",
        )
    }

    /// Why a pool that is not wanted any more stays, though everything else is as it shall be: an L7 policy names it.
    pub(super) fn barred(&self) -> Option<Refusal> {
        self.plan_of_parts()?.barred().cloned()
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

    /// A change of a part, as soon as the security group lets traffic to it through.
    pub(super) fn opened(&self, change: PartChange, notes: &mut Vec<Note>) -> Next {
        let opening = self.opening();
        match opening.is_empty() {
            true => self.part(change, notes),
            false => apply(opening),
        }
    }

    /// What the security group has to open before the load balancer's parts change.
    fn opening(&self) -> Vec<CloudStep> {
        let there = Some((self.balancer, self.role));
        let subnets = placement::member_subnets(self.wanted, self.seen, there, None);
        let is_ovn = self.features.is_ovn;
        let changes = groups::missing_rules(self.wanted, self.seen, &subnets, &self.served_ports(), is_ovn);
        changes.into_iter().map(CloudStep::Group).collect()
    }

    pub(super) fn of_group(&self, notes: &mut Vec<Note>) -> Result<Vec<CloudStep>, Refusal> {
        let is_managed = self.wanted.identity.options.manages_security_groups;
        if is_managed {
            let _ = (self.seen.ports(), self.seen.subnets()); // read beside the groups
        }
        let subnets =
            placement::member_subnets(self.wanted, self.seen, Some((self.balancer, self.role)), None);
        let seats = groups::seats(self.wanted, &subnets);
        notes.extend(groups::elsewhere_note(self.wanted, self.seen, &subnets, &seats));
        notes.extend(groups::shared_address_note(self.wanted, &subnets));
        notes.extend(groups::left_out_note(&seats).filter(|_| is_managed));
        // To switch the option off cleans up; what this reconcile created has nothing to clean up.
        if !is_managed && self.seen.memory.own.created.as_ref() == Some(&self.balancer.id) {
            return Ok(Vec::new());
        }
        let (served, is_ovn) = (self.served_ports(), self.features.is_ovn);
        let changes = groups::next(self.wanted, self.seen, &subnets, &served, &seats, is_ovn)?;
        Ok(changes.into_iter().map(CloudStep::Group).collect())
    }
}
