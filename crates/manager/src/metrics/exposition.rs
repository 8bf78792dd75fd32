//! The page of `/metrics`: Prometheus' text format 0.0.4, as the Go managers write it.
//!
//! The registry's own encoder speaks OpenMetrics, where every counter ends in `_total` and a bound is written as `1.0`.
//! Two counters of the API server libraries have no such end, and dashboards go by the exact names and bounds; the Go
//! managers answer in this format whatever a scraper prefers, and so does this. Families and their series are sorted,
//! so that two pages can be compared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The counters whose names do not end in `_total`.
const WITHOUT_TOTAL: &[&str] = &["authenticated_user_requests", "authentication_attempts"];

/// What this registry never has, and the Go managers' registry counts: name, help.
const NONE: [(&str, &str); 3] = [
    (
        "hidden_metrics_total",
        "[BETA] Families of series that are hidden: none",
    ),
    (
        "disabled_metrics_total",
        "[BETA] Families of series that are switched off: none",
    ),
    (
        "cardinality_enforcement_unexpected_categorizations_total",
        "[ALPHA] Values of labels that were not expected: no label is bounded by a list of values",
    ),
];

/// The series of a registry; with what the Go managers' registry counts of itself, if that is wanted.
pub(super) fn page(registry: &Registry, counts_itself: bool) -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    let mut families = read(&text);
    if counts_itself {
        count(&mut families);
    }
    let mut page = String::with_capacity(text.len());
    for (name, family) in &families {
        family.write(name, &mut page)?;
    }
    Ok(page)
}

#[derive(Default)]
struct Family<'a> {
    help: &'a str,
    kind: &'a str,
    samples: Vec<Sample<'a>>,
}

/// A label by name, its value still escaped: both formats escape alike.
type Label<'a> = (&'a str, &'a str);

/// One line with a value.
struct Sample<'a> {
    /// By name, without the bound of a bucket.
    labels: Vec<Label<'a>>,
    /// What it is of its series: `_bucket`, `_sum`, `_count`, or empty.
    suffix: &'a str,
    bound: Option<&'a str>,
    value: Cow<'a, str>,
}

impl<'a> Sample<'a> {
    fn new(labels: Vec<Label<'a>>, value: impl Into<Cow<'a, str>>) -> Self {
        Self {
            labels,
            suffix: "",
            bound: None,
            value: value.into(),
        }
    }

    /// Where it is written. The encoder has the buckets of a series in the order of their bounds.
    fn place(&self) -> impl Ord {
        let part = ["", "_bucket", "_sum", "_count"];
        (&self.labels, part.iter().position(|part| *part == self.suffix))
    }
}

/// Counts the families that state a level, these counters among them.
fn count(families: &mut BTreeMap<Cow<'_, str>, Family<'_>>) {
    let counter = |help, samples| Family {
        help,
        kind: "counter",
        samples,
    };
    for (name, help) in NONE {
        families.insert(name.into(), counter(help, vec![Sample::new(Vec::new(), "0")]));
    }
    let mut by_level = BTreeMap::from([("BETA", 1)]);
    for family in families.values() {
        if let Some((level, _)) = family
            .help
            .strip_prefix('[')
            .and_then(|help| help.split_once(']'))
        {
            *by_level.entry(level).or_insert(0) += 1;
        }
    }
    let samples = by_level.into_iter().map(|(level, families)| {
        let labels = vec![("deprecated_version", ""), ("stability_level", level)];
        Sample::new(labels, families.to_string())
    });
    let help = "[BETA] Families of series that have a value, by level";
    let family = counter(help, samples.collect());
    families.insert("registered_metrics_total".into(), family);
}

fn read(text: &str) -> BTreeMap<Cow<'_, str>, Family<'_>> {
    let mut families: BTreeMap<Cow<'_, str>, Family<'_>> = BTreeMap::new();
    // Samples follow the head of their family.
    let (mut stem, mut current) = ("", Family::default());
    let mut name = Cow::Borrowed("");
    for line in text.lines().chain(["# HELP"]) {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), next, help) => {
                let family = std::mem::take(&mut current);
                if !stem.is_empty() {
                    let known = families.entry(name).or_default();
                    (known.help, known.kind) = (family.help, family.kind);
                    known.samples.extend(family.samples);
                }
                stem = next.unwrap_or_default();
                name = Cow::Borrowed(stem);
                // The registry ends every text with a full stop; the Go managers' texts have none.
                current.help = help.unwrap_or_default().trim_end_matches('.');
            }
            (Some("#"), Some("TYPE"), Some(_), Some(kind)) => {
                current.kind = kind;
                if kind == "counter" && !WITHOUT_TOTAL.contains(&stem) {
                    name = Cow::Owned(format!("{stem}_total"));
                }
            }
            (Some("#"), ..) | (None, ..) => {}
            _ => current.samples.extend(sample(stem, line)),
        }
    }
    for family in families.values_mut() {
        family
            .samples
            .sort_by(|one, other| one.place().cmp(&other.place()));
    }
    families
}

fn sample<'a>(stem: &str, line: &'a str) -> Option<Sample<'a>> {
    let rest = line.strip_prefix(stem)?;
    let (suffix, rest) = rest.split_at(rest.find(['{', ' '])?);
    let (mut labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (Vec::new(), rest),
    };
    labels.sort_unstable();
    let bound = labels
        .iter()
        .position(|(name, _)| suffix == "_bucket" && *name == "le");
    Some(Sample {
        bound: bound.map(|at| labels.remove(at).1),
        suffix: if suffix == "_total" { "" } else { suffix },
        ..Sample::new(labels, rest.split_whitespace().next()?)
    })
}

