//! A request, taken apart.

use http::{HeaderMap, Method, Uri, header};
use serde_json::Value;

use crate::access::{Attributes, User};
use crate::protobuf;
use crate::status::Status;
use crate::table::Include;

/// The encoding in which Go clients write.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// In what form the client wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Table,
    Partial,
}

/// A request, taken apart. It has no `Debug`: its body may hold tokens.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) raw_query: String,
    query: Vec<(String, String)>,
    pub(crate) content_type: String,
    pub(crate) user_agent: String,
    accept: String,
    pub(crate) body: Vec<u8>,
    pub(crate) user: User,
    /// Verb, group, resource and so on; the resource is empty for other paths.
    pub(crate) target: Attributes,
    pub(crate) version: String,
}

impl Request {
    pub(crate) fn new(method: Method, uri: &Uri, headers: &HeaderMap, body: Vec<u8>) -> Self {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let raw_query = uri.query().unwrap_or_default().to_owned();
        let accept: Vec<&str> = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let mut request = Self {
            path: uri.path().to_owned(),
            query: raw_query
                .split('&')
                .filter(|pair| !pair.is_empty())
                .map(pair)
                .collect(),
            raw_query,
            content_type: text(header::CONTENT_TYPE)
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
            user_agent: text(header::USER_AGENT),
            accept: accept.join(","),
            body,
            user: User::anonymous(),
            target: Attributes {
                verb: method.as_str().to_lowercase(),
                ..Attributes::default()
            },
            version: String::new(),
            method,
        };
        request.resolve();
        request
    }

    /// The value of a query parameter; empty if it is not there.
    pub(crate) fn query(&self, name: &str) -> &str {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    /// A boolean query parameter, in the spellings Go's decoder knows.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.query
            .iter()
            .any(|(key, value)| key == name && !matches!(value.as_str(), "0" | "false" | "False"))
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query("dryRun") == "All"
    }

    /// The body as JSON; empty is `None`.
    pub(crate) fn json(&self) -> Result<Option<Value>, Status> {
        let decoded = match self.content_type.as_str() {
            _ if self.body.is_empty() => return Ok(None),
            PROTOBUF => protobuf::decode(&self.body),
            _ => serde_json::from_slice(&self.body).map_err(|error| error.to_string()),
        };
        decoded
            .map(Some)
            .map_err(|problem| Status::bad_request(format!("error decoding request body: {problem}")))
    }

    /// The object in the body of a create or update.
    pub(crate) fn object(&self) -> Result<Value, Status> {
        if !matches!(self.content_type.as_str(), "" | "application/json" | PROTOBUF) {
            return Err(Status::unsupported_media_type(&format!(
                "application/json, {PROTOBUF}"
            )));
        }
        self.json()?
            .ok_or_else(|| Status::bad_request("unable to decode object: the body is empty"))
    }

