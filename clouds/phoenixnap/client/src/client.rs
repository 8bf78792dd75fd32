//! The calls.

use bowline_cloud_http::{
    Class, CloudHttp, CredentialsFile, Failure, HttpError, Method, Request, Url, resolve,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::error::ApiError;
use crate::listed::{Listed, Reader};
use crate::settings::{Credentials, Settings};
use crate::token::Tokens;
use crate::wire::{BlockTag, IpBlock, NewIpBlock, NewTag, PublicNetwork, Server, Tag, TagFilter};

const SERVERS: &str = "bmc/v1/servers";
const BLOCKS: &str = "ips/v1/ip-blocks";
const NETWORKS: &str = "networks/v1/public-networks";
const TAGS: &str = "tag-manager/v1/tags";

/// A client of the four APIs. Clones share the token and everything below.
///
/// Reads are repeated by the HTTP stack where that can help; writes are sent once, but for the repeat after a `401`.
/// Lists are whole: the APIs know no pages.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http,
    base: Url,
    tokens: Tokens,
    lists: Reader,
}

/// The stack, without its insides in debug output.
#[derive(Clone)]
struct Http(CloudHttp);

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.provider())
    }
}

/// What became of something that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The API took the request.
    Accepted,
    /// The object was not there any more.
    AlreadyGone,
}

impl Client {
    /// A client. Makes no call: the token is fetched with the first one. With a file of credentials, those in it take the
    /// place of the settings' whenever it changes.
    pub fn new(http: CloudHttp, settings: &Settings, file: Option<CredentialsFile<Credentials>>) -> Self {
        Self {
            tokens: Tokens::new(http.clone(), settings, file),
            http: Http(http),
            base: settings.base_url.clone(),
            lists: Reader::default(),
        }
    }

    /// How often the credentials have changed since the start. What was read with others may be of another account.
    pub fn generation(&self) -> u64 {
        self.tokens.generation()
    }

    /// Fetches a token, unless there is one.
    ///
    /// # Errors
    ///
    /// [`Class::Unauthenticated`] if the credentials are refused.
    pub async fn sign_in(&self) -> Result<(), ApiError> {
        self.tokens.token().await.map(drop)
    }

    /// All servers of the account.
    ///
    /// # Errors
    ///
    /// See [`Class`], as for every call.
    pub async fn servers(&self) -> Result<Listed<Server>, ApiError> {
        self.list("servers.list", SERVERS, &[]).await
    }

    /// One server.
    ///
    /// # Errors
    ///
    /// [`Class::NotFound`] or [`Class::Denied`] if there is none; the latter also for lost rights.
    pub async fn server(&self, id: &str) -> Result<Server, ApiError> {
        let request = self.request(Method::GET, "servers.get", SERVERS, &[id])?;
        Ok(self.send(request).await?.json()?)
    }

