//! What a process tells about itself: `/configz`, `/statusz` and `/flagz`, in the forms that Kubernetes' components have.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

/// What there is to tell about the process.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    /// The program's name.
    pub component: String,
    /// Its version.
    pub version: String,
    /// What it was built with.
    pub compiler: String,
    /// When it was started.
    pub started: Timestamp,
    /// The configuration in effect, as `/configz` shows it.
    pub configz: Value,
    /// Each flag with its value.
    pub flags: Vec<(String, String)>,
}

impl Pages {
    fn head(&self, page: &str) -> String {
        format!(
            "\n{} {page}\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
             compatibility guarantees and is for debugging purposes only.\n",
            self.component
        )
    }

    /// The page `/statusz`.
    pub(super) fn statusz(&self, now: Timestamp, paths: &[&str]) -> String {
        let up = (now.as_second() - self.started.as_second()).max(0);
        let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
        let mut text = self.head("statusz");
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\nStarted: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\nCompiler: {}\nBinary version: {}\n\n\
             Paths: {}\n",
            self.started.strftime("%a %b %e %H:%M:%S UTC %Y"),
            self.compiler,
            self.version,
            paths.join(" "),
        );
        text
    }

    /// The page `/flagz`.
    pub(super) fn flagz(&self) -> String {
        let mut flags: Vec<_> = self.flags.iter().collect();
        flags.sort();
        let mut text = self.head("flagz");
        text.push('\n');
        for (name, value) in flags {
            let _ = writeln!(text, "{name}={value}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_form_of_kubernetes_components() {
        let pages = Pages {
            component: "cloud-controller-manager".to_owned(),
            version: "1.36.0".to_owned(),
            compiler: "rustc 1.90.0".to_owned(),
            started: "2026-11-01T09:05:03Z".parse().unwrap(),
            configz: Value::Null,
            flags: vec![
                ("v".to_owned(), "2".to_owned()),
                ("bind-address".to_owned(), "0.0.0.0".to_owned()),
            ],
        };
        let now = "2026-11-02T10:06:04Z".parse().unwrap();
        assert_eq!(
            pages.statusz(now, &["/healthz", "/metrics"]),
            "\ncloud-controller-manager statusz\nWarning: This endpoint is not meant to be machine parseable, has no \
             formatting compatibility guarantees and is for debugging purposes only.\n\nStarted: Sun Nov  1 09:05:03 \
             UTC 2026\nUp: 25 hr 01 min 01 sec\nCompiler: rustc 1.90.0\nBinary version: 1.36.0\n\nPaths: /healthz \
             /metrics\n"
        );
        assert!(
            pages
                .flagz()
                .ends_with("debugging purposes only.\n\nbind-address=0.0.0.0\nv=2\n")
        );
    }
}
