//! The reads. What several ask for at the same time is read once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, Kept, Memory};
use bowline_cloudstack_client::{Class, Client, NetworkId, PublicIpId, PublicIpQuery, RuleId, WallClock};
use futures::future::{join, join_all};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::load_balancer::claim;
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::objects::{
    Address, AddressState, FirewallId, FirewallList, FirewallRule, Network, Rule,
};
use crate::load_balancer::observe::address_requests::AddressRequests;
use crate::load_balancer::observe::known::Known;
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::lists::{firewall_of, members_of, saying};
use crate::load_balancer::observe::observed::{Fact, Need, Observed, Pending, Seen, see};
use crate::load_balancer::observe::released::Releases;
use crate::load_balancer::observe::remembered::{Remembered, Unlisted};
use crate::load_balancer::observe::rules::BalancerRules;
use crate::load_balancer::observe::times::{INHERITED, LOOK, PATIENCE, STUCK};
use crate::load_balancer::observe::trust::Trust;
use crate::load_balancer::observe::{jobs, wire};
use crate::load_balancer::step::CloudStep;
use crate::version::ServerVersion;
use crate::virtual_machines::VirtualMachines;

mod others;
mod precondition;

/// More rounds than any decision takes: what is read in one tells what is needed in the next.
const MAX_ROUNDS: usize = 16;

/// Reads from the API.
pub(crate) struct Reads {
    /// For what the Service itself has, and for writes: what is listed counts.
    pub(crate) client: Client,
    /// For what others have, and must not lose.
    whole: Client,
    rules: BalancerRules,
    virtual_machines: Arc<VirtualMachines>,
    version: ServerVersion,
    trust: Trust,
    /// Firewall rules that were closed for others of which nobody knows whether they came, by the UID of the Service, with what it asked
    /// for. The next reconcile makes these others, or hears that they are refused and opens the old ones again.
    closed: Kept<String, (u64, Vec<(FirewallId, FirewallRule)>)>,
    /// What Services asked for when a rule of theirs was seen first that no router can read, by their UID. The Go manager leaves
    /// such rules. To make them anew interrupts their ports, so a process that takes over waits for a change of the Service.
    broken: Kept<String, u64>,
    /// Jobs that were started and whose end nobody has seen, by the name of the balancer. A change of the Service ends a sync that
    /// waits for a job; some servers go on with a job only when it is asked after.
    underway: Kept<String, Vec<Pending>>,
    /// Until when something of a Service may go that was deleted without an answer, by its UID: until then what is listed may go yet.
    unanswered: Kept<String, Instant>,
    /// How many syncs of a Service have failed since it settled last, by its UID.
    failures: Kept<String, u32>,
    /// The addresses that this process released.
    releases: Releases,
    /// What the last reconcile of a Service wrote, by its UID: the next one may come before a list shows it.
    unlisted: Kept<String, Unlisted>,
    /// What is known of claims under which something may have been asked for.
    pub(crate) address_requests: AddressRequests,
    clock: WallClock,
    /// What a plan has to know first.
    needs: Needs,
}

/// Tells what a decision has to know first.
pub(crate) type Needs = fn(&Intent, &Seen) -> BTreeSet<Need>;

impl Reads {
    pub(crate) fn new(
        client: &Client,
        virtual_machines: Arc<VirtualMachines>,
        version: ServerVersion,
        clock: WallClock,
        needs: Needs,
    ) -> Self {
        Self {
            client: client.taking_short_lists(),
            whole: client.clone(),
            rules: BalancerRules::new(client),
            virtual_machines,
            version,
            trust: Trust::default(),
            closed: Kept::default(),
            broken: Kept::default(),
            underway: Kept::default(),
            unanswered: Kept::default(),
            failures: Kept::default(),
            releases: Releases::default(),
            unlisted: Kept::default(),
            address_requests: AddressRequests::default(),
            clock,
            needs,
        }
    }

