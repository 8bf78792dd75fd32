//! `cloud-controller-manager doctor`: find out why the manager does not do its work, and change nothing.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, CloudProvider};
use bowline_manager::controllers::{ControllerName, ControllerSelection};
use bowline_manager::doctor::{
    Check, Cloud, Manifests, Outcome, Patient, Progress, Topic, examine, examine_before, render_json,
    render_short, render_text,
};
use bowline_manager::{serving, topics};
use tokio::time::{Instant, timeout};

use super::reading::{self, Reading};
use super::terminal::Terminal;
use super::{Surroundings, Untaken, exit};
use crate::args::{DoctorOptions, Options, OutputForm};
use crate::migration;
use crate::providers::{self, Calls, InForce, ProviderError};
use crate::version::Version;

topics! { Configuration:
    PROVIDER = "configuration.provider", "the provider is built in",
        "docs/guides/troubleshoot.md#the-manager-does-not-start";
    FLAGS = "configuration.flags", "flags are understood", "docs/reference/flags.md";
    SETTINGS = "configuration.cloud", "the cloud's configuration can be used",
        "docs/guides/troubleshoot.md#the-manager-does-not-start";
    CONTROLLERS = "configuration.controllers", "the controllers have been told what they need",
        "docs/guides/troubleshoot.md#the-manager-does-not-start";
    MIGRATION = "configuration.leader-migration", "the file of leader migration can be used",
        "docs/guides/leader-migration.md";
    SECURE_PORT = "configuration.secure-port", "the files of the secure port can be used",
        "docs/guides/troubleshoot.md#the-manager-does-not-start";
}

/// What the configuration is looked at for; for the page about the command.
pub const TOPICS: &[&Topic] = &[
    &PROVIDER,
    &FLAGS,
    &SETTINGS,
    &CONTROLLERS,
    &SECURE_PORT,
    &MIGRATION,
];

/// How long the questions of a provider that asks at its start may take.
const BUILT_WITHIN: Duration = Duration::from_secs(60);

/// How long the API server may take for one answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Prints the checks; gives the exit status: 0 nothing is wrong, 1 a check failed, 2 there are warnings.
pub fn doctor(options: Options, doctor: &DoctorOptions, surroundings: Surroundings) -> u8 {
    let terminal = Terminal::of_stdout(&surroundings.environment);
    let is_before = doctor.is_before;
    let work =
        async |progress: &Progress| Box::pin(checks(&options, surroundings, progress, is_before)).await;
    let checks = match reading::telling(&options, doctor.has_log, work) {
        Ok(checks) => checks,
        Err(error) => return super::complain(&[error], ""),
    };
    let text = match doctor.output {
        OutputForm::Text if doctor.has_log => terminal.dress(&render_text(&checks)),
        OutputForm::Text => terminal.dress(&render_short(&checks)),
        OutputForm::Json => render_json(&checks) + "\n",
    };
    super::show(&text, status(&checks))
}

fn status(checks: &[Check]) -> u8 {
    status_of(checks.iter().map(|check| check.outcome))
}

/// What was found, as an exit status.
pub(super) fn status_of(outcomes: impl Iterator<Item = Outcome>) -> u8 {
    let outcomes: Vec<Outcome> = outcomes.collect();
    if outcomes.contains(&Outcome::Failed) {
        exit::FAILURE
    } else if outcomes.contains(&Outcome::Warning) {
        exit::TO_DO
    } else {
        exit::SUCCESS
    }
}

/// The checks that [`doctor`] prints. `is_before`: those that make sense before a manager is installed.
pub async fn checks(
    options: &Options,
    surroundings: Surroundings,
    progress: &Progress,
    is_before: bool,
) -> Vec<Check> {
    progress.is_at("reading the configuration");
    let mut reading = Reading::new(options, surroundings);
    let mut checks = vec![flags(&reading.options)];
    if let Some(file) = &reading.options.migration {
        match migration::load(file.config.as_deref()) {
            Ok(loaded) => {
                checks.push(MIGRATION.ok(format!("its lease is {}", loaded.migration.lease)));
                reading.options.manager.migration = Some(loaded.migration);
            }
            Err(error) => checks
                .push(MIGRATION.failed(error, "correct the file, or leave --enable-leader-migration out")),
        }
    }
    let options = &reading.options;
    let cloud = build(&reading, &mut checks, progress).await;
    checks.push(match &cloud {
        Cloud::Built(provider, _) | Cloud::Partly(provider, ..) => controllers(options, &**provider),
        Cloud::Refused(_) | Cloud::Unusable(_) | Cloud::Hidden(_) => {
            CONTROLLERS.skipped("there is no provider")
        }
    });
    checks.push(match &options.serving {
        Some(config) => match serving::check_files(config).await {
            Ok(()) => SECURE_PORT.ok("certificates, keys and authorities, as far as files are named"),
            Err(error) => SECURE_PORT.failed(
                error,
                "mount the file, correct it, or take its flag out: the manager ends at its start without it",
            ),
        },
        None => SECURE_PORT.skipped("--secure-port is 0"),
    });
    let patient = patient(&reading, cloud, "doctor", progress).await;
    checks.extend(match is_before {
        true => examine_before(&patient).await,
        false => examine(&patient).await,
    });
    checks
}

