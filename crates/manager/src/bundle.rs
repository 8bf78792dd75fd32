//! What a bug report needs, in one archive without secrets.
//!
//! What is shown of an object is chosen, not what is left out: of annotations and flags only the values that cannot be secrets. Behind
//! that every text loses what is known to be a secret, such as the values of the manager's Secrets, and what looks like one.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use regex_lite::Regex;
use serde_json::Value;

/// What stands where a secret was.
const REDACTED: &str = "[redacted]";

/// What is said of a value that is not shown.
const SET: &str = "[set]";

/// The shortest text that is taken for a secret wherever it stands.
const SHORTEST: usize = 4;

/// The annotations whose values are shown, by the beginning of their keys.
const SHOWN_ANNOTATIONS: &[&str] = &[
    "k8s.cloudscale.ch/",
    "kube-vip.io/",
    "loadbalancer.openstack.org/",
    "phoenixnap.com/",
    "service.beta.kubernetes.io/cloudstack-",
    "service.beta.kubernetes.io/openstack-",
];

/// The flags whose values are shown beside those that are switches, numbers and durations.
const SHOWN_FLAGS: &[&str] = &[
    "allocate-node-cidrs",
    "cloud-provider",
    "cluster-cidr",
    "cluster-name",
    "controllers",
    "feature-gates",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
];

/// Names whose values are secrets.
const NAMES: &str = r"[\w.-]*(?:password|passwd|secret|token|credential|api[_-]?key|private[_-]?key|key[_-]data|authorization)[\w.-]*";

/// A name of a secret with its value, in JSON, YAML, a shell or a configuration file.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?i)(\b{NAMES}["']?\s*[:=]\s*["']?)((?:bearer\s+|basic\s+)?[^\s"',;]+)"#
    ))
    .ok()
});

/// What is a secret wherever it stands: the user in a URL, a bearer token, a JSON web token, a private key.
static BARE: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let patterns = [
        (r"(\w+://)[^/\s@]+@", "${1}[redacted]@"),
        (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}", "${1} [redacted]"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]*", REDACTED),
        (
            r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
            REDACTED,
        ),
    ];
    let patterns = patterns.into_iter();
    patterns
        .filter_map(|(pattern, by)| Some((Regex::new(pattern).ok()?, by)))
        .collect()
});

/// The archive in the making.
#[derive(Default)]
pub struct Bundle {
    files: Vec<(String, String)>,
    missing: Vec<(String, String)>,
    secrets: BTreeSet<String>,
}

impl Bundle {
    /// This text is a secret, and is shown nowhere.
    pub fn hide(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= SHORTEST {
            self.secrets.insert(secret.to_owned());
        }
    }

    /// What this text holds under the name of a secret is shown nowhere.
    pub fn hide_in(&mut self, text: &str) {
        let found = NAMED.iter().flat_map(|named| named.captures_iter(text));
        let values: Vec<String> = found
            .filter_map(|it| Some(it.get(2)?.as_str().to_owned()))
            .collect();
        values.iter().for_each(|value| self.hide(value));
    }

    /// Adds a file.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.files.push((name.into(), text.into()));
    }

    /// Adds objects, as [`shown`] shows them.
    pub fn add_objects(&mut self, name: impl Into<String>, objects: Vec<Value>) {
        let objects: Vec<Value> = objects.into_iter().map(shown).collect();
        self.add(name, format!("{:#}", Value::Array(objects)));
    }

    /// What could not be had, and why.
    pub fn miss(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.missing.push((name.into(), why.into()));
    }

    /// What there is and what there is not, for people.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for (name, contents) in &self.files {
            text.push_str(&format!("{:>9}  {name}\n", contents.len()));
        }
        for (name, why) in &self.missing {
            text.push_str(&format!("  missing  {name}: {why}\n"));
        }
        self.redact(&text)
    }

    fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest first: one may hold another.
        let mut secrets: Vec<&String> = self.secrets.iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        for secret in secrets {
            text = text.replace(secret.as_str(), REDACTED);
        }
        if let Some(named) = &*NAMED {
            text = named
                .replace_all(&text, format!("${{1}}{REDACTED}").as_str())
                .into_owned();
        }
        for (pattern, by) in &*BARE {
            text = pattern.replace_all(&text, *by).into_owned();
        }
        text
    }

    /// The archive: all files in a folder of this name, with a listing.
    ///
    /// # Errors
    ///
    /// It cannot be put together.
    pub fn archive(&self, folder: &str, now: Timestamp) -> std::io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        let listing = ("LISTING.txt".to_owned(), self.listing());
        for (name, contents) in std::iter::once(&listing).chain(&self.files) {
            let contents = self.redact(contents);
            let mut header = tar::Header::new_gnu();
            header.set_size(u64::try_from(contents.len()).unwrap_or_default());
            header.set_mode(0o600);
            header.set_mtime(u64::try_from(now.as_second()).unwrap_or_default());
            archive.append_data(&mut header, format!("{folder}/{name}"), contents.as_bytes())?;
        }
        let mut written = archive.into_inner()?.finish()?;
        written.flush()?;
        Ok(written)
    }
}

