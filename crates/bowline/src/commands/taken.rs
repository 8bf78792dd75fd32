//! What a command takes from the manager that is deployed in the cluster, where the command line does not say which cloud is meant: the
//! flags of its manifest, its variables, and its configuration file. What is given on the command line or in the environment counts.

use std::collections::{BTreeMap, BTreeSet};

use bowline_kube_io::{Kube, KubeError};
use bowline_manager::bundle::shown_flag;
use bowline_manager::deployed::{self, Deployed, Place, Program, Value};

use super::reading::{self, Reading};
use super::{Surroundings, Untaken};
use crate::args::{self, Invocation, Unsaid};
use crate::providers::Copied;

/// The flag of the configuration files, which are taken by themselves.
const CONFIG: &str = "cloud-config";

/// Flags of the manager that mean nothing to a command elsewhere: where its API server is, what it serves, how it logs.
const OF_THE_POD: &[&str] = &[
    "kubeconfig",
    "master",
    "authentication-kubeconfig",
    "authorization-kubeconfig",
    "authentication-skip-lookup",
    "requestheader-client-ca-file",
    "client-ca-file",
    "bind-address",
    "secure-port",
    "cert-dir",
    "v",
    "vmodule",
];

/// Beginnings of such flags.
const OF_THE_POD_TOO: &[&str] = &["tls-", "log", "webhook"];

