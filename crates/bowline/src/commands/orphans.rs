//! `cloud-controller-manager orphans`: list what this cluster made in the cloud and no Service asks for, and delete it when a person
//! says so.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use bowline_cloud_provider::CloudProvider;
use bowline_manager::orphans::{Removed, Search, render_json, render_text};

use super::reading::{self, Reading};
use super::terminal::Terminal;
use super::{Surroundings, exit};
use crate::args::{Options, OrphansOptions, OutputForm};
use crate::providers;

/// What is to be known before anything is deleted.
const WARNING: &str = "a copy of this cluster, or the one that it is a copy of, has the same names and UIDs: make sure that none uses these";

/// Prints what was found; with `--delete`, asks and deletes it. Gives the exit status: 0 there is nothing, or it is deleted, 1 something
/// failed or stays that was to be deleted, 2 there are orphans, or none and what may be some.
pub fn orphans(options: Options, orphans: &OrphansOptions, surroundings: Surroundings) -> u8 {
    let done = reading::block_on(&options, orphans.has_log, async || {
        search_and_delete(&options, orphans, surroundings).await
    });
    match done.flatten() {
        Ok(status) => status,
        Err(error) => super::complain(&[error], ""),
    }
}

/// The answer to a question; `None` if nobody sits there.
pub(super) fn ask(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    // Nobody is left to answer if stderr is gone.
    write!(std::io::stderr(), "{question} ").ok()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok()?;
    Some(answer.trim().to_owned())
}

async fn search_and_delete(
    options: &Options,
    orphans: &OrphansOptions,
    surroundings: Surroundings,
) -> Result<u8, String> {
    providers::check(&options.provider).map_err(|error| error.to_string())?;
    let is_gone = orphans.is_gone || names_cluster(orphans) && !is_cluster_told(options, &surroundings);
    let terminal = Terminal::of_stdout(&surroundings.environment);
    let reading = Reading::new(options, surroundings);
    let calls = match orphans.deletes {
        true => providers::Calls::Always,
        false => providers::Calls::ToRead,
    };
    let provider = providers::build(&options.provider, &reading.site(calls)).await;
    let provider = provider.map_err(|error| error.to_string())?;
    let search = search(&reading, orphans, is_gone, provider).await?;
    let survey = search.survey().await?;
    let text = match orphans.output {
        OutputForm::Text => terminal.dress(&render_text(&survey)),
        OutputForm::Json => render_json(&survey) + "\n",
    };
    let was_shown = super::print(&text) == exit::SUCCESS;
    let is_whole = survey.unread.is_empty();
    if survey.removals.is_empty() {
        return Ok(match (was_shown && is_whole, survey.unclear()) {
            (false, _) => exit::FAILURE,
            (true, 0) => exit::SUCCESS,
            (true, _) => exit::TO_DO, // a person has to look at them
        });
    }
    if !orphans.deletes {
        reading::talk("nothing was deleted: --delete asks, and deletes the orphans");
        return Ok(if is_whole { exit::TO_DO } else { exit::FAILURE });
    }
    if !was_shown {
        return Err("the plan could not be shown, so nothing was deleted".to_owned());
    }
    if is_gone {
        reading::talk(&format!(
            "no API server was asked: cluster {} is taken to be gone.",
            survey.cluster
        ));
    }
    if !is_agreed(orphans)? {
        reading::talk("nothing was deleted");
        return Ok(exit::TO_DO);
    }
    let removed = search.remove(&survey, told_of).await?;
    let is_gone = |it: &Removed| it.why_not.is_none();
    Ok(if is_whole && removed.iter().all(is_gone) {
        exit::SUCCESS
    } else {
        exit::FAILURE
    })
}

/// One line for each.
fn told_of(removed: &Removed) {
    let text = match &removed.why_not {
        None => format!("deleted: {}", removed.object),
        Some(why) => format!("not deleted: {}: {why}", removed.object),
    };
    reading::talk(&text);
}

/// Whether the command line says which cluster is meant.
fn names_cluster(orphans: &OrphansOptions) -> bool {
    orphans.names_cluster || orphans.cluster_uid.is_some()
}

/// Whether anything says where a cluster is. The file that `kubectl` looks for counts: whoever has one may think of its cluster.
fn is_cluster_told(options: &Options, surroundings: &Surroundings) -> bool {
    let kube = &options.kube;
    let value = |name| {
        surroundings
            .environment
            .value(name)
            .filter(|value| !value.is_empty())
    };
    kube.kubeconfig.is_some()
        || kube.master.is_some()
        || value("KUBECONFIG").is_some()
        || value("KUBERNETES_SERVICE_HOST").is_some()
        || reading::kubeconfig_of_home(surroundings).is_some()
}

async fn search(
    reading: &Reading,
    orphans: &OrphansOptions,
    is_gone: bool,
    provider: Arc<dyn CloudProvider>,
) -> Result<Search, String> {
    let options = &reading.options;
    let name = &options.manager.cluster_name;
    if !is_gone {
        if orphans.cluster_uid.is_some() {
            return Err("--cluster-uid is for a cluster that is gone, and needs --gone".to_owned());
        }
        let kube = reading.kube("orphans").await.map_err(|error| {
            format!("{error}; for a cluster that is gone, give its name with --cluster-name, and --gone")
        })?;
        return Search::of_cluster(&*provider, kube, name, &reading.holder()).await;
    }
    if !names_cluster(orphans) {
        return Err("say which cluster is gone, with --cluster-name or --cluster-uid".to_owned());
    }
    Search::of_gone(&*provider, name, orphans.cluster_uid.clone(), &reading.holder())
}

/// Whether the person wants it.
fn is_agreed(orphans: &OrphansOptions) -> Result<bool, String> {
    reading::talk(WARNING);
    if orphans.is_sure {
        return Ok(true);
    }
    match ask("Delete all of these? Only \"yes\" does:") {
        Some(answer) => Ok(answer == "yes"),
        None => Err("nobody is there to be asked: --yes deletes without a question".to_owned()),
    }
}
