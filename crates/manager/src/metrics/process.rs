//! The `process_*` series, read from `/proc` when somebody asks.

use std::path::PathBuf;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The unit of times in `/proc`: Linux shows them in hundredths of a second on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads what the system knows of this process. A file that is missing or says something else leaves its series out.
#[derive(Debug, Clone)]
pub struct ProcessCollector {
    proc: PathBuf,
}

impl Default for ProcessCollector {
    fn default() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
        }
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, value) in self.gauges() {
            if let Some(value) = value {
                let metric = ConstGauge::new(value);
                metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
            }
        }
        for (name, help, value) in self.counters() {
            if let Some(value) = value {
                let metric = ConstCounter::new(value);
                metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
            }
        }
        Ok(())
    }
}

type Reading = (&'static str, &'static str, Option<f64>);

impl ProcessCollector {
    fn gauges(&self) -> [Reading; 6] {
        let status = self.read("self/status");
        let limits = self.read("self/limits");
        [
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes",
                kibibytes(&status, "VmRSS:"),
            ),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes",
                kibibytes(&status, "VmSize:"),
            ),
            (
                "process_virtual_memory_max_bytes",
                "Maximum amount of virtual memory available in bytes",
                limit(&limits, "Max address space"),
            ),
            (
                "process_open_fds",
                "Number of open file descriptors",
                self.open_files(),
            ),
            (
                "process_max_fds",
                "Maximum number of open file descriptors",
                limit(&limits, "Max open files"),
            ),
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds",
                self.start_time(),
            ),
        ]
    }

    fn counters(&self) -> [Reading; 3] {
        let traffic = traffic(&self.read("self/net/dev"));
        [
            (
                "process_cpu_seconds",
                "Total user and system CPU time spent in seconds",
                // Fields 14 and 15 of proc_pid_stat(5).
                self.stat_field(14)
                    .zip(self.stat_field(15))
                    .map(|(user, system)| (user + system) / TICKS_PER_SECOND),
            ),
            (
                "process_network_receive_bytes",
                "Number of bytes received by the process over the network",
                traffic.map(|(received, _)| received),
            ),
            (
                "process_network_transmit_bytes",
                "Number of bytes sent by the process over the network",
                traffic.map(|(_, sent)| sent),
            ),
        ]
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.proc.join(name)).unwrap_or_default()
    }

    fn open_files(&self) -> Option<f64> {
        let entries = std::fs::read_dir(self.proc.join("self/fd")).ok()?;
        // One of them is the directory that is being read.
        let count = entries.count().saturating_sub(1);
        u32::try_from(count).ok().map(f64::from)
    }

    /// A field of `stat`, counted from 1 as the manual does. The second is the program's name in brackets and may hold
    /// spaces, so counting starts behind it.
    fn stat_field(&self, field: usize) -> Option<f64> {
        let stat = self.read("self/stat");
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
    }

    fn start_time(&self) -> Option<f64> {
        let since_boot = self.stat_field(22)? / TICKS_PER_SECOND;
        let boot: f64 = self
            .read("stat")
            .lines()
            .find_map(|line| line.strip_prefix("btime "))?
            .trim()
            .parse()
            .ok()?;
        Some(boot + since_boot)
    }
}

fn kibibytes(status: &str, key: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let number: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number * 1024.0)
}

/// The soft limit. `unlimited` is shown as the largest number, as the Go managers do.
fn limit(limits: &str, key: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(key))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(18_446_744_073_709_551_615.0),
        number => number.parse().ok(),
    }
}

/// Bytes received and sent over all interfaces that the process sees.
fn traffic(devices: &str) -> Option<(f64, f64)> {
    let mut sum = None;
    for line in devices.lines() {
        let Some((_, fields)) = line.split_once(':') else {
            continue;
        };
        let mut fields = fields.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(received)), Some(Ok(sent))) = (fields.next(), fields.nth(7)) else {
            continue;
        };
        let (r, s) = sum.unwrap_or((0.0, 0.0));
        sum = Some((r + received, s + sent));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(readings: &[Reading], name: &str) -> Option<f64> {
        readings.iter().find(|(one, _, _)| *one == name)?.2
    }

    #[test]
    fn figures_come_from_the_files_of_proc() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "self/status",
            "Name:\tccm\nVmSize:\t   20480 kB\nVmRSS:\t    8192 kB\n",
        );
        write(
            "self/limits",
            "Limit   Soft   Hard\nMax open files            1024      4096     files\n\
                              Max address space         unlimited            unlimited            bytes\n",
        );
        write(
            "self/stat",
            "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0 1000 0 0",
        );
        write("stat", "cpu 1 2\nbtime 1700000000\n");
        write(
            "self/net/dev",
            "Inter-| Receive\n face |bytes\n  eth0: 100 0 0 0 0 0 0 0 200 0 0 0 0 0 0 0\n    lo: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n",
        );
        let process = ProcessCollector {
            proc: directory.path().to_owned(),
        };
        let gauges = process.gauges();
        assert_eq!(value(&gauges, "process_resident_memory_bytes"), Some(8_388_608.0));
        assert_eq!(value(&gauges, "process_virtual_memory_bytes"), Some(20_971_520.0));
        assert_eq!(value(&gauges, "process_max_fds"), Some(1024.0));
        assert_eq!(
            value(&gauges, "process_start_time_seconds"),
            Some(1_700_000_010.0)
        );
        let counters = process.counters();
        assert_eq!(value(&counters, "process_cpu_seconds"), Some(2.0));
        assert_eq!(value(&counters, "process_network_receive_bytes"), Some(101.0));
        assert_eq!(value(&counters, "process_network_transmit_bytes"), Some(202.0));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let process = ProcessCollector {
            proc: "/nonexistent".into(),
        };
        assert!(
            process
                .gauges()
                .iter()
                .chain(&process.counters())
                .all(|reading| reading.2.is_none())
        );
    }
}