/// What stands in front of the names of variables that are those of a pod.
const VARIABLES_OF_THE_POD: &[&str] = &[
    "KUBERNETES_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Reads from the cluster what the command line does not say, and runs the command with it.
pub(super) fn with_deployed(unsaid: Unsaid, surroundings: Surroundings) -> u8 {
    if matches!(&unsaid.invocation, Invocation::Orphans(_, orphans) if orphans.is_gone) {
        let error = "--cloud-provider is not given: of a cluster that is gone nothing else tells the cloud";
        return super::complain(&[error.to_owned()], "");
    }
    if let Some(line) = line_in_pod(&unsaid, &surroundings) {
        return super::start(args::read(&line), surroundings);
    }
    let options = &unsaid.options;
    let found = reading::block_on(options, unsaid.has_log, async || {
        let reading = Reading::new(options, surroundings.clone());
        let kube = reading.kube(unsaid.word).await.map_err(Nothing::Unasked)?;
        Taken::from(&kube, &unsaid.words).await
    });
    let taken = match found.map_err(Nothing::Unasked).flatten() {
        Ok(taken) => taken,
        Err(nothing) => return without(nothing, unsaid, surroundings),
    };
    taken.tell();
    let object = taken.object.clone();
    let mut line = vec![unsaid.program.clone(), unsaid.word.to_owned()];
    line.extend(taken.flags.iter().cloned());
    line.extend(taken.config_flag());
    // Of several values the last one counts.
    line.extend(unsaid.words.iter().cloned());
    let surroundings = Surroundings {
        environment: surroundings.environment.or(taken.variables),
        copies: taken
            .files
            .into_iter()
            .map(|(_, copy)| copy)
            .chain(taken.named)
            .collect(),
        untaken: Untaken {
            lines: taken.lacking,
            is_hidden: taken.is_hidden,
            ..Untaken::default()
        },
        ..surroundings
    };
    match args::read(&line) {
        Invocation::Unsaid(_) => {
            let nothing = Nothing::Faulty(format!("the manifest of {object} names no cloud"));
            without(nothing, unsaid, surroundings)
        }
        // What the person gave was understood before.
        Invocation::Wrong { errors, .. } => {
            let fault = format!(
                "{object}: {}. The manager ends at its start for that: correct its manifest",
                errors.join("; ")
            );
            without(Nothing::Faulty(fault), unsaid, surroundings)
        }
        invocation => super::start(invocation, surroundings),
    }
}

/// Why nothing is taken.
#[derive(Debug, PartialEq, Eq)]
enum Nothing {
    /// The API server does not tell, or there is no manager.
    Unasked(String),
    /// Whoever asks may not read it.
    Hidden(String),
    /// What is deployed cannot be used.
    Faulty(String),
}

/// Runs the command with what can be told without a cloud, if it is one that has something to tell then.
fn without(nothing: Nothing, unsaid: Unsaid, surroundings: Surroundings) -> u8 {
    let unasked =
        |error| format!("--cloud-provider is not given, and the deployed manager cannot be asked: {error}");
    let is_hidden = matches!(nothing, Nothing::Hidden(_));
    let (why, is_fault) = match nothing {
        Nothing::Unasked(error) | Nothing::Hidden(error) => (unasked(error), false),
        Nothing::Faulty(fault) => (fault, true),
    };
    match unsaid.invocation {
        Invocation::Doctor(..)
        | Invocation::SupportBundle(..)
        | Invocation::CheckTraffic(..)
        | Invocation::Explain(..) => {
            reading::talk(&why);
            let untaken = Untaken {
                all: Some(why),
                is_fault,
                is_hidden,
                lines: Vec::new(),
            };
            super::start(
                unsaid.invocation,
                Surroundings {
                    untaken,
                    ..surroundings
                },
            )
        }
        _ if is_fault => super::complain(&[why], ""),
        _ => {
            let error = format!("{why}. Give the manager's flags and variables, as its manifest has them");
            super::complain(&[error], "")
        }
    }
}

/// The command line in the manager's pod, where everything is as for the manager: its flags are those of the first process.
fn line_in_pod(unsaid: &Unsaid, surroundings: &Surroundings) -> Option<Vec<String>> {
    surroundings.environment.value("KUBERNETES_SERVICE_HOST")?;
    let line = std::fs::read("/proc/1/cmdline").ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line
        .split('\0')
        .filter(|word| !word.is_empty())
        .map(str::to_owned);
    let program = words.find(|word| args::is_program(word))?;
    let flags: Vec<String> = words.skip_while(|word| !word.starts_with('-')).collect();
    let mut line = vec![program, unsaid.word.to_owned()];
    line.extend(known_elsewhere(flags, |name| {
        matches!(name, "v" | "vmodule") || name.starts_with("log")
    }));
    line.extend(unsaid.words.iter().cloned());
    (!matches!(args::read(&line), Invocation::Unsaid(_))).then_some(line)
}

/// What is taken.
struct Taken {
    /// From what.
    object: String,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    /// The configuration files, each with what stands before its path: `CLOUD=`, where there are several clouds.
    files: Vec<(String, Copied)>,
    /// The files that those name, such as one of certificate authorities, by their paths in the pod.
    named: Vec<Copied>,
    /// What was taken from where, in words without values.
    sources: Vec<String>,
    /// What was not taken, and why.
    lacking: Vec<String>,
    /// Whether that is because whoever asks may not read it.
    is_hidden: bool,
}

/// Why something in the cluster is not read.
struct Unread {
    text: String,
    /// Whether whoever asks may not read it.
    is_hidden: bool,
}

impl Unread {
    fn because(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_hidden: false,
        }
    }
}

impl From<KubeError> for Unread {
    fn from(error: KubeError) -> Self {
        Self {
            text: error.to_string(),
            is_hidden: matches!(error, KubeError::Forbidden(_)),
        }
    }
}

impl Taken {
    /// `words`: what the person gives, which need not be taken.
    async fn from(kube: &Kube, words: &[String]) -> Result<Self, Nothing> {
        let all = deployed::find(kube).await;
        let all = all.map_err(|error| match Unread::from(error) {
            Unread {
                text,
                is_hidden: true,
            } => Nothing::Hidden(text),
            Unread { text, .. } => Nothing::Unasked(text),
        })?;
        let manager = chosen(&all)?;
        let mut taken = Self {
            object: manager.object(),
            flags: flags(manager),
            variables: Vec::new(),
            files: Vec::new(),
            named: Vec::new(),
            sources: Vec::new(),
            lacking: Vec::new(),
            is_hidden: false,
        };
        for (name, value) in manager.variables() {
            match value {
                Value::Literal(text) => taken.add(name, text),
                Value::At(place) => taken.add_from(kube, manager, &place, |_| name.clone()).await,
                Value::OfPod => {}
            }
        }
        for (prefix, place) in manager.variables_of_objects() {
            taken
                .add_from(kube, manager, &place, |key| format!("{prefix}{key}"))
                .await;
        }
        let is_given = words.iter().any(|word| name_of(word) == CONFIG);
        let files = manager.flag(CONFIG).filter(|_| !is_given).unwrap_or_default();
        for entry in files.split(',').filter(|entry| !entry.is_empty()) {
            taken.take_file(kube, manager, entry).await?;
        }
        taken.take_named(kube, manager).await;
        Ok(taken)
    }

