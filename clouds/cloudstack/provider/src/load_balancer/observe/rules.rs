//! The rules of balancers, with which every look begins. What several ask for at the same time is read in one list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{Client, RuleQuery};
use futures::future::join_all;

use super::lists::rules_of;
use super::lists::saying;
use super::wire;
use crate::load_balancer::names;
use crate::load_balancer::objects::Rule;

/// How long a list waits for others who want it: a new Node concerns all Services, some milliseconds apart.
const GATHER: Duration = Duration::from_millis(25);

/// How many rules come with one call (CloudStack's `default.page.size`).
const PAGE: usize = 500;

/// Reads the rules of balancers.
pub(super) struct BalancerRules {
    source: Arc<Source>,
    shared: SharedRead<Arc<Answer>>,
}

struct Source {
    /// For one balancer: what is listed counts.
    client: Client,
    /// For all, of which none must be missing.
    whole: Client,
    /// The names of the balancers that the next list is for.
    asked: Mutex<BTreeSet<String>>,
    /// How many rules there are in all, as far as is known.
    all: AtomicUsize,
}

enum Answer {
    /// All rules that the keys see.
    All(Vec<Rule>),
    /// Those of some balancers, by name.
    Some(BTreeMap<String, Result<Vec<Rule>, CloudError>>),
}

impl BalancerRules {
    pub(super) fn new(client: &Client) -> Self {
        let source = Arc::new(Source {
            client: client.taking_short_lists(),
            whole: client.clone(),
            asked: Mutex::default(),
            all: AtomicUsize::new(0),
        });
        let shared = SharedRead::listing(GATHER, &source, |source: Arc<Source>| async move {
            Arc::new(source.read().await)
        });
        Self { source, shared }
    }

    /// The rules that bear the name of a balancer.
    pub(super) async fn of(&self, balancer: &str) -> Result<Vec<Rule>, CloudError> {
        self.source.asked().insert(balancer.to_owned());
        match &*self.shared.ask().await {
            Answer::All(rules) => {
                let is_own = |rule: &&Rule| names::is_rule(balancer, &rule.name);
                Ok(rules.iter().filter(is_own).cloned().collect())
            }
            Answer::Some(lists) => match lists.get(balancer) {
                Some(list) => list.clone(),
                // The list before began right after the name was noted.
                None => self.source.one(balancer).await,
            },
        }
    }
}

impl Source {
    async fn read(&self) -> Answer {
        let asked = std::mem::take(&mut *self.asked());
        let pages = self.all.load(Ordering::Relaxed) / PAGE + 1;
        if asked.len() > pages {
            match self.whole.load_balancer_rules(&RuleQuery::All).await {
                Ok(rules) => {
                    self.all.store(rules.len(), Ordering::Relaxed);
                    return Answer::All(rules.iter().map(wire::rule).collect());
                }
                Err(error) => tracing::debug!(err = %error, "Not all rules can be listed at once"),
            }
        }
        let lists = join_all(asked.iter().map(|balancer| self.one(balancer))).await;
        Answer::Some(asked.into_iter().zip(lists).collect())
    }

    async fn one(&self, balancer: &str) -> Result<Vec<Rule>, CloudError> {
        let rules = rules_of(&self.client, balancer);
        saying("error retrieving load balancer rules", rules).await
    }

    fn asked(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
