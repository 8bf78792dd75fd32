//! Compiles Helm, unless the cache has it.

use bowline_base::go::{BuildError, GoProgram};

use crate::chart::helm::Helm;

/// Helm, built if the cache does not have it: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
pub fn build() -> Result<Helm, BuildError> {
    GoProgram::helm().build()?;
    Ok(Helm::expected())
}
