//! The page of `/metrics`: Prometheus' text format 0.0.4, as the Go managers write it.
//!
//! The registry's own encoder speaks OpenMetrics, where every counter ends in `_total` and a bound is written as `1.0`.
//! Two counters of the API server libraries have no such end, and dashboards go by the exact names and bounds; the Go
//! managers answer in this format whatever a scraper prefers, and so does this. Families and their series are sorted,
//! so that two pages can be compared.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The counters whose names do not end in `_total`.
const WITHOUT_TOTAL: &[&str] = &["authenticated_user_requests", "authentication_attempts"];

/// Writes what the registry's encoder wrote in the form of the older format.
pub(super) fn from_open_metrics(text: &str) -> String {
    let families = read(text);
    let mut page = String::with_capacity(text.len());
    for (name, family) in &families {
        family.write(name, &mut page);
    }
    page
}

#[derive(Default)]
struct Family<'a> {
    help: &'a str,
    kind: &'a str,
    samples: Vec<Sample<'a>>,
}

/// One line with a value. Label values stay escaped, because both formats escape alike.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sample<'a> {
    /// By name, without the bound of a bucket.
    labels: Vec<(&'a str, &'a str)>,
    part: Part<'a>,
    value: &'a str,
}

/// What a sample is of its series, in the order in which they are written.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Whole,
    Bucket(Bound<'a>),
    Sum,
    Count,
}

/// The upper bound of a bucket; ordered by size.
#[derive(PartialEq, Eq)]
struct Bound<'a>(&'a str);

impl Bound<'_> {
    fn size(&self) -> f64 {
        self.0.parse().unwrap_or(f64::INFINITY)
    }
}

impl Ord for Bound<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.size().total_cmp(&other.size())
    }
}

impl PartialOrd for Bound<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn read(text: &str) -> BTreeMap<String, Family<'_>> {
    let mut families: BTreeMap<String, Family<'_>> = BTreeMap::new();
    // Samples follow the head of their family.
    let (mut stem, mut current) = ("", String::new());
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                (stem, current) = (name, name.to_owned());
                // The registry ends every text with a full stop; the Go managers' texts have none.
                let help = help.trim_end_matches('.');
                families.entry(current.clone()).or_default().help = help;
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                if kind == "counter" && !WITHOUT_TOTAL.contains(&name) {
                    let family = families.remove(name).unwrap_or_default();
                    current = format!("{name}_total");
                    families.entry(current.clone()).or_insert(family);
                }
                families.entry(current.clone()).or_default().kind = kind;
            }
            (Some("#"), ..) | (None, ..) => {}
            _ => {
                if let (Some(sample), Some(family)) = (sample(stem, line), families.get_mut(&current)) {
                    family.samples.push(sample);
                }
            }
        }
    }
    for family in families.values_mut() {
        family.samples.sort();
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
    let part = match suffix {
        "_bucket" => {
            let at = labels.iter().position(|(name, _)| *name == "le")?;
            Part::Bucket(Bound(labels.remove(at).1))
        }
        "_sum" => Part::Sum,
        "_count" => Part::Count,
        _ => Part::Whole,
    };
    Some(Sample {
        labels,
        part,
        value: rest.split_whitespace().next()?,
    })
}

/// A label by name, its value still escaped.
type Label<'a> = (&'a str, &'a str);

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
    fn write(&self, name: &str, page: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "# HELP {name} {}", self.help);
        let kind = if self.kind == "unknown" {
            "untyped"
        } else {
            self.kind
        };
        let _ = writeln!(page, "# TYPE {name} {kind}");
        for sample in &self.samples {
            let (suffix, bound) = match &sample.part {
                Part::Whole => ("", None),
                Part::Bucket(bound) => ("_bucket", Some(number(bound.0))),
                Part::Sum => ("_sum", None),
                Part::Count => ("_count", None),
            };
            let _ = write!(page, "{name}{suffix}");
            let bound = bound.as_deref().map(|bound| ("le", bound));
            let mut opening = '{';
            for (label, value) in sample.labels.iter().copied().chain(bound) {
                let _ = write!(page, "{opening}{label}=\"{value}\"");
                opening = ',';
            }
            if opening == ',' {
                page.push('}');
            }
            let _ = writeln!(page, " {}", number(sample.value));
        }
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
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::Registry;

    use super::*;

    type Labels = Vec<(&'static str, String)>;

    fn page(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        from_open_metrics(&text)
    }

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
        insta::assert_snapshot!(page(&registry), @r#"
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
