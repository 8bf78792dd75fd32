//! Where harnesses keep what takes minutes to build or to install.

use std::fmt::Display;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::{env, io, thread};

/// A directory in the cache, which lies beside the source tree and which git ignores. Nothing is created here.
pub fn cache_directory(harness: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap_or(here);
    root.join(".cache").join(harness)
}

/// Makes the directory, and waits until no other process builds there. Released when the file is closed, so also when this
/// process dies.
///
/// # Errors
///
/// When the directory or the lock in it cannot be made.
#[expect(clippy::print_stderr, reason = "who waits for minutes wants to know what for")]
pub fn lock_cache(directory: &Path) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    let lock = File::create(directory.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!(
                "waiting for another process that builds in {}",
                directory.display()
            );
            lock.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(lock)
}

/// A name for what is made from these texts, the same on every machine and toolchain: it changes when one of them does.
pub fn key<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    // FNV-1a, 64 bits. The standard hasher promises nothing between toolchains.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = texts.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, text| {
        step(text.bytes().fold(hash, step), 0)
    });
    format!("{hash:016x}")
}

/// What a test calls that needs something which may not be there: that, or nothing and a line that says which test was left out.
///
/// # Panics
///
/// When it is missing where it is `required`.
#[expect(
    clippy::print_stderr,
    clippy::panic,
    reason = "speaks to whoever runs the tests"
)]
pub fn or_skip<T>(found: Result<T, impl Display>, required: bool) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) if required => panic!("{missing}"),
        Err(missing) => {
            eprintln!(
                "left out: {}: {missing}",
                thread::current().name().unwrap_or("a test")
            );
            None
        }
    }
}

/// Whether this is continuous integration (`CI` is set and not false).
pub fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_builds_and_another_waits() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock_cache(directory.path()).unwrap();
        let other = File::open(directory.path().join("lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        other.try_lock().unwrap();
    }

    #[test]
    fn a_key_changes_with_each_text_and_with_their_borders() {
        assert_eq!(key(["a", "b"]), key(["a", "b"]));
        assert_ne!(key(["a", "b"]), key(["a", "c"]));
        assert_ne!(key(["a", "b"]), key(["ab"]));
    }
}