/// What there is to look at.
pub(super) async fn patient<'a>(
    reading: &'a Reading,
    cloud: Cloud,
    word: &str,
    progress: &Progress,
) -> Patient<'a> {
    let options = &reading.options;
    let serving = options.serving.as_ref();
    let kube = reading.kube(word).await;
    Patient {
        config: &options.manager,
        lookup: serving.map(|config| config.access.lookup_beside_files()),
        is_manager: options.kube.kubeconfig.is_none() && options.kube.master.is_none(),
        kube: kube.map(|kube| kube.with_timeout(ANSWERED_WITHIN)),
        cloud,
        cloud_clock: reading.dates.clone(),
        progress: progress.clone(),
        manifests: Manifests::default(),
        holder: reading.holder(),
        // Not the one that --version has it report.
        follows: Version::current().follows(),
    }
}

/// Whether the flags and the provider fit.
fn controllers(options: &Options, provider: &dyn CloudProvider) -> Check {
    if let Err(error) = options.manager.check(provider) {
        return CONTROLLERS.failed(error.to_string(), "correct the flag");
    }
    let check = match providers::may_run(provider, &options.provider) {
        true => CONTROLLERS.ok("they fit the provider"),
        false => CONTROLLERS.warning(
            providers::UNTAGGED,
            "give doctor the flags of the manager; if the manager does not have it either, add it there, as the manifests have it",
        ),
    };
    check.with(switched_off(&options.manager.controllers))
}

/// Builds the provider, and tells what its configuration has to do with it if there is none.
pub(super) async fn build(reading: &Reading, checks: &mut Vec<Check>, progress: &Progress) -> Cloud {
    let options = &reading.options.provider;
    let untaken = reading.untaken();
    if let Err(error) = providers::check(options) {
        let (check, why) = match (&error, &untaken.all) {
            (ProviderError::Unsaid, Some(why)) if untaken.is_fault => {
                let remedy =
                    "do what the text says; what the command line gives counts instead of the manifest";
                (PROVIDER.failed(why.clone(), remedy), why.clone())
            }
            // Other checks tell why the API server does not, or that there is no manager.
            (ProviderError::Unsaid, Some(why)) => (PROVIDER.skipped(why.clone()), why.clone()),
            (error, _) => {
                let why = error.to_string();
                (PROVIDER.failed(why.clone(), "correct --cloud-provider"), why)
            }
        };
        checks.extend([check, SETTINGS.skipped("there is no provider")]);
        return match untaken.is_hidden {
            true => Cloud::Hidden(why),
            false => Cloud::Unusable(why),
        };
    }
    let version = &reading.options.version.git_version;
    checks.push(PROVIDER.ok(format!("{}, in {version}", options.name)));
    progress.is_at("signing in to the cloud");
    let site = reading.site(Calls::ToReadOnce);
    let begun = Instant::now();
    let built = timeout(BUILT_WITHIN, providers::build(options, &site)).await;
    let shown = site.shown.take();
    match (built, shown) {
        (Ok(Ok(provider)), shown) => {
            let mut shown = shown.unwrap_or_default();
            let refused = std::mem::take(&mut shown.refused);
            checks.push(usable(shown, untaken));
            Cloud::signed_in(provider, begun.elapsed(), refused).await
        }
        (Ok(Err(ProviderError::Init { source, .. })), Some(shown)) => {
            checks.push(usable(shown, untaken));
            let answer = source.downcast_ref::<CloudError>().cloned();
            Cloud::Refused(answer.unwrap_or_else(|| CloudError::other(source.to_string())))
        }
        (Err(_), shown) => {
            checks.push(usable(shown.unwrap_or_default(), untaken));
            let text = format!("no answer within {} s", BUILT_WITHIN.as_secs());
            Cloud::Refused(CloudError::transient(text))
        }
        // What whoever asks may not read is no fault of the configuration.
        (Ok(Err(error)), _) if untaken.is_hidden => {
            checks.push(SETTINGS.skipped(error.to_string()).with(untaken.lines.clone()));
            Cloud::Hidden(format!("{error}; {}", untaken.lines.join("; ")))
        }
        (Ok(Err(error)), _) => {
            let remedy = "correct what the text names, in the file of --cloud-config, in the environment or among the flags";
            let check = SETTINGS.failed(error.to_string(), remedy);
            checks.push(check.with(untaken.lines.clone()));
            Cloud::Unusable(error.to_string())
        }
    }
}

