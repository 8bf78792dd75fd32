//! Writes: what happens between a decoded body and the store (`k8s.io/apiserver/pkg/registry/generic`).

use std::sync::Arc;

use jiff::Timestamp;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::canonical::canonicalize;
use crate::kind::Kind;
use crate::meta;
use crate::path::{at, list, remove, set, text, texts};
use crate::status::Status;
use crate::store::{Store, key_of};
use crate::strategy::{Change, Context, Part};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What changes under the lock.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) random: StdRng,
}

/// How an update comes by its object.
pub(crate) enum Update<'a> {
    /// PUT: the object replaces the old one.
    Put(Value),
    /// PATCH: the object is made from the old one.
    Patch(&'a dyn Fn(&Value) -> Result<Value, Status>),
}

/// What must hold for a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl Preconditions {
    /// From `DeleteOptions`.
    pub(crate) fn of(options: &Value) -> Self {
        let field = |name: &str| {
            at(options, &format!("preconditions.{name}"))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        Self {
            uid: field("uid"),
            resource_version: field("resourceVersion"),
        }
    }
}

/// What has become of a write.
pub(crate) enum Written {
    Created(Arc<Value>),
    Updated(Arc<Value>),
    /// The object is gone; this was its last state.
    Deleted(Arc<Value>),
}

/// One write.
pub(crate) struct Registry<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Timestamp,
    pub(crate) minor: u32,
    pub(crate) dry_run: bool,
}

