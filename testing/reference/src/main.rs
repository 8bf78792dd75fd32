//! Writes the reference pages and the code in guides: `cargo xtask generate` calls it.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a program's last word")]
            {
                eprintln!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path) -> Result<(), String> {
    for page in bowline_reference::pages()
        .into_iter()
        .chain(bowline_reference::guides(root)?)
    {
        let written = std::fs::write(root.join(page.path), &page.text);
        written.map_err(|error| format!("cannot write {}: {error}", page.path))?;
    }
    Ok(())
}
