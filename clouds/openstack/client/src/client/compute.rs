//! Calls to Nova.

use super::{Client, read};
use crate::error::ApiError;
use crate::operation::{FLAVORS_GET, FLAVORS_LIST, SERVERS_GET, SERVERS_LIST};
use crate::wire::{Flavor, Server};

impl Client {
    /// All servers of the project.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every call.
    pub async fn servers(&self) -> Result<Vec<Server>, ApiError> {
        self.list(read(SERVERS_LIST, &[]), &[]).await
    }

    /// One server, or `None` if Nova says that there is none. The id comes from a node's provider ID and may be any text.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn server(&self, id: &str) -> Result<Option<Server>, ApiError> {
        self.one(read(SERVERS_GET, &[id])).await
    }

    /// All flavors that the project sees.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn flavors(&self) -> Result<Vec<Flavor>, ApiError> {
        self.list(read(FLAVORS_LIST, &[]), &[]).await
    }

    /// One flavor by its id, or `None` if Nova says that there is none.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn flavor(&self, id: &str) -> Result<Option<Flavor>, ApiError> {
        self.one(read(FLAVORS_GET, &[id])).await
    }
}
