//! Figures, budgets, and the table of both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::machine::Description;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Mebibytes,
    Megabytes,
    Calls,
}

/// The most that a figure may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Budget {
    /// So much.
    AtMost(f64),
    /// So many times the floor, and at most so much.
    TimesFloor(f64, f64),
    /// At most another figure: it must not grow.
    SameAs(Figure),
    /// None of its own; another is held against it.
    Open,
}

/// Everything that is measured, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    NodesTime,
    NodesCalls,
    NodesProcessor,
    NodesResident,
    NodesPeak,
    FleetProcessor,
    FleetResident,
    SecondCloudResident,
    BalancersTime,
    BalancersCalls,
    RemovalTime,
    ManyTime,
    ManyCalls,
    NodeAddedReads,
    ServicesResident,
    ServicesPeak,
    IdleFewNodes,
    IdleManyNodes,
    Start,
    FailoverRelease,
    FailoverKill,
    HeartbeatsProcessor,
    HeartbeatsResident,
    ClusterServicesResident,
    Binary,
    OpenstackNodesTime,
    OpenstackNodesCalls,
    OpenstackNodesProcessor,
    OpenstackNodesResident,
    OpenstackManyTime,
    OpenstackManyCalls,
    OpenstackNodeAddedReads,
}

impl Figure {
    pub(crate) const ALL: [Self; 32] = [
        Self::NodesTime,
        Self::NodesCalls,
        Self::NodesProcessor,
        Self::NodesResident,
        Self::NodesPeak,
        Self::FleetProcessor,
        Self::FleetResident,
        Self::SecondCloudResident,
        Self::BalancersTime,
        Self::BalancersCalls,
        Self::RemovalTime,
        Self::ManyTime,
        Self::ManyCalls,
        Self::NodeAddedReads,
        Self::ServicesResident,
        Self::ServicesPeak,
        Self::IdleFewNodes,
        Self::IdleManyNodes,
        Self::Start,
        Self::FailoverRelease,
        Self::FailoverKill,
        Self::HeartbeatsProcessor,
        Self::HeartbeatsResident,
        Self::ClusterServicesResident,
        Self::Binary,
        Self::OpenstackNodesTime,
        Self::OpenstackNodesCalls,
        Self::OpenstackNodesProcessor,
        Self::OpenstackNodesResident,
        Self::OpenstackManyTime,
        Self::OpenstackManyCalls,
        Self::OpenstackNodeAddedReads,
    ];