    /// The blocks of the account that fulfil all conditions, if the server honours them: check again.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn ip_blocks(&self, conditions: &[TagFilter]) -> Result<Listed<IpBlock>, ApiError> {
        self.list("ip-blocks.list", BLOCKS, conditions).await
    }

    /// One block.
    ///
    /// # Errors
    ///
    /// As [`server`](Self::server).
    pub async fn ip_block(&self, id: &str) -> Result<IpBlock, ApiError> {
        let request = self.request(Method::GET, "ip-blocks.get", BLOCKS, &[id])?;
        Ok(self.send(request).await?.json()?)
    }

    /// Buys a block.
    ///
    /// # Repeatability
    ///
    /// None, and it costs money. If [`ApiError::maybe_applied`], look for it by its tags first.
    ///
    /// # Errors
    ///
    /// [`Class::Exhausted`] if there is none of that size.
    pub async fn create_ip_block(&self, new: &NewIpBlock) -> Result<IpBlock, ApiError> {
        let request = self.request(Method::POST, "ip-blocks.create", BLOCKS, &[])?;
        Ok(self.send(request.json(new)).await?.json()?)
    }

    /// Replaces all tags of a block.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn put_ip_block_tags(&self, id: &str, tags: &[BlockTag]) -> Result<(), ApiError> {
        let request = self.request(Method::PUT, "ip-blocks.tag", BLOCKS, &[id, "tags"])?;
        self.send(request.json(&tags)).await.map(drop)
    }

    /// Gives a block back. It must be attached to nothing.
    ///
    /// # Errors
    ///
    /// See [`Class`]; a `404` of the API is none.
    pub async fn delete_ip_block(&self, id: &str) -> Result<Deleted, ApiError> {
        let request = self.request(Method::DELETE, "ip-blocks.delete", BLOCKS, &[id])?;
        match self.send(request).await {
            Ok(_) => Ok(Deleted::Accepted),
            Err(error) if error.class == Class::NotFound => Ok(Deleted::AlreadyGone),
            Err(error) => Err(error),
        }
    }

    /// One public network.
    ///
    /// # Errors
    ///
    /// As [`server`](Self::server).
    pub async fn public_network(&self, id: &str) -> Result<PublicNetwork, ApiError> {
        let request = self.request(Method::GET, "public-networks.get", NETWORKS, &[id])?;
        Ok(self.send(request).await?.json()?)
    }

    /// Begins to attach a block to a network; the API goes on by itself.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`] if the network or the block is busy.
    pub async fn attach(&self, network: &str, block: &str) -> Result<(), ApiError> {
        let segments = [network, "ip-blocks"];
        let request = self.request(Method::POST, "public-networks.attach", NETWORKS, &segments)?;
        self.send(request.json(&json!({ "id": block }))).await.map(drop)
    }

    /// Begins to take a block off a network; the API goes on by itself.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`] if the network or the block is busy, or a server in the network uses one of its addresses.
    pub async fn detach(&self, network: &str, block: &str) -> Result<(), ApiError> {
        let segments = [network, "ip-blocks", block];
        let request = self.request(Method::DELETE, "public-networks.detach", NETWORKS, &segments)?;
        self.send(request).await.map(drop)
    }

    /// The tag names that the account knows.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn tags(&self) -> Result<Listed<Tag>, ApiError> {
        self.list("tags.list", TAGS, &[]).await
    }

    /// Makes a tag name known.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`] if it is known already.
    pub async fn create_tag(&self, name: &str) -> Result<(), ApiError> {
        let new = NewTag {
            name: name.to_owned(),
            is_billing_tag: false,
        };
        let request = self.request(Method::POST, "tags.create", TAGS, &[])?;
        self.send(request.json(&new)).await.map(drop)
    }

    /// A whole list.
    async fn list<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        root: &'static str,
        conditions: &[TagFilter],
    ) -> Result<Listed<T>, ApiError> {
        let mut request = self.request(Method::GET, operation, root, &[])?;
        for tag in conditions {
            request = request.query("tag", &tag.to_string());
        }
        self.lists.read(operation, &self.send(request).await?)
    }

    /// Sends a call, and once more with a new token if the first was refused.
    async fn send(&self, request: Request) -> Result<bowline_cloud_http::Response, ApiError> {
        let token = self.tokens.token().await?;
        let error = match self.http.0.send(request.clone().bearer(&token.secret)).await {
            Ok(response) => return Ok(response),
            Err(error) => ApiError::from(error),
        };
        if error.class != Class::Unauthenticated {
            return Err(error);
        }
        tracing::debug!(
            operation = error.http.call.operation,
            "Token refused, fetching another"
        );
        self.tokens.forget(&token);
        let token = self.tokens.token().await?;
        Ok(self.http.0.send(request.bearer(&token.secret)).await?)
    }

    fn request(
        &self,
        method: Method,
        operation: &'static str,
        root: &'static str,
        segments: &[&str],
    ) -> Result<Request, ApiError> {
        let url = resolve(&self.base, root, segments).map_err(|error| {
            let failure = Failure::Unsendable(error.to_string());
            HttpError::new(operation, method.clone(), root, failure)
        })?;
        Ok(match method {
            Method::GET => Request::read(method, operation, url),
            _ => Request::write(method, operation, url),
        })
    }
}

#[cfg(test)]
mod tests;
