//! Opening the reader's browser.

use std::io;
use std::process::Stdio;

use tokio::process::Command;

/// What opens an address on this system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a page; an error is that nobody is there to do it. What comes of it later is told by nobody.
pub(crate) fn open(url: &str) -> io::Result<()> {
    open_with(OPENER, url)
}

fn open_with(program: &str, url: &str) -> io::Result<()> {
    let mut child = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the demo, not a browser.
        .process_group(0)
        .spawn()?;
    tokio::spawn(async move {
        let _ = child.wait().await;
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_system_without_an_opener_is_an_error_and_no_more() {
        let error = open_with("no-such-opener", "http://127.0.0.1:1/").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(open_with("true", "http://127.0.0.1:1/").is_ok());
    }
}
