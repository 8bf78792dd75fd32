//! Things to try that are the same in every cloud, but for their commands.

use super::Hint;

/// What can be done to an instance.
pub(super) struct Commands {
    pub(super) stop: String,
    pub(super) start: String,
    pub(super) delete: String,
}

/// Looking at a simulator, and what can be done to the instance at this admin path, by the field and its values that say
/// whether it runs.
pub(super) fn by_hand(
    url: &str,
    look: &str,
    instance: &str,
    besides: &str,
    path: Option<String>,
    [field, stopped, running]: [&str; 3],
) -> Vec<Hint> {
    let mut hints = vec![hint(look, format!("curl {url}/_sim/snapshot"))];
    if let Some(path) = path {
        let path = format!("{url}/_sim/{path}");
        let put = |state: &str| format!("curl -X PUT -d '{{\"{field}\": \"{state}\"}}' {path}");
        let commands = Commands {
            stop: put(stopped),
            start: put(running),
            delete: format!("curl -X DELETE {path}"),
        };
        hints.extend(of_instance(instance, besides, commands));
    }
    hints
}

/// Stopping an instance, starting it and deleting it. `besides` is what else a stop leads to.
pub(super) fn of_instance(instance: &str, besides: &str, commands: Commands) -> [Hint; 3] {
    let stop = format!("Stop a server: {instance} is tainted, not deleted{besides}");
    [
        hint(&stop, commands.stop),
        hint("Start it again", commands.start),
        hint("Delete it: the Node goes after two proofs", commands.delete),
    ]
}

fn hint(what: &str, command: String) -> Hint {
    let what = what.to_owned();
    Hint { what, command }
}

/// Breaking the API at this URL, and mending it.
pub(super) fn of_api(url: &str) -> [Hint; 2] {
    [
        (true, "Break the cloud's API, then change the Service"),
        (false, "Mend it"),
    ]
    .map(|(is_out, what)| {
        hint(
            what,
            format!("curl -X PUT -d '{{\"maintenance\": {is_out}}}' {url}/_sim/behaviour"),
        )
    })
}
