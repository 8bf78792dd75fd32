//! The calls.

use bowline_cloud_http::{CloudHttp, Failure, HttpError, Method, Request, Response, Url, resolve};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::settings::Settings;
use crate::wire::{Balancer, BalancerId, Machine, MachineId, NewBalancer, NewRoute, Port, Route, RouteId};

/// The most pages of one listing: a cloud that never says "last page" must not hold a caller for ever.
const MAX_PAGES: usize = 1_000;

/// A client of the API. Clones share the stack below.
#[derive(Clone)]
pub struct Client {
    http: CloudHttp,
    settings: Settings,
}

/// One page of a listing.
#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    /// Where the next page begins; `None` after the last one.
    next: Option<String>,
}

impl Client {
    /// A client over an HTTP stack.
    pub fn new(http: CloudHttp, settings: &Settings) -> Self {
        Self {
            http,
            settings: settings.clone(),
        }
    }

    /// All machines of the project.
    ///
    /// # Errors
    ///
    /// As every call: no answer, or none that can be used. A listing is whole or it is an error.
    pub async fn machines(&self) -> Result<Vec<Machine>, ApiError> {
        self.list("machines.list", "machines").await
    }

    /// One machine.
    ///
    /// # Errors
    ///
    /// [`ApiError::proves_absence`] if there is none.
    pub async fn machine(&self, id: &MachineId) -> Result<Machine, ApiError> {
        let request = self.read("machines.get", &["machines", id.as_str()])?;
        Ok(self.http.send(request).await?.json()?)
    }

    /// All balancers of the project.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`].
    pub async fn balancers(&self) -> Result<Vec<Balancer>, ApiError> {
        self.list("balancers.list", "balancers").await
    }

    // guide: create
    /// Creates a balancer.
    ///
    /// # Repeatability
    ///
    /// None: two calls make two. After an error, look for it by its owner first.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`].
    pub async fn create_balancer(&self, new: &NewBalancer) -> Result<Balancer, ApiError> {
        let request = self
            .write(Method::POST, "balancers.create", &["balancers"])?
            .json(new);
        Ok(self.http.send(request).await?.json()?)
    }
    // guide: end

    /// Deletes a balancer with all its parts.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`]; one that is gone is none.
    pub async fn delete_balancer(&self, id: &BalancerId) -> Result<(), ApiError> {
        self.delete("balancers.delete", &["balancers", id.as_str()]).await
    }

    /// Opens a port of a balancer, or changes an open one in place; answers what the balancer is like now.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`].
    pub async fn put_port(&self, id: &BalancerId, port: &Port) -> Result<Balancer, ApiError> {
        #[derive(Serialize)]
        struct Target {
            node_port: u16,
            check_port: Option<u16>,
        }
        let target = Target {
            node_port: port.node_port,
            check_port: port.check_port,
        };
        let path = ["balancers", id.as_str(), "ports", &port.to_string()];
        let request = self.write(Method::PUT, "ports.put", &path)?.json(&target);
        Ok(self.http.send(request).await?.json()?)
    }

    /// Closes a port of a balancer; answers what the balancer is like now.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`]; a port that is closed is none.
    pub async fn delete_port(&self, id: &BalancerId, port: &Port) -> Result<Balancer, ApiError> {
        let path = ["balancers", id.as_str(), "ports", &port.to_string()];
        let request = self.write(Method::DELETE, "ports.delete", &path)?;
        Ok(self.http.send(request).await?.json()?)
    }

    /// Makes a machine a member of a balancer; answers what the balancer is like now.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`].
    pub async fn put_member(&self, id: &BalancerId, machine: &MachineId) -> Result<Balancer, ApiError> {
        let path = ["balancers", id.as_str(), "members", machine.as_str()];
        let request = self.write(Method::PUT, "members.put", &path)?;
        Ok(self.http.send(request).await?.json()?)
    }

    /// Takes a machine out of a balancer; answers what the balancer is like now.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`]; a machine that is no member is none.
    pub async fn delete_member(&self, id: &BalancerId, machine: &MachineId) -> Result<Balancer, ApiError> {
        let path = ["balancers", id.as_str(), "members", machine.as_str()];
        let request = self.write(Method::DELETE, "members.delete", &path)?;
        Ok(self.http.send(request).await?.json()?)
    }

    /// All routes of the project.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`].
    pub async fn routes(&self) -> Result<Vec<Route>, ApiError> {
        self.list("routes.list", "routes").await
    }

    /// Creates a route.
    ///
    /// # Errors
    ///
    /// A conflict if there is one with this destination.
    pub async fn create_route(&self, new: &NewRoute) -> Result<Route, ApiError> {
        let request = self.write(Method::POST, "routes.create", &["routes"])?.json(new);
        Ok(self.http.send(request).await?.json()?)
    }

    /// Deletes a route.
    ///
    /// # Errors
    ///
    /// See [`Client::machines`]; one that is gone is none.
    pub async fn delete_route(&self, id: &RouteId) -> Result<(), ApiError> {
        self.delete("routes.delete", &["routes", id.as_str()]).await
    }

    // guide: list
    async fn list<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        kind: &str,
    ) -> Result<Vec<T>, ApiError> {
        let (mut items, mut next, mut pages) = (Vec::new(), None::<String>, 0);
        loop {
            let mut request = self.read(operation, &[kind])?;
            if let Some(next) = &next {
                request = request.query("after", next);
            }
            let response: Response = self.http.send(request).await?;
            let page: Page<T> = response.json()?;
            items.extend(page.items);
            next = page.next;
            pages += 1;
            if next.is_none() {
                return Ok(items);
            }
            if pages == MAX_PAGES {
                return Err(response
                    .unusable(format!("no last page among {MAX_PAGES}"))
                    .into());
            }
        }
    }
    // guide: end

    async fn delete(&self, operation: &'static str, path: &[&str]) -> Result<(), ApiError> {
        let request = self.write(Method::DELETE, operation, path)?;
        match self.http.send(request).await.map_err(ApiError::from) {
            Err(error) if !error.proves_absence() => Err(error),
            _ => Ok(()),
        }
    }

    fn read(&self, operation: &'static str, path: &[&str]) -> Result<Request, ApiError> {
        let url = self.url(Method::GET, operation, path)?;
        Ok(Request::read(Method::GET, operation, url).bearer(&self.settings.token))
    }

    // guide: write
    /// A write. Only a POST may not be repeated by the stack: here PUT and DELETE end in the same state however often
    /// they arrive.
    fn write(&self, method: Method, operation: &'static str, path: &[&str]) -> Result<Request, ApiError> {
        let url = self.url(method.clone(), operation, path)?;
        let is_repeatable = method != Method::POST;
        let request = Request::write(method, operation, url).idempotent(is_repeatable);
        Ok(request.bearer(&self.settings.token))
    }
    // guide: end

    fn url(&self, method: Method, operation: &'static str, path: &[&str]) -> Result<Url, ApiError> {
        resolve(&self.settings.url, "v1/", path).map_err(|error| {
            HttpError::new(
                operation,
                method,
                path.join("/"),
                Failure::Unsendable(error.to_string()),
            )
            .into()
        })
    }
}
