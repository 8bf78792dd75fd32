//! Which Services are looked at, and why. What is done is decided when it is.

use std::sync::PoisonError;
use std::time::Duration;

use bowline_cloud_provider::{AddressNote, Service, ServiceKey, facts};
use bowline_kube_io::Change;

use super::causes::Causes;
use super::fights::Fights;
use super::{Key, ServiceController};

/// Time between two checks of all balancers against the cloud.
const VERIFY_PERIOD: Duration = Duration::from_secs(10 * 60);

impl ServiceController {
    /// Asks for a sync of a Service, and notes why.
    pub(super) fn enqueue(&self, key: &ServiceKey, causes: Causes) {
        self.tracked(key, |tracked| tracked.add_causes(causes));
        self.news.notify_waiters();
        self.queue.add(Key::Service(key.clone()));
    }

    /// A Service changed. Decides only whether it is looked at; what is done is decided when it is.
    pub(super) fn on_service(&self, change: &Change<Service>) {
        match change {
            Change::Added(service) => {
                let key = ServiceKey::of(service);
                let is_foreign = !self.classes().served(service);
                self.tracked(&key, |tracked| tracked.is_foreign = is_foreign);
                if facts::needs_cleanup(service) {
                    self.enqueue(&key, Causes::CHANGED);
                } else if self.classes().wants_load_balancer(service) {
                    // One that was ensured before, by us or by another manager, is only checked: no news, no events. One
                    // that was begun before is gone on with: its beginning was said.
                    let (is_begun, is_ensured) = (
                        facts::has_finalizer(service),
                        !facts::published_addresses(service).is_empty(),
                    );
                    let causes = match (is_begun, is_ensured) {
                        (false, _) => Causes::CHANGED,
                        (true, true) => Causes::VERIFY,
                        (true, false) => {
                            self.tracked(&key, |tracked| tracked.state.was_begun_before());
                            Causes::RETRY
                        }
                    };
                    self.enqueue(&key, causes);
                } else {
                    self.forget_unused(&key);
                }
            }
            Change::Updated { old, new } => {
                let key = ServiceKey::of(new);
                let classes = self.classes();
                let now = self.ctx.kube.clock().now();
                let (asked, is_waited_for) = self.tracked(&key, |tracked| {
                    if classes.wants_load_balancer(old) && !classes.wants_load_balancer(new) {
                        tracked.used = AddressNote::in_use(old, now);
                    }
                    // The API server clears a class with the type; the balancer stays whose it was. One that asks for a
                    // balancer says by its class whom it asks.
                    if facts::is_type(new, "LoadBalancer") {
                        tracked.is_foreign = !classes.serves(new);
                    }
                    let asked = tracked.asked(classes, old, new);
                    tracked.keep_newest(classes, new);
                    (asked, tracked.state.waits_for_news())
                });
                if classes.wants_load_balancer(old) != classes.wants_load_balancer(new) {
                    // How often the opposite has failed says nothing about this.
                    self.queue.forget(&Key::Service(key.clone()));
                }
                let begins_cleanup = facts::needs_cleanup(new) && !facts::needs_cleanup(old);
                if let Some(after) = asked.put_back {
                    self.queue.add_after(Key::PutBack(key.clone()), after);
                }
                if asked.sync || begins_cleanup {
                    self.enqueue(&key, Causes::CHANGED);
                } else if is_waited_for {
                    self.queue.add(Key::Service(key)); // it goes on where it was interrupted
                } else if let Some(after) = asked.look {
                    self.tracked(&key, |tracked| tracked.add_causes(Causes::VERIFY));
                    self.queue.add_after(Key::Service(key), after);
                } else {
                    self.forget_unused(&key);
                }
            }
            Change::Deleted(service) => {
                let key = ServiceKey::of(service);
                let classes = self.classes();
                let leaves_balancer = self.tracked(&key, |tracked| {
                    let synced = tracked.synced.take();
                    let with_balancer = synced.filter(|synced| classes.wants_load_balancer(synced));
                    let has_balancer = with_balancer.is_some();
                    tracked.vanished.extend(with_balancer);
                    tracked.state.vanish();
                    tracked.fights = Fights::default(); // another one of the name has nothing of this one
                    tracked.is_foreign = false;
                    tracked.used = Vec::new();
                    tracked.told_at = None;
                    has_balancer
                });
                if leaves_balancer {
                    self.enqueue(&key, Causes::CHANGED);
                } else {
                    self.forget_unused(&key);
                }
            }
        }
    }

    /// Has every balancer checked against the cloud, period by period, for ever.
    ///
    /// All are checked together: then the project-wide lists are read once for all of them.
    pub(super) async fn verify_periodically(&self) {
        loop {
            tokio::time::sleep(VERIFY_PERIOD).await;
            self.verify_all();
        }
    }

    fn verify_all(&self) {
        self.queue.add(Key::LeftBehind);
        for service in self.services.all() {
            if self.classes().is_wanted(&service) {
                self.enqueue(&ServiceKey::of(&service), Causes::VERIFY);
            }
        }
    }

    /// Drops what is remembered of a Service that is none of ours.
    pub(super) fn forget_unused(&self, key: &ServiceKey) {
        let mut tracked = self.tracked.lock().unwrap_or_else(PoisonError::into_inner);
        if tracked.get(key).is_some_and(|tracked| tracked.is_unused()) {
            tracked.remove(key);
        }
    }
}
