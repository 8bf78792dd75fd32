//! The reads. What several ask for at the same time is read once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{
    AclListId, ApiError, Client, ErrorKind, FirewallRule as FirewallRuleOnWire, IpState, NetworkAcl,
    NetworkAclQuery, PublicIpQuery, RuleId, RuleQuery,
};
use futures::future::try_join_all;

use super::declined::DeclinedRules;
use super::trust::Trust;
use super::{LOOK, Need, Observed, PATIENCE, jobs, wire};
use crate::error::cloud_error;
use crate::intent::{Identity, Intent};
use crate::machines::Machines;
use crate::names;
use crate::objects::{
    Abilities, AclItem, AclRef, Address, AddressRef, AddressState, FirewallRule, Machine, Network, Opening,
    Rule,
};
use crate::planning;
use crate::version::{ServerVersion, Version};

/// The first version whose rules take a list of networks.
const TAKES_CIDRS: Version = Version::new(4, 18, 0);

/// The first version that changes the list of networks of a rule.
const CHANGES_CIDRS: Version = Version::new(4, 22, 0);

/// More rounds than any decision takes: what is read in one tells what is needed in the next.
const MAX_ROUNDS: usize = 16;

/// Reads from the API.
pub(crate) struct Reads {
    /// For what the Service itself has: what is listed counts.
    client: Client,
    /// For what others have, and must not lose.
    whole: Client,
    machines: Arc<Machines>,
    version: ServerVersion,
    /// Free addresses that Services of this process chose and may not have written down yet: UIDs and IDs.
    reserved: Mutex<BTreeMap<String, String>>,
    trust: Trust,
    declined: DeclinedRules,
}

/// Something that was read.
enum Fact {
    Abilities(Abilities),
    Machines(Arc<Vec<Machine>>),
    Network(String, Option<Arc<Network>>),
    Address(String, Option<Address>),
    LookedUp(String, Vec<Address>),
    Candidates(Vec<AddressRef>),
    Recovered(Vec<Address>),
    Strangers(String, Vec<Rule>),
    Neighbours(String, Vec<Rule>),
    Firewall(String, Vec<FirewallRule>),
    Acl(String, Vec<AclItem>),
    Members(String, BTreeSet<String>),
}

impl Reads {
    pub(crate) fn new(client: &Client, machines: Arc<Machines>, version: ServerVersion) -> Self {
        Self {
            client: client.taking_short_lists(),
            whole: client.clone(),
            machines,
            version,
            reserved: Mutex::default(),
            trust: Trust::default(),
            declined: DeclinedRules::default(),
        }
    }

    /// Everything that the decision needs, from the beginning. Of an earlier look only what this reconcile did is kept.
    pub(crate) async fn all(&self, intent: &Intent, seen: Option<&Observed>) -> Result<Observed, CloudError> {
        let mut observed = self.beginning(intent).await?;
        if let Some(seen) = seen {
            observed.refused.clone_from(&seen.refused);
            observed.made.clone_from(&seen.made);
            observed.made_up = seen.made_up;
            observed.looks = seen.looks + 1;
        }
        self.complete(intent, &mut observed).await?;
        Ok(observed)
    }

    /// The rules of the Service, with which every look begins.
    async fn beginning(&self, intent: &Intent) -> Result<Observed, CloudError> {
        let identity = intent.identity();
        let rules = rules_of(&self.client, &identity.name).await;
        let mut observed = Observed {
            rules: rules.map_err(context("error retrieving load balancer rules"))?,
            calls: 1,
            ..Observed::default()
        };
        if let Intent::Wanted(wanted) = intent {
            observed.expected = self.trust.expected(wanted);
            observed.declined = self.declined.of(wanted);
        }
        if matches!(intent, Intent::Absent(_)) || !observed.rules.is_empty() {
            lock(&self.reserved).remove(&identity.uid);
        }
        Ok(observed)
    }

    /// Everything once more, after this reconcile wrote.
    pub(crate) async fn verified(&self, intent: &Intent, seen: &Observed) -> Result<Observed, CloudError> {
        let mut observed = self.beginning(intent).await?;
        observed.check_written(seen)?;
        observed.gone.clone_from(&seen.gone);
        observed.opened.clone_from(&seen.opened);
        self.complete(intent, &mut observed).await?;
        Ok(observed)
    }

