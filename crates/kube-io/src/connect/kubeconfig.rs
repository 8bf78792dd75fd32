//! The kubeconfig: which server, which proxy, which credentials. Nothing that is wrong with it is told in its own words,
//! because the line beside the mistake may be the token.

use std::path::Path;

use bowline_transport::{pem, yaml};
use serde_json::json;

use self::wire::Kubeconfig;

mod wire;

pub(super) use wire::{Cluster, Exec, User};

/// The extension of a cluster that is for credential plugins.
const FOR_PLUGINS: &str = "client.authentication.k8s.io/exec";

/// The keys that mean something, for errors.
const KEYS: &[&str] = &[
    "apiVersion",
    "kind",
    "preferences",
    "current-context",
    "contexts",
    "context",
    "clusters",
    "cluster",
    "users",
    "user",
    "name",
    "namespace",
    "extensions",
    "extension",
    "server",
    "insecure-skip-tls-verify",
    "certificate-authority",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
    "tls-server-name",
    "username",
    "password",
    "token",
    "tokenFile",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
    "auth-provider",
    "config",
    "exec",
    "command",
    "args",
    "env",
    "installHint",
    "interactiveMode",
    "provideClusterInfo",
];

/// Reads the file; gives the cluster and the user of the current context.
pub(super) fn read(path: &Path) -> Result<(Cluster, User), String> {
    let contents = std::fs::read(path).map_err(|error| error.to_string())?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (cluster, user) = select(parse(&contents, folder)?)?;
    look_for_files(&cluster, &user, folder)?;
    Ok((cluster, user))
}

/// Whether the files that it names are there. Where one is not, the "path" may be the token itself, in the wrong place: it is
/// only shown if it reads like a path, or leads to another folder, which exists.
fn look_for_files(cluster: &Cluster, user: &User, folder: &Path) -> Result<(), String> {
    let files = [
        ("certificate-authority", &cluster.certificate_authority),
        ("client-certificate", &user.client_certificate),
        ("client-key", &user.client_key),
        ("tokenFile", &user.token_file),
    ];
    for (key, path) in files {
        let Some(path) = path.as_deref().filter(|path| !path.is_empty()).map(Path::new) else {
            continue;
        };
        let is_path = path
            .parent()
            .is_some_and(|parent| parent != folder && parent.exists());
        let written = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        if !is_path && !path.exists() {
            let folder = folder.display();
            return Err(match bowline_transport::is_path(&written) {
                true => format!(
                    "`{key}` names the file `{}`, which does not exist",
                    path.display()
                ),
                false => format!(
                    "`{key}` names a file that does not exist, by a path from `{folder}` (not shown, it might be a secret)"
                ),
            });
        }
    }
    Ok(())
}

/// The documents of the file. An empty one says nothing.
fn parse(contents: &[u8], folder: &Path) -> Result<Vec<Kubeconfig>, String> {
    let mut documents: Vec<Kubeconfig> =
        yaml::documents(contents, KEYS).map_err(|error| format!("it is no kubeconfig: {error}"))?;
    if differ(documents.iter().map(|document| &document.kind))
        || differ(documents.iter().map(|document| &document.api_version))
    {
        return Err("its documents differ in `kind` or `apiVersion`".to_owned());
    }
    for document in &mut documents {
        resolve(document, folder);
    }
    Ok(documents)
}

/// Whether two of those that say something say different things.
fn differ<'a>(values: impl Iterator<Item = &'a Option<String>>) -> bool {
    let mut said = values.flatten();
    let first = said.next();
    said.any(|value| Some(value) != first)
}

/// Paths in the file are relative to its folder.
fn resolve(config: &mut Kubeconfig, folder: &Path) {
    let absolute = |path: &mut Option<String>| {
        if let Some(path) = path.as_mut().filter(|path| !path.is_empty()) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    };
    for cluster in config.clusters.iter_mut().filter_map(|it| it.cluster.as_mut()) {
        absolute(&mut cluster.certificate_authority);
    }
    for user in config.users.iter_mut().filter_map(|it| it.user.as_mut()) {
        absolute(&mut user.client_certificate);
        absolute(&mut user.client_key);
        absolute(&mut user.token_file);
        if let Some(exec) = &mut user.exec
            // A name alone is looked for in PATH.
            && exec.command.as_ref().is_some_and(|command| command.contains('/'))
        {
            absolute(&mut exec.command);
        }
    }
}

/// What the current context names. Several documents are one, as several files are: what stands first counts.
fn select(documents: Vec<Kubeconfig>) -> Result<(Cluster, User), String> {
    let (mut current, mut contexts, mut clusters, mut users) = (None, vec![], vec![], vec![]);
    for document in documents {
        current = current.or(document.current_context.filter(|name| !name.is_empty()));
        contexts.extend(document.contexts);
        clusters.extend(document.clusters);
        users.extend(document.users);
    }
    let current = current.ok_or("`current-context` is not set; name an entry of `contexts`")?;
    let context = contexts
        .into_iter()
        .find(|named| named.name == current)
        .and_then(|named| named.context)
        .ok_or("`current-context` names no entry of `contexts`")?;
    let cluster = clusters
        .into_iter()
        .find(|named| named.name == context.cluster)
        .and_then(|named| named.cluster)
        .ok_or("`cluster` of the current context names no entry of `clusters`")?;
    // As for the Go managers, a user that is not there is nobody.
    let mut user = context
        .user
        .and_then(|name| users.into_iter().find(|named| named.name == name))
        .and_then(|named| named.user)
        .unwrap_or_default();
    if let Some(exec) = &mut user.exec
        && exec.provide_cluster_info == Some(true)
    {
        exec.cluster = Some(told(&cluster)?);
    }
    Ok((cluster, user))
}

/// What a credential plugin is told of the cluster.
///
/// Source: `k8s.io/client-go/pkg/apis/clientauthentication/v1/types.go`, v0.37.
fn told(cluster: &Cluster) -> Result<serde_json::Value, String> {
    let is_set = |text: &&String| !text.is_empty();
    let path = cluster.certificate_authority.as_ref().filter(is_set);
    let authorities = match (&cluster.certificate_authority_data, path) {
        (None, Some(path)) => {
            let contents = std::fs::read(path).map_err(|error| {
                format!("`certificate-authority` cannot be read for the plugin of `exec`: {error}")
            })?;
            Some(pem::to_base64(&contents))
        }
        (data, _) => data.clone(),
    };
    let config = cluster.extensions.iter().find(|it| it.name == FOR_PLUGINS);
    let mut told = json!({
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authorities,
        "proxy-url": cluster.proxy_url,
        "config": config.map(|it| &it.extension),
    });
    if let Some(told) = told.as_object_mut() {
        told.retain(|_, value| !value.is_null());
    }
    Ok(told)
}

#[cfg(test)]
mod tests;
