//! What values may be. All faults are collected, each names its flag.

use std::time::Duration;

use jiff::SignedDuration;

use super::features;
use super::parse::Flags;
use bowline_gcfg::duration;

/// Reads flags and notes what is wrong with them; a wrong value is replaced by a harmless one.
pub(super) struct Checks<'a> {
    flags: &'a Flags,
    errors: &'a mut Vec<String>,
}

impl<'a> Checks<'a> {
    pub(super) fn new(flags: &'a Flags, errors: &'a mut Vec<String>) -> Self {
        Self { flags, errors }
    }

    pub(super) fn fault(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }

    /// A whole number with a lower bound.
    pub(super) fn at_least(&mut self, name: &str, least: i64) -> i64 {
        let value = self.flags.int(name);
        if value < least {
            self.fault(format!("--{name} must be at least {least}, got {value}"));
            return least;
        }
        value
    }

    /// A share of a whole.
    pub(super) fn share(&mut self, name: &str) -> f64 {
        let value = self.flags.float(name);
        if !(0.0..=1.0).contains(&value) {
            self.fault(format!("--{name} must be between 0 and 1, got {value}"));
            return 0.0;
        }
        value
    }

    /// A duration above zero.
    pub(super) fn period(&mut self, name: &str) -> Duration {
        let value = self.flags.duration(name);
        if value <= SignedDuration::ZERO {
            self.fault(format!(
                "--{name} must be greater than zero, got {}",
                duration::format(value)
            ));
            return Duration::from_secs(60);
        }
        value.unsigned_abs()
    }

    /// A duration that may be zero.
    pub(super) fn pause(&mut self, name: &str) -> Duration {
        let value = self.flags.duration(name);
        if value.is_negative() {
            self.fault(format!(
                "--{name} must not be negative, got {}",
                duration::format(value)
            ));
        }
        value.unsigned_abs()
    }

    /// A port, where 0 means none.
    pub(super) fn port(&mut self, name: &str) -> u16 {
        let value = self.flags.int(name);
        u16::try_from(value).unwrap_or_else(|_| {
            self.fault(format!(
                "--{name} {value} must be between 0 and 65535, inclusive. 0 for turning off secure port"
            ));
            0
        })
    }

    /// Whether TLS 1.3 is the oldest version.
    pub(super) fn tls_version(&mut self, name: &str) -> bool {
        match self.flags.text(name).as_str() {
            "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => false,
            "VersionTLS13" => true,
            other => {
                self.fault(format!("--{name} {other:?} is not a known TLS version"));
                false
            }
        }
    }

    /// `pattern=N` entries.
    pub(super) fn modules(&mut self, name: &str) -> Vec<(String, u8)> {
        let mut modules = Vec::new();
        for entry in self.flags.list(name) {
            match entry
                .split_once('=')
                .map(|(pattern, level)| (pattern, level.parse()))
            {
                Some((pattern, Ok(level))) if !pattern.is_empty() => {
                    modules.push((pattern.to_owned(), level))
                }
                _ => self.fault(format!("--{name}: {entry:?} is not of the form pattern=N")),
            }
        }
        modules
    }

    /// What is checked of flags although they have no effect here.
    pub(super) fn accepted_flags(&mut self) {
        self.pause("controller-start-interval");
        self.pause("min-resync-period");
        let name = "concurrent-node-lifecycle-syncs";
        let workers = self.flags.int(name);
        if workers < 1 {
            // The framework's own words: it checks this number of workers and no other.
            self.fault(format!("{name} must be at least 1, but got {workers}"));
        }
    }

    /// The headers of front proxies.
    pub(super) fn request_headers(&mut self) {
        if !self.flags.text("requestheader-client-ca-file").is_empty() {
            for name in ["requestheader-username-headers", "requestheader-group-headers"] {
                if self.flags.list(name).is_empty() {
                    self.fault(format!(
                        "--{name} must not be empty with --requestheader-client-ca-file"
                    ));
                }
            }
        }
        let lists = [
            "requestheader-username-headers",
            "requestheader-group-headers",
            "requestheader-extra-headers-prefix",
            "requestheader-uid-headers",
        ];
        for name in lists {
            if self
                .flags
                .list(name)
                .iter()
                .any(|header| header.trim().is_empty())
            {
                self.fault(format!("--{name} must not contain an empty name"));
            }
        }
        let gates = self.flags.gates("feature-gates");
        if !self.flags.list("requestheader-uid-headers").is_empty()
            && !features::is_on(&gates, "RemoteRequestHeaderUID")
        {
            self.fault("--requestheader-uid-headers needs the feature gate RemoteRequestHeaderUID");
        }
    }
}