    /// Looks again at what is waited for: at the jobs, if there are any.
    pub(crate) async fn again(&self, intent: &Intent, seen: &Observed) -> Result<Observed, CloudError> {
        if !seen.pending.is_empty() {
            let mut observed = jobs::poll(&self.client, &intent.identity().name, seen).await;
            self.complete(intent, &mut observed).await?;
            return Ok(observed);
        }
        if !planning::needs(intent, seen).is_empty() {
            let mut observed = seen.clone();
            self.complete(intent, &mut observed).await?;
            return Ok(observed);
        }
        match &seen.failure {
            Some(failure) => {
                if let Intent::Wanted(wanted) = intent {
                    self.declined.remember(wanted, seen);
                }
                Err(failure.error.clone())
            }
            None if seen.has_waited(PATIENCE + LOOK) => Err(CloudError::transient(format!(
                "{}: a public IP is still being acquired or given back",
                jobs::TIMEOUT
            ))),
            None => self.all(intent, Some(seen)).await,
        }
    }

    /// Reads until the decision has all that it needs.
    async fn complete(&self, intent: &Intent, observed: &mut Observed) -> Result<(), CloudError> {
        for _ in 0..MAX_ROUNDS {
            let mut needs = planning::needs(intent, observed);
            if needs.is_empty() {
                break;
            }
            if let Intent::Wanted(wanted) = intent {
                let is_other = |need: &&Need| !matches!(need, Need::Members(_)) && self.is_call(need);
                let calls = observed.calls + needs.iter().filter(is_other).count();
                self.trust.trust(wanted, observed, &mut needs, calls);
            }
            observed.calls += needs.iter().filter(|need| self.is_call(need)).count();
            let facts = needs.iter().map(|need| self.read(intent, observed, need));
            for fact in try_join_all(facts).await? {
                add(observed, fact);
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
            Need::Network(id) => !self.machines.knows(&id.as_str().into()),
            _ => true,
        }
    }

    async fn read(&self, intent: &Intent, observed: &Observed, need: &Need) -> Result<Fact, CloudError> {
        let identity = intent.identity();
        Ok(match need {
            Need::Abilities => Fact::Abilities(self.abilities().await?),
            Need::Machines => {
                let machines = self.machines.with_networks().await;
                let machines = machines.map_err(|error| error.context("error retrieving list of hosts"))?;
                Fact::Machines(Arc::new(machines.machines().iter().map(wire::machine).collect()))
            }
            Need::Network(id) => Fact::Network(id.clone(), self.network(id).await?),
            Need::Address(id) => {
                let address = self.client.public_ip_address(&id.as_str().into()).await;
                let address = address.map_err(context("error retrieving IP address"))?;
                Fact::Address(id.clone(), address.as_ref().map(wire::address))
            }
            Need::LookedUp(ip) => {
                let query = PublicIpQuery {
                    address: Some(ip.clone()),
                    free_too: true,
                    ..PublicIpQuery::default()
                };
                let found = self
                    .addresses(&query)
                    .await
                    .map_err(context("error retrieving IP address"))?;
                Fact::LookedUp(ip.clone(), found)
            }
            Need::Candidates(network) => {
                Fact::Candidates(self.candidates(identity, observed, network).await?)
            }
            Need::Recovered(network) => Fact::Recovered(self.recovered(observed, network).await?),
            Need::Strangers(address) => {
                Fact::Strangers(address.clone(), self.strangers(identity, address).await?)
            }
            Need::Neighbours(network) => {
                Fact::Neighbours(network.clone(), self.neighbours(intent, observed, network).await?)
            }
            Need::Firewall(address) => {
                let rules = firewall_of(&self.client, address).await;
                let failure = format!("error fetching firewall rules for public IP {address}");
                Fact::Firewall(address.clone(), rules.map_err(context(&failure))?)
            }
            Need::Acl(list) => {
                let items = acl_items(&self.client, list).await;
                let items = items.map_err(context(&format!("error fetching Network ACL with ID: {list}")))?;
                Fact::Acl(list.clone(), items)
            }
            Need::Members(rule) => {
                let members = members_of(&self.client, rule).await;
                Fact::Members(
                    rule.clone(),
                    members.map_err(context("error retrieving associated instances"))?,
                )
            }
        })
    }

    async fn abilities(&self) -> Result<Abilities, CloudError> {
        let version = self.version.current().await?;
        Ok(Abilities {
            takes_cidrs: (version != Version::OLD).then(|| version >= TAKES_CIDRS),
            changes_cidrs: version >= CHANGES_CIDRS,
        })
    }

    async fn addresses(&self, query: &PublicIpQuery) -> Result<Vec<Address>, ApiError> {
        let found = self.client.public_ip_addresses(query).await?;
        Ok(found.iter().map(wire::address).collect())
    }

    /// A network; none if the API says that there is none.
    async fn network(&self, id: &str) -> Result<Option<Arc<Network>>, CloudError> {
        let network = self.machines.network(&id.into()).await;
        let Some(network) = network.map_err(|error| error.context("error retrieving network"))? else {
            return Ok(None);
        };
        let mut name = network.acl_list_name.clone();
        if let (Some(list), None) = (&network.acl_list_id, &name) {
            let failure = format!("error fetching Network ACL List with ID: {list}");
            let list = self
                .client
                .network_acl_list(list)
                .await
                .map_err(context(&failure))?;
            name = list.map(|list| list.name);
        }
        Ok(Some(wire::network(&network, name)))
    }

    /// Free addresses of the network's zone. What the Service claims already comes first, then the server's own order counts.
    /// Empty if the account may not see free ones.
    async fn candidates(
        &self,
        identity: &Identity,
        observed: &Observed,
        network: &str,
    ) -> Result<Vec<AddressRef>, CloudError> {
        let zone = observed
            .networks
            .get(network)
            .and_then(Option::as_ref)
            .map(|network| network.zone.clone());
        let zone = zone.filter(|zone| !zone.is_empty());
        let query = PublicIpQuery {
            free_too: true,
            state: Some(IpState::Free),
            zone: zone.as_deref().map(Into::into),
            ..PublicIpQuery::default()
        };
        let found = match self.addresses(&query).await {
            Ok(found) => found,
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::CommandUnavailable | ErrorKind::Forbidden | ErrorKind::Invalid
                ) =>
            {
                tracing::debug!(err = %error, "free addresses cannot be listed");
                Vec::new()
            }
            Err(error) => return Err(context("error retrieving IP address")(error)),
        };
        let others = identity.claims_of_others();
        let mut reserved = lock(&self.reserved);
        let is_open = |address: &Address| {
            let id = &address.address.id;
            address.state == AddressState::Free
                && zone
                    .as_ref()
                    .is_none_or(|zone| address.zone.is_empty() || address.zone == *zone)
                && !others.iter().any(|(_, claim)| claim.names(id))
                && !identity.is_requested_by_others(&address.address.ip)
                && !reserved
                    .iter()
                    .any(|(uid, taken)| taken == id && *uid != identity.uid)
        };
        let mut open: Vec<AddressRef> = found
            .iter()
            .filter(|address| is_open(address))
            .map(|address| address.address.clone())
            .collect();
        open.sort_by_key(|address| !identity.claim.names(&address.id)); // stable
        if let Some(first) = open
            .iter()
            .find(|address| !observed.refused.contains(&address.id))
        {
            reserved.insert(identity.uid.clone(), first.id.clone());
        }
        Ok(open)
    }