    /// The client for lists that have to be whole.
    pub(crate) fn whole(&self) -> &Client {
        &self.whole
    }

    /// A first look, or another one. If an earlier sync left jobs under way, they come to their end first.
    pub(crate) async fn look(
        &self,
        intent: &Intent,
        last: Option<Observed>,
        mut memory: Memory<Remembered, CloudStep>,
    ) -> Result<Seen, CloudError> {
        let observed = match last {
            Some(observed) => observed,
            None => {
                let underway = self.underway.with(&intent.identity().name, |jobs| jobs.clone());
                let Some(pending) = underway else {
                    return self.all(intent, memory, Vec::new()).await;
                };
                memory.own.inherits_since = Some(Instant::now());
                Observed {
                    pending,
                    ..Observed::default()
                }
            }
        };
        self.again(intent, Seen { observed, memory }).await
    }

    /// The wall time.
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Everything that the decision needs, from the beginning, with these jobs under way.
    async fn all(
        &self,
        intent: &Intent,
        mut memory: Memory<Remembered, CloudStep>,
        pending: Vec<Pending>,
    ) -> Result<Seen, CloudError> {
        let (mut observed, known) = self.beginning(intent).await?;
        if memory.own.written.is_none() {
            let uid = &intent.identity().uid;
            let before = self.unlisted.with(uid, |kept| {
                *kept = kept.take().filter(Unlisted::is_recent);
                kept.clone()
            });
            before.into_iter().for_each(|before| memory.own.follows(before));
        }
        memory.own.rules.lay_over(&mut observed.rules, |rule| &rule.id);
        observed.pending = pending;
        memory.own.known = known;
        if let Intent::Wanted(wanted) = intent {
            self.closed.with(&wanted.identity.uid, |kept| {
                kept.take_if(|(asked, _)| *asked != wanted.asked);
                let mut earlier = kept.as_ref().map_or_else(Vec::new, |(_, closed)| closed.clone());
                earlier.retain(|known| !memory.own.closed.contains(known));
                memory.own.closed.extend(earlier);
            });
        }
        self.from(intent, Seen { observed, memory }).await
    }

    /// Everything once more, after this reconcile wrote.
    pub(crate) async fn verified(
        &self,
        intent: &Intent,
        mut memory: Memory<Remembered, CloudStep>,
    ) -> Result<Seen, CloudError> {
        let (mut observed, known) = self.beginning(intent).await?;
        for (step, why) in memory.own.verify(&mut observed.rules)? {
            memory.refusals.hold(step, why);
        }
        memory.own.known = known;
        let seen = self.from(intent, Seen { observed, memory }).await?;
        let unlisted = Some(seen.memory.own.unlisted()).filter(Unlisted::is_recent);
        let uid = &intent.identity().uid;
        self.unlisted.with(uid, |kept| *kept = unlisted);
        Ok(seen)
    }

    /// A reconcile came to its end, and all is as it is wanted.
    pub(crate) fn settled(&self, intent: &Intent) {
        let uid = &intent.identity().uid;
        self.closed.with(uid, |kept| *kept = None);
        self.failures.with(uid, |kept| *kept = None);
    }

    async fn from(&self, intent: &Intent, mut seen: Seen) -> Result<Seen, CloudError> {
        let Seen { observed, memory } = &mut seen;
        memory.own.lingers = memory.own.known.released.hide(&mut observed.rules);
        self.complete(intent, &mut seen).await?;
        seen.memory.own.has_seen |= seen.shows_something();
        Ok(seen)
    }

    async fn rules_of_service(&self, identity: &Identity) -> Result<Vec<Rule>, CloudError> {
        let mut rules = self.rules.of(&identity.name).await?;
        if identity.claim.leaseweb.address.is_some() {
            let others = self.rules.of(&identity.leaseweb_name).await?;
            rules.extend(others.into_iter().filter(|rule| identity.is_own_rule(rule)));
        }
        Ok(rules)
    }

