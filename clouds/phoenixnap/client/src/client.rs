//! The calls.

use bowline_cloud_http::{
    Class, CloudHttp, CredentialsFile, Failure, HttpError, Kind, Method, Request, Url, resolve,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// One call without its path.
struct Call<'a> {
    kind: Kind,
    method: Method,
    operation: &'static str,
    root: &'static str,
    segments: &'a [&'a str],
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

    /// All servers of the account.
    ///
    /// # Errors
    ///
    /// See [`Class`], as for every call.
    pub async fn servers(&self) -> Result<Listed<Server>, ApiError> {
        self.list(read("servers.list", SERVERS, &[]), |request| request)
            .await
    }

    /// One server.
    ///
    /// # Errors
    ///
    /// [`Class::NotFound`] or [`Class::Denied`] if there is none; the latter also for lost rights.
    pub async fn server(&self, id: &str) -> Result<Server, ApiError> {
        self.answer(read("servers.get", SERVERS, &[id]), |request| request)
            .await
    }

    /// The blocks of the account that fulfil all conditions, if the server honours them: check again.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn ip_blocks(&self, conditions: &[TagFilter]) -> Result<Listed<IpBlock>, ApiError> {
        self.list(read("ip-blocks.list", BLOCKS, &[]), |request| {
            conditions
                .iter()
                .fold(request, |request, tag| request.query("tag", &tag.to_string()))
        })
        .await
    }

    /// One block.
    ///
    /// # Errors
    ///
    /// As [`server`](Self::server).
    pub async fn ip_block(&self, id: &str) -> Result<IpBlock, ApiError> {
        self.answer(read("ip-blocks.get", BLOCKS, &[id]), |request| request)
            .await
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
        let call = write(Method::POST, "ip-blocks.create", BLOCKS, &[]);
        self.answer(call, |request| request.json(new)).await
    }

    /// Replaces all tags of a block.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn put_ip_block_tags(&self, id: &str, tags: &[BlockTag]) -> Result<(), ApiError> {
        let segments = [id, "tags"];
        let call = write(Method::PUT, "ip-blocks.tag", BLOCKS, &segments);
        self.send(call, |request| request.json(&tags)).await.map(drop)
    }

    /// Gives a block back. It must be attached to nothing.
    ///
    /// # Errors
    ///
    /// See [`Class`]; a `404` of the API is none.
    pub async fn delete_ip_block(&self, id: &str) -> Result<Deleted, ApiError> {
        let segments = [id];
        let call = write(Method::DELETE, "ip-blocks.delete", BLOCKS, &segments);
        match self.send(call, |request| request).await {
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
        self.answer(read("public-networks.get", NETWORKS, &[id]), |request| request)
            .await
    }

    /// Begins to attach a block to a network; the API goes on by itself.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`] if the network or the block is busy.
    pub async fn attach(&self, network: &str, block: &str) -> Result<(), ApiError> {
        #[derive(Serialize)]
        struct Attach<'a> {
            id: &'a str,
        }
        let segments = [network, "ip-blocks"];
        let call = write(Method::POST, "public-networks.attach", NETWORKS, &segments);
        self.send(call, |request| request.json(&Attach { id: block }))
            .await
            .map(drop)
    }

    /// Begins to take a block off a network; the API goes on by itself.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`] if the network or the block is busy, or a server in the network uses one of its addresses.
    pub async fn detach(&self, network: &str, block: &str) -> Result<(), ApiError> {
        let segments = [network, "ip-blocks", block];
        let call = write(Method::DELETE, "public-networks.detach", NETWORKS, &segments);
        self.send(call, |request| request).await.map(drop)
    }

    /// The tag names that the account knows.
    ///
    /// # Errors
    ///
    /// See [`Class`].
    pub async fn tags(&self) -> Result<Listed<Tag>, ApiError> {
        self.list(read("tags.list", TAGS, &[]), |request| request).await
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
        let call = write(Method::POST, "tags.create", TAGS, &[]);
        self.send(call, |request| request.json(&new)).await.map(drop)
    }

    /// A whole list.
    async fn list<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
        dress: impl Fn(Request) -> Request,
    ) -> Result<Listed<T>, ApiError> {
        let operation = call.operation;
        let response = self.send(call, dress).await?;
        self.lists.read(operation, &response)
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
        dress: impl Fn(Request) -> Request,
    ) -> Result<T, ApiError> {
        Ok(self.send(call, dress).await?.json()?)
    }

    /// Sends a call, and once more with a new token if the first was refused.
    async fn send(
        &self,
        call: Call<'_>,
        dress: impl Fn(Request) -> Request,
    ) -> Result<bowline_cloud_http::Response, ApiError> {
        let request = dress(self.request(&call)?);
        let token = self.tokens.token().await?;
        let error = match self.http.0.send(request.clone().bearer(&token.secret)).await {
            Ok(response) => return Ok(response),
            Err(error) => ApiError::from(error),
        };
        if error.class != Class::Unauthenticated {
            return Err(error);
        }
        tracing::debug!(operation = call.operation, "Token refused, fetching another");
        self.tokens.forget(&token);
        let token = self.tokens.token().await?;
        Ok(self.http.0.send(request.bearer(&token.secret)).await?)
    }

    fn request(&self, call: &Call<'_>) -> Result<Request, ApiError> {
        let url = resolve(&self.base, call.root, call.segments).map_err(|error| {
            let failure = Failure::Unsendable(error.to_string());
            HttpError::new(call.operation, call.method.clone(), call.root, failure)
        })?;
        let method = call.method.clone();
        Ok(match call.kind {
            Kind::Read => Request::read(method, call.operation, url),
            Kind::Write => Request::write(method, call.operation, url),
        })
    }
}

fn read<'a>(operation: &'static str, root: &'static str, segments: &'a [&'a str]) -> Call<'a> {
    Call {
        kind: Kind::Read,
        method: Method::GET,
        operation,
        root,
        segments,
    }
}

fn write<'a>(
    method: Method,
    operation: &'static str,
    root: &'static str,
    segments: &'a [&'a str],
) -> Call<'a> {
    Call {
        kind: Kind::Write,
        method,
        operation,
        root,
        segments,
    }
}

#[cfg(test)]
mod tests;
