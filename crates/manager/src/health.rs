//! Health checks and the answers of `/healthz`, `/livez` and `/readyz`.
//!
//! The bodies are those of the framework, byte for byte, because probes and dashboards read them.

mod slis;

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

pub use slis::Slis;

/// Tells whether a part is well, or why not. The reason is logged and never shown to whoever asks.
pub type Test = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of the process, in the order in which they were added.
#[derive(Default)]
pub struct Health {
    checks: Mutex<Vec<Check>>,
    slis: Slis,
}

struct Check {
    name: &'static str,
    endpoints: Endpoints,
    test: Test,
}

/// Where a check counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoints {
    /// Everywhere: a restart would help.
    All,
    /// Only in `/readyz`: it takes time.
    Ready,
}

/// One of the three questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/healthz`
    Health,
    /// `/livez`
    Live,
    /// `/readyz`
    Ready,
}

impl Endpoint {
    /// The word in the path and in the answer's last line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Health => "healthz",
            Self::Live => "livez",
            Self::Ready => "readyz",
        }
    }
}

/// The answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether all checks passed.
    pub passed: bool,
    /// The body.
    pub body: String,
}

impl Health {
    /// Adds a check that counts everywhere.
    pub fn add(&self, name: &'static str, test: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.push(name, Endpoints::All, Box::new(test));
    }

    /// Adds a check that counts in `/readyz` only.
    pub fn add_readiness(
        &self,
        name: &'static str,
        test: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.push(name, Endpoints::Ready, Box::new(test));
    }

    /// Takes a check away.
    pub fn remove(&self, name: &str) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.retain(|check| check.name != name);
    }

    /// What has become of the checks so far.
    pub fn slis(&self) -> &Slis {
        &self.slis
    }

    fn push(&self, name: &'static str, endpoints: Endpoints, test: Test) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.push(Check {
            name,
            endpoints,
            test,
        });
    }

    /// Runs the checks of an endpoint.
    ///
    /// `verbose` asks for one line per check also when all pass; `excluded` names checks that are not run.
    pub fn probe(&self, endpoint: Endpoint, verbose: bool, excluded: &[String]) -> Verdict {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let asked: Vec<&Check> = checks.iter().filter(|check| check.counts_for(endpoint)).collect();
        let ping = ping();
        let asked = if asked.is_empty() { vec![&ping] } else { asked };

        let mut body = String::new();
        let mut failed = Vec::new();
        for check in &asked {
            let name = check.name;
            // Writing to a String cannot fail.
            let _ = if excluded.iter().any(|one| one == name) {
                writeln!(body, "[+]{name} excluded: ok")
            } else {
                let result = (check.test)();
                self.slis.note(name, endpoint.name(), result.is_ok());
                match result {
                    Ok(()) => writeln!(body, "[+]{name} ok"),
                    Err(reason) => {
                        failed.push((name, reason));
                        writeln!(body, "[-]{name} failed: reason withheld")
                    }
                }
            };
        }
        let unmatched: Vec<String> = excluded
            .iter()
            .filter(|one| !asked.iter().any(|check| check.name == one.as_str()))
            .map(|one| format!("{one:?}"))
            .collect();
        if !unmatched.is_empty() {
            let names = unmatched.join(", ");
            let _ = writeln!(
                body,
                "warn: some health checks cannot be excluded: no matches for {names}"
            );
        }
        for (check, reason) in &failed {
            tracing::warn!(endpoint = endpoint.name(), check, reason, "Health check failed");
        }
        let passed = failed.is_empty();
        let _ = match (passed, verbose) {
            (true, false) => {
                body = "ok".to_owned();
                Ok(())
            }
            (true, true) => writeln!(body, "{} check passed", endpoint.name()),
            (false, _) => writeln!(body, "{} check failed", endpoint.name()),
        };
        Verdict { passed, body }
    }

    /// Runs one check of an endpoint; `None` if there is no such check.
    pub fn probe_one(&self, endpoint: Endpoint, name: &str) -> Option<Verdict> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let ping = ping();
        let mut asked = checks
            .iter()
            .filter(|check| check.counts_for(endpoint))
            .peekable();
        let check = if asked.peek().is_none() {
            Some(&ping).filter(|check| check.name == name)
        } else {
            asked.find(|check| check.name == name)
        }?;
        Some(match (check.test)() {
            Ok(()) => Verdict {
                passed: true,
                body: "ok".to_owned(),
            },
            Err(reason) => {
                tracing::warn!(
                    endpoint = endpoint.name(),
                    check = check.name,
                    reason,
                    "Health check failed"
                );
                Verdict {
                    passed: false,
                    body: "internal server error: reason withheld\n".to_owned(),
                }
            }
        })
    }
}