/// What is in force of a configuration that can be used, and what somebody should look at.
fn usable(shown: InForce, untaken: &Untaken) -> Check {
    let InForce {
        settings, remarks, ..
    } = shown;
    let settings = settings.into_iter();
    let settings = settings.map(|it| format!("{} = {} ({})", it.name, it.value, it.origin));
    let check = match remarks.is_empty() {
        true => SETTINGS.ok("in force are"),
        false => SETTINGS.warning(
            "it can be used, but look at the first lines; in force are",
            "correct it, or take it out",
        ),
    };
    let untaken = untaken.lines.iter().cloned();
    check.with(remarks.into_iter().chain(untaken).chain(settings).collect())
}

/// The controllers that --controllers leaves out, which may be on purpose.
fn switched_off(selection: &ControllerSelection) -> Vec<String> {
    let all = ControllerName::ALL.into_iter();
    all.filter(|name| !selection.includes(*name))
        .map(|name| format!("{name} does not run"))
        .collect()
}

/// The flags on the command line, and what else says where the cluster is.
fn flags(options: &Options) -> Check {
    let mut lines = Vec::new();
    let mut is_unexpanded = false;
    for (name, value) in &options.flags {
        if !options.given_flags.contains(name) {
            continue;
        }
        is_unexpanded |= names_variable(value);
        let remark = match () {
            () if options.idle_flags.contains(name) => ", no effect here",
            () if options.deprecated_flags.contains(name) => ", deprecated",
            () => "",
        };
        lines.push(format!("--{name} = {} (flag{remark})", without_password(value)));
    }
    if let (Some(path), "$KUBECONFIG") = (&options.kube.kubeconfig, options.kube.kubeconfig_source) {
        lines.push(format!("$KUBECONFIG = {} (environment)", path.display()));
    }
    let check = match is_unexpanded {
        false => FLAGS.ok("given are"),
        true => FLAGS.warning(
            "a value holds `$(NAME)` as it is written; given are",
            "Kubernetes puts the value of an environment variable there, if the container has one of that name: add it under `env`, or correct the name",
        ),
    };
    check.with(lines)
}

/// Whether a value refers to an environment variable of the container as Kubernetes has it, which was not there.
fn names_variable(value: &str) -> bool {
    let after = value.split_once("$(").map(|(_, after)| after);
    after.is_some_and(|after| after.contains(')'))
}

/// An address may hold a password.
fn without_password(value: &str) -> &str {
    match value.contains("://") && value.contains('@') {
        true => "<set>",
        false => value,
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_http::ShownSetting;

    use super::*;

    #[test]
    fn the_exit_status_tells_nothing_wrong_from_warnings_and_failures() {
        let [ok, warning, skipped, failed] = [
            PROVIDER.ok(""),
            PROVIDER.warning("", ""),
            PROVIDER.skipped(""),
            PROVIDER.failed("", ""),
        ];
        let well = [ok, skipped];
        assert_eq!(status(&well), exit::SUCCESS);
        let warned = [well.as_slice(), &[warning]].concat();
        assert_eq!(status(&warned), exit::TO_DO);
        assert_eq!(status(&[warned.as_slice(), &[failed]].concat()), exit::FAILURE);
    }

    #[test]
    fn a_variable_that_kubernetes_did_not_put_in_is_seen() {
        for (value, is_seen) in [
            ("$(CLUSTER_NAME)", true),
            ("a-$(B)-c", true),
            ("$CLUSTER_NAME", false),
            ("$(open", false),
            ("kubernetes", false),
        ] {
            assert_eq!(names_variable(value), is_seen, "{value}");
        }
    }

    #[test]
    fn what_somebody_should_look_at_is_a_warning_before_the_settings() {
        let settings = vec![ShownSetting::new("[Global] region", "r", "cloud.conf")];
        let check = usable(
            InForce {
                settings: settings.clone(),
                remarks: vec!["`regoin` is not known".to_owned()],
                refused: Vec::new(),
            },
            &Untaken::default(),
        );
        assert_eq!(check.outcome, Outcome::Warning);
        assert_eq!(
            check.details,
            ["`regoin` is not known", "[Global] region = r (cloud.conf)"]
        );
        let untaken = Untaken {
            lines: vec!["HTTPS_PROXY is not taken".to_owned()],
            ..Untaken::default()
        };
        let check = usable(
            InForce {
                settings,
                remarks: Vec::new(),
                refused: Vec::new(),
            },
            &untaken,
        );
        assert_eq!(check.outcome, Outcome::Ok);
        assert_eq!(check.details[0], "HTTPS_PROXY is not taken");
    }

    #[test]
    fn an_address_with_a_password_is_not_shown() {
        assert_eq!(without_password("https://a:b@host"), "<set>");
        assert_eq!(without_password("https://host"), "https://host");
        assert_eq!(without_password("a@b"), "a@b");
    }
}