impl Registry<'_> {
    pub(crate) fn create(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Value>, Status> {
        self.decode(kind, &mut object)?;
        meta::adopt_namespace(kind, &mut object, namespace)?;
        self.check_namespace(kind, namespace, &object)?;
        if !text(&object, "metadata.resourceVersion").is_empty() {
            return Err(Status::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        meta::before_create(kind, &mut object, self.now, &mut self.state.random);
        let name = text(&object, "metadata.name").to_owned();
        kind.strategy().prepare_create(&mut object);
        // Upstream allocates first and releases again if validation fails. Nothing shows of that, so the order here
        // is the one that needs no release.
        let mut errors = Vec::new();
        let rule = kind.strategy().name_rule(kind.names, self.minor);
        meta::validate(&object, rule, &mut errors);
        Status::check(kind, &name, &errors)?;
        kind.strategy().allocate(&mut object, &mut self.context())?;
        kind.strategy().validate(&object, &mut errors);
        Status::check(kind, &name, &errors)?;
        if self.state.store.get(kind, namespace, &name).is_some() {
            return Err(Status::already_exists(kind, &name));
        }
        self.settle(kind, &mut object)?;
        Ok(self.put(kind, object))
    }

    pub(crate) fn update(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        part: Part,
        update: Update<'_>,
    ) -> Result<Written, Status> {
        let Some(old) = self.state.store.get(kind, namespace, name).cloned() else {
            return match update {
                Update::Put(object) if kind.create_on_update && part == Part::Main => {
                    check_name(&object, name)?;
                    let uid = text(&object, "metadata.uid");
                    if !uid.is_empty() {
                        return Err(wrong_uid(kind, namespace, name, uid, ""));
                    }
                    self.create_by_update(kind, namespace, object)
                        .map(Written::Created)
                }
                _ => Err(Status::not_found(kind, name)),
            };
        };
        let is_patch = matches!(update, Update::Patch(_));
        let mut new = match update {
            Update::Put(object) => object,
            Update::Patch(patch) => patch(&old)?,
        };
        match canonicalize(kind, &mut new) {
            Ok(()) => kind.strategy().default(&mut new),
            Err(problem) if is_patch => return Err(crate::patch::PatchType::misfit(&new, &problem)),
            Err(problem) => return Err(misfit(kind, &problem)),
        }
        check_name(&new, name)?;
        meta::adopt_namespace(kind, &mut new, namespace)?;
        check_preconditions(kind, &mut new, &old, is_patch)?;
        if part == Part::Main {
            kind.strategy().reallocate(&mut new, &old, &mut self.context())?;
        }
        meta::before_update(&mut new, &old);
        kind.strategy().prepare_update(&mut new, &old, part);
        let mut errors = Vec::new();
        meta::validate_update(&new, &old, &mut errors);
        let change = Change {
            new: &new,
            old: &old,
            part,
            minor: self.minor,
        };
        kind.strategy().validate_update(&change, &mut errors);
        if part == Part::Main {
            kind.strategy().validate(&new, &mut errors);
        }
        Status::check(kind, name, &errors)?;
        self.settle(kind, &mut new)?;
        if at(&old, "metadata.deletionTimestamp").is_some() && list(&new, "metadata.finalizers").is_empty() {
            if !self.dry_run {
                self.state.store.delete(kind, &key_of(&old));
            }
            return Ok(Written::Deleted(Arc::new(new)));
        }
        if new == *old {
            return Ok(Written::Updated(old));
        }
        Ok(Written::Updated(self.put(kind, new)))
    }

    pub(crate) fn delete(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
    ) -> Result<Written, Status> {
        let Some(old) = self.state.store.get(kind, namespace, name).cloned() else {
            return Err(Status::not_found(kind, name));
        };
        let conflict = |why: String| {
            // Upstream names the kind here where other conflicts name the resource.
            Err(Status::conflict_of_kind(kind, name, &why))
        };
        let (uid, version) = (text(&old, "metadata.uid"), text(&old, "metadata.resourceVersion"));
        if let Some(wanted) = preconditions.uid.as_deref().filter(|wanted| *wanted != uid) {
            return conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might \
                 have been deleted and then recreated"
            ));
        }
        if let Some(wanted) = preconditions
            .resource_version
            .as_deref()
            .filter(|wanted| *wanted != version)
        {
            return conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            ));
        }
        let kept_by_spec = kind.kind == "Namespace" && !list(&old, "spec.finalizers").is_empty();
        if texts(&old, "metadata.finalizers").is_empty() && !kept_by_spec {
            if self.dry_run {
                return Ok(Written::Deleted(old));
            }
            let last = self.state.store.delete(kind, &key_of(&old));
            if kind.kind == "Service" {
                self.delete_endpoints(&old);
            }
            return Ok(Written::Deleted(last.unwrap_or(old)));
        }
        let mut marked = Value::clone(&old);
        meta::mark_deleted(&mut marked, self.now);
        if kept_by_spec {
            set(&mut marked, "status.phase", "Terminating");
            if texts(&old, "metadata.finalizers").is_empty() {
                remove(&mut marked, "metadata.deletionGracePeriodSeconds");
            }
        }
        if marked == *old {
            return Ok(Written::Updated(old));
        }
        Ok(Written::Updated(self.put(kind, marked)))
    }

    /// Seeds or replaces an object with its status, for tests and demos.
    pub(crate) fn apply(&mut self, kind: &'static Kind, object: Value) -> Result<Arc<Value>, Status> {
        let namespace = match text(&object, "metadata.namespace") {
            _ if !kind.namespaced => String::new(),
            "" => "default".to_owned(),
            given => given.to_owned(),
        };
        let name = text(&object, "metadata.name").to_owned();
        let mut main = object.clone();
        remove(&mut main, "metadata.resourceVersion");
        let mut current = if self.state.store.get(kind, &namespace, &name).is_some() {
            if let Some(old) = self.state.store.get(kind, &namespace, &name) {
                let version = text(old, "metadata.resourceVersion").to_owned();
                set(&mut main, "metadata.resourceVersion", version);
            }
            match self.update(kind, &namespace, &name, Part::Main, Update::Put(main))? {
                Written::Created(object) | Written::Updated(object) | Written::Deleted(object) => object,
            }
        } else {
            self.create(kind, &namespace, main)?
        };
        if kind.has_status
            && let Some(status) = at(&object, "status")
        {
            let mut whole = Value::clone(&current);
            set(&mut whole, "status", status.clone());
            let name = text(&current, "metadata.name").to_owned();
            if let Written::Updated(object) =
                self.update(kind, &namespace, &name, Part::Status, Update::Put(whole))?
            {
                current = object;
            }
        }
        Ok(current)
    }

    fn create_by_update(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Value>, Status> {
        remove(&mut object, "metadata.resourceVersion");
        self.create(kind, namespace, object)
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            store: &self.state.store,
            random: &mut self.state.random,
        }
    }

    fn decode(&self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        let (api_version, own) = (
            text(object, "apiVersion").to_owned(),
            text(object, "kind").to_owned(),
        );
        if (!own.is_empty() && own != kind.kind)
            || (!api_version.is_empty() && api_version != kind.api_version())
        {
            return Err(Status::wrong_kind(kind, &api_version, &own));
        }
        canonicalize(kind, object).map_err(|problem| misfit(kind, &problem))?;
        kind.strategy().default(object);
        Ok(())
    }

    /// What the strategy left behind gets the stored form, too.
    fn settle(&self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        canonicalize(kind, object).map_err(|problem| Status::internal(&problem))?;
        kind.strategy().finish(object);
        Ok(())
    }

    /// `NamespaceLifecycle`: nothing is created in a namespace that is missing or on its way out.
    fn check_namespace(&self, kind: &Kind, namespace: &str, object: &Value) -> Result<(), Status> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(namespaces) = Kind::named("Namespace") else {
            return Ok(());
        };
        let Some(found) = self.state.store.get(namespaces, "", namespace) else {
            return Err(Status::not_found(namespaces, namespace));
        };
        if at(found, "metadata.deletionTimestamp").is_some() {
            let name = text(object, "metadata.name");
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let cause = json!({
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            });
            return Err(Status::forbidden(kind.group, kind.plural, name, &why).with_cause(cause));
        }
        Ok(())
    }

    /// The Endpoints of a Service go with it.
    fn delete_endpoints(&mut self, service: &Value) {
        if let Some(endpoints) = Kind::named("Endpoints") {
            self.state.store.delete(endpoints, &key_of(service));
        }
    }

    fn put(&mut self, kind: &'static Kind, object: Value) -> Arc<Value> {
        if self.dry_run {
            Arc::new(object)
        } else {
            self.state.store.put(kind, object)
        }
    }
}

