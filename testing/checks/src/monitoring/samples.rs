//! Pages of `/metrics`, one after the other, as the input of promtool.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The pages of one or several processes, scraped at the same distance.
#[derive(Debug, Default)]
pub struct Samples {
    /// By series, the value at each scrape; nothing where the page did not have it.
    series: BTreeMap<String, Vec<Option<String>>>,
    scrapes: usize,
}

impl Samples {
    /// A scrape of all processes: of each its name, and its page if it answered.
    pub fn scrape<'a>(&mut self, pages: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) {
        for (instance, page) in pages {
            for line in page.unwrap_or_default().lines() {
                let Some((series, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else {
                    continue;
                };
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let separator = if labels == "}" { "" } else { "," };
                let series = format!("{name}{{instance=\"{instance}\",job=\"bowline\"{separator}{labels}");
                let values = self.series.entry(series).or_default();
                values.resize(self.scrapes, None);
                values.push(Some(value.to_owned()));
            }
        }
        self.scrapes += 1;
    }

    /// A file of tests for promtool: these samples, `interval` apart, and the alerts that fire at each of these minutes, each as
    /// `NAME` or `NAME/CAUSE`.
    #[must_use]
    pub fn test(&self, rules: &str, interval: &str, firing: &[(usize, Vec<String>)]) -> String {
        // Writing to a String cannot fail.
        let mut text =
            format!("rule_files: [{rules}]\ntests:\n  - interval: {interval}\n    input_series:\n");
        for (series, values) in &self.series {
            let values: Vec<&str> = values
                .iter()
                .map(|value| value.as_deref().unwrap_or("_"))
                .collect();
            // A series that has ended is not there any more at the next scrape.
            let end = if values.len() < self.scrapes { " stale" } else { "" };
            let _ = writeln!(
                text,
                "      - series: '{series}'\n        values: '{}{end}'",
                values.join(" ")
            );
        }
        text.push_str("    promql_expr_test:\n");
        for (minute, alerts) in firing {
            let _ = writeln!(
                text,
                "      - expr: group by (alertname, cause, reason) (ALERTS{{alertstate=\"firing\"}})\n        eval_time: {minute}m\n        \
                 exp_samples:{}",
                if alerts.is_empty() { " []" } else { "" }
            );
            for alert in alerts {
                let (name, cause) = alert.split_once('/').unwrap_or((alert.as_str(), ""));
                let cause = if cause.is_empty() {
                    String::new()
                } else {
                    format!(", cause=\"{cause}\"")
                };
                let _ = writeln!(
                    text,
                    "          - labels: '{{alertname=\"{name}\"{cause}}}'\n            value: 1"
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_series_with_gaps_where_a_page_lacks_them() {
        let mut samples = Samples::default();
        samples.scrape([("a", Some("# HELP x X\nx 1\ny{z=\"1\"} 2\n"))]);
        samples.scrape([("a", None), ("b", Some("x 4\n"))]);
        samples.scrape([("a", Some("y{z=\"1\"} 3\n"))]);
        let test = samples.test(
            "rules.yaml",
            "1m",
            &[(3, vec!["BowlineClockWrong".to_owned()]), (4, Vec::new())],
        );
        for part in [
            "'x{instance=\"a\",job=\"bowline\"}'\n        values: '1 stale'",
            "'x{instance=\"b\",job=\"bowline\"}'\n        values: '_ 4 stale'",
            "'y{instance=\"a\",job=\"bowline\",z=\"1\"}'\n        values: '2 _ 3'",
            "eval_time: 3m\n        exp_samples:\n          - labels: '{alertname=\"BowlineClockWrong\"}'",
            "eval_time: 4m\n        exp_samples: []",
        ] {
            assert!(test.contains(part), "{part}\n{test}");
        }
    }
}