    /// The addresses that a Service claims which is removed, and the rules of others on them: they are needed whatever rules there are. What
    /// cannot be read is asked for again.
    async fn claimed_by_removed(&self, intent: &Intent) -> Observed {
        let identity = intent.identity();
        let is_own = |id: &&PublicIpId| !self.releases.of(&identity.uid).has(id);
        let ids = identity.claim.ids().filter(is_own);
        let ids = ids.filter(|_| matches!(intent, Intent::Absent(_)));
        let reads = ids.map(|id| async move {
            let read = join(self.address(id), self.rules_of_others(identity, id)).await;
            (id.clone(), read)
        });
        let mut observed = Observed::default();
        for (id, (address, others)) in join_all(reads).await {
            observed.addresses.extend(address.map(|it| (id.clone(), it)));
            observed.rules_of_others.extend(others.map(|it| (id, it)));
        }
        observed
    }

    /// The rules of the Service, with which every look begins, and what is known of it by then.
    async fn beginning(&self, intent: &Intent) -> Result<(Observed, Known), CloudError> {
        let identity = intent.identity();
        let now = self.now();
        let rules = self.rules_of_service(identity);
        let (rules, claimed) = join(rules, self.claimed_by_removed(intent)).await;
        let observed = Observed {
            rules: rules?,
            now: Some(now),
            looked: Some(Instant::now()),
            ..claimed
        };
        let mut known = Known {
            standing: self.address_requests.standing(identity, now),
            is_removal: matches!(intent, Intent::Absent(_)),
            released: self.releases.of(&identity.uid),
            persons: identity.not_own(&observed.rules),
            failures: self.failures.with(&identity.uid, |kept| kept.unwrap_or_default()),
            calls: 1,
            ..Known::default()
        };
        if let Intent::Wanted(wanted) = intent {
            known.expected = self.trust.expected(wanted);
            let name = &identity.name;
            let is_wanted = |rule: &&Rule| {
                let mut ports = wanted.ports.iter();
                let spoken = (rule.ingress(name), rule.protocol(name));
                ports.any(|port| spoken == (Some(port.ingress()), Some(port.protocol)))
            };
            let unwanted = observed.rules.iter().filter(|rule| !is_wanted(rule));
            known.unwanted = unwanted.map(|rule| rule.id.clone()).collect();
            known.may_go = self.may_go(&identity.uid);
        }
        known.is_changed = self.broken.with(&identity.uid, |seen| match intent {
            Intent::Wanted(wanted) if observed.rules.iter().any(Rule::breaks_router) => {
                *seen.get_or_insert(wanted.asked) != wanted.asked
            }
            _ => {
                *seen = None;
                false
            }
        });
        Ok((observed, known))
    }

    /// A write has its answer, if any.
    pub(crate) fn written(&self, intent: &Intent, seen: &Seen, step: &CloudStep, learned: &Learned) {
        let Identity { uid, name, .. } = intent.identity();
        // What it begins with has changed. What comes of that, its end tells.
        self.unlisted.with(uid, |kept| *kept = None);
        if let Some(request) = step.address_request() {
            self.releases.asked(uid, &request.subject);
        }
        match learned {
            Learned::Started(job) => {
                self.underway.with(name, |jobs| {
                    jobs.get_or_insert_default().push(Pending::clone(job))
                });
            }
            Learned::Gone => {
                if let Some((id, rules)) = releasing(seen, step) {
                    self.releases.gone(uid, &id, rules);
                }
            }
            Learned::Failed(failure) if step.takes_away() && !failure.is_definite => {
                let until = Instant::now() + claim::PATIENCE;
                self.unanswered.with(uid, |kept| *kept = Some(until));
            }
            _ => {}
        }
    }

