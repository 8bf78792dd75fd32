//! The calls.

use std::fmt::Display;
use std::net::IpAddr;

use bowline_cloud_http::{Class, CloudHttp, Failure, HttpError, Method, Request, Secret, Url, resolve};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::error::ApiError;
use crate::settings::Settings;
use crate::wire::{
    FloatingIp, Listener, ListenerChange, ListenerId, LoadBalancer, LoadBalancerId, Member, MemberId,
    Monitor, MonitorChange, MonitorId, NewListener, NewLoadBalancer, NewMember, NewMonitor, NewPool, Pool,
    PoolId, Server, ServerId,
};

const SERVERS: &str = "v1/servers";
const BALANCERS: &str = "v1/load-balancers";
const POOLS: &str = "v1/load-balancers/pools";
const LISTENERS: &str = "v1/load-balancers/listeners";
const MONITORS: &str = "v1/load-balancers/health-monitors";
const FLOATING_IPS: &str = "v1/floating-ips";

/// What follows a path: IDs and words.
type Segments<'a> = [&'a (dyn Display + Sync)];

/// A client of the API. Clones share everything below.
///
/// Reads are repeated by the HTTP stack where that can help; writes are sent once. Lists are whole: the API knows no
/// pages.
#[derive(Clone)]
pub struct Client {
    http: CloudHttp,
    base: Url,
    token: Secret,
}

/// What became of something that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The API took the request; the object may be there for a moment longer.
    Accepted,
    /// The object was not there any more.
    AlreadyGone,
}

impl Client {
    /// A client that resolves paths against `base` (RFC 3986): `https://h` and `https://h/` both give `https://h/v1/…`,
    /// and the last segment of a base without a slash at its end is replaced.
    pub fn new(http: CloudHttp, base: Url, token: Secret) -> Self {
        Self { http, base, token }
    }

    /// A client with the settings of the environment.
    pub fn from_settings(http: CloudHttp, settings: &Settings) -> Self {
        Self::new(http, settings.url.clone(), settings.token.clone())
    }

    /// The HTTP stack below.
    pub fn http(&self) -> &CloudHttp {
        &self.http
    }

    /// All servers of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`], as for every call.
    pub async fn servers(&self) -> Result<Vec<Server>, ApiError> {
        self.read("servers.list", SERVERS, &[]).await
    }

    /// One server.
    ///
    /// # Errors
    ///
    /// [`ApiError::proves_absence`] if there is none.
    pub async fn server(&self, id: ServerId) -> Result<Server, ApiError> {
        self.read("servers.get", SERVERS, &[&id]).await
    }

