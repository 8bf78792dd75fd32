//! Puts the services into the cache.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::installation::{CONSTRAINTS, Installation, REQUIREMENTS};
use crate::programs::{rabbitmq_server, system_program};
use crate::seed::{self, SeedError};

/// Programs of the system, and the Debian package that brings each.
const SYSTEM: [(&str, &str); 7] = [
    ("mariadbd", "mariadb-server"),
    ("mariadb-install-db", "mariadb-server"),
    ("erl", "rabbitmq-server"),
    ("epmd", "rabbitmq-server"),
    // uWSGI and some of the services' libraries are compiled here.
    ("cc", "gcc"),
    ("python3", "python3"),
    ("nice", "coreutils"),
];

/// The oldest Python for which the services are published.
const NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// Whether this Python can make virtual environments, and can compile modules.
const COMPLETE: &str = "import ensurepip, os, sys, sysconfig, venv; \
    sys.exit(not os.path.isfile(os.path.join(sysconfig.get_path('include'), 'Python.h')))";

/// Where Debian's packages ask whether they may start what they install (`invoke-rc.d(8)`).
const START_POLICY: &str = "/usr/sbin/policy-rc.d";

/// Why the services could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Programs are missing, and this cannot get them.
    #[error(
        "missing: {}; install the packages {}, or run this as root on a Debian system", .programs.join(", "), .packages.join(", ")
    )]
    System {
        /// What is not there.
        programs: Vec<String>,
        /// What brings it.
        packages: Vec<String>,
    },
    /// A package was installed and did not bring what it should.
    #[error("{} still missing after the packages {} were installed", .programs.join(", "), .packages.join(", "))]
    StillMissing {
        /// What is not there.
        programs: Vec<String>,
        /// What should have brought it.
        packages: Vec<String>,
    },
    /// The `python3` on the path cannot make what is needed.
    #[error(
        "python3 is older than 3.11, for which the services are not published; put a newer one first on the path"
    )]
    Python,
    /// A tool could not be started.
    #[error("cannot start {0}")]
    NoTool(&'static str, #[source] io::Error),
    /// A tool failed; what it said is on stderr.
    #[error("{tool} failed: {status}")]
    Failed {
        /// Which, and what for.
        tool: &'static str,
        /// How it ended.
        status: ExitStatus,
    },
    /// The cache could not be written.
    #[error("cannot write {0}")]
    Cache(PathBuf, #[source] io::Error),
    /// The databases could not be prepared.
    #[error(transparent)]
    Seed(#[from] SeedError),
}

/// The installed services; installs what is missing: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no network for the packages, no room, or system packages are missing and this does not run as root.
///
/// # Repeatability
///
/// What an interrupted installation left is removed and made again. Two at once wait for each other.
///
/// # Cancellation
///
/// Leaves an unfinished installation, which the next one removes.
pub async fn install() -> Result<Installation, InstallError> {
    let installation = Installation::wanted();
    if installation.is_finished() {
        return Ok(installation);
    }
    let at = |error| InstallError::Cache(installation.root().to_owned(), error);
    fs::create_dir_all(installation.root()).map_err(at)?;
    let lock = File::create(installation.root().join("lock")).map_err(at)?;
    // Released when the file is closed, so also when this process dies.
    lock.lock().map_err(at)?;
    if !installation.is_marked("packages") {
        system_packages()?;
        remove(&installation.environment()).map_err(at)?;
        python_packages(&installation)?;
        installation.mark("packages").map_err(at)?;
    }
    if !installation.is_marked("databases") {
        remove(&installation.seed()).map_err(at)?;
        seed::prepare(&installation).await?;
        installation.mark("databases").map_err(at)?;
    }
    Ok(installation)
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// What a system can lack beside programs on the path.
struct Found {
    rabbitmq: bool,
    /// A Python with `venv` and headers.
    complete_python: bool,
}

/// What is missing on this system: programs and the packages that bring them, each package once.
fn missing(has: impl Fn(&str) -> bool, found: &Found) -> (Vec<String>, Vec<String>) {
    let mut programs = Vec::new();
    let mut packages: Vec<String> = Vec::new();
    let mut note = |program: &str, package: &str| {
        programs.push(program.to_owned());
        if !packages.iter().any(|known| known == package) {
            packages.push(package.to_owned());
        }
    };
    for (program, package) in SYSTEM {
        if !has(program) {
            note(program, package);
        }
    }
    if !found.rabbitmq {
        note("rabbitmq-server", "rabbitmq-server");
    }
    if !found.complete_python {
        note("venv and the headers of python3", "python3-venv");
        note("venv and the headers of python3", "python3-dev");
    }
    programs.dedup();
    (programs, packages)
}

fn system_packages() -> Result<(), InstallError> {
    let look = || {
        let found = Found {
            rabbitmq: rabbitmq_server().is_some(),
            complete_python: python_agrees(COMPLETE),
        };
        missing(|name| system_program(name).is_some(), &found)
    };
    let (programs, mut packages) = look();
    if !packages.is_empty() {
        if !is_root() || system_program("apt-get").is_none() {
            return Err(InstallError::System { programs, packages });
        }
        // The compiler needs the C library's headers, which are only recommended to it.
        if packages.iter().any(|package| package == "gcc") {
            packages.push("libc6-dev".to_owned());
        }
        let _unstarted = StartPolicy::nothing()?;
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
            command
        };
        run("apt-get update", &mut apt(&["update", "-qq"]))?;
        let mut install = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
        run("apt-get install", install.args(&packages))?;
        let (programs, packages) = look();
        if !programs.is_empty() {
            return Err(InstallError::StillMissing { programs, packages });
        }
    }
    python_agrees(NEW_ENOUGH)
        .then_some(())
        .ok_or(InstallError::Python)
}

fn python_agrees(script: &str) -> bool {
    Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// While this lives, Debian starts none of the servers that it installs: the services get servers of their own.
struct StartPolicy {
    is_ours: bool,
}

impl StartPolicy {
    /// A system that has a policy keeps it.
    fn nothing() -> Result<Self, InstallError> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o755);
        let written = options
            .open(START_POLICY)
            .and_then(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n"));
        match written {
            Ok(()) => Ok(Self { is_ours: true }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Self { is_ours: false }),
            Err(error) => Err(InstallError::Cache(PathBuf::from(START_POLICY), error)),
        }
    }
}

impl Drop for StartPolicy {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(START_POLICY);
        }
    }
}

