//! `cloud-controller-manager support-bundle`: collect what a bug report needs into one archive, without secrets.

use std::path::Path;

use bowline_cloud_provider::plan::render_text as render_plans;
use bowline_kube_io::{Clock as _, Kube, SystemClock};
use bowline_manager::bundle::{Bundle, shown_flag};
use bowline_manager::deployed::{self, Deployed, Value};
use bowline_manager::doctor::{Progress, render_json, render_text};

use super::Surroundings;
use super::reading::{self, Reading};
use crate::args::{BundleOptions, Options, OutputForm, PlanOptions};
use crate::version::Version;

/// The last lines of a log that are taken.
const LINES: usize = 1_000;

/// The port of the metrics, unless a flag says another one.
const METRICS_PORT: u16 = 10_258;

/// Objects of the cluster that are shown.
const OBJECTS: &[&str] = &["services", "nodes", "events"];

/// What in the name of a variable tells that it holds a secret.
const SECRET_VARIABLES: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL"];

/// Writes the archive, and prints what is in it; gives the exit status: 0 it is written, 1 it is not.
pub fn support_bundle(options: Options, bundle: &BundleOptions, surroundings: Surroundings) -> u8 {
    let now = SystemClock.now();
    let name = format!("bowline-support-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let work = async |progress: &Progress| Box::pin(collect(&options, surroundings, progress)).await;
    let collected = match reading::telling(&options, bundle.has_log, work) {
        Ok(collected) => collected,
        Err(error) => return super::complain(&[error], ""),
    };
    let file = bundle
        .file
        .clone()
        .unwrap_or_else(|| format!("{name}.tar.gz").into());
    let archive = collected.archive(&name, now);
    match archive.and_then(|archive| write(&file, &archive)) {
        Ok(()) => {
            reading::talk(&format!(
                "written to {}; look through it before you send it",
                file.display()
            ));
            super::print(&collected.listing())
        }
        Err(error) => super::complain(&[format!("{} cannot be written: {error}", file.display())], ""),
    }
}

/// Only the one who writes it may read it.
fn write(file: &Path, archive: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut open = std::fs::OpenOptions::new();
    let mut file = open
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(archive)
}

async fn collect(options: &Options, surroundings: Surroundings, progress: &Progress) -> Bundle {
    let mut bundle = Bundle::default();
    hide_own(&mut bundle, options, &surroundings);
    let version = Version::current();
    bundle.add("version.txt", version.lines(&options.program));
    let flags = options
        .flags
        .iter()
        .filter(|(name, _)| options.given_flags.contains(name));
    let flags: Vec<String> = flags
        .map(|(name, value)| shown_flag(&format!("--{name}={value}")))
        .collect();
    bundle.add("flags.txt", flags.join("\n") + "\n");
    match Reading::new(options, surroundings.clone())
        .kube("support-bundle")
        .await
    {
        Ok(kube) => of_cluster(&mut bundle, &kube, progress).await,
        Err(error) => bundle.miss("the cluster", error),
    }
    let checks = Box::pin(super::doctor_checks(
        options,
        surroundings.clone(),
        progress,
        false,
    ))
    .await;
    bundle.add("doctor.txt", render_text(&checks));
    bundle.add("doctor.json", render_json(&checks));
    progress.is_at("making plans");
    let plan = PlanOptions {
        services: Vec::new(),
        files: Vec::new(),
        output: OutputForm::Text,
        has_log: false,
    };
    match super::plan_reports(options, &plan, surroundings).await {
        Ok(reports) => bundle.add("plan.txt", render_plans(&reports)),
        Err(error) => bundle.miss("plan.txt", error),
    }
    bundle
}

/// What this process itself knows of secrets.
fn hide_own(bundle: &mut Bundle, options: &Options, surroundings: &Surroundings) {
    for (name, value) in surroundings.environment.all() {
        if is_of_secret(name) {
            bundle.hide(value);
        }
    }
    let files = options.provider.files().chain(&options.kube.kubeconfig);
    for contents in files.filter_map(|path| std::fs::read_to_string(path).ok()) {
        bundle.hide_in(&contents);
    }
    for copy in &surroundings.copies {
        bundle.hide_in(&String::from_utf8_lossy(&copy.contents));
    }
}

/// Whether a variable of this name holds a secret.
fn is_of_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_VARIABLES.iter().any(|part| name.contains(part))
}

