//! The machine that the figures belong to.

use std::fs;

use anyhow::Result;
use bowline_control_plane::Version;

/// Name and value of each property.
pub(crate) type Description = Vec<(&'static str, String)>;

/// Describes this machine and what runs on it.
pub(crate) fn describe(nodes: u32) -> Result<Description> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Ok(vec![
        (
            "processor",
            format!("{} x {}", cores, field(&read("/proc/cpuinfo"), "model name")),
        ),
        ("memory", gibibytes(&field(&read("/proc/meminfo"), "MemTotal"))),
        (
            "kernel",
            format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        ),
        ("kube-apiserver", Version::wanted()?.release().to_owned()),
        (
            "load average before",
            read("/proc/loadavg")
                .split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" "),
        ),
        ("nodes", nodes.to_string()),
    ])
}

/// The first value of this name, in the manner of /proc.
fn field(text: &str, name: &str) -> String {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
}

fn gibibytes(kibibytes: &str) -> String {
    let number = kibibytes
        .strip_suffix(" kB")
        .and_then(|text| text.parse::<f64>().ok());
    number.map_or_else(
        || kibibytes.to_owned(),
        |number| format!("{:.1} GiB", number / 1024.0 / 1024.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_as_the_kernel_writes_them() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmodel name\t: other\n";
        assert_eq!(field(text, "model name"), "Some CPU @ 3 GHz");
        assert_eq!(field(text, "flags"), "unknown");
        assert_eq!(gibibytes("16777216 kB"), "16.0 GiB");
        assert_eq!(gibibytes("unknown"), "unknown");
    }
}
