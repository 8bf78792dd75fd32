//! What a call for one Service that was given up may yet do to others: an address that has moved on goes back to where it was to lead.
//!
//! Which Services go by the same object, only the cloud's plan knows. So every Service is looked at again that has settled since the call
//! began, or settles before its time limit has passed: by then it may have gone by what is undone after that.

use std::time::Duration;

use bowline_cloud_provider::ServiceKey;
use tokio::time::Instant;

use super::causes::Causes;
use super::tracked::look_before;
use super::{Key, ServiceController, lock};

impl ServiceController {
    /// A call was given up that changes what other Services may go by too. It was begun no sooner than that, and may take effect until then.
    pub(super) fn may_come_to_others(&self, begun: Instant, until: Instant) {
        let late = &mut *lock(&self.late_of_others);
        *late = (*late).max(Some(until));
        let Some(after) = look_before(until) else {
            return;
        };
        let mut tracked = lock(&self.tracked);
        let settled = tracked.iter_mut().filter(|it| it.1.has_settled_since(begun));
        for (key, tracked) in settled {
            tracked.add_causes(Causes::VERIFY);
            self.queue.add_after(Key::Service(ServiceKey::clone(key)), after);
        }
    }

    /// After which time a Service that settles now is looked at again for that.
    pub(super) fn late_of_others(&self) -> Option<Duration> {
        look_before((*lock(&self.late_of_others))?)
    }
}