/// UID and resource version in what comes in must be those of what is there.
fn check_preconditions(kind: &Kind, new: &mut Value, old: &Value, is_patch: bool) -> Result<(), Status> {
    let name = text(old, "metadata.name");
    let (wanted, found) = (text(new, "metadata.uid"), text(old, "metadata.uid"));
    // In a patch a foreign UID is an attempt to change it, which validation refuses.
    if !is_patch && !wanted.is_empty() && wanted != found {
        return Err(wrong_uid(
            kind,
            text(old, "metadata.namespace"),
            name,
            wanted,
            found,
        ));
    }
    let version = text(old, "metadata.resourceVersion");
    match text(new, "metadata.resourceVersion") {
        wanted if wanted == version => Ok(()),
        "" if kind.unconditional_update => {
            set(new, "metadata.resourceVersion", version);
            Ok(())
        }
        "" => {
            let error = crate::field::FieldError::invalid(
                "metadata.resourceVersion",
                0,
                "must be specified for an update",
            );
            Err(Status::invalid(kind.group, kind.plural, name, &[error]))
        }
        wanted if wanted.parse::<u64>().is_err() => Err(Status::new(
            500,
            "",
            format!("strconv.ParseUint: parsing {wanted:?}: invalid syntax"),
        )),
        _ => Err(Status::conflict(kind, name, MODIFIED)),
    }
}

fn wrong_uid(kind: &Kind, namespace: &str, name: &str, wanted: &str, found: &str) -> Status {
    let key = kind.storage_key(namespace, name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Status::conflict(kind, name, &why)
}

fn check_name(object: &Value, name: &str) -> Result<(), Status> {
    match text(object, "metadata.name") {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        own if own != name => Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

fn misfit(kind: &Kind, problem: &str) -> Status {
    Status::bad_request(format!(
        "{0} in version {1:?} cannot be handled as a {0}: {problem}",
        kind.kind, kind.version
    ))
}
