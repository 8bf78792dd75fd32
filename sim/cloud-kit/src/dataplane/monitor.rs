//! Watching members.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::time::Instant;

use super::config::{MonitorConfig, PoolConfig};
use super::pool::PoolState;
use super::{HealthChange, OnHealth, probe};

/// One member under one monitor. A difference in any part starts the watch anew.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Watch {
    address: IpAddr,
    port: u16,
    monitor: MonitorConfig,
}

/// The watches that a set of pools needs, by pool and member.
pub(super) fn watches(pools: &BTreeMap<String, PoolConfig>) -> BTreeMap<(String, String), Watch> {
    let mut watches = BTreeMap::new();
    for (pool, config) in pools {
        let Some(monitor) = &config.monitor else { continue };
        for (member, target) in config.members.iter().filter(|(_, target)| target.enabled) {
            let watch = Watch {
                address: target.address,
                port: target.monitor_port,
                monitor: monitor.clone(),
            };
            watches.insert((pool.clone(), member.clone()), watch);
        }
    }
    watches
}

/// Probes until it is stopped.
pub(super) async fn run(key: (String, String), watch: Watch, pool: Arc<PoolState>, on_health: OnHealth) {
    let (pool_id, member) = key;
    let mut judge = Judge {
        up: pool.health(&member),
        against: 0,
    };
    let mut first = true;
    loop {
        let begin = Instant::now();
        let good = probe::succeeds(&watch.monitor, watch.address, watch.port).await;
        let up = judge.hear(&watch.monitor, good);
        let news = pool.set_health(&member, up);
        if std::mem::take(&mut first) || news {
            on_health(HealthChange {
                pool: pool_id.clone(),
                member: member.clone(),
                up,
            });
        }
        tokio::time::sleep_until(begin + watch.monitor.delay.max(MIN_DELAY)).await;
    }
}

/// No monitor probes faster than this, whatever it asks for.
const MIN_DELAY: std::time::Duration = std::time::Duration::from_millis(10);

/// Turns probes into health.
#[derive(Default)]
struct Judge {
    up: Option<bool>,
    /// Probes in a row that contradict `up`.
    against: u32,
}

impl Judge {
    fn hear(&mut self, monitor: &MonitorConfig, good: bool) -> bool {
        match self.up {
            None => self.up = Some(good),
            Some(up) if up == good => self.against = 0,
            Some(up) => {
                self.against += 1;
                let needed = if up {
                    monitor.down_threshold
                } else {
                    monitor.up_threshold
                };
                if self.against >= needed {
                    (self.up, self.against) = (Some(good), 0);
                }
            }
        }
        self.up == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::dataplane::config::Probe;

    #[test]
    fn thresholds_count_probes_in_a_row() {
        let monitor = MonitorConfig {
            probe: Probe::Tcp,
            delay: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            up_threshold: 2,
            down_threshold: 3,
        };
        let mut judge = Judge::default();
        let probes = [
            true, false, false, true, false, false, false, true, false, true, true,
        ];
        let health: Vec<_> = probes
            .into_iter()
            .map(|good| judge.hear(&monitor, good))
            .collect();
        let expected = [
            true, true, true, true, true, true, false, false, false, false, true,
        ];
        assert_eq!(health, expected);
        assert!(
            !Judge::default().hear(&monitor, false),
            "the first probe decides alone"
        );
    }
}
