//! POST, PUT, PATCH and DELETE.

use serde_json::{Value, json};

use super::{Answer, namespace_of, shaped};
use crate::core::Core;
use crate::kind::Kind;
use crate::patch::PatchType;
use crate::path::text;
use crate::registry::{Preconditions, Update, Written};
use crate::request::Request;
use crate::selector::Selector;
use crate::status::{self, Status};
use crate::strategy::Part;

pub(super) fn answer(
    core: &Core,
    kind: &'static Kind,
    request: &Request,
    verb: &str,
    subresource: &str,
) -> Result<Answer, Status> {
    let part = match subresource {
        "" => Part::Main,
        "status" if kind.has_status => Part::Status,
        _ => return Err(Status::no_such_path()),
    };
    if request.target.name.is_empty() && matches!(verb, "update" | "patch") {
        return Err(Status::method_not_allowed());
    }
    match (verb, part) {
        ("create", Part::Main) if request.target.name.is_empty() => create(core, kind, request),
        ("update", _) => update(core, kind, request, part),
        ("patch", _) => patch(core, kind, request, part),
        ("delete", Part::Main) => delete(core, kind, request),
        ("deletecollection", Part::Main) if kind.kind != "Namespace" => {
            delete_collection(core, kind, request)
        }
        _ => Err(Status::method_not_allowed()),
    }
}

fn create(core: &Core, kind: &'static Kind, request: &Request) -> Result<Answer, Status> {
    let object = request.object()?;
    let made = {
        let mut state = core.lock();
        core.registry(&mut state, request.is_dry_run())
            .create(kind, namespace_of(kind, request), object)?
    };
    Ok(Answer::Object(201, shaped(core, kind, request, &made)?))
}

fn update(core: &Core, kind: &'static Kind, request: &Request, part: Part) -> Result<Answer, Status> {
    let mut object = request.object()?;
    let (api_version, own) = (text(&object, "apiVersion"), text(&object, "kind"));
    if (!own.is_empty() && own != kind.kind) || (!api_version.is_empty() && api_version != kind.api_version())
    {
        return Err(Status::wrong_kind(kind, api_version, own));
    }
    core.faults.admit(&request.target, &mut object)?;
    write(core, kind, request, part, Update::Put(object))
}

fn patch(core: &Core, kind: &'static Kind, request: &Request, part: Part) -> Result<Answer, Status> {
    let patch_type = PatchType::of(&request.content_type)?;
    let body = request
        .json()?
        .ok_or_else(|| Status::bad_request("error decoding patch: the body is empty"))?;
    write(
        core,
        kind,
        request,
        part,
        Update::Patch(&|old| {
            let mut new = patch_type.apply(kind, old, &body)?;
            core.faults.admit(&request.target, &mut new)?;
            Ok(new)
        }),
    )
}

fn write(
    core: &Core,
    kind: &'static Kind,
    request: &Request,
    part: Part,
    update: Update<'_>,
) -> Result<Answer, Status> {
    let written = {
        let mut state = core.lock();
        let mut registry = core.registry(&mut state, request.is_dry_run());
        registry.update(
            kind,
            namespace_of(kind, request),
            &request.target.name,
            part,
            update,
        )?
    };
    let (code, object) = match written {
        Written::Created(object) => (201, object),
        Written::Updated(object) | Written::Deleted(object) => (200, object),
    };
    Ok(Answer::Object(code, shaped(core, kind, request, &object)?))
}

fn delete(core: &Core, kind: &'static Kind, request: &Request) -> Result<Answer, Status> {
    let (options, dry_run) = delete_options(request)?;
    let written = {
        let mut state = core.lock();
        let mut registry = core.registry(&mut state, dry_run);
        let preconditions = Preconditions::of(&options);
        registry.delete(
            kind,
            namespace_of(kind, request),
            &request.target.name,
            &preconditions,
        )?
    };
    let answer = match written {
        Written::Deleted(object) if !kind.returns_deleted => status::deleted(
            kind,
            text(&object, "metadata.name"),
            text(&object, "metadata.uid"),
        ),
        Written::Created(object) | Written::Updated(object) | Written::Deleted(object) => {
            shaped(core, kind, request, &object)?
        }
    };
    Ok(Answer::Object(200, answer))
}

fn delete_collection(core: &Core, kind: &'static Kind, request: &Request) -> Result<Answer, Status> {
    let selector = Selector::of(kind, request)?;
    let (_, dry_run) = delete_options(request)?;
    let namespace = namespace_of(kind, request);
    let mut state = core.lock();
    let chosen: Vec<_> = state
        .store
        .all(kind)
        .filter(|(key, object)| {
            (namespace.is_empty() || key.0 == namespace) && selector.matches(kind, object)
        })
        .map(|(key, object)| (key.clone(), object.clone()))
        .collect();
    let mut registry = core.registry(&mut state, dry_run);
    let mut items = Vec::new();
    for ((namespace, name), object) in chosen {
        registry.delete(kind, &namespace, &name, &Preconditions::default())?;
        items.push(Value::clone(&object));
    }
    let revision = registry.state.store.revision().to_string();
    Ok(Answer::Object(
        200,
        json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": revision},
            "items": items,
        }),
    ))
}

/// `DeleteOptions` come in the body or, if there is none, in the query. Propagation is somebody else's work.
fn delete_options(request: &Request) -> Result<(Value, bool), Status> {
    Ok(match request.json()? {
        Some(options) => {
            let dry_run = crate::path::texts(&options, "dryRun").contains(&"All");
            (options, dry_run)
        }
        None => (Value::default(), request.is_dry_run()),
    })
}