    /// The addresses that lead to a network, or to the VPC of which it is a tier, and those that are on their way and do not tell
    /// where to.
    async fn recovered(&self, observed: &Observed, network: &str) -> Result<Vec<Address>, CloudError> {
        let found = self.addresses(&PublicIpQuery::default()).await;
        let mut found = found.map_err(context("error retrieving IP address"))?;
        if let Some(Some(network)) = observed.networks.get(network) {
            found.retain(|address| address.is_of(network) || address.is_underway_anywhere());
        }
        Ok(found)
    }

    /// The rules of others on an address.
    pub(crate) async fn strangers(
        &self,
        identity: &Identity,
        address: &str,
    ) -> Result<Vec<Rule>, CloudError> {
        let query = RuleQuery {
            public_ip: Some(address.into()),
            ..RuleQuery::default()
        };
        let mut others = self.others(identity, &query).await?;
        others.retain(|rule| rule.address.id.is_empty() || rule.address.id == address);
        Ok(others)
    }

    async fn others(&self, identity: &Identity, query: &RuleQuery) -> Result<Vec<Rule>, CloudError> {
        let rules = self.whole.load_balancer_rules(query).await;
        let rules = rules.map_err(context("error retrieving load balancer rules"))?;
        let is_own = |rule: &Rule| names::parse_rule(&identity.name, &rule.name).is_some();
        Ok(rules
            .iter()
            .map(wire::rule)
            .filter(|rule| !is_own(rule))
            .collect())
    }

    /// The rules of others that rely on an item of an ACL list, in all networks behind it. `items` are all that the list holds.
    pub(crate) async fn users_of(
        &self,
        identity: &Identity,
        list: &AclRef,
        item: &AclItem,
        items: &[AclItem],
    ) -> Result<Vec<Rule>, CloudError> {
        let mut users = Vec::new();
        for rule in self.others(identity, &RuleQuery::default()).await? {
            if !rule.network.is_empty()
                && identity.is_relied_on(item, items, &rule)
                && let Some(network) = self.network(&rule.network).await?
                && network.acl.as_ref().is_some_and(|acl| acl.id == list.id)
            {
                users.push(rule);
            }
        }
        Ok(users)
    }

