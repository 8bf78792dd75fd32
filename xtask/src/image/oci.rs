//! Writes an OCI image archive (image-spec 1.1) with tar, gzip and sha256sum.
//!
//! Nothing is executed inside the image, so no container tool and no rights are needed to make it; and the same
//! program gives the same bytes, because no time, user or order of the directory gets in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::workspace::{call, output};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A user with no name and no rights; the number is the one that "nonroot" images have.
const USER: &str = "65532:65532";

/// One platform's root file system.
pub(super) struct Platform {
    /// As Go calls it: `amd64`, `arm64`.
    pub(super) architecture: &'static str,
    pub(super) root: PathBuf,
}

/// An image for one or more platforms.
pub(super) struct Archive<'a> {
    /// The reference under which tools find it in the archive: the version.
    pub(super) name: &'a str,
    /// The path of the program, without the leading slash.
    pub(super) entrypoint: &'a str,
    /// Environment variables of the program, besides `PATH`.
    pub(super) environment: &'a [(&'a str, &'a str)],
    /// What the image says of itself: labels of each platform, and annotations of the index, where registries look.
    pub(super) labels: &'a [(&'static str, String)],
    pub(super) platforms: &'a [Platform],
}

impl Archive<'_> {
    /// Writes the archive to a file, over an older one.
    pub(super) fn write(&self, archive: &Path) -> Result<()> {
        let directory = archive.with_extension("layout");
        if directory.exists() {
            fs::remove_dir_all(&directory).context("cannot clear the image layout")?;
        }
        let layout = Layout {
            blobs: directory.join("blobs/sha256"),
        };
        fs::create_dir_all(&layout.blobs).context("cannot make the image layout")?;
        let manifests = self
            .platforms
            .iter()
            .map(|platform| self.manifest(&layout, platform));
        let manifests: Vec<Value> = manifests.collect::<Result<_>>()?;
        let index = json!({
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": manifests,
            "annotations": self.labels(),
        });
        let mut descriptor = layout.add_json(INDEX, &index)?;
        descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": self.name });
        let top = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor] });
        fs::write(directory.join("index.json"), top.to_string())?;
        fs::write(
            directory.join("oci-layout"),
            json!({ "imageLayoutVersion": "1.0.0" }).to_string(),
        )?;
        tar(&directory, archive)?;
        fs::remove_dir_all(&directory).context("cannot remove the image layout")
    }

    fn labels(&self) -> Map<String, Value> {
        let labels = self.labels.iter();
        labels
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect()
    }

    fn manifest(&self, layout: &Layout, platform: &Platform) -> Result<Value> {
        let plain = platform.root.with_extension("layer.tar");
        tar(&platform.root, &plain)?;
        let uncompressed = sha256(&plain)?;
        // -n keeps the name and the time of the file out.
        call(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&plain))?;
        let layer = layout.add_file(LAYER, &platform.root.with_extension("layer.tar.gz"))?;
        let environment: Vec<String> = std::iter::once(&("PATH", "/bin"))
            .chain(self.environment)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let config = json!({
            "architecture": platform.architecture,
            "os": "linux",
            "config": {
                "User": USER,
                "WorkingDir": "/",
                "Env": environment,
                "Entrypoint": [format!("/{}", self.entrypoint)],
                "Labels": self.labels(),
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{uncompressed}")] },
        });
        let config = layout.add_json(CONFIG, &config)?;
        let manifest =
            json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
        let mut descriptor = layout.add_json(MANIFEST, &manifest)?;
        descriptor["platform"] = json!({ "architecture": platform.architecture, "os": "linux" });
        Ok(descriptor)
    }
}

/// A directory of blobs that are named by their hash.
struct Layout {
    blobs: PathBuf,
}

impl Layout {
    fn add_json(&self, media_type: &str, value: &Value) -> Result<Value> {
        let file = self.blobs.join("new");
        fs::write(&file, value.to_string()).context("cannot write a blob")?;
        self.add_file(media_type, &file)
    }

    /// Moves a file in and gives its descriptor.
    fn add_file(&self, media_type: &str, file: &Path) -> Result<Value> {
        let size = fs::metadata(file)
            .with_context(|| format!("no {}", file.display()))?
            .len();
        let hash = sha256(file)?;
        fs::rename(file, self.blobs.join(&hash)).context("cannot place a blob")?;
        Ok(json!({ "mediaType": media_type, "digest": format!("sha256:{hash}"), "size": size }))
    }
}

fn tar(directory: &Path, archive: &Path) -> Result<()> {
    let same = [
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
    ];
    let mut entries: Vec<_> = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<Result<_>>()
        .with_context(|| format!("cannot list {}", directory.display()))?;
    // By their names and not as ".", so that the archive says nothing about its own root.
    entries.sort();
    call(
        Command::new("tar")
            .arg("-cf")
            .arg(archive)
            .args(same)
            .arg("-C")
            .arg(directory)
            .args(entries),
    )
}

fn sha256(file: &Path) -> Result<String> {
    let line = output(Command::new("sha256sum").arg("-b").arg(file))?;
    let hash = line
        .split_whitespace()
        .next()
        .context("sha256sum wrote nothing")?;
    Ok(hash.trim_start_matches('\\').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(directory: &Path) -> PathBuf {
        let root = directory.join("amd64");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/program"), "content").unwrap();
        let archive = directory.join("image.oci.tar");
        let platforms = [Platform {
            architecture: "amd64",
            root,
        }];
        Archive {
            name: "1.2.3",
            entrypoint: "bin/program",
            environment: &[("A", "1")],
            labels: &[("org.opencontainers.image.version", "1.2.3".to_owned())],
            platforms: &platforms,
        }
        .write(&archive)
        .unwrap();
        archive
    }

    fn unpack(archive: &Path, into: &Path) {
        fs::create_dir_all(into).unwrap();
        call(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(into)).unwrap();
    }

    fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
        let hash = descriptor["digest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap();
        let path = layout.join("blobs/sha256").join(hash);
        assert_eq!(sha256(&path).unwrap(), hash);
        assert_eq!(
            fs::metadata(&path).unwrap().len(),
            descriptor["size"].as_u64().unwrap()
        );
        path
    }

    fn read(path: &Path) -> Value {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn every_descriptor_in_the_archive_leads_to_its_blob() {
        let directory = tempfile::tempdir().unwrap();
        let archive = image(directory.path());
        let layout = directory.path().join("unpacked");
        unpack(&archive, &layout);

        let top = read(&layout.join("index.json"));
        assert_eq!(
            top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
            "1.2.3"
        );
        let index = read(&blob(&layout, &top["manifests"][0]));
        let labels = json!({ "org.opencontainers.image.version": "1.2.3" });
        assert_eq!(index["annotations"], labels);
        assert_eq!(index["manifests"][0]["platform"]["architecture"], "amd64");
        let manifest = read(&blob(&layout, &index["manifests"][0]));
        let config = read(&blob(&layout, &manifest["config"]));
        assert_eq!(config["config"]["Entrypoint"], json!(["/bin/program"]));
        assert_eq!(config["config"]["Env"], json!(["PATH=/bin", "A=1"]));
        assert_eq!(config["config"]["Labels"], labels);

        let files = directory.path().join("files");
        unpack(&blob(&layout, &manifest["layers"][0]), &files);
        assert_eq!(fs::read_to_string(files.join("bin/program")).unwrap(), "content");
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let [one, other] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, other] = [image(one.path()), image(other.path())].map(|path| fs::read(path).unwrap());
        assert!(one == other);
    }
}