async fn of_cluster(bundle: &mut Bundle, kube: &Kube, progress: &Progress) {
    progress.is_at("reading the cluster");
    match kube.server_version().await {
        Ok(version) => bundle.add("kubernetes.txt", format!("{}.{}\n", version.major, version.minor)),
        Err(error) => bundle.miss("kubernetes.txt", error.to_string()),
    }
    match deployed::find(kube).await {
        Ok(managers) => {
            for manager in &managers {
                of_manager(bundle, kube, manager).await;
            }
        }
        Err(error) => bundle.miss("the deployed managers", error.to_string()),
    }
    for plural in OBJECTS {
        match kube.plain_objects(plural).await {
            Ok(objects) => bundle.add_objects(format!("{plural}.json"), objects),
            Err(error) => bundle.miss(format!("{plural}.json"), error.to_string()),
        }
    }
}

async fn of_manager(bundle: &mut Bundle, kube: &Kube, manager: &Deployed) {
    for name in manager.secrets() {
        match kube.secret(&manager.namespace, &name).await {
            Ok(found) => found.into_iter().flatten().for_each(|(_, value)| {
                let value = String::from_utf8_lossy(&value);
                bundle.hide(&value);
                bundle.hide_in(&value);
            }),
            Err(error) => bundle.miss(
                format!("the values of Secret {name}, to hide them"),
                error.to_string(),
            ),
        }
    }
    for (name, value) in manager.variables() {
        if let Value::Literal(value) = value
            && is_of_secret(&name)
        {
            bundle.hide(&value);
        }
    }
    let folder = format!("{}/{}", manager.namespace, manager.name);
    bundle.add(format!("{folder}/manifest.txt"), manifest(manager));
    let port = manager.flag("secure-port").and_then(|port| port.parse().ok());
    for pod in &manager.pods {
        let name = &pod.metadata.name;
        for is_before in [false, true] {
            let file = format!("{folder}/{name}{}.log", if is_before { ".previous" } else { "" });
            let restarts = manager.status_of(pod).map_or(0, |status| status.restart_count);
            if is_before && restarts == 0 {
                continue;
            }
            match kube
                .pod_log(&pod.metadata, &manager.container.name, is_before, LINES)
                .await
            {
                Ok(log) => bundle.add(file, log),
                Err(error) => bundle.miss(file, error.to_string()),
            }
        }
        let metrics = kube
            .ask_pod(&manager.namespace, name, port.unwrap_or(METRICS_PORT), "/metrics")
            .await;
        match metrics {
            Ok(metrics) => bundle.add(format!("{folder}/{name}.metrics"), metrics),
            Err(error) => bundle.miss(format!("{folder}/{name}.metrics"), error.to_string()),
        }
    }
}

/// A manager's manifest: its image, flags, and the names of its variables.
fn manifest(manager: &Deployed) -> String {
    let flags = manager.flags().into_iter().map(|flag| shown_flag(&flag));
    let variables = manager.variables().into_iter().map(|(name, value)| match value {
        Value::Literal(_) => format!("{name} (set)"),
        Value::At(place) => format!("{name} (from {})", place.object()),
        Value::OfPod => format!("{name} (of the pod)"),
    });
    let of_objects = manager.variables_of_objects().into_iter();
    let of_objects = of_objects.map(|(prefix, place)| format!("{prefix}* (from {})", place.object()));
    let head = [manager.object(), format!("image: {}", manager.container.image)];
    let lines: Vec<String> = head
        .into_iter()
        .chain(flags)
        .chain(variables)
        .chain(of_objects)
        .collect();
    lines.join("\n") + "\n"
}
