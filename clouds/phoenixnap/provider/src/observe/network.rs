//! The public network of Services, as far as it is known. Nothing depends on it: what it says makes a refusal come before a
//! purchase, and tells people what does not fit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_phoenixnap_client::{Class, Client, PublicNetwork};
use bowline_plan::Said;
use tokio::time::{Instant, timeout};

/// How long a purchase waits for what might forbid it. The read goes on without it: the [watch](crate::watch) waits too.
const PATIENCE: Duration = Duration::from_secs(1);

/// How old what is known becomes: servers come into the network and take addresses.
pub(crate) const AGE: Duration = Duration::from_secs(3600);

/// The subject of a failed read.
const UNREADABLE: &str = "unreadable";

/// The network; or what the API says where it does not exist, or is not the account's. Nothing could be attached to that.
pub(crate) type Shown = Result<Arc<PublicNetwork>, Arc<str>>;

/// The public network.
pub(crate) struct Network {
    facts: Arc<Facts>,
    /// One read at a time: whoever asks meanwhile waits for that one. `None`: it told nothing.
    read: SharedRead<Option<Shown>>,
}

struct Facts {
    client: Client,
    id: String,
    /// Where blocks are bought, if that is the same for all Services.
    location: Option<String>,
    known: Mutex<Option<Known>>,
    said: Mutex<Said>,
}

#[derive(Clone)]
struct Known {
    network: Arc<PublicNetwork>,
    read: Instant,
    /// Of the credentials: others may be of an account that does not see the network, and blocks would be bought there.
    generation: u64,
}

impl Network {
    pub(crate) fn new(client: &Client, id: String, location: Option<String>) -> Self {
        let facts = Arc::new(Facts {
            client: client.clone(),
            id,
            location,
            known: Mutex::default(),
            said: Mutex::default(),
        });
        let read = SharedRead::single(
            SharedRead::<()>::INTERVAL,
            &facts,
            |facts: Arc<Facts>| async move { facts.read().await },
        );
        Self { facts, read }
    }

    /// What is known, without a call.
    pub(crate) fn known(&self) -> Option<Arc<PublicNetwork>> {
        self.facts.known().map(|known| known.network)
    }

    /// What is known; if that is nothing, what a read tells within a moment.
    pub(crate) async fn in_a_moment(&self) -> Option<Shown> {
        match self.known() {
            Some(network) => Some(Ok(network)),
            None => timeout(PATIENCE, self.read.ask()).await.ok().flatten(),
        }
    }

    /// Reads it, however long that takes, unless what is known is new enough.
    pub(crate) async fn refresh(&self) {
        let is_fresh = |known: Known| known.read.elapsed() < AGE;
        if !self.facts.known().is_some_and(is_fresh) {
            self.read.ask().await;
        }
    }
}

impl Facts {
    fn known(&self) -> Option<Known> {
        let generation = self.client.generation();
        let known = lock(&self.known).clone();
        known.filter(|known| known.generation == generation)
    }

    /// One read. Why it fails is told once, until it succeeds or fails for another reason.
    async fn read(&self) -> Option<Shown> {
        // Before: those that the answer came with are at least as new.
        let generation = self.client.generation();
        match self.client.public_network(&self.id).await {
            Ok(network) => {
                lock(&self.said).over(UNREADABLE);
                let network = Arc::new(network);
                let known = Known {
                    network: Arc::clone(&network),
                    read: Instant::now(),
                    generation,
                };
                let before = lock(&self.known).replace(known);
                if before.is_none_or(|before| before.network.location != network.location) {
                    self.tell(&network);
                }
                Some(Ok(network))
            }
            Err(error) => {
                let text = error.to_string();
                if lock(&self.said).is_news(UNREADABLE, &text) {
                    tracing::warn!(
                        network = self.id,
                        err = text,
                        "The public network of Services cannot be read"
                    );
                }
                // Only 403 is a word of the API about this network: one that does not know the path answers 404.
                (error.class == Class::Denied).then(|| Err(text.into()))
            }
        }
    }

    fn tell(&self, network: &PublicNetwork) {
        tracing::info!(
            network = network.id,
            name = network.name,
            location = network.location.as_deref().unwrap_or_default(),
            vlan = network.vlan_id,
            "Public network of Services"
        );
        if let (Some(wanted), Some(location)) = (&self.location, &network.location)
            && !wanted.eq_ignore_ascii_case(location)
        {
            tracing::warn!(
                network = network.id,
                "The public network is in {location}, and IP blocks are to be bought in {wanted}: none of them could be attached"
            );
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