    /// Whether jobs of an earlier sync are waited for longer, and nothing else is read. A Service without a rule can do nothing before its
    /// address is there.
    async fn is_worth_waiting(
        &self,
        name: &str,
        jobs: &[Pending],
        waited: Duration,
    ) -> Result<bool, CloudError> {
        if waited < INHERITED {
            return Ok(true);
        }
        let is_acquiring = jobs.iter().any(|job| job.step.address_request().is_some());
        Ok(is_acquiring && waited < STUCK && self.rules.of(name).await?.is_empty())
    }

    /// For how long something of a Service may go yet.
    fn may_go(&self, uid: &String) -> Option<Duration> {
        self.unanswered.with(uid, |until| {
            *until = until.filter(|until| *until > Instant::now());
            until.map(|until| until - Instant::now())
        })
    }

    /// Looks again at what is waited for: at the jobs, if there are any.
    async fn again(&self, intent: &Intent, mut seen: Seen) -> Result<Seen, CloudError> {
        if !seen.pending.is_empty() {
            let Identity { uid, name, .. } = intent.identity();
            let jobs = std::mem::take(&mut seen.pending);
            let releasing: Vec<_> = jobs
                .iter()
                .filter_map(|job| releasing(&seen, &job.step))
                .collect();
            jobs::poll(&self.client, intent.identity(), &jobs, &mut seen).await;
            for (id, rules) in releasing.into_iter().filter(|(id, _)| seen.is_known_absent(id)) {
                self.releases.gone(uid, &id, rules);
            }
            seen.memory.own.known.released = self.releases.of(uid);
            let failed = self.heard(intent, &jobs, &seen);
            let inherits_since = seen.memory.own.inherits_since;
            let was_inherited = match inherits_since {
                None => false,
                Some(_) if seen.pending.is_empty() => true,
                Some(since) => {
                    !self
                        .is_worth_waiting(name, &seen.pending, since.elapsed())
                        .await?
                }
            };
            if was_inherited {
                seen.observed.pending.retain(|job| job.step.takes_away());
            }
            let left = (!seen.pending.is_empty()).then(|| seen.pending.clone());
            self.underway.with(name, |jobs| *jobs = left);
            // It is asked for again by the schedule, whoever asked for it.
            if let Some(failed) = failed.filter(|_| was_inherited) {
                return Err(failed);
            }
            if was_inherited {
                seen.memory.own = Remembered {
                    closed: seen.memory.own.closed,
                    ..Remembered::default()
                };
                return self.all(intent, seen.memory, seen.observed.pending).await;
            }
            if inherits_since.is_none() {
                self.complete(intent, &mut seen).await?;
            }
            return Ok(seen);
        }
        if !(self.needs)(intent, &seen).is_empty() {
            self.complete(intent, &mut seen).await?;
            return Ok(seen);
        }
        if let Some(failure) = &seen.memory.own.failure {
            if let Intent::Wanted(wanted) = intent {
                let closed = &seen.memory.own.closed;
                let closed = (!closed.is_empty()).then(|| (wanted.asked, closed.clone()));
                self.closed.with(&wanted.identity.uid, |kept| *kept = closed);
                self.failures
                    .with(&wanted.identity.uid, |kept| *kept.get_or_insert_default() += 1);
            }
            return Err(failure.error.clone());
        }
        // A port serves without its policy.
        let mut unreadable = seen.observed.unreadable.iter();
        if let Some((_, error)) = unreadable.find(|(need, _)| !matches!(need, Need::Policies(_))) {
            return Err(error.clone());
        }
        if seen.memory.own.on_the_way.longest(seen.known_addresses()) >= PATIENCE + LOOK {
            return Err(CloudError::transient(format!(
                "{}: a public IP is still being acquired or released",
                jobs::TIMEOUT
            )));
        }
        seen.memory.own.look_again();
        self.all(intent, seen.memory, Vec::new()).await
    }

