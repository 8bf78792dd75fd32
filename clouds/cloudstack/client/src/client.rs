//! The client. Its commands are in [`reads`] and [`writes`].

mod reads;
mod writes;

use std::fmt;
use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CredentialsFile};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::project::Scope;
use crate::settings::{Settings, WallClock};
use crate::sign::{Keys, Parameters};
use crate::wire::{JobId, ProjectId};

/// A client of the API. Clones share everything below.
///
/// Reads are repeated by the HTTP stack where that can help; writes are sent once.
#[derive(Clone)]
pub struct Client {
    caller: Caller,
    scope: Scope,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.caller.http.provider())
    }
}

/// What became of something that was to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// The server goes on by itself.
    Started(JobId),
    /// The object was not there any more.
    AlreadyGone,
}

impl Client {
    /// A client. Makes no call. With a file of keys, those in it take the place of the settings' whenever it changes.
    pub fn new(
        http: CloudHttp,
        settings: &Settings,
        file: Option<CredentialsFile<Keys>>,
        clock: WallClock,
    ) -> Self {
        let caller = Caller {
            http,
            url: settings.url.clone(),
            keys: Arc::new(settings.keys.clone()),
            file: file.map(Arc::new),
            clock,
            cookies: Arc::default(),
            accepted: Arc::default(),
            takes_short_lists: false,
        };
        let scope = Scope::new(settings.project.clone(), &caller);
        Self { caller, scope }
    }

    /// The same client for questions where what is listed counts and not what is missing: a list that ends before the
    /// server's own count, each time that it is read, is all there is.
    #[must_use]
    pub fn taking_short_lists(&self) -> Self {
        let mut client = self.clone();
        client.caller.takes_short_lists = true;
        client
    }

    /// The id of the project in which everything happens. Asked for once if it is given by name, by the first command that
    /// needs it: call this to know early whether there is such a project.
    ///
    /// # Errors
    ///
    /// [`Class::Denied`](crate::Class::Denied) if these keys see no such project, or the failure of the question.
    pub async fn project(&self) -> Result<Option<&ProjectId>, ApiError> {
        self.scope.id().await
    }

    /// Adds the project, for the commands that know projects.
    async fn in_project(&self, mut parameters: Parameters) -> Result<Parameters, ApiError> {
        if let Some(id) = self.scope.id().await? {
            parameters.set("projectid", id.as_str());
        }
        Ok(parameters)
    }
}
