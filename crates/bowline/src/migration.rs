//! The file of `--leader-migration-config`.

use std::path::Path;

use bowline_cloud_http::{glimpse, shown_name, yaml};
use bowline_manager::migration::{BUILT_IN_ENTRIES, BUILT_IN_LEASE, Migration};
use serde::Deserialize;
use serde_json::{Value, json};

const GROUP: &str = "controllermanager.config.k8s.io";
const KIND: &str = "LeaderMigrationConfiguration";

/// As it is written. The library of the Go managers knows no other fields either.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    leader_name: String,
    resource_lock: Option<String>,
    #[serde(default)]
    controller_leaders: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    name: String,
    #[serde(default)]
    component: String,
}

/// An assignment, and how `/configz` shows it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) migration: Migration,
    pub(crate) configz: Value,
}

/// Reads the file, or gives the built-in assignment where there is none.
///
/// # Errors
///
/// One line for each thing that is wrong, with the path of the file.
pub(crate) fn load(path: Option<&Path>) -> Result<Loaded, String> {
    let Some(path) = path else {
        return Ok(Loaded {
            migration: Migration::built_in(),
            configz: configz(BUILT_IN_LEASE, BUILT_IN_ENTRIES),
        });
    };
    let about = |reason: &str| format!("--leader-migration-config {}: {reason}", path.display());
    let contents = std::fs::read(path).map_err(|error| about(&error.to_string()))?;
    parse(&contents).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|fault| about(fault)).collect();
        lines.join("\n")
    })
}

/// As the Go managers show it: each version of the file in the form of the internal one, whose lock is always named.
fn configz<'a>(lease: &str, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let entry = |(name, component): (&str, &str)| json!({ "name": name, "component": component });
    json!({
        "leaderName": lease,
        "resourceLock": "leases",
        "controllerLeaders": entries.into_iter().map(entry).collect::<Vec<_>>(),
    })
}

/// The keys of the file.
const KEYS: &[&str] = &[
    "apiVersion",
    "kind",
    "leaderName",
    "resourceLock",
    "controllerLeaders",
    "name",
    "component",
];

