//! Where harnesses keep what takes minutes to build or to install.

use std::env;
use std::path::{Path, PathBuf};

/// A directory in the cache, which lies beside the source tree and which git ignores. Nothing is created here.
pub fn cache_directory(harness: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).unwrap_or(here);
    root.join(".cache").join(harness)
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

/// Whether this is continuous integration (`CI` is set and not false).
pub fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_changes_with_each_text_and_with_their_borders() {
        assert_eq!(key(["a", "b"]), key(["a", "b"]));
        assert_ne!(key(["a", "b"]), key(["a", "c"]));
        assert_ne!(key(["a", "b"]), key(["ab"]));
    }
}
