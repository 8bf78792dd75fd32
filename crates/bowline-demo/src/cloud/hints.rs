//! Things to try that are the same in every cloud, but for their commands.

use super::Hint;

/// What can be done to an instance.
pub(super) struct Commands {
    pub(super) stop: String,
    pub(super) start: String,
    pub(super) delete: String,
}

impl Commands {
    /// By the simulator's admin path of the instance, and the field and its values that say whether it runs.
    pub(super) fn by_hand(path: &str, field: &str, stopped: &str, running: &str) -> Self {
        let put = |state: &str| format!("curl -X PUT -d '{{\"{field}\": \"{state}\"}}' {path}");
        Self {
            stop: put(stopped),
            start: put(running),
            delete: format!("curl -X DELETE {path}"),
        }
    }
}

/// Stopping an instance, starting it and deleting it. `besides` is what else a stop leads to.
pub(super) fn of_instance(instance: &str, besides: &str, commands: Commands) -> [Hint; 3] {
    let hint = |what: String, command| Hint { what, command };
    [
        hint(
            format!("Stop a server: {instance} is tainted, not deleted{besides}"),
            commands.stop,
        ),
        hint("Start it again".to_owned(), commands.start),
        hint(
            "Delete it: the Node goes after two proofs".to_owned(),
            commands.delete,
        ),
    ]
}

/// Breaking the API at this URL, and mending it.
pub(super) fn of_api(url: &str) -> [Hint; 2] {
    [
        (true, "Break the cloud's API, then change the Service"),
        (false, "Mend it"),
    ]
    .map(|(is_out, what)| Hint {
        what: what.to_owned(),
        command: format!("curl -X PUT -d '{{\"maintenance\": {is_out}}}' {url}/_sim/behaviour"),
    })
}