/// The labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Vec<Label<'_>>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once("=\"")?;
        let mut is_escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        })?;
        labels.push((name.trim_start_matches(','), &after[..end]));
        rest = &after[end + 1..];
    }
}

impl Family<'_> {
    fn write(&self, name: &str, page: &mut String) -> fmt::Result {
        let kind = if self.kind == "unknown" {
            "untyped"
        } else {
            self.kind
        };
        writeln!(page, "# HELP {name} {}\n# TYPE {name} {kind}", self.help)?;
        for sample in &self.samples {
            write!(page, "{name}{}", sample.suffix)?;
            let bound = sample.bound.map(number);
            let bound = bound.as_deref().map(|bound| ("le", bound));
            let mut opening = '{';
            for (label, value) in sample.labels.iter().copied().chain(bound) {
                write!(page, "{opening}{label}=\"{value}\"")?;
                opening = ',';
            }
            let closing = if opening == ',' { "}" } else { "" };
            writeln!(page, "{closing} {}", number(&sample.value))?;
        }
        Ok(())
    }
}

/// A number as Go's shortest form writes it: an exponent below 1e-4 and from a million on.
fn number(text: &str) -> String {
    let Ok(value) = text.parse::<f64>() else {
        return text.to_owned();
    };
    if !value.is_finite() {
        return match value {
            f64::INFINITY => "+Inf",
            f64::NEG_INFINITY => "-Inf",
            _ => "NaN",
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((digits, exponent)) => match exponent.parse::<i32>() {
            Ok(exponent) if value != 0.0 && !(-4..6).contains(&exponent) => {
                let sign = if exponent < 0 { '-' } else { '+' };
                format!("{digits}e{sign}{:02}", exponent.abs())
            }
            _ => value.to_string(),
        },
        None => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;

    use super::*;

    type Labels = Vec<(&'static str, String)>;

    #[test]
    fn the_page_has_the_form_of_the_go_managers() {
        let mut registry = Registry::default();
        let requests = Family::<Labels, Counter>::default();
        for (code, method) in [("500", "GET"), ("200", "PUT"), ("200", "GET")] {
            let labels = vec![("method", method.to_owned()), ("code", code.to_owned())];
            requests.get_or_create(&labels).inc();
        }
        registry.register("requests", "[ALPHA] Requests", requests);
        let users = Family::<Labels, Counter>::default();
        users
            .get_or_create(&vec![("username", "a \"b\\\n,}=".to_owned())])
            .inc();
        registry.register("authenticated_user_requests", "[ALPHA] Users", users);
        let sizes = Histogram::new([1e-8, 64.0, 1_048_576.0]);
        sizes.observe(100.0);
        registry.register("bytes", "[ALPHA] Sizes", sizes);
        registry.register("empty", "Nothing", Family::<Labels, Counter>::default());
        let gauge = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
        gauge.set(f64::INFINITY);
        registry.register("ttl_seconds", "Rest", gauge);
        insta::assert_snapshot!(page(&registry, false).unwrap(), @r#"
        # HELP authenticated_user_requests [ALPHA] Users
        # TYPE authenticated_user_requests counter
        authenticated_user_requests{username="a \"b\\\n,}="} 1
        # HELP bytes [ALPHA] Sizes
        # TYPE bytes histogram
        bytes_bucket{le="1e-08"} 0
        bytes_bucket{le="64"} 0
        bytes_bucket{le="1.048576e+06"} 1
        bytes_bucket{le="+Inf"} 1
        bytes_sum 100
        bytes_count 1
        # HELP requests_total [ALPHA] Requests
        # TYPE requests_total counter
        requests_total{code="200",method="GET"} 1
        requests_total{code="200",method="PUT"} 1
        requests_total{code="500",method="GET"} 1
        # HELP ttl_seconds Rest
        # TYPE ttl_seconds gauge
        ttl_seconds +Inf
        "#);
    }

    #[test]
    fn families_are_counted_by_level_and_those_without_one_are_left_out() {
        let mut registry = Registry::default();
        for (name, help) in [("a", "[ALPHA] A"), ("b", "[BETA] B [STABLE]"), ("c", "C [ALPHA]")] {
            registry.register(name, help, Gauge::<i64>::default());
        }
        let page = page(&registry, true).unwrap();
        let lines: Vec<&str> = page.lines().filter(|line| line.contains("_total")).collect();
        assert_eq!(lines.len(), 4 * 2 + 5, "{page}");
        for line in [
            "hidden_metrics_total 0",
            "disabled_metrics_total 0",
            "cardinality_enforcement_unexpected_categorizations_total 0",
            r#"registered_metrics_total{deprecated_version="",stability_level="ALPHA"} 2"#,
            r#"registered_metrics_total{deprecated_version="",stability_level="BETA"} 4"#,
        ] {
            assert!(lines.contains(&line), "{line}\n{page}");
        }
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (text, written) in [
            ("0.0", "0"),
            ("1.0", "1"),
            ("-2", "-2"),
            ("0.005", "0.005"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("16384.0", "16384"),
            ("262144.0", "262144"),
            ("999999", "999999"),
            ("1000000", "1e+06"),
            ("16777216.0", "1.6777216e+07"),
            ("1763736000.25", "1.76373600025e+09"),
            ("NaN", "NaN"),
            ("+Inf", "+Inf"),
        ] {
            assert_eq!(number(text), written);
        }
    }
}