fn python_packages(installation: &Installation) -> Result<(), InstallError> {
    let at = |error| InstallError::Cache(installation.root().to_owned(), error);
    let constraints = installation.root().join("constraints.txt");
    let requirements = installation.root().join("requirements.txt");
    fs::write(&constraints, CONSTRAINTS).map_err(at)?;
    fs::write(&requirements, REQUIREMENTS).map_err(at)?;
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(installation.environment());
    run("python3 -m venv", &mut environment)?;
    let pip = |arguments: &[&str]| {
        // Minutes of compiling: whoever works on this machine goes first.
        let mut command = Command::new("nice");
        command
            .args(["-n", "10"])
            .arg(installation.program("pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .arg("--constraint")
            .arg(&constraints)
            .args(arguments);
        command
    };
    // Some packages come as sources, which are built with these.
    run("pip install of its own tools", &mut pip(&["setuptools", "wheel"]))?;
    run(
        "pip install of the services",
        pip(&["--requirement"]).arg(&requirements),
    )
}

/// Runs a tool whose output is for stderr: stdout belongs to the program that calls this.
fn run(tool: &'static str, command: &mut Command) -> Result<(), InstallError> {
    let status = command
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .map_err(|error| InstallError::NoTool(tool, error))?;
    if status.success() {
        Ok(())
    } else {
        Err(InstallError::Failed { tool, status })
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // Whose process this is, without a call of the C library.
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_program_is_named_and_each_package_once() {
        let found = Found {
            rabbitmq: false,
            complete_python: true,
        };
        let (programs, packages) = missing(|name| !name.starts_with("mariadb"), &found);
        assert_eq!(programs, ["mariadbd", "mariadb-install-db", "rabbitmq-server"]);
        assert_eq!(packages, ["mariadb-server", "rabbitmq-server"]);
        let error = InstallError::System { programs, packages };
        assert_eq!(
            error.to_string(),
            "missing: mariadbd, mariadb-install-db, rabbitmq-server; install the packages mariadb-server, rabbitmq-server, or run this as root on a Debian system"
        );
    }

    #[test]
    fn a_system_with_everything_needs_no_package() {
        let found = Found {
            rabbitmq: true,
            complete_python: true,
        };
        assert_eq!(missing(|_| true, &found), (Vec::new(), Vec::new()));
    }
}
