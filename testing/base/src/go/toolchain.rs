//! The Go toolchain.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Why a program could not be built.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// No Go toolchain could be started.
    #[error("cannot start go")]
    NoGo(#[source] io::Error),
    /// The compiler said no; what it said is on stderr.
    #[error("go build of {package} failed: {status}")]
    Failed {
        /// The Go package.
        package: &'static str,
        /// How the compiler ended.
        status: ExitStatus,
    },
}

/// Why programs could not be built into the cache.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The toolchain is missing, or said no.
    #[error(transparent)]
    Go(#[from] GoError),
    /// The cache could not be written.
    #[error("cannot write {0}")]
    Cache(PathBuf, #[source] io::Error),
}

/// Builds one static program: a package that the Go module in this directory requires, in the versions that it names.
///
/// The linker's flags come on top of those that strip the program; tags choose what of the package is built, if not empty.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
pub(crate) fn go_build(
    module: &Path,
    package: &'static str,
    linker_flags: &str,
    tags: &str,
    output: &Path,
) -> Result<(), GoError> {
    let status = Command::new("go")
        .current_dir(module)
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            // What the linker's `-w` leaves out need not be made: an eighth of the compiler's time.
            "-gcflags=all=-dwarf=false",
            "-ldflags",
        ])
        .arg(format!("-s -w {linker_flags}"))
        .args(["-tags", tags])
        .arg("-o")
        .arg(output)
        .arg(package)
        .env("CGO_ENABLED", "0")
        // A compiler that lives for seconds need not collect what is left over: a sixth of the processor's time.
        .env("GOGC", "off")
        .env("GOMEMLIMIT", "2GiB")
        // A workspace file or flags of the person who builds must not decide what comes out.
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        // Images with Go inside tell it to fetch no newer one, which a module may name (its line `toolchain`).
        .env("GOTOOLCHAIN", "auto")
        .stdin(Stdio::null())
        .status()
        .map_err(GoError::NoGo)?;
    if status.success() {
        Ok(())
    } else {
        Err(GoError::Failed { package, status })
    }
}
