//! Writes the reference pages: `cargo xtask generate` calls it.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in bowline_reference::pages() {
        if let Err(error) = std::fs::write(root.join(page.path), &page.text) {
            #[expect(clippy::print_stderr, reason = "a program's last word")]
            {
                eprintln!("cannot write {}: {error}", page.path);
            }
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
