//! Calls to Neutron: networks, subnets, ports, routers, floating IPs.

use bowline_cloud_http::{HeaderName, Method, Request};
use serde::Serialize;

use super::{Client, Deleted, in_pages, read, write};
use crate::error::ApiError;
use crate::operation::{self, Operation};
use crate::wire::{
    Extension, FloatingIp, FloatingIpId, Network, NetworkId, NetworkQuota, NewFloatingIp, Port, PortFilter,
    PortId, PortUpdate, Resource, Router, RouterId, RouterRoute, Subnet, Usage, Wrapped,
};

const IF_MATCH: HeaderName = HeaderName::from_static("if-match");

/// Has a change made only if the object is as it was read (Networking API, "Revisions").
fn only_if(request: Request, revision: Option<u64>) -> Request {
    match revision {
        Some(revision) => request.header(IF_MATCH, &format!("revision_number={revision}")),
        None => request,
    }
}

impl Client {
    /// The parts of the API that this cloud has.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every call.
    pub async fn extensions(&self) -> Result<Vec<Extension>, ApiError> {
        let call = read(operation::EXTENSIONS_LIST, &[]);
        self.list(call, &[]).await
    }

    /// All networks that the project sees.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn networks(&self) -> Result<Vec<Network>, ApiError> {
        let call = read(operation::NETWORKS_LIST, &[]);
        self.list(call, &in_pages(Vec::new())).await
    }

    /// One network, or `None` if Neutron says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn network(&self, id: &NetworkId) -> Result<Option<Network>, ApiError> {
        self.one(read(operation::NETWORKS_GET, &[id.as_str()])).await
    }

    /// All subnets that the project sees.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn subnets(&self) -> Result<Vec<Subnet>, ApiError> {
        let call = read(operation::SUBNETS_LIST, &[]);
        self.list(call, &in_pages(Vec::new())).await
    }

    /// The ports that fulfil all conditions; without one, all that the project sees. To an administrator Neutron shows those of all
    /// projects. They are not filtered: a port of the project's network, a server or a floating IP may be another project's.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn ports(&self, filter: &PortFilter<'_>) -> Result<Vec<Port>, ApiError> {
        let call = read(operation::PORTS_LIST, &[]);
        self.list(call, &filter.query()).await
    }

    /// One port, or `None` if Neutron says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn port(&self, id: &PortId) -> Result<Option<Port>, ApiError> {
        self.one(read(operation::PORTS_GET, &[id.as_str()])).await
    }

    /// Changes a port, if `revision` is what it was read with; `None` changes it as it is now.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_outdated`] if the port was changed meanwhile.
    pub async fn update_port(
        &self,
        id: &PortId,
        update: &PortUpdate,
        revision: Option<u64>,
    ) -> Result<Port, ApiError> {
        let segments = [id.as_str()];
        let call = write(Method::PUT, operation::PORTS_UPDATE, &segments);
        self.change(call, |request| {
            only_if(request, revision).json(&Wrapped(Port::ONE, update))
        })
        .await
    }

    /// Deletes a port.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_port(&self, id: &PortId) -> Result<Deleted, ApiError> {
        self.remove(operation::PORTS_DELETE, &[id.as_str()]).await
    }

    /// Takes a tag off a port.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); a tag that is not there is none.
    pub async fn delete_port_tag(&self, id: &PortId, tag: &str) -> Result<Deleted, ApiError> {
        self.remove(operation::PORT_TAGS_DELETE, &[id.as_str(), "tags", tag])
            .await
    }

    /// One router, or `None` if Neutron says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn router(&self, id: &RouterId) -> Result<Option<Router>, ApiError> {
        self.one(read(operation::ROUTERS_GET, &[id.as_str()])).await
    }

    /// Replaces the routes of a router, if `revision` is what it was read with; `None` replaces them as they are now.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_outdated`] if the router was changed meanwhile.
    pub async fn replace_routes(
        &self,
        id: &RouterId,
        routes: &[RouterRoute],
        revision: Option<u64>,
    ) -> Result<Router, ApiError> {
        self.put_routes(operation::ROUTERS_UPDATE, &[id.as_str()], routes, revision)
            .await
    }

    /// Adds routes to a router, whatever others do to it meanwhile. Those that it has are left as they are.
    ///
    /// # Errors
    ///
    /// [`Class::Invalid`](crate::Class::Invalid) if a next hop is on no subnet of the router.
    pub async fn add_routes(&self, id: &RouterId, routes: &[RouterRoute]) -> Result<Router, ApiError> {
        let segments = [id.as_str(), "add_extraroutes"];
        self.put_routes(operation::ROUTERS_ADD_ROUTES, &segments, routes, None)
            .await
    }

    /// Removes routes of a router, whatever others do to it meanwhile. Those that it does not have are no error.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn remove_routes(&self, id: &RouterId, routes: &[RouterRoute]) -> Result<Router, ApiError> {
        let segments = [id.as_str(), "remove_extraroutes"];
        self.put_routes(operation::ROUTERS_REMOVE_ROUTES, &segments, routes, None)
            .await
    }

    async fn put_routes(
        &self,
        operation: Operation,
        segments: &[&str],
        routes: &[RouterRoute],
        revision: Option<u64>,
    ) -> Result<Router, ApiError> {
        #[derive(Serialize)]
        struct Routes<'a> {
            routes: &'a [RouterRoute],
        }
        let call = write(Method::PUT, operation, segments);
        self.change(call, |request| {
            only_if(request, revision).json(&Wrapped(Router::ONE, &Routes { routes }))
        })
        .await
    }

    /// How many floating IPs the project has, and may have; `None` if Neutron does not tell.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn floating_ip_quota(&self) -> Result<Option<Usage>, ApiError> {
        let ticket = self.session.ticket().await?;
        let Some(project) = ticket.project() else {
            return Ok(None);
        };
        let segments = [project, "details.json"];
        let call = read(operation::QUOTA_DETAILS_GET, &segments);
        let details = self.one::<NetworkQuota>(call).await?;
        Ok(details.and_then(|details| details.floatingip))
    }

    /// All floating IPs of the project. To an administrator Neutron shows those of all projects. Another project's is marked as
    /// [foreign](FloatingIp::is_foreign): it may take an address or a port, and what is written on it speaks of no Service here, and is
    /// left out.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn floating_ips(&self) -> Result<Vec<FloatingIp>, ApiError> {
        self.floating_ips_with(Vec::new()).await
    }

    /// The floating IPs that lead to a port.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn floating_ips_of(&self, port: &PortId) -> Result<Vec<FloatingIp>, ApiError> {
        self.floating_ips_with(vec![("port_id", port.to_string())]).await
    }

    async fn floating_ips_with(
        &self,
        condition: Vec<(&'static str, String)>,
    ) -> Result<Vec<FloatingIp>, ApiError> {
        let call = read(operation::FLOATING_IPS_LIST, &[]);
        let mut floating_ips: Vec<FloatingIp> = self.list(call, &in_pages(condition)).await?;
        let ticket = self.session.ticket().await?;
        for floating_ip in &mut floating_ips {
            floating_ip.is_foreign = ticket.is_foreign(floating_ip.project_id.as_deref());
            if floating_ip.is_foreign {
                floating_ip.description.clear();
            }
        }
        Ok(floating_ips)
    }

    /// The floating IP of an address, or `None` if the list of those with it is empty.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn floating_ip_at(&self, address: &str) -> Result<Option<FloatingIp>, ApiError> {
        let condition = vec![("floating_ip_address", address.to_owned())];
        Ok(self.floating_ips_with(condition).await?.into_iter().next())
    }

    /// Creates a floating IP.
    ///
    /// # Repeatability
    ///
    /// With a port, the second one is refused ([`ApiError::is_associated`]), and none is left. Without, none: if
    /// [`ApiError::maybe_applied`], look for it first.
    ///
    /// # Errors
    ///
    /// [`Class::Exhausted`](crate::Class::Exhausted) if the subnet or the network has no address left.
    pub async fn create_floating_ip(&self, new: &NewFloatingIp) -> Result<FloatingIp, ApiError> {
        self.post(operation::FLOATING_IPS_CREATE, &[], new).await
    }

    /// Leads a floating IP to an address of a port, `None` nowhere, if `revision` is what it was read with: Neutron takes one that leads
    /// elsewhere away from there without a question.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_associated`] if another floating IP leads to that address, and [`ApiError::is_outdated`] if this one was
    /// changed meanwhile.
    pub async fn attach_floating_ip(
        &self,
        id: &FloatingIpId,
        port: Option<&PortId>,
        fixed_ip_address: Option<&str>,
        revision: Option<u64>,
    ) -> Result<FloatingIp, ApiError> {
        #[derive(Serialize)]
        struct Target<'a> {
            // Sent also when there is none: `null` is what detaches.
            port_id: Option<&'a PortId>,
            // Of several addresses of a port, Neutron chooses none.
            #[serde(skip_serializing_if = "Option::is_none")]
            fixed_ip_address: Option<&'a str>,
        }
        let segments = [id.as_str()];
        let target = Target {
            port_id: port,
            fixed_ip_address,
        };
        let call = write(Method::PUT, operation::FLOATING_IPS_UPDATE, &segments);
        self.change(call, |request| {
            only_if(request, revision).json(&Wrapped(FloatingIp::ONE, &target))
        })
        .await
    }

    /// Deletes a floating IP.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_floating_ip(&self, id: &FloatingIpId) -> Result<Deleted, ApiError> {
        self.remove(operation::FLOATING_IPS_DELETE, &[id.as_str()]).await
    }
}
