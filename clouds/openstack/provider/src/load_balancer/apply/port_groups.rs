//! The security groups of ports, which every Service writes that has the port's server as a member.
//!
//! One write of a port takes along what all others want of it that wait for it: of twenty Services with one new Node each would
//! write the whole list anew, and the last one's node port would be closed as long as all writes take.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::{Kept, lock};
use bowline_openstack_client::{ApiError, Class, Client, Port, PortId, PortUpdate, SecurityGroupId};
use bowline_plan::Refusal;

use crate::load_balancer::learned::{Learned, Shown, shown};
use crate::load_balancer::security_groups::ports::{with_group, without_group};
use crate::load_balancer::step::GroupChange;

/// How often a port is read again because somebody else changed it meanwhile.
const MAX_TRIES: usize = 5;

/// The groups of ports as this process wrote them last, and what it is about to write.
#[derive(Debug, Default)]
pub(crate) struct PortGroups {
    /// With the revision of the port that has them. Without it, of several Services that read a port together all but one would
    /// read it again before they write.
    written: Kept<PortId, (u64, Vec<SecurityGroupId>)>,
    waiting: Waiting,
}

/// What is to become of a group on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Join,
    Leave,
}

impl Way {
    /// The groups of a port after that; `None` if it is so already.
    fn groups(self, port: &Port, group: &SecurityGroupId) -> Option<Vec<SecurityGroupId>> {
        let has = port.security_groups.contains(group);
        match self {
            Self::Join => (!has).then(|| with_group(port, group)),
            Self::Leave => has.then(|| without_group(port, group)),
        }
    }
}

/// What waits for a port, by the group: no two Services write the same one.
type Waiting = Arc<Mutex<BTreeMap<PortId, BTreeMap<SecurityGroupId, Way>>>>;

/// Lets others make a change along with theirs for as long as it lives.
struct Queued {
    waiting: Waiting,
    port: PortId,
    group: SecurityGroupId,
}

impl Drop for Queued {
    fn drop(&mut self) {
        let mut waiting = lock(&self.waiting);
        if let Some(of_port) = waiting.get_mut(&self.port) {
            of_port.remove(&self.group);
            if of_port.is_empty() {
                waiting.remove(&self.port);
            }
        }
    }
}

impl PortGroups {
    /// Says what waits for its port.
    pub(crate) fn queued(&self, change: &GroupChange) -> Option<Box<dyn Send>> {
        let (port, group, way) = match change {
            GroupChange::Join { group, port } => (port, group, Way::Join),
            GroupChange::Leave { group, port } => (port, group, Way::Leave),
            _ => return None,
        };
        let mut waiting = lock(&self.waiting);
        let of_port = waiting.entry(port.id.clone()).or_default();
        of_port.insert(group.clone(), way);
        Some(Box::new(Queued {
            waiting: Arc::clone(&self.waiting),
            port: port.id.clone(),
            group: group.clone(),
        }))
    }

    /// The groups of a port that is to have these, with what waits for it.
    fn with_waiting(&self, port: &Port, groups: &[SecurityGroupId]) -> Vec<SecurityGroupId> {
        let mut port = Port {
            security_groups: groups.to_vec(),
            ..port.clone()
        };
        let waiting = lock(&self.waiting);
        for (group, way) in waiting.get(&port.id).into_iter().flatten() {
            if let Some(groups) = way.groups(&port, group) {
                port.security_groups = groups;
            }
        }
        port.security_groups
    }

    /// Takes a group off a port, and the tag that very old controllers left.
    pub(super) async fn leave(
        &self,
        client: &Client,
        port: &Port,
        group: &SecurityGroupId,
    ) -> Result<Learned, ApiError> {
        let mut left = self.write(client, port, group, Way::Leave).await?;
        if let Learned::Done(Some(shown)) = &mut left
            && let Shown::Port(port) = &mut **shown
            && port.tags.iter().any(|tag| tag == group.as_str())
        {
            client.delete_port_tag(&port.id, group.as_str()).await?;
            port.tags.retain(|tag| tag != group.as_str());
        }
        Ok(left)
    }

    /// A port as it was read, or as this process wrote it after that.
    fn as_written(&self, seen: &Port, revision: u64) -> Port {
        let later = self.written.with(&seen.id, |kept| {
            kept.clone().filter(|(later, _)| *later > revision)
        });
        match later {
            None => seen.clone(),
            Some((later, security_groups)) => Port {
                security_groups,
                revision_number: Some(later),
                ..seen.clone()
            },
        }
    }

    /// Changes the groups of a port, which are written as a whole: worked out from the port as it was read, and written only if
    /// it is still so. Other controllers write the same list. What is refused together is tried alone.
    pub(super) async fn write(
        &self,
        client: &Client,
        seen: &Port,
        group: &SecurityGroupId,
        way: Way,
    ) -> Result<Learned, ApiError> {
        let mut known = seen
            .revision_number
            .map(|revision| self.as_written(seen, revision));
        let mut refused = None;
        let mut is_alone = false;
        for _ in 0..MAX_TRIES {
            let port = match known.take() {
                Some(port) => port,
                None => match client.port(&seen.id).await? {
                    Some(port) => port,
                    None => return Ok(Learned::Done(None)), // a port that is gone has no groups
                },
            };
            let Some(alone) = way.groups(&port, group) else {
                return Ok(shown(port));
            };
            let groups = match is_alone {
                true => alone.clone(),
                false => self.with_waiting(&port, &alone),
            };
            let has_others = groups != alone;
            let update = PortUpdate {
                security_groups: Some(groups),
                ..PortUpdate::default()
            };
            match client.update_port(&port.id, &update, port.revision_number).await {
                Ok(port) => {
                    if let Some(revision) = port.revision_number {
                        let now = Some((revision, port.security_groups.clone()));
                        self.written.with(&port.id, |kept| *kept = now);
                    }
                    return Ok(shown(port));
                }
                Err(error) if error.is_outdated() => {}
                // The port is gone, or a group that it had a moment ago: Neutron looks for the groups before it looks at the
                // revision.
                Err(error) if error.class == Class::NotFound => {
                    refused = Some(error);
                    is_alone = true;
                }
                // It may be about a group of another Service.
                Err(error) if has_others && matches!(error.class, Class::Invalid | Class::Conflict) => {
                    is_alone = true;
                    known = Some(port);
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = refused {
            return Err(error);
        }
        Ok(Learned::Failed(Refusal::new(format!(
            "port {} changed {MAX_TRIES} times while its security groups were written",
            seen.id
        ))))
    }
}
