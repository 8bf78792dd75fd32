//! The plain manifests: what the chart makes of a few values, with a few words in front.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::chart::helm::{Helm, HelmError, Release};
use crate::chart::{CLOUDS, chart};

/// A manifest as it should be.
#[derive(Debug)]
pub struct Plain {
    /// Relative to the root.
    pub path: &'static str,
    /// The whole file.
    pub text: String,
}

/// A plain manifest, and how it comes out of the chart.
struct Manifest {
    path: &'static str,
    /// What stands at its head, without the signs of a comment.
    head: &'static str,
    cloud: &'static str,
    /// Which of the chart's templates; nothing for all.
    only: Option<&'static str>,
    /// For `--use-service-account-credentials`.
    with_accounts: bool,
    /// With the rights that a return to the Go manager needs.
    legacy: bool,
    /// With the admission policies.
    admission: bool,
}

const WRITTEN: &str =
    "# Written by `cargo xtask manifests` from deploy/chart: change that, not this file.\n#\n";

const ACCOUNTS: &str = "For --use-service-account-credentials, applied after the manifest beside it: the process itself may do less, and each\n\
controller uses its own ServiceAccount. Those of the controllers have their permissions from roles that every cluster has\n\
(system:controller:node-controller, ...:service-controller, ...:route-controller).";

const POLICIES: &str = "Admission policies for Services: the API server itself warns about annotations that the manager would refuse or ignore.\n\
To reject wrong Services, change validationActions of a binding to [Deny]: docs/guides/admission.md.";

const MANIFESTS: [Manifest; 4] = [
    Manifest {
        path: "deploy/cloudscale/config.yml",
        head: "Bowline for cloudscale.ch. Object names are those of cloudscale-cloud-controller-manager, so applying this over it, or\n\
changing only the image in what is deployed, is the whole migration. The secret comes first:\n\
\n  kubectl -n kube-system create secret generic cloudscale --from-file=access-token",
        cloud: CLOUDS[0],
        only: None,
        with_accounts: false,
        legacy: false,
        admission: false,
    },
    Manifest {
        path: "deploy/phoenixnap/deployment.yaml",
        head: "Bowline for phoenixNAP Bare Metal Cloud. Object names are those of cloud-provider-phoenixnap 1.0.0, so applying this over\n\
it is the whole migration. The Secret comes first: secret.yaml.",
        cloud: CLOUDS[1],
        only: None,
        with_accounts: false,
        legacy: false,
        admission: false,
    },
    Manifest {
        path: "deploy/cloudstack/deployment.yaml",
        head: "Bowline for Apache CloudStack. Object names are those of apache/cloudstack-kubernetes-provider v1.2.0, so applying this over\n\
it is the whole migration. The Secret comes first: secret.yaml.",
        cloud: CLOUDS[2],
        only: None,
        with_accounts: false,
        legacy: true,
        admission: false,
    },
    Manifest {
        path: "deploy/openstack/daemonset.yaml",
        head: "Bowline for OpenStack. Object names are those of the cloud controller manager of kubernetes/cloud-provider-openstack v1.36, so\n\
applying this over it, or changing only the image in what is deployed, is the whole migration. The Secret comes first:\n\
secret.yaml.",
        cloud: CLOUDS[3],
        only: None,
        with_accounts: false,
        legacy: false,
        admission: false,
    },
];

/// Where the roles for `--use-service-account-credentials` are, cloud by cloud.
const WITH_ACCOUNTS: [&str; 4] = [
    "deploy/cloudscale/service-account-credentials.yml",
    "deploy/phoenixnap/service-account-credentials.yaml",
    "deploy/cloudstack/service-account-credentials.yaml",
    "deploy/openstack/service-account-credentials.yaml",
];

/// Where the admission policies are, cloud by cloud.
const ADMISSION: [&str; 4] = [
    "deploy/cloudscale/admission.yaml",
    "deploy/phoenixnap/admission.yaml",
    "deploy/cloudstack/admission.yaml",
    "deploy/openstack/admission.yaml",
];

/// Where the bases for kustomize are, cloud by cloud.
const BASES: [&str; 4] = [
    "deploy/cloudscale/kustomization.yaml",
    "deploy/phoenixnap/kustomization.yaml",
    "deploy/cloudstack/kustomization.yaml",
    "deploy/openstack/kustomization.yaml",
];

/// All plain manifests that come out of the chart, and what makes bases for kustomize of them. Secrets to fill in, the static Pod for OpenStack and the examples are
/// written by hand.
///
/// # Errors
///
/// When Helm refuses the chart.
pub fn manifests(helm: &Helm) -> Result<Vec<Plain>, HelmError> {
    let accounts = CLOUDS
        .into_iter()
        .zip(WITH_ACCOUNTS)
        .map(|(cloud, path)| Manifest {
            path,
            head: ACCOUNTS,
            cloud,
            only: Some("templates/rbac.yaml"),
            with_accounts: true,
            legacy: false,
            admission: false,
        });
    let policies = CLOUDS.into_iter().zip(ADMISSION).map(|(cloud, path)| Manifest {
        path,
        head: POLICIES,
        cloud,
        only: Some("templates/admission.yaml"),
        with_accounts: false,
        legacy: false,
        admission: true,
    });
    let mut all: Vec<Plain> = MANIFESTS.iter().zip(BASES).map(|it| base(it.0, it.1)).collect();
    for manifest in MANIFESTS.into_iter().chain(accounts).chain(policies) {
        all.push(Plain {
            path: manifest.path,
            text: text(helm, &manifest)?,
        });
    }
    Ok(all)
}

/// A manifest as a base of kustomize.
fn base(manifest: &Manifest, path: &'static str) -> Plain {
    let file = manifest.path.rsplit('/').next().unwrap_or_default();
    let cloud = manifest.cloud;
    let text = format!(
        "{WRITTEN}# A base for kustomize: the manifest, without the Secret that it reads.\n\
         apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata:\n  name: bowline-{cloud}\n\
         resources:\n  - {file}\n"
    );
    Plain { path, text }
}

fn text(helm: &Helm, manifest: &Manifest) -> Result<String, HelmError> {
    let chart = chart();
    let release = Release {
        chart: &chart,
        name: "bowline",
        namespace: "kube-system",
    };
    let show: Vec<&str> = manifest
        .only
        .iter()
        .flat_map(|only| ["--show-only", only])
        .collect();
    let objects = helm.template(release, &values(manifest), &show)?;
    let mut text = WRITTEN.to_owned();
    for line in manifest.head.lines() {
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
    // Where each object comes from, and the empty lines between them, say nothing to who reads the manifest.
    let said = |line: &&str| !line.is_empty() && !line.starts_with("# Source: ");
    for line in objects.lines().filter(said) {
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

/// Without the labels that tell which chart made an object: no release did.
fn values(manifest: &Manifest) -> Value {
    json!({
        "cloud": manifest.cloud,
        "standardLabels": false,
        "useServiceAccountCredentials": manifest.with_accounts,
        "rbac": { "legacy": manifest.legacy },
        "admissionPolicies": { "enabled": manifest.admission },
    })
}
