//! Security groups that this process made a moment ago: a list of Neutron that is behind does not show them yet.

use std::time::Duration;

use bowline_cloud_provider::Kept;
use bowline_openstack_client::{SecurityGroup, SecurityGroupId};
use tokio::time::Instant;

/// How long a list may be behind. After that a group that no list shows was deleted by somebody else.
const LATE: Duration = Duration::from_secs(60);

/// The last group that was made for each Service, by its name, as this process wrote it, as long as no list shows it. Without it,
/// each look at a list that is behind would lead to one more group.
#[derive(Debug, Default)]
pub(crate) struct MadeGroups(Kept<String, (Instant, SecurityGroup)>);

impl MadeGroups {
    /// The groups of a name, with the one that the list does not show yet.
    pub(crate) fn over(&self, name: &str, mut listed: Vec<SecurityGroup>) -> Vec<SecurityGroup> {
        self.0.with(&name.to_owned(), |made| {
            let is_shown = |id: &SecurityGroupId| listed.iter().any(|there| there.id == *id);
            *made = made
                .take()
                .filter(|(at, group)| at.elapsed() < LATE && !is_shown(&group.id));
            listed.extend(made.as_ref().map(|(_, group)| group.clone()));
        });
        listed
    }

    /// A write changed the group of this name, or made it.
    pub(crate) fn change(&self, name: &str, is_new: bool, change: impl FnOnce(&mut Vec<SecurityGroup>)) {
        self.0.with(&name.to_owned(), |made| {
            let (at, known) = made.take().unzip();
            let at = at.filter(|_| !is_new);
            let mut groups = Vec::from_iter(known);
            change(&mut groups);
            *made = groups.pop().map(|group| (at.unwrap_or_else(Instant::now), group));
        });
    }
}
