//! The kubeconfig: which server, which proxy, which credentials. Nothing that is wrong with it is told in its own words,
//! because the line beside the mistake may be the token.

use std::path::Path;

use bowline_transport::yaml;
use kube::config::{AuthInfo, Cluster, ExecInteractiveMode, Kubeconfig};

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
pub(super) fn read(path: &Path) -> Result<(Cluster, AuthInfo), String> {
    let contents = std::fs::read(path).map_err(|error| error.to_string())?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (cluster, user) = select(parse(&contents, folder)?)?;
    look_for_files(&cluster, &user, folder)?;
    Ok((cluster, user))
}

/// Whether the files that it names are there. Where one is not, the "path" may be the token itself, in the wrong place: it is
/// only shown if it reads like a path, or leads to another folder, which exists.
fn look_for_files(cluster: &Cluster, user: &AuthInfo, folder: &Path) -> Result<(), String> {
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

/// Several documents are merged as several files are: what stands first counts. An empty file says nothing.
fn parse(contents: &[u8], folder: &Path) -> Result<Kubeconfig, String> {
    let documents: Vec<Kubeconfig> =
        yaml::documents(contents, KEYS).map_err(|error| format!("it is no kubeconfig: {error}"))?;
    documents
        .into_iter()
        .map(|mut document| {
            resolve(&mut document, folder);
            document
        })
        .try_fold(Kubeconfig::default(), Kubeconfig::merge)
        .map_err(|_| "its documents differ in `kind` or `apiVersion`".to_owned())
}

/// Paths in the file are relative to its folder.
fn resolve(config: &mut Kubeconfig, folder: &Path) {
    let absolute = |path: &mut Option<String>| {
        if let Some(path) = path.as_mut().filter(|path| !path.is_empty()) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    };
    for cluster in config
        .clusters
        .iter_mut()
        .filter_map(|named| named.cluster.as_mut())
    {
        absolute(&mut cluster.certificate_authority);
    }
    for user in config
        .auth_infos
        .iter_mut()
        .filter_map(|named| named.auth_info.as_mut())
    {
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

fn select(config: Kubeconfig) -> Result<(Cluster, AuthInfo), String> {
    let current = config
        .current_context
        .filter(|name| !name.is_empty())
        .ok_or("`current-context` is not set; name an entry of `contexts`")?;
    let context = config
        .contexts
        .into_iter()
        .find(|named| named.name == current)
        .and_then(|named| named.context)
        .ok_or("`current-context` names no entry of `contexts`")?;
    let cluster = config
        .clusters
        .into_iter()
        .find(|named| named.name == context.cluster)
        .and_then(|named| named.cluster)
        .ok_or("`cluster` of the current context names no entry of `clusters`")?;
    // As for the Go managers, a user that is not there is nobody.
    let mut user = context
        .user
        .and_then(|name| config.auth_infos.into_iter().find(|named| named.name == name))
        .and_then(|named| named.auth_info)
        .unwrap_or_default();
    if let Some(exec) = &mut user.exec {
        if exec.provide_cluster_info {
            let cluster = (&cluster)
                .try_into()
                .map_err(|_| "`certificate-authority` cannot be given to the plugin of `exec`")?;
            exec.cluster = Some(cluster);
        }
        // Nobody sits before a manager. To kube, all but `Never` is interactive: the plugin would write into our log.
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    Ok((cluster, user))
}

#[cfg(test)]
mod tests;