fn parse(contents: &[u8]) -> Result<Loaded, Vec<String>> {
    let file: File = yaml::document(contents, KEYS)
        .map_err(|error| vec![format!("{error}; the keys of the file are {}", KEYS.join(", "))])?;
    let mut faults = Vec::new();
    let version = file
        .api_version
        .strip_prefix(GROUP)
        .and_then(|rest| rest.strip_prefix('/'))
        .filter(|version| ["v1", "v1beta1", "v1alpha1"].contains(version));
    if version.is_none() || file.kind != KIND {
        return Err(vec![format!(
            "expected apiVersion {GROUP}/v1 (or v1beta1, v1alpha1) and kind {KIND}, got {} and {}",
            named(&file.api_version),
            named(&file.kind),
        )]);
    }
    if file.leader_name.is_empty() {
        faults.push("leaderName: Required value: leaderName must be set".to_owned());
    }
    match (version, file.resource_lock.as_deref()) {
        (Some("v1"), None) => {}
        (Some("v1"), Some(_)) => faults.push("resourceLock: v1 has no such field, the lock is always a lease".to_owned()),
        (_, Some("leases")) => {}
        (_, None | Some("")) => {
            faults.push("resourceLock: Required value: must be \"leases\" in this version".to_owned());
        }
        (_, Some(other)) => faults.push(format!(
            "resourceLock: Invalid value: {}: must be \"leases\", other kinds of locks are gone from Kubernetes",
            named(other)
        )),
    }
    for (index, entry) in file.controller_leaders.iter().enumerate() {
        for (field, value) in [("name", &entry.name), ("component", &entry.component)] {
            if value.is_empty() {
                faults.push(format!(
                    "controllerLeaders[{index}].{field}: Required value: {field} must be set"
                ));
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let entries = file
        .controller_leaders
        .iter()
        .map(|entry| (entry.name.as_str(), entry.component.as_str()));
    Ok(Loaded {
        configz: configz(&file.leader_name, entries.clone()),
        migration: Migration::new(file.leader_name.as_str(), entries)?,
    })
}

/// A value as it may be shown: this flag may name a file of another kind, with secrets in it.
fn named(value: &str) -> String {
    match value.rsplit_once('/') {
        Some((GROUP, version)) => format!("{GROUP}/{}", glimpse(version)),
        _ => shown_name(value),
    }
}

#[cfg(test)]
mod tests {
    use bowline_manager::controllers::ControllerName;
    use bowline_manager::migration::Assignment;

    use super::*;

    fn file(version: &str, rest: &str) -> String {
        format!(
            "apiVersion: controllermanager.config.k8s.io/{version}\nkind: LeaderMigrationConfiguration\n{rest}"
        )
    }

    #[test]
    fn each_version_is_read_as_it_is() {
        let entries = "leaderName: moving\ncontrollerLeaders:\n- {name: service, component: '*'}\n\
                       - {name: route-controller, component: kube-controller-manager}\n";
        for (version, lock) in [
            ("v1", ""),
            ("v1beta1", "resourceLock: leases\n"),
            ("v1alpha1", "resourceLock: leases\n"),
        ] {
            let Loaded { migration, configz } =
                parse(file(version, &format!("{lock}{entries}")).as_bytes()).unwrap();
            assert_eq!(migration.lease, "moving");
            assert_eq!(migration.of(ControllerName::Service), Assignment::Migrated);
            assert_eq!(
                migration.of(ControllerName::Route),
                Assignment::Elsewhere("kube-controller-manager")
            );
            assert_eq!(migration.of(ControllerName::Node), Assignment::Main);
            let entries = [("service", "*"), ("route-controller", "kube-controller-manager")];
            let entries = entries.map(|(name, component)| json!({ "name": name, "component": component }));
            let whole =
                json!({ "leaderName": "moving", "resourceLock": "leases", "controllerLeaders": entries });
            assert_eq!(configz, whole);
        }
    }

    #[test]
    fn each_fault_is_told_with_its_field() {
        let faults =
            |version: &str, rest: &str| parse(file(version, rest).as_bytes()).unwrap_err().join("\n");
        let told = faults("v1", "controllerLeaders: [{name: service}, {component: '*'}]");
        for field in [
            "leaderName: ",
            "controllerLeaders[0].component: ",
            "controllerLeaders[1].name: ",
        ] {
            assert!(told.contains(field), "{told}");
        }
        assert!(
            faults("v1", "leaderName: a\nleader: b").contains("a key is not known here (line 4); the keys")
        );
        assert!(faults("v1", "leadername: a").contains("`leaderName`: a key that is not known stands here"));
        assert!(faults("v2", "leaderName: a").contains("controllermanager.config.k8s.io/`v2`"));
        assert!(faults("v1", "leaderName: a\nresourceLock: leases").starts_with("resourceLock: v1"));
        assert!(faults("v1beta1", "leaderName: a").starts_with("resourceLock: Required"));
        assert!(faults("v1beta1", "leaderName: a\nresourceLock: endpoints").contains("\"endpoints\""));
        assert!(
            faults(
                "v1",
                "leaderName: a\ncontrollerLeaders: [{name: srevice, component: '*'}]"
            )
            .contains("\"srevice\" is not in the list")
        );
        assert!(
            faults(
                "v1",
                "leaderName: a\ncontrollerLeaders: [{name: service, component: other}]"
            )
            .contains("controllerLeaders[0].component: \"other\" is none of")
        );
    }

    #[test]
    fn a_file_of_another_kind_with_secrets_in_it_is_not_shown() {
        let secret = "hunter2-7f3a9c1e5b2d";
        for text in [
            "SECRET",
            "[SECRET]",
            "SECRET: x",
            "token: SECRET",
            "leaderName: [SECRET]",
            "leaderName: \"SECRET",
            "leaderName: SECRET: SECRET",
            "\tleaderName: SECRET",
            "leaderName: *SECRET",
            "leaderName: a\nleaderName: SECRET",
            "controllerLeaders: SECRET",
            "controllerLeaders: [SECRET]",
            "controllerLeaders: [{SECRET: x}]",
            "leaderName: SECRET\ncontrollerLeaders: [{name: SECRET, component: SECRET}]",
            "leaderName: SECRET\ncontrollerLeaders: [{name: service, component: SECRET}]",
            "leaderName: SECRET\nresourceLock: SECRET",
        ] {
            for version in ["v1", "v1beta1", secret] {
                let text = file(version, text).replace("SECRET", secret);
                for text in [text.clone(), text.replace("LeaderMigrationConfiguration", secret)] {
                    let told = parse(text.as_bytes()).unwrap_err().join("\n");
                    assert!(
                        !told.contains("hunter") && !told.contains("7f3a9c"),
                        "{text}: {told}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = load(Some(Path::new("/nonexistent/migration.yml"))).unwrap_err();
        assert!(
            error.starts_with("--leader-migration-config /nonexistent/migration.yml: "),
            "{error}"
        );
    }
}
