//! What a reader can do while the demo runs.

use std::net::IpAddr;

use bowline_cloud_kit::dataplane::Transport;

use crate::cloud::Hint;
use crate::stage::Stage;
use crate::web::{PORT, SERVICE};

/// The port that the reader is invited to add.
const OTHER_PORT: u16 = 8081;

/// Prints addresses and commands.
pub(crate) fn print(stage: &Stage, address: IpAddr) {
    let narrator = stage.narrator();
    narrator.chapter("Your turn");
    let place = stage.cloud().listener(Transport::Tcp, address, PORT);
    let mut text = String::new();
    if let Some(page) = stage.page() {
        text.push_str(&format!(
            "# All this in a browser, with buttons for what follows:\n{page}\n"
        ));
    }
    match place {
        Some(place) if place.ip() == address => {
            text.push_str(&format!("curl http://{place}/\n"));
        }
        Some(place) => text.push_str(&format!(
            "# {address}:{PORT} cannot be bound on this machine, its traffic enters here:\ncurl http://{place}/\n"
        )),
        None => {}
    }
    text.push_str(&format!(
        "export KUBECONFIG={}\nkubectl get nodes,services,events\n",
        stage.control_plane().kubeconfig().display()
    ));
    if let Some(file) = stage.manager().log_file() {
        text.push_str(&format!("tail -f {}\n", file.display()));
    }
    text.push_str(&format!("curl -k {}/healthz?verbose\n", stage.manager().url()));
    narrator.quote(&text);

    narrator.chapter("Things to try; what follows is shown here");
    let mut hints = port_hints(stage.control_plane().plain_url().as_deref());
    let instance = stage.cloud().announcing();
    if let Some(instance) = instance.or_else(|| stage.cloud().instances().pop()) {
        hints.extend(stage.cloud().hints(&instance.name));
    }
    hints.push(Hint {
        what: "End it: Ctrl-C".to_owned(),
        command: String::new(),
    });
    narrator.quote(&listed(&hints));
    narrator.chapter("Waiting for you");
}

fn port_hints(plain_url: Option<&str>) -> Vec<Hint> {
    let operation = format!(
        r#"[{{"op": "add", "path": "/spec/ports/-", "value": {{"name": "alt", "port": {OTHER_PORT}}}}}]"#
    );
    let mut hints = vec![Hint {
        what: "Add a port to the Service".to_owned(),
        command: format!("kubectl patch service {SERVICE} --type=json -p '{operation}'"),
    }];
    if let Some(url) = plain_url {
        hints.push(Hint {
            what: "The same without kubectl".to_owned(),
            command: format!(
                "curl -X PATCH -H 'Content-Type: application/json-patch+json' -d '{operation}' \
                 {url}/api/v1/namespaces/default/services/{SERVICE}"
            ),
        });
    }
    hints
}

fn listed(hints: &[Hint]) -> String {
    let lines = hints.iter().map(|hint| match hint.command.as_str() {
        "" => format!("# {}\n", hint.what),
        command => format!("# {}\n{command}\n", hint.what),
    });
    lines.collect::<Vec<_>>().join("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_offered_where_the_server_speaks_it() {
        assert_eq!(port_hints(None).len(), 1);
        let hints = port_hints(Some("http://127.0.0.1:6443"));
        let text = listed(&hints);
        assert!(
            text.contains("kubectl patch service web --type=json -p '[{\"op\""),
            "{text}"
        );
        assert!(
            text.contains(" http://127.0.0.1:6443/api/v1/namespaces/default/services/web\n"),
            "{text}"
        );
    }
}