    /// All load balancers of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn load_balancers(&self) -> Result<Vec<LoadBalancer>, ApiError> {
        self.read("load-balancers.list", BALANCERS, &[]).await
    }

    /// One load balancer.
    ///
    /// # Errors
    ///
    /// [`ApiError::proves_absence`] if there is none.
    pub async fn load_balancer(&self, id: LoadBalancerId) -> Result<LoadBalancer, ApiError> {
        self.read("load-balancers.get", BALANCERS, &[&id]).await
    }

    /// Creates a load balancer; the answer already holds its addresses.
    ///
    /// # Repeatability
    ///
    /// None: names need not be unique. If [`ApiError::maybe_applied`], look for it by its tags first.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn create_load_balancer(&self, new: &NewLoadBalancer) -> Result<LoadBalancer, ApiError> {
        self.create("load-balancers.create", BALANCERS, &[], new).await
    }

    /// Renames a load balancer.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn rename_load_balancer(&self, id: LoadBalancerId, name: &str) -> Result<(), ApiError> {
        let change = json!({ "name": name });
        self.update("load-balancers.rename", BALANCERS, &id, &change)
            .await
    }

    /// Deletes a load balancer with all its parts.
    ///
    /// # Errors
    ///
    /// See [`Class`]; an object that is gone is none.
    pub async fn delete_load_balancer(&self, id: LoadBalancerId) -> Result<Deleted, ApiError> {
        self.delete("load-balancers.delete", BALANCERS, &[&id]).await
    }

    /// All pools of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn pools(&self) -> Result<Vec<Pool>, ApiError> {
        self.read("pools.list", POOLS, &[]).await
    }

    /// Creates a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn create_pool(&self, new: &NewPool) -> Result<Pool, ApiError> {
        self.create("pools.create", POOLS, &[], new).await
    }

    /// Deletes a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`]; an object that is gone is none.
    pub async fn delete_pool(&self, id: PoolId) -> Result<Deleted, ApiError> {
        self.delete("pools.delete", POOLS, &[&id]).await
    }

    /// All members of a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn members(&self, pool: PoolId) -> Result<Vec<Member>, ApiError> {
        self.read("members.list", POOLS, &[&pool, &"members"]).await
    }

    /// Creates a member of a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn create_member(&self, pool: PoolId, new: &NewMember) -> Result<Member, ApiError> {
        self.create("members.create", POOLS, &[&pool, &"members"], new)
            .await
    }

    /// Deletes a member of a pool.
    ///
    /// # Errors
    ///
    /// See [`Class`]; an object that is gone is none.
    pub async fn delete_member(&self, pool: PoolId, id: MemberId) -> Result<Deleted, ApiError> {
        self.delete("members.delete", POOLS, &[&pool, &"members", &id])
            .await
    }

    /// All listeners of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn listeners(&self) -> Result<Vec<Listener>, ApiError> {
        self.read("listeners.list", LISTENERS, &[]).await
    }

    /// Creates a listener.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn create_listener(&self, new: &NewListener) -> Result<Listener, ApiError> {
        self.create("listeners.create", LISTENERS, &[], new).await
    }

    /// Changes one attribute of a listener.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn update_listener(&self, id: ListenerId, change: &ListenerChange) -> Result<(), ApiError> {
        self.update("listeners.update", LISTENERS, &id, change).await
    }

    /// Deletes a listener.
    ///
    /// # Errors
    ///
    /// See [`Class`]; an object that is gone is none.
    pub async fn delete_listener(&self, id: ListenerId) -> Result<Deleted, ApiError> {
        self.delete("listeners.delete", LISTENERS, &[&id]).await
    }

    /// All health monitors of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn monitors(&self) -> Result<Vec<Monitor>, ApiError> {
        self.read("health-monitors.list", MONITORS, &[]).await
    }

    /// Creates a health monitor.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn create_monitor(&self, new: &NewMonitor) -> Result<Monitor, ApiError> {
        self.create("health-monitors.create", MONITORS, &[], new).await
    }

    /// Changes one attribute of a health monitor.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn update_monitor(&self, id: MonitorId, change: &MonitorChange) -> Result<(), ApiError> {
        self.update("health-monitors.update", MONITORS, &id, change).await
    }

    /// Deletes a health monitor.
    ///
    /// # Errors
    ///
    /// See [`Class`]; an object that is gone is none.
    pub async fn delete_monitor(&self, id: MonitorId) -> Result<Deleted, ApiError> {
        self.delete("health-monitors.delete", MONITORS, &[&id]).await
    }

    /// All floating IPs of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn floating_ips(&self) -> Result<Vec<FloatingIp>, ApiError> {
        self.read("floating-ips.list", FLOATING_IPS, &[]).await
    }

    /// Leads a floating IP to a load balancer, away from wherever it led.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn assign_floating_ip(&self, address: IpAddr, to: LoadBalancerId) -> Result<(), ApiError> {
        let target = json!({ "load_balancer": to });
        self.update("floating-ips.assign", FLOATING_IPS, &address, &target)
            .await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        path: &str,
        segments: &Segments<'_>,
    ) -> Result<T, ApiError> {
        let request = self.request(Method::GET, operation, path, segments)?;
        Ok(self.http.send(request).await?.json()?)
    }

    async fn create<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        path: &str,
        segments: &Segments<'_>,
        new: &impl Serialize,
    ) -> Result<T, ApiError> {
        let request = self.request(Method::POST, operation, path, segments)?;
        Ok(self.http.send(request.json(new)).await?.json()?)
    }

    async fn update(
        &self,
        operation: &'static str,
        path: &str,
        id: &(dyn Display + Sync),
        change: &impl Serialize,
    ) -> Result<(), ApiError> {
        let request = self.request(Method::PATCH, operation, path, &[id])?;
        self.http.send(request.json(change)).await?;
        Ok(())
    }

    async fn delete(
        &self,
        operation: &'static str,
        path: &str,
        segments: &Segments<'_>,
    ) -> Result<Deleted, ApiError> {
        let request = self.request(Method::DELETE, operation, path, segments)?;
        let Err(error) = self.http.send(request).await else {
            return Ok(Deleted::Accepted);
        };
        let error = ApiError::from(error);
        // A page of HTML comes from something in between: the object may well be there.
        match error.proves_absence() || error.class == Class::NotFound && error.has_no_body() {
            true => Ok(Deleted::AlreadyGone),
            false => Err(error),
        }
    }

    fn request(
        &self,
        method: Method,
        operation: &'static str,
        path: &str,
        segments: &Segments<'_>,
    ) -> Result<Request, ApiError> {
        let segments: Vec<String> = segments.iter().map(ToString::to_string).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let url = resolve(&self.base, path, &segments).map_err(|error| {
            let failure = Failure::Unsendable(error.to_string());
            HttpError::new(operation, method.clone(), path, failure)
        })?;
        let request = match method {
            Method::GET => Request::read(method, operation, url),
            _ => Request::write(method, operation, url),
        };
        Ok(request.bearer(&self.token))
    }
}
