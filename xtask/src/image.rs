//! `cargo xtask image`: the static binary and the image with nothing else in it.

mod oci;
mod source;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, call, on_path, output};
use oci::{Archive, Platform};
use source::Checkout;

/// The binary as in the image (design: budgets).
const BUDGET_BYTES: u64 = 12_000_000;

/// Environment variables of the image: glibc's own thresholds, said once more, in bytes.
///
/// Unless they are set, glibc raises both when the first large buffer is freed (mallopt(3), `M_MMAP_THRESHOLD`): after
/// one list of a cloud with megabytes it gives next to nothing back to the kernel.
pub(crate) const ENVIRONMENT: [(&str, &str); 2] = [
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// The clouds in the image: all but Paper, which is invented and has servers in its simulator only.
const CLOUDS: &str = "cloudscale,cloudstack,openstack,phoenixnap";

/// Where the program is in the image.
const PROGRAM: &str = "bin/cloud-controller-manager";

/// The Go managers' programs under the paths where their manifests expect them. Called by such a name, the program
/// behaves as that one, so that an operator changes the image and nothing else.
const NAMES: &[&str] = &[
    "bin/cloudscale-cloud-controller-manager", // found by PATH
    "cloud-provider-phoenixnap",               // called as ./cloud-provider-phoenixnap in the root
    "app/cloudstack-ccm",
    "bin/openstack-cloud-controller-manager",
];

/// A platform that images are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    pub(crate) const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|arch| arch.name() == text)
            .ok_or_else(|| format!("no platform {text:?}"))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The C compiler that links for it; on a machine of the other kind Debian's cross compiler.
    fn compiler(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-gnu-gcc",
            Self::Arm64 => "aarch64-linux-gnu-gcc",
        }
    }

    /// What the compiler and its linker are told, besides what both are. For x86-64 that is LLD (rustc 1.90), which keeps
    /// equal functions once. GNU's linker would put the constants among what can be run, were it told of an order of the
    /// functions.
    fn link_flags(self) -> &'static str {
        match self {
            Self::Amd64 => {
                " -C link-arg=-Wl,--icf=all \
                 -C symbol-mangling-version=v0 -C link-arg=-Wl,-T,xtask/src/image/order-of-functions.ld \
                 -C link-arg=-Wl,-z,max-page-size=65536"
            }
            Self::Arm64 => "",
        }
    }

    fn is_ours(self) -> bool {
        self.triple().starts_with(std::env::consts::ARCH)
    }
}

/// What of an image is wanted.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// The platforms; none for all that this machine can build for.
    pub(crate) platforms: Vec<Arch>,
    /// The URL of the sources, for the image's label.
    pub(crate) source: Option<String>,
    /// Whether the program carries the list of its dependencies, which takes cargo-auditable.
    pub(crate) auditable: bool,
}

/// Builds the program for each platform, and writes one OCI archive.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let wanted = &options.platforms;
    let checkout = Checkout::of(workspace);
    let mut platforms = Vec::new();
    let work = workspace.target_directory()?.join("image");
    for arch in if wanted.is_empty() { &Arch::ALL[..] } else { wanted } {
        match (lacking(workspace, *arch)?, wanted.is_empty()) {
            (None, _) => {}
            (Some(lack), true) => {
                println!("image: {} left out: {lack}", arch.name());
                continue;
            }
            (Some(lack), false) => bail!("cannot build for {}: {lack}", arch.name()),
        }
        let program = build(workspace, *arch, checkout.as_ref(), options)?;
        report_size(*arch, &program)?;
        let root = work.join(arch.name());
        lay_out(&root, &program)?;
        platforms.push(Platform {
            architecture: arch.name(),
            root,
        });
    }
    let version = workspace.version()?;
    let archive = work.join(format!("bowline-{version}.oci.tar"));
    Archive {
        name: &version,
        entrypoint: PROGRAM,
        environment: &ENVIRONMENT,
        labels: &source::labels(&version, options.source.as_deref(), checkout.as_ref()),
        platforms: &platforms,
    }
    .write(&archive)?;
    println!("image: {}", archive.display());
    Ok(())
}

/// Builds the program for this machine alone, as it is in the image.
pub(crate) fn program_of_this_machine(workspace: &Workspace) -> Result<PathBuf> {
    let arch = Arch::ALL.into_iter().find(|arch| arch.is_ours());
    let arch = arch.context("there is no image for this kind of machine")?;
    build(
        workspace,
        arch,
        Checkout::of(workspace).as_ref(),
        &Options::default(),
    )
}

/// What this machine lacks to build for a platform.
fn lacking(workspace: &Workspace, arch: Arch) -> Result<Option<String>> {
    if arch.is_ours() {
        return Ok(None);
    }
    if !on_path("rustup") {
        return Ok(Some(
            "there is no rustup to ask for its standard library".to_owned(),
        ));
    }
    let installed = output(workspace.tool("rustup").args(["target", "list", "--installed"]))?;
    if !installed.lines().any(|line| line.trim() == arch.triple()) {
        return Ok(Some(format!(
            "no standard library (rustup target add {})",
            arch.triple()
        )));
    }
    if !on_path(arch.compiler()) {
        return Ok(Some(format!(
            "no {} (Debian: gcc-{})",
            arch.compiler(),
            arch.triple().replace("-unknown", "")
        )));
    }
    Ok(None)
}