    /// Jobs by which an address is acquired came to their end; why the API did not acquire one.
    fn heard(&self, intent: &Intent, jobs: &[Pending], observed: &Seen) -> Option<CloudError> {
        let failure = observed.memory.own.failure.as_ref()?;
        let uid = &intent.identity().uid;
        let mut failed = None;
        for pending in jobs {
            if let Some(request) = pending.step.address_request()
                && observed.pending.iter().all(|left| left.job != pending.job)
            {
                match failure.is_definite {
                    true => {
                        self.address_requests.failed(uid, &request);
                        failed = Some(failure.error.clone());
                    }
                    false => self.address_requests.asked(uid, &request),
                }
            }
        }
        failed
    }

    /// Reads until the decision has all that it needs.
    async fn complete(&self, intent: &Intent, observed: &mut Seen) -> Result<(), CloudError> {
        for _ in 0..MAX_ROUNDS {
            let waited = observed.memory.waited_in_all();
            observed
                .observed
                .time(&mut observed.memory.own.on_the_way, waited);
            let mut needs = (self.needs)(intent, observed);
            if needs.is_empty() {
                break;
            }
            let calls = |needs: &BTreeSet<Need>| needs.iter().filter(|need| self.is_call(need)).count();
            if let Intent::Wanted(wanted) = intent {
                let calls = observed.memory.own.known.calls + calls(&needs);
                self.trust.trust(wanted, observed, &mut needs, calls);
            }
            observed.memory.own.known.calls += calls(&needs);
            let facts = needs
                .iter()
                .map(|need| self.read_or_leave(intent, observed, need));
            for (need, read) in needs.iter().zip(join_all(facts).await) {
                let is_failing = observed.memory.own.failure.is_some();
                match read {
                    Ok(fact) => see(observed, fact),
                    // Then more would be too much as well. But it does not hide what failed first.
                    Err(error) if matches!(error.kind(), ErrorKind::Throttled { .. }) && !is_failing => {
                        return Err(error);
                    }
                    Err(error) => see(observed, Fact::Unreadable(need.clone(), error)),
                }
            }
        }
        if let Intent::Wanted(wanted) = intent {
            self.trust.remember(wanted, observed);
        }
        Ok(())
    }

    /// Whether it takes a call to know it.
    fn is_call(&self, need: &Need) -> bool {
        match need {
            Need::Abilities => false,
            Need::Network(id) => !self.virtual_machines.knows(id),
            _ => true,
        }
    }

    /// Reads; what a removal needs only to close ports may fail.
    async fn read_or_leave(
        &self,
        intent: &Intent,
        observed: &Observed,
        need: &Need,
    ) -> Result<Fact, CloudError> {
        let fact = self.read(intent, observed, need).await;
        match (need.opened(), fact) {
            (Some(id), Err(error))
                if matches!(intent, Intent::Absent(_))
                    && !matches!(error.kind(), ErrorKind::Throttled { .. }) =>
            {
                Ok(Fact::Unlisted(id.to_owned(), error))
            }
            (_, fact) => fact,
        }
    }

    async fn read(&self, intent: &Intent, observed: &Observed, need: &Need) -> Result<Fact, CloudError> {
        let identity = intent.identity();
        Ok(match need {
            Need::Abilities => Fact::Abilities(self.version.current().await?.abilities()),
            Need::Instances => {
                let instances = self.virtual_machines.members();
                Fact::Instances(saying("error retrieving list of hosts", instances).await?)
            }
            Need::Network(id) => Fact::Network(id.clone(), self.network(id).await?),
            Need::Address(id) => Fact::Address(id.clone(), self.address_of(identity, id).await?),
            Need::LookedUp(ip) => {
                let query = PublicIpQuery::Address(ip.clone());
                Fact::LookedUp(ip.clone(), self.addresses(&query).await?)
            }
            // Those that lead to the network, or to the VPC of which it is a tier, and those on their way that do not tell where to.
            Need::Recovered(id) => {
                let mut found = self.addresses(&PublicIpQuery::Allocated).await?;
                if let Some(network) = observed.known_network(id) {
                    found.retain(|address| address.is_near(network) || address.is_underway_anywhere());
                }
                Fact::Recovered(id.clone(), found)
            }
            Need::RulesOfOthers(address) => {
                Fact::RulesOfOthers(address.clone(), self.rules_of_others(identity, address).await?)
            }
            Need::Neighbours(network) => {
                Fact::Neighbours(network.clone(), self.neighbours(intent, observed, network).await?)
            }
            Need::Firewall(id) => Fact::Firewall(id.clone(), self.firewall(id).await?),
            Need::Members(rule) => {
                let members = members_of(&self.client, rule);
                let failure = format!("error retrieving associated instances of load balancer rule {rule}");
                let members = saying(&failure, members).await?;
                Fact::Members(rule.clone(), members)
            }
            Need::Policies(rule) => {
                let policies = self.client.stickiness_policies(rule);
                let port = observed
                    .rules
                    .iter()
                    .find(|it| it.id == *rule)
                    .and_then(|it| it.public_port);
                let port = port.map_or(String::new(), |port| format!(" of port {port}"));
                let failure =
                    format!("error retrieving stickyness policies of load balancer rule {rule}{port}");
                let policies = saying(&failure, policies).await?;
                Fact::Policies(rule.clone(), policies)
            }
        })
    }