    /// What it is, its unit, and its budget.
    fn about(self) -> (&'static str, Unit, Budget) {
        use Budget::{AtMost, Open, SameAs, TimesFloor};
        use Unit::{Calls, Mebibytes, Megabytes, Seconds};
        match self {
            Self::NodesTime => (
                "nodes initialised: leadership to last taint",
                Seconds,
                TimesFloor(1.5, 10.0),
            ),
            Self::NodesCalls => ("nodes initialised: cloud calls", Calls, AtMost(10.0)),
            Self::NodesProcessor => ("nodes initialised: processor time", Seconds, AtMost(2.0)),
            Self::NodesResident => ("resident memory after that", Mebibytes, AtMost(15.0)),
            Self::NodesPeak => ("resident memory, peak", Mebibytes, AtMost(20.0)),
            Self::FleetProcessor => ("5,000 nodes initialised: processor time", Seconds, AtMost(3.0)),
            Self::FleetResident => ("resident memory after that", Mebibytes, AtMost(25.0)),
            Self::SecondCloudResident => (
                "nodes initialised beside OpenStack as a second cloud: resident memory after that",
                Mebibytes,
                AtMost(17.0),
            ),
            Self::BalancersTime => (
                "5 services of 2 ports, 50 nodes: all addresses",
                Seconds,
                AtMost(5.0),
            ),
            Self::BalancersCalls => ("cloud calls for it (535 objects)", Calls, AtMost(600.0)),
            Self::RemovalTime => ("those 5 deleted, finalizers gone", Seconds, AtMost(1.0)),
            Self::ManyTime => (
                "100 services, 20 nodes, 20 workers: all addresses",
                Seconds,
                AtMost(15.0),
            ),
            Self::ManyCalls => ("cloud calls for it (2,400 objects)", Calls, AtMost(2700.0)),
            Self::NodeAddedReads => (
                "one node added to those 100 (100 pools): cloud reads",
                Calls,
                AtMost(110.0),
            ),
            Self::ServicesResident => (
                "1,000 services of 1 port, 10 nodes: resident memory after that",
                Mebibytes,
                AtMost(25.0),
            ),
            Self::ServicesPeak => ("the same, peak", Mebibytes, Open),
            Self::IdleFewNodes => (
                "nothing changes, 50 nodes and 5 services: cloud calls per period",
                Calls,
                Open,
            ),
            Self::IdleManyNodes => (
                "nothing changes, all nodes and no service: the same",
                Calls,
                SameAs(Self::IdleFewNodes),
            ),
            Self::Start => ("start to healthy", Seconds, AtMost(0.05)),
            Self::FailoverRelease => (
                "warm failover after a release: end of the old process to a new node initialised",
                Seconds,
                Open,
            ),
            Self::FailoverKill => (
                "warm failover after kill -9, a lease of 15 s: the same",
                Seconds,
                Open,
            ),
            Self::HeartbeatsProcessor => (
                "heartbeats, 5,000 nodes, a status write each 10 s: processor time per minute",
                Seconds,
                Open,
            ),
            Self::HeartbeatsResident => ("resident memory after that", Mebibytes, Open),
            Self::ClusterServicesResident => (
                "idle, 20,000 ClusterIP services: resident memory",
                Mebibytes,
                AtMost(128.0),
            ),
            Self::Binary => ("binary as in the image", Megabytes, AtMost(12.0)),
            Self::OpenstackNodesTime => (
                "OpenStack, nodes initialised: leadership to last taint",
                Seconds,
                TimesFloor(1.5, 10.0),
            ),
            Self::OpenstackNodesCalls => ("the same: cloud calls", Calls, AtMost(40.0)),
            Self::OpenstackNodesProcessor => ("the same: processor time", Seconds, Open),
            Self::OpenstackNodesResident => ("the same: resident memory after that", Mebibytes, AtMost(16.0)),
            Self::OpenstackManyTime => (
                "OpenStack, 100 services, 20 nodes, 20 workers: all addresses",
                Seconds,
                Open,
            ),
            Self::OpenstackManyCalls => ("the same: cloud calls", Calls, Open),
            Self::OpenstackNodeAddedReads => (
                "OpenStack, one node added to those 100 (100 pools): cloud reads",
                Calls,
                AtMost(210.0),
            ),
        }
    }
}

/// Figures of one manager, or of the floor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured(BTreeMap<Figure, f64>);

impl Measured {
    pub(crate) fn time(&mut self, figure: Figure, time: Duration) {
        self.0.insert(figure, time.as_secs_f64());
    }

    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    pub(crate) fn number(&mut self, figure: Figure, number: u64) {
        self.0.insert(figure, number as f64);
    }

    pub(crate) fn value(&mut self, figure: Figure, value: f64) {
        self.0.insert(figure, value);
    }
}

/// All that was measured in one run.
pub(crate) struct Report {
    machine: Description,
    floor: BTreeMap<Figure, f64>,
    managers: Vec<(&'static str, BTreeMap<Figure, f64>)>,
    missed: Vec<String>,
}

impl Report {
    pub(crate) fn new(machine: Description, managers: impl Iterator<Item = &'static str>) -> Self {
        Self {
            machine,
            floor: BTreeMap::new(),
            managers: managers.map(|name| (name, BTreeMap::new())).collect(),
            missed: Vec::new(),
        }
    }

    pub(crate) fn add_floor(&mut self, measured: Measured) {
        self.floor.extend(measured.0);
    }

    pub(crate) fn add(&mut self, manager: usize, measured: Measured) {
        if let Some((_, figures)) = self.managers.get_mut(manager) {
            figures.extend(measured.0);
        }
    }

    /// Says that a row could not be measured.
    pub(crate) fn missed(&mut self, row: &str, manager: &str, reason: &str) {
        let reason = reason.lines().next().unwrap_or_default();
        self.missed.push(format!("{row}, {manager}: {reason}"));
    }

    /// The budget as a number; `None` if it depends on what was not measured.
    fn limit(&self, figure: Figure) -> Option<f64> {
        match figure.about().2 {
            Budget::AtMost(limit) => Some(limit),
            Budget::TimesFloor(times, limit) => Some(
                self.floor
                    .get(&figure)
                    .map_or(limit, |floor| limit.min(times * floor)),
            ),
            Budget::Open => None,
            Budget::SameAs(other) => self.managers.first()?.1.get(&other).copied(),
        }
    }

