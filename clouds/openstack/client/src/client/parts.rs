//! Calls to Octavia: the parts of a load balancer. While one is being changed, the load balancer takes no other change:
//! then they fail with [`ApiError::is_busy`].

use bowline_cloud_http::Method;
use serde::Serialize;

use super::{Client, Deleted, in_pages, read, write};
use crate::error::ApiError;
use crate::operation;
use crate::wire::{
    Listener, ListenerId, ListenerUpdate, Member, MemberId, MemberSettings, MemberUpdate, Monitor, MonitorId,
    MonitorUpdate, NewListener, NewMember, NewMonitor, NewPool, Pool, PoolId, PoolUpdate, SubnetId,
};

/// A member of a list that replaces another one.
#[derive(Serialize)]
struct Replacement<'a> {
    name: &'a str,
    address: &'a str,
    protocol_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    subnet_id: Option<&'a SubnetId>,
    /// Also `null`, which takes a port back.
    monitor_port: Option<u16>,
    #[serde(flatten)]
    settings: &'a MemberSettings,
}

impl<'a> Replacement<'a> {
    fn of(member: &'a NewMember) -> Self {
        let NewMember {
            name,
            address,
            protocol_port,
            subnet_id,
            monitor_port,
            settings,
        } = member;
        Self {
            name,
            address,
            protocol_port: *protocol_port,
            subnet_id: subnet_id.as_ref(),
            monitor_port: *monitor_port,
            settings,
        }
    }
}

impl Client {
    /// All listeners of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every call.
    pub async fn listeners(&self) -> Result<Vec<Listener>, ApiError> {
        let call = read(operation::LISTENERS_LIST, &[]);
        self.list(call, &in_pages(Vec::new())).await
    }

    /// Creates a listener.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`](crate::Class::Conflict) if another listener of the load balancer has the port.
    pub async fn create_listener(&self, new: &NewListener) -> Result<Listener, ApiError> {
        self.post(operation::LISTENERS_CREATE, &[], new).await
    }

    /// Changes a listener.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn update_listener(
        &self,
        id: &ListenerId,
        update: &ListenerUpdate,
    ) -> Result<Listener, ApiError> {
        self.put(operation::LISTENERS_UPDATE, &[id.as_str()], update)
            .await
    }

    /// Deletes a listener. Its pool stays.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_listener(&self, id: &ListenerId) -> Result<Deleted, ApiError> {
        self.remove(operation::LISTENERS_DELETE, &[id.as_str()]).await
    }

    /// All pools of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn pools(&self) -> Result<Vec<Pool>, ApiError> {
        let call = read(operation::POOLS_LIST, &[]);
        self.list(call, &in_pages(Vec::new())).await
    }

    /// Creates a pool.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`](crate::Class::Conflict) if the listener has a pool.
    pub async fn create_pool(&self, new: &NewPool) -> Result<Pool, ApiError> {
        self.post(operation::POOLS_CREATE, &[], new).await
    }

    /// Changes a pool.
    ///
    /// # Errors
    ///
    /// [`Class::Invalid`](crate::Class::Invalid) for an algorithm that the load balancer's provider does not know.
    pub async fn update_pool(&self, id: &PoolId, update: &PoolUpdate) -> Result<Pool, ApiError> {
        self.put(operation::POOLS_UPDATE, &[id.as_str()], update).await
    }

    /// Deletes a pool with its members and its monitor.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_pool(&self, id: &PoolId) -> Result<Deleted, ApiError> {
        self.remove(operation::POOLS_DELETE, &[id.as_str()]).await
    }

    /// All members of a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn members(&self, pool: &PoolId) -> Result<Vec<Member>, ApiError> {
        let segments = [pool.as_str(), "members"];
        self.list(read(operation::MEMBERS_LIST, &segments), &[]).await
    }

    /// Replaces all members of a pool. Those that are there with address and port keep their ids and their traffic, and their subnets,
    /// which cannot be changed. What an entry leaves out of its settings gets the API's default, also of a member that is there
    /// (`MemberPOST` in Octavia's `api/v2/types/member.py`).
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn replace_members(&self, pool: &PoolId, members: &[NewMember]) -> Result<(), ApiError> {
        #[derive(Serialize)]
        struct Members<'a> {
            members: Vec<Replacement<'a>>,
        }
        let members = members.iter().map(Replacement::of).collect();
        let body = Members { members };
        let segments = [pool.as_str(), "members"];
        let call = write(Method::PUT, operation::MEMBERS_REPLACE, &segments);
        // The answer is empty.
        self.observed(call.operation, async {
            self.send(&call, |request| request.json(&body)).await.map(drop)
        })
        .await
    }

    /// Creates a member of a pool: for providers that take no more than one change at a time.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`](crate::Class::Conflict) if the pool has one with that address and port.
    pub async fn create_member(&self, pool: &PoolId, new: &NewMember) -> Result<Member, ApiError> {
        self.post(operation::MEMBERS_CREATE, &[pool.as_str(), "members"], new)
            .await
    }

    /// Changes a member of a pool in place.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn update_member(
        &self,
        pool: &PoolId,
        id: &MemberId,
        update: &MemberUpdate,
    ) -> Result<Member, ApiError> {
        self.put(
            operation::MEMBERS_UPDATE,
            &[pool.as_str(), "members", id.as_str()],
            update,
        )
        .await
    }

    /// Deletes a member of a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_member(&self, pool: &PoolId, id: &MemberId) -> Result<Deleted, ApiError> {
        self.remove(
            operation::MEMBERS_DELETE,
            &[pool.as_str(), "members", id.as_str()],
        )
        .await
    }

    /// All health monitors of the project: the API knows no list of a load balancer's.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn monitors(&self) -> Result<Vec<Monitor>, ApiError> {
        let call = read(operation::MONITORS_LIST, &[]);
        self.list(call, &in_pages(Vec::new())).await
    }

    /// One health monitor, or `None` if Octavia says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn monitor(&self, id: &MonitorId) -> Result<Option<Monitor>, ApiError> {
        self.one(read(operation::MONITORS_GET, &[id.as_str()])).await
    }

    /// Creates a health monitor.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`](crate::Class::Conflict) if the pool has one.
    pub async fn create_monitor(&self, new: &NewMonitor) -> Result<Monitor, ApiError> {
        self.post(operation::MONITORS_CREATE, &[], new).await
    }

    /// Changes a health monitor.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn update_monitor(&self, id: &MonitorId, update: &MonitorUpdate) -> Result<Monitor, ApiError> {
        self.put(operation::MONITORS_UPDATE, &[id.as_str()], update).await
    }

    /// Deletes a health monitor.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_monitor(&self, id: &MonitorId) -> Result<Deleted, ApiError> {
        self.remove(operation::MONITORS_DELETE, &[id.as_str()]).await
    }
}