impl Check {
    fn counts_for(&self, endpoint: Endpoint) -> bool {
        self.endpoints == Endpoints::All || endpoint == Endpoint::Ready
    }
}

/// What is checked when there is nothing else: that somebody answers.
fn ping() -> Check {
    Check {
        name: "ping",
        endpoints: Endpoints::All,
        test: Box::new(|| Ok(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> Health {
        let health = Health::default();
        health.add("leaderElection", || Ok(()));
        health.add("service-lb-controller", || Err("stuck".to_owned()));
        health
    }

    #[test]
    fn without_checks_ping_answers() {
        let health = Health::default();
        assert_eq!(
            health.probe(Endpoint::Health, false, &[]),
            Verdict {
                passed: true,
                body: "ok".into()
            }
        );
        assert_eq!(
            health.probe(Endpoint::Health, true, &[]).body,
            "[+]ping ok\nhealthz check passed\n"
        );
        assert!(health.probe_one(Endpoint::Live, "ping").unwrap().passed);
    }

    #[test]
    fn a_failure_is_always_verbose_and_withholds_the_reason() {
        assert_eq!(
            health().probe(Endpoint::Live, false, &[]),
            Verdict {
                passed: false,
                body: "[+]leaderElection ok\n[-]service-lb-controller failed: reason withheld\nlivez check failed\n"
                    .into()
            }
        );
    }

    #[test]
    fn an_excluded_check_is_not_run_and_an_unknown_one_is_warned_about() {
        let excluded = ["service-lb-controller".to_owned(), "nope".to_owned()];
        assert_eq!(
            health().probe(Endpoint::Health, true, &excluded),
            Verdict {
                passed: true,
                body: "[+]leaderElection ok\n[+]service-lb-controller excluded: ok\n\
                       warn: some health checks cannot be excluded: no matches for \"nope\"\n\
                       healthz check passed\n"
                    .into()
            }
        );
    }

    #[test]
    fn readiness_counts_only_in_readyz() {
        let health = Health::default();
        health.add("leaderElection", || Ok(()));
        health.add_readiness("caches", || Err("nodes are not read yet".to_owned()));
        assert!(health.probe(Endpoint::Health, false, &[]).passed);
        assert!(!health.probe(Endpoint::Ready, false, &[]).passed);
        assert!(health.probe_one(Endpoint::Live, "caches").is_none());
        assert!(!health.probe_one(Endpoint::Ready, "caches").unwrap().passed);
    }

    #[test]
    fn results_are_counted_until_they_are_reset() {
        let health = health();
        let excluded = ["leaderElection".to_owned()];
        health.probe(Endpoint::Health, false, &[]);
        health.probe(Endpoint::Health, false, &excluded);
        let text = health.slis().render().unwrap();
        for line in [
            r#"kubernetes_healthcheck{name="leaderElection",type="healthz"} 1"#,
            r#"kubernetes_healthcheck{name="service-lb-controller",type="healthz"} 0"#,
            r#"kubernetes_healthchecks_total{name="leaderElection",type="healthz",status="success"} 1"#,
            r#"kubernetes_healthchecks_total{name="service-lb-controller",type="healthz",status="error"} 2"#,
        ] {
            let mut wanted: Vec<&str> = line.split(['{', ',', '}']).collect();
            wanted.sort_unstable();
            let has = text.lines().any(|found| {
                let mut found: Vec<&str> = found.split(['{', ',', '}']).collect();
                found.sort_unstable();
                found == wanted
            });
            assert!(has, "{line} is missing in\n{text}");
        }
        health.slis().reset();
        assert!(!health.slis().render().unwrap().contains("leaderElection"));
    }
}
