//! Writes the reference pages and the code in guides: `cargo xtask generate` calls it.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match write(&bowline_checks::root()) {
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
    for page in bowline_checks::reference::pages()
        .into_iter()
        .chain(bowline_checks::reference::guides(root)?)
    {
        let written = std::fs::write(root.join(page.path), &page.text);
        written.map_err(|error| format!("cannot write {}: {error}", page.path))?;
    }
    Ok(())
}