    fn add(&mut self, name: String, value: String) {
        if !VARIABLES_OF_THE_POD.iter().any(|prefix| name.starts_with(prefix)) {
            self.variables.push((name, value));
        } else if name.to_ascii_uppercase().ends_with("_PROXY") {
            self.lacking.push(format!(
                "{name} of the manager is not taken: this computer goes its own way to the cloud, and what is run in the pod goes the \
                 manager's"
            ));
        } else if name.starts_with("SSL_CERT_") {
            self.lacking.push(format!(
                "{name} of the manager is not taken, because it names files of its pod ({value}): if the certificate of the cloud is not trusted \
                 here, set {name} to a copy of them"
            ));
        }
    }

    /// Adds what is at a place; what cannot be read is told, and may be in the environment.
    async fn add_from(
        &mut self,
        kube: &Kube,
        manager: &Deployed,
        place: &Place,
        named: impl Fn(&str) -> String,
    ) {
        match contents(kube, manager, place).await {
            Ok(found) => {
                for (key, value) in found {
                    let name = named(&key);
                    self.sources.push(format!("{name} from {}", place.object()));
                    self.add(name, String::from_utf8_lossy(&value).into_owned());
                }
            }
            Err(Unread { text, is_hidden }) => {
                let (object, namespace) = (place.object(), &manager.namespace);
                self.is_hidden |= is_hidden;
                let text = format!("nothing is taken from {object} in {namespace}: {text}");
                self.lacking.push(text);
            }
        }
    }

    async fn take_file(&mut self, kube: &Kube, manager: &Deployed, entry: &str) -> Result<(), Nothing> {
        let (cloud, path) = match entry.split_once('=') {
            Some((cloud, path)) if !cloud.contains('/') => (format!("{cloud}="), path),
            _ => (String::new(), entry),
        };
        let place = manager.file(path);
        let place = place.ok_or_else(|| {
            Nothing::Faulty(format!(
                "--cloud-config={path} of {} is a file of the node: give --cloud-config",
                self.object
            ))
        })?;
        let found = contents(kube, manager, &place).await.map_err(|error| {
            let (object, namespace) = (place.object(), &manager.namespace);
            let text = format!(
                "--cloud-config of {} is {object} in {namespace}: {}",
                self.object, error.text
            );
            match error.is_hidden {
                true => Nothing::Hidden(text),
                false => Nothing::Faulty(text),
            }
        })?;
        let (key, contents) = found.into_iter().next().unwrap_or_default();
        self.sources
            .push(format!("--cloud-config from {}", place.object()));
        // Neither a comma nor `=` is in these names, which would end the entry of the flag.
        let called = format!("{key} of {} in {}", place.object(), manager.namespace);
        self.files.push((cloud, Copied { called, contents }));
        Ok(())
    }

    /// Takes the files that are named in the configuration and are in the cluster, too. What cannot be read is missed by whoever needs it.
    async fn take_named(&mut self, kube: &Kube, manager: &Deployed) {
        let texts: Vec<String> = self
            .files
            .iter()
            .map(|(_, copy)| String::from_utf8_lossy(&copy.contents).into_owned())
            .collect();
        let paths: BTreeSet<String> = texts.iter().flat_map(|text| paths_in(text)).collect();
        for path in paths {
            let Some(place) = manager.file(&path) else {
                continue;
            };
            match contents(kube, manager, &place).await {
                Ok(found) => {
                    let (_, contents) = found.into_iter().next().unwrap_or_default();
                    self.sources.push(format!("{path} from {}", place.object()));
                    self.named.push(Copied {
                        called: path,
                        contents,
                    });
                }
                Err(error) => self
                    .lacking
                    .push(format!("{path} is {}: {}", place.object(), error.text)),
            }
        }
    }

