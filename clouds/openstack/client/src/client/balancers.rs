//! Calls to Octavia: versions and load balancers.

use bowline_cloud_http::{Method, Request};
use serde::Deserialize;

use super::{Client, Deleted, in_pages, read, write};
use crate::error::ApiError;
use crate::operation;
use crate::operation::Service;
use crate::session::choices;
use crate::wire::{
    ApiVersion, BalancerQuota, LoadBalancer, LoadBalancerId, LoadBalancerUpdate, NewLoadBalancer,
};

impl Client {
    /// The versions of the API, in its own order: the last one is the newest.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every call.
    pub async fn load_balancer_versions(&self) -> Result<Vec<ApiVersion>, ApiError> {
        #[derive(Deserialize)]
        struct Versions {
            versions: Vec<ApiVersion>,
        }
        self.observed(operation::API_VERSIONS_LIST, async {
            let root = self.session.endpoint(Service::LoadBalancer).await?.root.clone();
            let request = Request::read(Method::GET, operation::API_VERSIONS_LIST.name, root).preliminary();
            let versions: Versions = match self.session.send(request).await {
                Ok(response) => response.json()?,
                Err(error) => choices(&error).ok_or(error)?,
            };
            Ok(versions.versions)
        })
        .await
    }

    /// All load balancers of the project. To an administrator Octavia shows those of all projects:
    /// what is another project's is nobody's duplicate, and is not asked for.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn load_balancers(&self) -> Result<Vec<LoadBalancer>, ApiError> {
        let query = self.session.ticket().await?.of_project();
        let call = read(operation::LOAD_BALANCERS_LIST, &[]);
        let mut balancers: Vec<LoadBalancer> = self.list(call, &in_pages(query)).await?;
        let ticket = self.session.ticket().await?;
        balancers.retain(|balancer| !ticket.is_foreign(balancer.project_id.as_deref()));
        Ok(balancers)
    }

    /// How many load balancers the project may have; -1 is no limit, `None` is that Octavia does not tell.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn load_balancer_quota(&self) -> Result<Option<BalancerQuota>, ApiError> {
        let ticket = self.session.ticket().await?;
        let Some(project) = ticket.project() else {
            return Ok(None);
        };
        self.one(read(operation::QUOTAS_GET, &[project])).await
    }

    /// One load balancer, or `None` if Octavia says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn load_balancer(&self, id: &LoadBalancerId) -> Result<Option<LoadBalancer>, ApiError> {
        self.one(read(operation::LOAD_BALANCERS_GET, &[id.as_str()]))
            .await
    }

    /// Creates a load balancer with all parts that it is given.
    ///
    /// # Repeatability
    ///
    /// None: names need not be unique. If [`ApiError::maybe_applied`], look for it by its name first.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn create_load_balancer(&self, new: &NewLoadBalancer) -> Result<LoadBalancer, ApiError> {
        self.post(operation::LOAD_BALANCERS_CREATE, &[], new).await
    }

    /// Changes a load balancer.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_busy`] while another change is under way.
    pub async fn update_load_balancer(
        &self,
        id: &LoadBalancerId,
        update: &LoadBalancerUpdate,
    ) -> Result<LoadBalancer, ApiError> {
        self.put(operation::LOAD_BALANCERS_UPDATE, &[id.as_str()], update)
            .await
    }

    /// Begins to delete a load balancer; it is gone when it is not found any more. With `cascade` all its parts go too;
    /// without, one that has parts is refused.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_busy`] while another change is under way; one that is gone is none.
    pub async fn delete_load_balancer(
        &self,
        id: &LoadBalancerId,
        cascade: bool,
    ) -> Result<Deleted, ApiError> {
        let segments = [id.as_str()];
        let call = write(Method::DELETE, operation::LOAD_BALANCERS_DELETE, &segments);
        self.delete(call, |request| {
            if cascade {
                request.query("cascade", "true")
            } else {
                request
            }
        })
        .await
    }
}