    fn figures(&self) -> impl Iterator<Item = Figure> {
        Figure::ALL.into_iter().filter(|figure| {
            self.managers
                .iter()
                .any(|(_, values)| values.contains_key(figure))
        })
    }

    /// The machine and the table, as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        let mut line = |words: &str| {
            let _ = writeln!(text, "{words}"); // writing to a string cannot fail
        };
        for (name, value) in &self.machine {
            line(&format!("- {name}: {value}"));
        }
        line("");
        let names: Vec<&str> = self.managers.iter().map(|(name, _)| *name).collect();
        line(&format!("| what | floor | {} | budget | |", names.join(" | ")));
        line(&format!(
            "| --- |{}",
            " ---: |".repeat(names.len() + 2) + " --- |"
        ));
        for figure in self.figures() {
            let (about, unit, _) = figure.about();
            let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| shown(value, unit));
            let values: Vec<String> = self
                .managers
                .iter()
                .map(|(_, values)| cell(values.get(&figure).copied()))
                .collect();
            let limit = self.limit(figure);
            let ours = self.managers.first().and_then(|(_, values)| values.get(&figure));
            let verdict = match (ours, limit) {
                (Some(ours), Some(limit)) if *ours <= limit => "met",
                (Some(_), Some(_)) => "missed",
                _ => "",
            };
            line(&format!(
                "| {about} | {} | {} | {} | {verdict} |",
                cell(self.floor.get(&figure).copied()),
                values.join(" | "),
                cell(limit),
            ));
        }
        for missed in &self.missed {
            line(&format!("\nNot measured: {missed}"));
        }
        text
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let named = |values: &BTreeMap<Figure, f64>| -> Value {
            values
                .iter()
                .map(|(figure, value)| (figure.about().0.to_owned(), json!(value)))
                .collect()
        };
        let managers: Value = self
            .managers
            .iter()
            .map(|(name, values)| ((*name).to_owned(), named(values)))
            .collect();
        let budgets: Value = self
            .figures()
            .map(|figure| (figure.about().0.to_owned(), json!(self.limit(figure))))
            .collect();
        let machine: Value = self
            .machine
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        json!({"machine": machine, "floor": named(&self.floor), "managers": managers, "budgets": budgets,
            "not_measured": self.missed})
    }
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds if value < 1.0 => format!("{value:.3} s"),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Mebibytes => format!("{value:.1} MiB"),
        Unit::Megabytes => format!("{value:.1} MB"),
        Unit::Calls => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(floor: f64, ours: f64) -> Report {
        let mut report = Report::new(vec![("kernel", "Linux 6".to_owned())], ["bowline"].into_iter());
        let mut measured = Measured::default();
        measured.value(Figure::NodesTime, floor);
        report.add_floor(measured);
        let mut measured = Measured::default();
        measured.value(Figure::NodesTime, ours);
        report.add(0, measured);
        report
    }

    #[test]
    fn a_budget_may_be_a_multiple_of_the_floor_and_has_an_end() {
        assert_eq!(report(4.0, 1.0).limit(Figure::NodesTime), Some(6.0));
        assert_eq!(report(9.0, 1.0).limit(Figure::NodesTime), Some(10.0));
    }

    #[test]
    fn the_table_says_whether_a_budget_is_met() {
        let row = "| nodes initialised: leadership to last taint | 4.00 s |";
        let met = report(4.0, 5.5).markdown();
        assert!(met.contains(&format!("{row} 5.50 s | 6.00 s | met |")), "{met}");
        let missed = report(4.0, 6.5).markdown();
        assert!(
            missed.contains(&format!("{row} 6.50 s | 6.00 s | missed |")),
            "{missed}"
        );
        assert!(missed.starts_with("- kernel: Linux 6\n"), "{missed}");
    }

    #[test]
    fn what_was_not_measured_has_no_line() {
        assert!(!report(4.0, 5.0).markdown().contains("start to healthy"));
    }

    #[test]
    fn small_times_are_shown_in_milliseconds() {
        assert_eq!(shown(0.0423, Unit::Seconds), "0.042 s");
        assert_eq!(shown(12.345, Unit::Seconds), "12.35 s");
        assert_eq!(shown(7.0, Unit::Calls), "7");
    }
}