    /// The flag that names the configuration files. Their contents stay in memory: on a disk, secrets would outlive an interrupted command.
    fn config_flag(&self) -> Option<String> {
        let entries = self
            .files
            .iter()
            .map(|(cloud, copy)| format!("{cloud}{}", copy.called));
        let entries: Vec<String> = entries.collect();
        (!entries.is_empty()).then(|| format!("--cloud-config={}", entries.join(",")))
    }

    /// Says what was taken, without the values of variables and files.
    fn tell(&self) {
        let flags = self.flags.iter().map(|flag| shown_flag(flag));
        let parts: Vec<String> = flags.chain(self.sources.iter().cloned()).collect();
        reading::talk(&format!("taken from {}: {}", self.object, parts.join(", ")));
        for line in &self.lacking {
            reading::talk(line);
        }
    }
}

/// The one that is meant: of several the only one that is Bowline.
fn chosen(all: &[Deployed]) -> Result<&Deployed, Nothing> {
    let ours: Vec<&Deployed> = all.iter().filter(|it| it.program == Program::Bowline).collect();
    let meant = if ours.is_empty() {
        all.iter().collect()
    } else {
        ours
    };
    match *meant {
        [one] => Ok(one),
        [] => Err(Nothing::Unasked(
            "no cloud controller manager is deployed in this cluster".to_owned(),
        )),
        _ => Err(Nothing::Faulty(format!(
            "there are several managers: {}. Give --cloud-provider and the other flags of the one that is meant",
            names(meant.into_iter())
        ))),
    }
}

fn names<'a>(all: impl Iterator<Item = &'a Deployed>) -> String {
    let names: Vec<String> = all.map(Deployed::object).collect();
    names.join(", ")
}

/// The absolute paths that stand in a configuration.
fn paths_in(text: &str) -> impl Iterator<Item = String> + use<'_> {
    let is_between = |c: char| c.is_whitespace() || "=,;:\"'".contains(c);
    let words = text.split(is_between);
    words
        .filter(|word| word.starts_with('/') && !word.starts_with("//"))
        .map(str::to_owned)
}

/// The flags that mean something elsewhere, with the provider that the program has built in.
fn flags(manager: &Deployed) -> Vec<String> {
    let mut flags = known_elsewhere(manager.flags(), |name| {
        name == CONFIG
            || OF_THE_POD.contains(&name)
            || OF_THE_POD_TOO.iter().any(|start| name.starts_with(start))
    });
    let is_provider = |flag: &String| name_of(flag) == "cloud-provider";
    if !flags.iter().any(is_provider) {
        flags.extend(manager.provider().map(|name| format!("--cloud-provider={name}")));
    }
    flags
}

/// These flags without those that `is_left_out` names; nor is one here whose value is known in the pod alone.
fn known_elsewhere(flags: Vec<String>, is_left_out: impl Fn(&str) -> bool) -> Vec<String> {
    let mut words = flags.into_iter().peekable();
    let mut known = Vec::new();
    while let Some(word) = words.next() {
        let name = name_of(&word);
        let is_flag = word.starts_with("--");
        let mut flag = vec![word];
        if !flag.iter().any(|word| word.contains('=')) {
            flag.extend(words.next_if(|next| !next.starts_with('-')));
        }
        if is_flag && !is_left_out(&name) && !flag.iter().any(|word| word.contains("$(")) {
            known.extend(flag);
        }
    }
    known
}

fn name_of(flag: &str) -> String {
    let name = flag.trim_start_matches('-');
    name.split_once('=')
        .map_or(name, |(name, _)| name)
        .replace('_', "-")
}

