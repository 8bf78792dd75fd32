//! The project in which everything happens: its id, asked for once where it is given by name.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline_cloud_http::{Class, SharedRead};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::settings::Project;
use crate::sign::Parameters;
use crate::wire;
use crate::wire::ProjectId;

/// The shortest time between two questions for the id when the first failed.
const INTERVAL: Duration = Duration::from_millis(500);

const COMMAND: &str = "listProjects";

/// Where commands get the id of the project from. Clones share it.
#[derive(Clone)]
pub(crate) struct Scope {
    known: Arc<OnceLock<Option<ProjectId>>>,
    /// None: there is nothing to ask.
    resolve: Option<SharedRead<Result<ProjectId, ApiError>>>,
}

impl Scope {
    pub(crate) fn new(project: Option<Project>, caller: &Caller) -> Self {
        let known = Arc::new(OnceLock::new());
        let name = match project {
            None => {
                let _ = known.set(None);
                return Self { known, resolve: None };
            }
            Some(Project::Id(id)) => {
                let _ = known.set(Some(id));
                return Self { known, resolve: None };
            }
            Some(Project::Name(name)) => name,
        };
        let source = (caller.clone(), name);
        let resolve = SharedRead::single(INTERVAL, &source, |(caller, name)| resolve(caller, name));
        Self {
            known,
            resolve: Some(resolve),
        }
    }

    /// The id; `None` if there is no project.
    pub(crate) async fn id(&self) -> Result<Option<&ProjectId>, ApiError> {
        if let Some(known) = self.known.get() {
            return Ok(known.as_ref());
        }
        let found = match &self.resolve {
            Some(resolve) => Some(resolve.ask().await?),
            None => None,
        };
        Ok(self.known.get_or_init(|| found).as_ref())
    }
}

/// The server finds names by a part of them, so the whole name is compared here.
async fn resolve(caller: Caller, name: String) -> Result<ProjectId, ApiError> {
    let mut parameters = Parameters::default();
    parameters.set("name", name.as_str());
    let found: Vec<wire::Project> = caller.list(COMMAND, &parameters).await?;
    let mut exact = found.iter().filter(|project| project.name == name);
    let problem = match (exact.next(), exact.next(), found.as_slice()) {
        (Some(project), None, _) | (None, _, [project]) if project.name == name => {
            return Ok(project.id.clone());
        }
        (Some(_), Some(_), _) => "more than one project of these keys has the name",
        _ => "these keys see no project of the name",
    };
    let doubt = match &*caller.keys().doubt {
        "" => String::new(),
        doubt => format!("; {doubt}"),
    };
    Err(ApiError::noted(
        Class::Denied,
        format!("{problem} {name:?}: `project-id` takes the id of a project, or its exact name{doubt}"),
        caller.failure(COMMAND, problem),
    ))
}
