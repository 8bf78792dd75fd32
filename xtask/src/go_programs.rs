//! `cargo xtask go-programs`: what tests need of the Go toolchain, built once and kept.
//!
//! A first run needs minutes for it, and much of that is waiting for modules to come. So it is begun with the run, gets what
//! the other stages leave of the processor, and is waited for where the tests begin.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};
use bowline_base::go::{GoProgram, Version};
use bowline_base::server::Process;

use crate::workspace::{in_ci, on_path};

/// What `cargo xtask test` needs for this Kubernetes minor; nothing for the one that the environment asks for.
#[derive(Debug)]
pub(crate) struct GoPrograms {
    minor: Option<String>,
    programs: Vec<GoProgram>,
}

impl GoPrograms {
    /// Helm, the manager beside which ours runs, and the API server and etcd unless a person has their own.
    ///
    /// # Errors
    ///
    /// When no such minor is known.
    pub(crate) fn for_tests(minor: Option<&str>) -> Result<Self> {
        let version = match minor {
            Some(minor) => minor.parse()?,
            None => Version::wanted()?,
        };
        let mut programs = vec![GoProgram::helm(), GoProgram::peer(version)];
        if env::var_os("KUBEBUILDER_ASSETS").is_some() {
            println!("control plane: taken from KUBEBUILDER_ASSETS");
        } else {
            programs.extend([GoProgram::etcd(version), GoProgram::kube_apiserver(version)]);
        }
        Ok(Self {
            minor: minor.map(str::to_owned),
            programs,
        })
    }

    fn are_built(&self) -> bool {
        self.programs.iter().all(GoProgram::is_built)
    }

    /// Builds those that the cache does not have.
    ///
    /// # Errors
    ///
    /// When a build fails; in continuous integration also when there is no Go.
    pub(crate) fn build(&self) -> Result<()> {
        if !self.are_built() && !on_path("go") {
            if in_ci() {
                bail!("Go is needed to build kube-apiserver, etcd and Helm, and is not on the path");
            }
            println!(
                "Go programs: not built, there is no Go here; tests that need them say what they left out"
            );
            return Ok(());
        }
        for program in &self.programs {
            let path = program.build()?;
            println!("{}", path.display());
        }
        Ok(())
    }

    /// Begins to build them in a process of its own, if the cache does not have them all. It ends with ours at the latest, and
    /// whether it succeeds does not matter: [`Self::build`] does what it has left to do.
    ///
    /// # Errors
    ///
    /// When its log cannot be written.
    pub(crate) fn begin(&self, target: &Path) -> Result<Option<Process>> {
        if self.are_built() || !on_path("go") {
            return Ok(None);
        }
        let log = target.join("go-programs.log");
        fs::create_dir_all(target).with_context(|| format!("cannot make {}", target.display()))?;
        let mut command = Command::new("nice");
        command.arg(env::current_exe()?).arg("go-programs");
        command.args(self.minor.iter().map(|minor| format!("--kubernetes={minor}")));
        eprintln!("Go programs: begun beside the other stages; {}", log.display());
        Ok(Some(Process::start("Go programs", &command, log)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_need_helm_and_the_two_of_their_version() {
        let programs = GoPrograms::for_tests(Some("1.36")).unwrap().programs;
        let paths: Vec<_> = programs.iter().map(GoProgram::path).collect();
        assert!(paths.iter().any(|path| path.ends_with("helm")), "{paths:?}");
        let is_of_version = |path: &Path| path.to_string_lossy().contains("/control-plane/v1.36.");
        let are_own = env::var_os("KUBEBUILDER_ASSETS").is_none();
        let count = paths.iter().filter(|path| is_of_version(path)).count();
        assert_eq!(count, if are_own { 2 } else { 0 }, "{paths:?}");
        let error = GoPrograms::for_tests(Some("1.12")).unwrap_err().to_string();
        assert!(error.contains("1.12"), "{error}");
    }
}