/// What is at a place, by its keys: all of an object, or one.
async fn contents(kube: &Kube, manager: &Deployed, place: &Place) -> Result<Vec<(String, Vec<u8>)>, Unread> {
    let (found, key) = match place {
        Place::Secret { name, key } => (kube.secret(&manager.namespace, name).await, key),
        Place::ConfigMap { name, key } => {
            let found = kube.config_map(&manager.namespace, name).await;
            let bytes = |found: BTreeMap<String, String>| {
                found.into_iter().map(|(key, text)| (key, text.into_bytes()))
            };
            (found.map(|found| found.map(|found| bytes(found).collect())), key)
        }
    };
    let found: BTreeMap<String, Vec<u8>> = found?.ok_or_else(|| Unread::because("it is not there"))?;
    let wanted = found
        .into_iter()
        .filter(|(there, _)| key.is_empty() || there == key);
    let wanted: Vec<(String, Vec<u8>)> = wanted.collect();
    match wanted.is_empty() && !key.is_empty() {
        true => Err(Unread::because(format!("it has no key {key}"))),
        false => Ok(wanted),
    }
}

#[cfg(test)]
mod tests {
    use bowline_kube_io::workloads::{Container, PodSpec};

    use super::*;

    fn manager(args: &[&str], image: &str) -> Deployed {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Deployed {
            kind: "Deployment",
            namespace: "kube-system".to_owned(),
            name: "ccm".to_owned(),
            program: Program::Bowline,
            spec: PodSpec::default(),
            container: Container {
                image: image.to_owned(),
                args,
                ..Container::default()
            },
            wanted: None,
            pods: Vec::new(),
        }
    }

    #[test]
    fn flags_of_the_pod_stay_there_and_the_provider_of_the_program_is_said() {
        let manager = manager(
            &[
                "/bin/openstack-cloud-controller-manager",
                "--kubeconfig=/etc/kubernetes/ccm.conf",
                "--cluster-name",
                "lab",
                "--v=2",
                "--tls-cert-file=/a",
                "--cluster_cidr=$(PODS)",
                "--cloud-config",
                "/etc/cloud.conf",
                "--leader-elect",
            ],
            "bowline",
        );
        let expected = [
            "--cluster-name",
            "lab",
            "--leader-elect",
            "--cloud-provider=openstack",
        ];
        assert_eq!(flags(&manager), expected);
    }

    #[test]
    fn authorities_that_are_files_of_the_pod_are_not_looked_for_here() {
        let mut taken = Taken {
            object: String::new(),
            flags: Vec::new(),
            variables: Vec::new(),
            files: Vec::new(),
            named: Vec::new(),
            sources: Vec::new(),
            lacking: Vec::new(),
            is_hidden: false,
        };
        taken.add("SSL_CERT_FILE".to_owned(), "/etc/ca/ca.crt".to_owned());
        taken.add("OS_REGION".to_owned(), "one".to_owned());
        assert_eq!(taken.variables, [("OS_REGION".to_owned(), "one".to_owned())]);
        assert!(taken.lacking[0].contains("/etc/ca/ca.crt") && taken.lacking.len() == 1);
    }

    #[test]
    fn of_several_managers_the_only_bowline_is_meant() {
        let ours = manager(&[], "bowline");
        let theirs = Deployed {
            program: Program::Go,
            ..ours.clone()
        };
        assert_eq!(chosen(&[theirs.clone(), ours.clone()]), Ok(&ours));
        assert_eq!(chosen(std::slice::from_ref(&theirs)), Ok(&theirs));
        assert!(matches!(chosen(&[]), Err(Nothing::Unasked(_))));
        for several in [[theirs.clone(), theirs], [ours.clone(), ours]] {
            assert!(matches!(chosen(&several), Err(Nothing::Faulty(text)) if text.contains("several")));
        }
    }
    #[test]
    fn files_that_a_configuration_names_are_found_whatever_its_form() {
        let text = "[Global]\nauth-url=https://a.example:5000/v3\nca-file = \"/etc/config/ca.crt\" # it\n\
                    key-file=/etc/config/key.pem\n{\"path\":\"/x/y\"}";
        let found: Vec<String> = paths_in(text).collect();
        assert_eq!(found, ["/etc/config/ca.crt", "/etc/config/key.pem", "/x/y"]);
    }
}
