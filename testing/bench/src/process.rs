//! What the kernel says about a process (proc_pid_stat(5), proc_pid_status(5)).

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Ticks in which the kernel shows processor time to programs: the same on every platform that we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) resident: u64,
    /// The most that was ever resident.
    pub(crate) peak: u64,
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

/// Processor time that a process has used, in user and kernel mode.
pub(crate) fn processor_time(id: u32) -> Result<Duration> {
    let path = format!("/proc/{id}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_stat(&text).with_context(|| format!("cannot understand {path}"))
}

/// Memory of a process.
pub(crate) fn memory(id: u32) -> Result<Memory> {
    let path = format!("/proc/{id}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_status(&text).with_context(|| format!("cannot understand {path}"))
}

fn parse_stat(text: &str) -> Option<Duration> {
    // The name may hold blanks and parentheses; it ends at the last one. After it: state, and utime and stime as the
    // 12th and 13th.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
}

fn parse_status(text: &str) -> Option<Memory> {
    let bytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    Some(Memory {
        resident: bytes("VmRSS:")?,
        peak: bytes("VmHWM:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_that_of_user_and_kernel_mode() {
        let text = "42 (a (strange) name) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 3 0 100 1 1\n";
        assert_eq!(parse_stat(text), Some(Duration::from_millis(1750)));
        assert_eq!(parse_stat("42 (short) S 1"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "Name:\ta\nVmPeak:\t   99 kB\nVmHWM:\t   20 kB\nVmRSS:\t   15 kB\n";
        assert_eq!(
            parse_status(text),
            Some(Memory {
                resident: 15 * 1024,
                peak: 20 * 1024
            })
        );
        assert_eq!(parse_status("Name:\ta\n"), None);
    }
}
