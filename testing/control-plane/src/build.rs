//! Compiles kube-apiserver and etcd, unless the cache has them.

use bowline_base::go::{BuildError, GoProgram, Version};

use crate::binaries::{Binaries, binaries};

/// The programs of this version, built if the cache does not have them: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
pub fn build(version: Version) -> Result<Binaries, BuildError> {
    if let Ok(found) = binaries(version) {
        return Ok(found);
    }
    Ok(Binaries {
        etcd: GoProgram::etcd(version).build()?,
        kube_apiserver: GoProgram::kube_apiserver(version).build()?,
    })
}