    /// The first form in `Accept` that can be served.
    pub(crate) fn form(&self) -> Result<Form, Status> {
        if self.accept.trim().is_empty() {
            return Ok(Form::Plain);
        }
        for offer in self.accept.split(',') {
            let mut parts = offer.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let (mut form, mut known) = (Form::Plain, true);
            for parameter in parts {
                match parameter.split_once('=') {
                    Some(("as", "Table")) => form = Form::Table,
                    Some(("as", "PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                        form = Form::Partial
                    }
                    Some(("as", _)) => known = false,
                    Some(("v", version)) => known &= version == "v1",
                    Some(("g", group)) => known &= group == "meta.k8s.io",
                    _ => {}
                }
            }
            if known {
                return Ok(form);
            }
        }
        Err(Status::not_acceptable())
    }

    /// What rows of a table carry.
    pub(crate) fn include(&self) -> Include {
        match self.query("includeObject") {
            "None" => Include::Nothing,
            "Object" => Include::Object,
            _ => Include::Metadata,
        }
    }

    /// Finds out what the path is about, as `RequestInfo` of a real server does.
    fn resolve(&mut self) {
        let parts: Vec<String> = self
            .path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| decode(part, false))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match &parts[..] {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => {
                self.target.path.clone_from(&self.path);
                return;
            }
        };
        // The old form of watches: /api/v1/watch/nodes.
        let (watch_path, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match rest {
            ["namespaces", name, "status" | "finalize"] => (*name, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            ["namespaces", name] => (*name, rest),
            _ => ("", rest),
        };
        let resource = rest.first().copied().unwrap_or_default();
        let name = rest.get(1).copied().unwrap_or_default();
        let subresource = rest.get(2..).unwrap_or_default().join("/");
        let by_field = self
            .query("fieldSelector")
            .strip_prefix("metadata.name=")
            .filter(|name| !name.contains(','));
        let selected = by_field.unwrap_or_default().to_owned();
        let other = self.method.as_str().to_lowercase();
        let verb = match (self.method.as_str(), name) {
            ("GET" | "HEAD", _) if watch_path || self.flag("watch") => "watch",
            ("GET" | "HEAD", "") => "list",
            ("GET" | "HEAD", _) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", "") => "deletecollection",
            ("DELETE", _) => "delete",
            _ => &other,
        }
        .to_owned();
        let is_collection = matches!(verb.as_str(), "list" | "watch" | "deletecollection");
        self.target = Attributes {
            verb,
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource,
            namespace: namespace.to_owned(),
            name: if name.is_empty() && is_collection {
                selected
            } else {
                name.to_owned()
            },
            path: String::new(),
        };
        version.clone_into(&mut self.version);
    }
}

fn pair(text: &str) -> (String, String) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    (decode(key, true), decode(value, true))
}

/// Percent decoding; in queries a plus is a blank.
fn decode(text: &str, query: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(if query && *first == b'+' { b' ' } else { *first });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, uri: &str) -> Request {
        Request::new(method, &uri.parse().unwrap(), &HeaderMap::new(), Vec::new())
    }

    #[test]
    fn paths_and_methods_become_verbs_and_resources() {
        for (method, uri, expected) in [
            (Method::GET, "/api/v1/nodes", "list  nodes   "),
            (Method::GET, "/api/v1/nodes?watch=true", "watch  nodes   "),
            (Method::GET, "/api/v1/nodes?watch=0", "list  nodes   "),
            (Method::GET, "/api/v1/nodes/a", "get  nodes   a"),
            (Method::PATCH, "/api/v1/nodes/a/status", "patch  nodes status  a"),
            (
                Method::PUT,
                "/api/v1/namespaces/n/services/s",
                "update  services  n s",
            ),
            (
                Method::DELETE,
                "/api/v1/namespaces/n/services",
                "deletecollection  services  n ",
            ),
            (Method::GET, "/api/v1/namespaces/n", "get  namespaces  n n"),
            (Method::GET, "/api/v1/namespaces", "list  namespaces   "),
            (
                Method::PUT,
                "/api/v1/namespaces/n/finalize",
                "update  namespaces finalize n n",
            ),
            (
                Method::GET,
                "/apis/coordination.k8s.io/v1/leases",
                "list coordination.k8s.io leases   ",
            ),
            (
                Method::GET,
                "/api/v1/nodes?fieldSelector=metadata.name%3Da",
                "list  nodes   a",
            ),
            (Method::GET, "/version", "get     "),
        ] {
            let Attributes {
                verb,
                group,
                resource,
                subresource,
                namespace,
                name,
                ..
            } = request(method, uri).target;
            assert_eq!(
                format!("{verb} {group} {resource} {subresource} {namespace} {name}"),
                expected,
                "{uri}"
            );
        }
    }

    #[test]
    fn the_first_servable_form_is_chosen() {
        for (accept, form) in [
            ("", Some(Form::Plain)),
            ("*/*", Some(Form::Plain)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Some(Form::Plain),
            ),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Some(Form::Table),
            ),
            (
                "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
                Some(Form::Plain),
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                Some(Form::Partial),
            ),
            (
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
                Some(Form::Plain),
            ),
            ("application/vnd.kubernetes.protobuf", None),
        ] {
            let mut asked = request(Method::GET, "/api/v1/nodes");
            asked.accept = accept.to_owned();
            assert_eq!(asked.form().ok(), form, "{accept}");
        }
    }
}