    /// An address as it is a Service's. One that it gave back is not, whatever is listed under the ID.
    async fn address_of(&self, identity: &Identity, id: &PublicIpId) -> Result<Option<Address>, CloudError> {
        match self.releases.of(&identity.uid).has(id) {
            true => Ok(None),
            false => self.address(id).await,
        }
    }

    async fn address(&self, id: &PublicIpId) -> Result<Option<Address>, CloudError> {
        let address = saying("error retrieving IP address", self.client.public_ip_address(id)).await?;
        Ok(address.as_ref().map(wire::address))
    }

    /// The rules of a firewall. The API lists none of an address that is on its way, or nobody's: then none is in force.
    async fn firewall(&self, id: &FirewallId) -> Result<FirewallList, CloudError> {
        let rules = firewall_of(&self.client, id).await;
        if let (FirewallId::Address(address), Err(error)) = (id, &rules)
            && error.said.is_some()
            && matches!(error.class, Class::Invalid | Class::NotFound)
        {
            let address = self.address(address).await?;
            if address.is_none_or(|address| address.state != AddressState::Allocated) {
                return Ok(FirewallList::default());
            }
        }
        let failure = match id {
            FirewallId::Address(id) => format!("error fetching firewall rules for public IP {id}"),
            FirewallId::Acl(id) => format!("error fetching Network ACL with ID: {id}"),
        };
        saying(&failure, async { rules }).await
    }

    async fn addresses(&self, query: &PublicIpQuery) -> Result<Vec<Address>, CloudError> {
        let found = self.client.public_ip_addresses(query);
        let found = saying("error retrieving IP address", found).await?;
        Ok(found.iter().map(wire::address).collect())
    }

    /// A network; none if the API says that there is none.
    async fn network(&self, id: &NetworkId) -> Result<Option<Arc<Network>>, CloudError> {
        let network = saying("error retrieving network", self.virtual_machines.network(id)).await?;
        let Some(network) = network else {
            return Ok(None);
        };
        let mut name = network.acl_list_name.clone();
        if let (Some(list), None) = (&network.acl_list_id, &name) {
            let failure = format!("error fetching Network ACL List with ID: {list}");
            let list = saying(&failure, self.client.network_acl_list(list)).await?;
            name = list.map(|list| list.name);
        }
        Ok(Some(wire::network(&network, name)))
    }
}

/// The address that a step releases, and the Service's rules that go with it.
fn releasing(seen: &Seen, step: &CloudStep) -> Option<(PublicIpId, Vec<RuleId>)> {
    let CloudStep::Release { address, .. } = step else {
        return None;
    };
    let rules = seen.rules.iter().filter(|rule| rule.address.id == address.id);
    Some((address.id.clone(), rules.map(|rule| rule.id.clone()).collect()))
}