/// An object without what may hold secrets: of annotations the values that the clouds know, and no copies of what was applied.
pub fn shown(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            for (key, value) in annotations.iter_mut() {
                if !SHOWN_ANNOTATIONS.iter().any(|start| key.starts_with(start)) {
                    *value = SET.into();
                }
            }
        }
    }
    object
}

/// A flag, with its value if that cannot be a secret.
pub fn shown_flag(flag: &str) -> String {
    let Some((name, value)) = flag.split_once('=') else {
        // A value of its own, or a flag without one.
        return if flag.starts_with('-') {
            flag.to_owned()
        } else {
            SET.to_owned()
        };
    };
    let is_number = value.starts_with(|c: char| c.is_ascii_digit()) && value.len() <= 12;
    let is_plain = is_number || matches!(value, "true" | "false" | "");
    let is_known = SHOWN_FLAGS.contains(&name.trim_start_matches('-').replace('_', "-").as_str());
    match is_plain || is_known {
        true => flag.to_owned(),
        false => format!("{name}={SET}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::json;

    use super::*;

    const SECRET: &str = "Zw8uKq2mN5xTfB7yRj4LsE3d";

    fn unpacked(archive: &[u8]) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(archive)
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    #[test]
    fn a_secret_is_found_in_no_field() {
        let mut bundle = Bundle::default();
        bundle.hide("only-known-as-a-secret");
        bundle.hide_in("[Global]\nauth-url = https://cloud\npassword = known-from-a-file\n");
        let annotations = json!({
            "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"token\":\"{SECRET}\"}}"),
            "example.com/note": SECRET,
            "k8s.cloudscale.ch/loadbalancer-zone": "lpg1",
        });
        let object = json!({ "metadata": { "name": "web", "annotations": annotations, "managedFields": [{ "f": SECRET }] } });
        bundle.add_objects("services.json", vec![object]);
        for (name, text) in [
            (
                "flags",
                [shown_flag(&format!("--user-agent={SECRET}")), shown_flag(SECRET)].join(" "),
            ),
            (
                "env",
                format!("OS_PASSWORD={SECRET}\nCLOUDSCALE_ACCESS_TOKEN: '{SECRET}'"),
            ),
            ("url", format!("https://user:{SECRET}@proxy:3128")),
            (
                "kubeconfig",
                format!("users: [{{user: {{token: {SECRET}, client-key-data: {SECRET}}}}}]"),
            ),
            ("header", format!("Authorization: Bearer {SECRET}")),
            ("config", format!("api-key = {SECRET}\nsecret-key={SECRET}")),
            (
                "key",
                format!("-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"),
            ),
            (
                "log",
                "the cloud said only-known-as-a-secret and known-from-a-file".to_owned(),
            ),
            ("jwt", format!("eyJhbGciOi.{SECRET}.x")),
        ] {
            bundle.add(name, text);
        }
        bundle.miss("metrics.txt", format!("token={SECRET}"));
        let text = unpacked(&bundle.archive("bowline-support", Timestamp::UNIX_EPOCH).unwrap());
        for secret in [SECRET, "only-known-as-a-secret", "known-from-a-file"] {
            assert!(!text.contains(secret), "{secret}\n{text}");
        }
        assert!(
            text.contains("lpg1") && text.contains("bowline-support/LISTING.txt"),
            "{text}"
        );
        assert!(text.contains("missing  metrics.txt"), "{text}");
    }

    #[test]
    fn flags_that_cannot_be_secrets_are_shown() {
        for flag in [
            "--cloud-provider=openstack",
            "--v=2",
            "--leader-elect",
            "--allow_untagged_cloud=true",
            "--node-monitor-period=5s",
        ] {
            assert_eq!(shown_flag(flag), flag);
        }
        assert_eq!(
            shown_flag("--cloud-config=/etc/cloud.conf"),
            "--cloud-config=[set]"
        );
    }
}
