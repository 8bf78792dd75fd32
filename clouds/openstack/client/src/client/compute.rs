//! Calls to Nova.

use super::{Client, read};
use crate::error::ApiError;
use crate::operation::{FLAVORS_GET, FLAVORS_LIST, SERVERS_GET, SERVERS_LIST};
use crate::session::Service::Compute;
use crate::wire::{Flavor, Server};

impl Client {
    /// All servers of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every call.
    pub async fn servers(&self) -> Result<Vec<Server>, ApiError> {
        self.list(read(Compute, SERVERS_LIST, "servers/detail", &[]), &[])
            .await
    }

    /// One server, or `None` if Nova says that there is none. The id comes from a node's provider ID and may be any text.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn server(&self, id: &str) -> Result<Option<Server>, ApiError> {
        self.one(read(Compute, SERVERS_GET, "servers", &[id])).await
    }

    /// All flavors that the project sees.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn flavors(&self) -> Result<Vec<Flavor>, ApiError> {
        self.list(read(Compute, FLAVORS_LIST, "flavors", &[]), &[]).await
    }

    /// One flavor by its id, or `None` if Nova says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn flavor(&self, id: &str) -> Result<Option<Flavor>, ApiError> {
        self.one(read(Compute, FLAVORS_GET, "flavors", &[id])).await
    }
}
