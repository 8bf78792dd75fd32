//! The file of `--leader-migration-config`.

use std::path::Path;

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
    let text = std::fs::read_to_string(path).map_err(|error| about(&error.to_string()))?;
    parse(&text).map_err(|faults| {
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

fn parse(text: &str) -> Result<Loaded, Vec<String>> {
    let file: File =
        serde_saphyr::from_str_with_options(text, serde_saphyr::options! { with_snippet: false })
            .map_err(|error| vec![error.to_string()])?;
    let mut faults = Vec::new();
    let version = file
        .api_version
        .strip_prefix(GROUP)
        .and_then(|rest| rest.strip_prefix('/'))
        .filter(|version| ["v1", "v1beta1", "v1alpha1"].contains(version));
    if version.is_none() || file.kind != KIND {
        return Err(vec![format!(
            "expected apiVersion {GROUP}/v1 (or v1beta1, v1alpha1) and kind {KIND}, got {:?} and {:?}",
            file.api_version, file.kind
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
            "resourceLock: Invalid value: {other:?}: must be \"leases\", other kinds of locks are gone from Kubernetes"
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

#[cfg(test)]
mod tests {
    use bowline_manager::loops::Loop;
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
            let Loaded { migration, configz } = parse(&file(version, &format!("{lock}{entries}"))).unwrap();
            assert_eq!(migration.lease, "moving");
            assert_eq!(migration.of(Loop::Service), Assignment::Migrated);
            assert_eq!(
                migration.of(Loop::Route),
                Assignment::Elsewhere("kube-controller-manager")
            );
            assert_eq!(migration.of(Loop::Node), Assignment::Main);
            let entries = [("service", "*"), ("route-controller", "kube-controller-manager")];
            let entries = entries.map(|(name, component)| json!({ "name": name, "component": component }));
            let whole =
                json!({ "leaderName": "moving", "resourceLock": "leases", "controllerLeaders": entries });
            assert_eq!(configz, whole);
        }
    }

    #[test]
    fn each_fault_is_told_with_its_field() {
        let faults = |version: &str, rest: &str| parse(&file(version, rest)).unwrap_err().join("\n");
        let told = faults("v1", "controllerLeaders: [{name: service}, {component: '*'}]");
        for field in [
            "leaderName: ",
            "controllerLeaders[0].component: ",
            "controllerLeaders[1].name: ",
        ] {
            assert!(told.contains(field), "{told}");
        }
        assert!(faults("v1", "leaderName: a\nleader: b").contains("unknown field `leader`"));
        assert!(faults("v2", "leaderName: a").contains("controllermanager.config.k8s.io/v2"));
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
    fn a_file_that_is_not_there_is_named() {
        let error = load(Some(Path::new("/nonexistent/migration.yml"))).unwrap_err();
        assert!(
            error.starts_with("--leader-migration-config /nonexistent/migration.yml: "),
            "{error}"
        );
    }
}
