//! A Go module that names the programs it is there for, and their releases.

use std::path::PathBuf;

use crate::server::key;

/// A Go module of this crate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Module {
    /// Its folder in this crate.
    pub(crate) folder: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
}

/// The module in a folder of this crate.
macro_rules! module {
    ($folder:literal) => {
        crate::go::module::Module {
            folder: $folder,
            go_mod: include_str!(concat!("../../go/", $folder, "/go.mod")),
            go_sum: include_str!(concat!("../../go/", $folder, "/go.sum")),
        }
    };
}
pub(crate) use module;

impl Module {
    /// Where it lies in the source tree.
    pub(crate) fn directory(self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("go")
            .join(self.folder)
    }

    /// The release of a module that it requires: `v1.37.1`.
    pub(crate) fn release(self, required: &str) -> &'static str {
        let release = |line: &'static str| {
            let mut words = line.split_whitespace().skip_while(|word| *word == "require");
            (words.next() == Some(required)).then(|| words.next()).flatten()
        };
        self.go_mod.lines().find_map(release).unwrap_or("unknown")
    }

    /// What changes with the releases, and with the recipe by which they are built.
    pub(crate) fn key(self, recipe: &str) -> String {
        key([self.go_mod, self.go_sum, recipe])
    }
}
