//! Several clouds in one process: what is said of each.

use std::path::PathBuf;

use bowline_cloud_provider::ServiceClasses;

use super::parse::Flags;
use super::validate::Checks;

/// One of several clouds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudOptions {
    /// The provider's name.
    pub name: String,
    /// Its file of `--cloud-config`.
    pub config: Option<PathBuf>,
    /// Which Services it serves.
    pub classes: ServiceClasses,
}

/// The clouds that `--cloud-provider` names, each with its file and its classes; none if it names one. Services without a class are
/// those of the first one.
pub(super) fn read(flags: &Flags, checks: &mut Checks<'_>) -> Vec<CloudOptions> {
    let all = flags.text("cloud-provider");
    let names: Vec<&str> = all.split(',').map(str::trim).collect();
    if names.len() < 2 {
        return Vec::new();
    }
    if let Some(twice) = names
        .iter()
        .enumerate()
        .find(|(at, name)| names[..*at].contains(*name))
    {
        checks.fault(format!(
            "--cloud-provider names {:?} twice: name each cloud once",
            twice.1
        ));
    }
    if names.contains(&"") {
        checks.fault(format!(
            "--cloud-provider {all:?} has an empty name between commas"
        ));
    }
    let text = flags.text("cloud-config");
    let files = text.split(',').filter(|entry| !entry.is_empty());
    let files: Vec<(String, String)> = files
        .filter_map(|entry| of_cloud("cloud-config", "PATH", entry, &names, checks))
        .collect();
    if let Some((_, (cloud, _))) = files
        .iter()
        .enumerate()
        .find(|(at, (cloud, _))| files[..*at].iter().any(|(other, _)| other == cloud))
    {
        checks.fault(format!(
            "--cloud-config gives {cloud} two files: name each cloud once"
        ));
    }
    let classes = flags.list("load-balancer-class");
    let classes: Vec<(String, String)> = classes
        .iter()
        .filter_map(|entry| of_cloud("load-balancer-class", "CLASS", entry, &names, checks))
        .collect();
    for (at, (cloud, class)) in classes.iter().enumerate() {
        if let Some((other, _)) = classes[..at]
            .iter()
            .find(|(other, it)| it == class && other != cloud)
        {
            checks.fault(format!(
                "--load-balancer-class gives class {class:?} to {other} and to {cloud}: a Service has one cloud, so give it to one of them"
            ));
        }
    }
    let of = |list: &[(String, String)], name: &str| -> Vec<String> {
        let own = list.iter().filter(|(cloud, _)| cloud == name);
        own.map(|(_, value)| value.clone()).collect()
    };
    let serves_unclassed = flags.switch("load-balancer-without-class");
    let clouds = names.iter().enumerate().map(|(at, name)| CloudOptions {
        name: (*name).to_owned(),
        config: of(&files, name).pop().map(PathBuf::from),
        classes: valid(of(&classes, name), serves_unclassed && at == 0, checks),
    });
    clouds.collect()
}

/// Which Services are served, by one cloud or all of several.
pub(super) fn classes(flags: &Flags, several: &[CloudOptions], checks: &mut Checks<'_>) -> ServiceClasses {
    let classes = match several {
        [] => {
            let named = flags.list("load-balancer-class");
            valid(named, flags.switch("load-balancer-without-class"), checks)
        }
        [first, others @ ..] => {
            let others = others.iter();
            others.fold(first.classes.clone(), |all, cloud| all.or(&cloud.classes))
        }
    };
    if classes.is_empty() {
        checks.fault(
            "--load-balancer-without-class=false leaves no Service to serve: give --load-balancer-class, or switch the controller off by \
             --controllers=*,-service-lb-controller",
        );
    }
    classes
}

fn valid(named: Vec<String>, serves_unclassed: bool, checks: &mut Checks<'_>) -> ServiceClasses {
    ServiceClasses::new(named, serves_unclassed).unwrap_or_else(|error| {
        checks.fault(format!("--load-balancer-class: {error}"));
        ServiceClasses::default()
    })
}

/// An entry `CLOUD=VALUE`.
fn of_cloud(
    flag: &str,
    what: &str,
    entry: &str,
    names: &[&str],
    checks: &mut Checks<'_>,
) -> Option<(String, String)> {
    let split = entry.split_once('=').filter(|(cloud, _)| names.contains(cloud));
    if split.is_none() {
        checks.fault(format!(
            "--{flag} {entry:?}: with several clouds it is CLOUD={what}, where CLOUD is one of {}",
            names.join(", ")
        ));
    }
    split.map(|(cloud, value)| (cloud.to_owned(), value.to_owned()))
}