    /// Rules of others on the ports in question, in all networks behind the same ACL list.
    async fn neighbours(
        &self,
        intent: &Intent,
        observed: &Observed,
        network: &str,
    ) -> Result<Vec<Rule>, CloudError> {
        let identity = intent.identity();
        let list = match observed.networks.get(network).and_then(Option::as_ref) {
            Some(network) => network.acl.clone(),
            None => None,
        };
        let mut ports: BTreeSet<Opening> = observed
            .rules
            .iter()
            .filter_map(|rule| rule.opening(&identity.name))
            .chain(identity.replaced.ports().map(|port| port.opening))
            .collect();
        if let Intent::Wanted(wanted) = intent {
            ports.extend(wanted.openings());
        }
        let mut neighbours = Vec::new();
        for rule in self.others(identity, &RuleQuery::default()).await? {
            if !rule.opening("").is_some_and(|opening| ports.contains(&opening)) {
                continue;
            }
            let is_behind = rule.network == network
                || (!rule.network.is_empty()
                    && list.is_some()
                    && self
                        .network(&rule.network)
                        .await?
                        .is_some_and(|other| other.acl == list));
            if is_behind {
                neighbours.push(rule);
            }
        }
        Ok(neighbours)
    }
}

/// The rules that bear the name of a balancer. The API's search finds more.
pub(crate) async fn rules_of(client: &Client, balancer: &str) -> Result<Vec<Rule>, ApiError> {
    let query = RuleQuery {
        keyword: Some(balancer.to_owned()),
        ..RuleQuery::default()
    };
    let rules = client.load_balancer_rules(&query).await?;
    let is_own = |rule: &Rule| names::parse_rule(balancer, &rule.name).is_some();
    Ok(rules.iter().map(wire::rule).filter(is_own).collect())
}

/// The firewall of an address: its rules for a single port.
pub(crate) async fn firewall_of(client: &Client, address: &str) -> Result<Vec<FirewallRule>, ApiError> {
    let rules = client.firewall_rules(&address.into()).await?;
    // Whatever else a server sends, only this address was asked for.
    let is_of =
        |rule: &&FirewallRuleOnWire| rule.public_ip_id.as_ref().is_none_or(|id| id.as_str() == address);
    Ok(rules
        .iter()
        .filter(is_of)
        .filter_map(wire::firewall_rule)
        .collect())
}

/// The members of a rule.
pub(crate) async fn members_of(client: &Client, rule: &str) -> Result<BTreeSet<String>, ApiError> {
    let members = client.load_balancer_rule_instances(&RuleId::from(rule)).await?;
    Ok(members
        .iter()
        .map(|machine| machine.id.as_str().to_owned())
        .collect())
}

/// The items of an ACL list that let a single port in.
pub(crate) async fn acl_items(client: &Client, list: &str) -> Result<Vec<AclItem>, ApiError> {
    let query = NetworkAclQuery {
        list: Some(AclListId::from(list)),
        ..NetworkAclQuery::default()
    };
    let items = client.network_acls(&query).await?;
    let is_of = |item: &&NetworkAcl| item.list_id.as_ref().is_none_or(|id| id.as_str() == list);
    Ok(items.iter().filter(is_of).filter_map(wire::acl_item).collect())
}

fn add(observed: &mut Observed, fact: Fact) {
    match fact {
        Fact::Abilities(abilities) => observed.abilities = Some(abilities),
        Fact::Machines(machines) => observed.machines = Some(machines),
        Fact::Network(id, network) => {
            observed.networks.insert(id, network);
        }
        Fact::Address(id, address) => {
            observed.addresses.insert(id, address);
        }
        Fact::LookedUp(ip, found) => {
            observed.looked_up.insert(ip, found);
        }
        Fact::Candidates(candidates) => observed.candidates = Some(candidates),
        Fact::Recovered(found) => observed.recovered = Some(found),
        Fact::Strangers(id, rules) => {
            observed.strangers.insert(id, rules);
        }
        Fact::Neighbours(id, rules) => {
            observed.neighbours.insert(id, rules);
        }
        Fact::Firewall(id, rules) => observed.see_firewall(&id, rules),
        Fact::Acl(id, items) => observed.see_acl(&id, items),
        Fact::Members(id, members) => {
            observed.members.insert(id, members);
        }
    }
}

fn context(prefix: &str) -> impl Fn(ApiError) -> CloudError + '_ {
    move |error| cloud_error(&error).context(prefix)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
