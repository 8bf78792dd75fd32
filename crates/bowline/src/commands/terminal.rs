//! How a command's text is put on a terminal: no wider than that is, and with colour. Into a file or a pipe it goes as it is.

use std::convert::Infallible;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use bowline_cloud_provider::Environment;
use bowline_manager::doctor::Progress;
use tokio::time::Instant;

/// The terminal's, where it tells none.
const WIDTH: usize = 80;

/// Lines are not made narrower than this, however narrow the terminal is.
const NARROWEST: usize = 40;

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terminal {
    /// Its width; `None`: it is no terminal, so no line is broken.
    width: Option<usize>,
    has_colour: bool,
}

impl Terminal {
    /// What stdout is.
    pub(super) fn of_stdout(environment: &Environment) -> Self {
        let stdout = std::io::stdout();
        if !stdout.is_terminal() {
            return Self {
                width: None,
                has_colour: false,
            };
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let told = size
            .map(|size| usize::from(size.ws_col))
            .filter(|width| *width > 0);
        let said = || environment.value("COLUMNS")?.parse().ok();
        let is_set = |name: &str| environment.value(name).is_some_and(|value| !value.is_empty());
        Self {
            width: Some(told.or_else(said).unwrap_or(WIDTH)),
            has_colour: !is_set("NO_COLOR") && environment.value("TERM") != Some("dumb"),
        }
    }

    /// The text as it is shown there.
    pub(super) fn dress(self, text: &str) -> String {
        let mut shown = String::new();
        for line in text.lines() {
            let line = match self.width {
                Some(width) => wrapped(line, width.max(NARROWEST)),
                None => line.to_owned(),
            };
            match self.has_colour {
                true => shown.push_str(&coloured(&line)),
                false => shown.push_str(&line),
            }
            shown.push('\n');
        }
        shown
    }
}

/// Where the rest of a broken line begins: below what stands behind the first gap, as below a word of a table, or below what stands
/// behind `do:` and its kin.
fn hang(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    let body = &line[indent..];
    let first = body.split(' ').next().unwrap_or_default();
    let after = &body[first.len()..];
    let gap = after.len() - after.trim_start().len();
    let is_title = matches!(first, "do:" | "see:" | "since:");
    match gap > 1 || gap == 1 && is_title {
        true => indent + first.len() + gap,
        false => indent + 2,
    }
}

fn wrapped(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let hang = match hang(line) {
        deep if deep > width / 2 => 2,
        hang => hang,
    };
    let indent = line.len() - line.trim_start().len();
    let (mut shown, mut column) = (line[..indent].to_owned(), indent);
    // Each word with the blanks in front of it, which stay where the line is not broken.
    let mut rest = &line[indent..];
    let mut is_first = true;
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[blanks..].find(' ').map_or(rest.len(), |at| at + blanks);
        let (word, length) = (&rest[blanks..end], rest[..end].chars().count());
        if is_first || column + length <= width {
            shown.push_str(&rest[..end]);
            column += length;
        } else {
            shown.push('\n');
            shown.push_str(&" ".repeat(hang));
            shown.push_str(word);
            column = hang + length - blanks;
        }
        is_first = false;
        rest = &rest[end..];
    }
    shown
}

const OUTCOMES: [(&str, &str); 5] = [
    ("ok", "\x1b[32m"),
    ("note", "\x1b[36m"),
    ("warning", "\x1b[33m"),
    ("failed", "\x1b[31m"),
    ("skipped", "\x1b[2m"),
];

/// Colours the word that says how something ended: the first one of a check, the last one of an object's head.
fn coloured(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let body = &line[indent..];
    for (word, colour) in OUTCOMES {
        let after = body.strip_prefix(word).filter(|after| after.starts_with("  "));
        if let (Some(after), true) = (after, indent == 2) {
            return format!("  {colour}{word}\x1b[0m{after}");
        }
        let before = line.strip_suffix(word).filter(|before| before.ends_with(": "));
        if let (Some(before), 0) = (before, indent) {
            return format!("{before}{colour}{word}\x1b[0m");
        }
    }
    line.to_owned()
}

/// After this time a reader wants to know what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked what is waited for.
const GLANCE: Duration = Duration::from_millis(200);

/// Shows on stderr what a command is at, if it takes longer than a second: once for each thing.
pub(super) async fn show(progress: &Progress) -> Infallible {
    let begun = Instant::now();
    let mut shown = "";
    tokio::time::sleep(PATIENCE).await;
    loop {
        let at = progress.at();
        if at != shown {
            let line = format!("... {at} ({} s)\n", begun.elapsed().as_secs());
            // Nobody is left to tell if stderr is gone.
            let _ = std::io::stderr().write_all(line.as_bytes());
            shown = at;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &str = "  failed   a process leads: lease kube-system/cloud-controller-manager was given up, nobody holds it";

    #[test]
    fn a_long_line_goes_on_below_its_text_and_is_not_broken_in_a_pipe() {
        let narrow = Terminal {
            width: Some(50),
            has_colour: false,
        };
        assert_eq!(
            narrow.dress(CHECK),
            "  failed   a process leads: lease\n           kube-system/cloud-controller-manager\n           was given up, nobody holds it\n"
        );
        assert_eq!(
            narrow.dress("           do:  see whether the pods of the manager run, and their log"),
            "           do:  see whether the pods of the\n                manager run, and their log\n"
        );
        let long = "x".repeat(60);
        assert_eq!(narrow.dress(&long), format!("{long}\n"), "a word is never broken");
        let pipe = Terminal {
            width: None,
            has_colour: false,
        };
        assert_eq!(pipe.dress(CHECK), format!("{CHECK}\n"));
    }

    #[test]
    fn colour_is_the_outcomes_alone() {
        let terminal = Terminal {
            width: Some(200),
            has_colour: true,
        };
        assert!(
            terminal
                .dress(CHECK)
                .starts_with("  \x1b[31mfailed\x1b[0m   a process")
        );
        assert_eq!(
            terminal.dress("service/default/web: warning"),
            "service/default/web: \x1b[33mwarning\x1b[0m\n"
        );
        assert_eq!(terminal.dress("  okay then"), "  okay then\n");
    }
}