fn build(
    workspace: &Workspace,
    arch: Arch,
    checkout: Option<&Checkout>,
    options: &Options,
) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    if options.auditable {
        cargo.arg("auditable");
    }
    let told = std::env::var(source::DOCUMENTATION).ok();
    let pages = source::documentation(&workspace.version()?, options.source.as_deref(), told);
    cargo.envs(pages.map(|url| (source::DOCUMENTATION, url)));
    cargo.envs(checkout.into_iter().flat_map(Checkout::environment));
    cargo.args([
        "build",
        "--profile",
        "dist",
        "--package",
        "bowline",
        "--bin",
        "cloud-controller-manager",
        "--no-default-features",
        "--features",
        CLOUDS,
    ]);
    cargo.args(["--target", arch.triple()]);
    // glibc of 2.34 and later has its resolver inside, so a static program finds names without any file but
    // /etc/resolv.conf and /etc/hosts.
    // A program that can be loaded anywhere has tens of thousands of addresses to relocate; packed, they take a few kilobytes
    // instead of half a megabyte. The linker runs in the root of the workspace.
    let flags = "-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,-T,xtask/src/image/no-unwind-tables.ld";
    cargo.env("RUSTFLAGS", format!("{flags}{}", arch.link_flags()));
    if !arch.is_ours() {
        let name = arch.triple().replace('-', "_");
        cargo.env(
            format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()),
            arch.compiler(),
        );
        cargo.env(format!("CC_{name}"), arch.compiler());
    }
    call(&mut cargo)?;
    Ok(workspace
        .target_directory()?
        .join(arch.triple())
        .join("dist/cloud-controller-manager"))
}

/// Prints the size beside the budget, for a person to read.
fn report_size(arch: Arch, program: &Path) -> Result<()> {
    let bytes = fs::metadata(program)
        .with_context(|| format!("no {}", program.display()))?
        .len();
    let verdict = if bytes <= BUDGET_BYTES { "within" } else { "OVER" };
    println!(
        "image: {} binary has {:.1} MB, {verdict} the budget of {:.1} MB",
        arch.name(),
        megabytes(bytes),
        megabytes(BUDGET_BYTES)
    );
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a size of megabytes, shown with one decimal"
)]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Makes the root file system of the image: the program and its names.
fn lay_out(root: &Path, program: &Path) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| format!("cannot clear {}", root.display()))?;
    }
    let put = |path: &str| -> Result<PathBuf> {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a path in the image has a parent")?)?;
        Ok(path)
    };
    fs::copy(program, put(PROGRAM)?).context("cannot copy the program")?;
    for name in NAMES {
        symlink(link_target(name), put(name)?).with_context(|| format!("cannot link {name}"))?;
    }
    Ok(())
}

/// The program as seen from the directory of a name, relative, so that the tree means the same wherever it lies.
fn link_target(name: &str) -> PathBuf {
    let up = Path::new(name).components().count() - 1;
    std::iter::repeat_n(OsStr::new(".."), up)
        .chain([OsStr::new(PROGRAM)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_go_manager_leads_to_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        fs::write(&program, "content").unwrap();
        let root = directory.path().join("root");
        // Twice: a second build must not stumble over the first one's links.
        for _ in 0..2 {
            lay_out(&root, &program).unwrap();
        }
        for name in NAMES {
            assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "content", "{name}");
            assert!(fs::read_link(root.join(name)).unwrap().is_relative(), "{name}");
        }
    }

    /// Length and name, one after the other, as in `15bowline_manager6doctor`.
    fn words(mut pattern: &str) -> Vec<&str> {
        let mut words = Vec::new();
        while let Some(digits) = pattern.find(|it: char| !it.is_ascii_digit()).filter(|it| *it > 0) {
            let (length, rest) = pattern.split_at(digits);
            let (word, rest) = rest.split_at(length.parse().unwrap());
            words.push(word);
            pattern = rest;
        }
        words
    }

    fn source_of(root: &Path, words: &[&str]) -> PathBuf {
        let name = words[0].trim_start_matches("bowline_").replace('_', "-");
        let (cloud, client) = name
            .split_once("-client")
            .map_or((&*name, false), |it| (it.0, true));
        let places = [
            root.join("crates").join(&name),
            root.join("clouds")
                .join(cloud)
                .join(if client { "client" } else { "provider" }),
        ];
        let place = places
            .into_iter()
            .find(|it| it.exists())
            .expect("a crate of that name");
        words[1..]
            .iter()
            .fold(place.join("src"), |path, word| path.join(word))
    }

    #[test]
    fn the_order_of_functions_names_modules_that_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let script = fs::read_to_string(root.join("xtask/src/image/order-of-functions.ld")).unwrap();
        let ours = script.split_whitespace().filter_map(|it| {
            let name = it.trim_start_matches("*(").strip_prefix(".text.*")?;
            let name = name.split(['*', '[', ')']).next()?;
            name.contains("bowline").then_some(name)
        });
        let mut count = 0;
        for name in ours {
            let path = source_of(root, &words(name));
            assert!(
                path.exists() || path.with_extension("rs").exists(),
                "{name}: no {}",
                path.display()
            );
            count += 1;
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn an_unknown_platform_is_refused() {
        assert_eq!(Arch::parse("arm64"), Ok(Arch::Arm64));
        assert!(Arch::parse("mips").is_err());
    }
}
