//! Where the settings of a Service come from, as a person would look for them, and which of them nobody can keep to.

use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_provider::k8s::ServiceSpec;
use bowline_cloud_provider::{Accepts, AnnotationSpec, facts};

use crate::config::{ClassOptions, LoadBalancerOptions, Section as _};
use crate::load_balancer::annotations::{self as keys, Reader};
use crate::load_balancer::members::Family;

/// The field of the Service that asks for an address.
pub(crate) const ADDRESS: &str = "spec.loadBalancerIP";

/// The field of the Service that says who may connect.
const RANGES: &str = "spec.loadBalancerSourceRanges";

/// What only the configuration file says.
pub(crate) const PROVIDER: &str = "lb-provider";

/// A setting that somebody wrote, or could: the clouds' own names of values say little to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key of its annotation, or what stands for it.
    pub(crate) what: &'static str,
    /// Where it is written.
    pub(crate) origin: String,
    /// As it is written.
    pub(crate) value: String,
    /// What kind of place that is.
    pub(crate) place: Place,
}

/// What says a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Annotation,
    Class,
    /// `cloud.conf` for all Services, or the Service's `spec`.
    Other,
}

/// The setting of an annotation, if anything is said.
pub(super) fn find<'a>(settings: &'a [Setting], entry: &AnnotationSpec) -> Option<&'a Setting> {
    settings.iter().find(|setting| setting.what == entry.key)
}

/// A setting that cannot be kept to, whatever the cloud is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// As [`Setting::what`]; empty where it is not one setting alone.
    pub(crate) what: &'static str,
    /// What is wrong, on which setting, and what is allowed.
    pub(crate) text: String,
    /// What it stands in the way of.
    pub(crate) bars: Bars,
}

/// What a flaw stands in the way of. No load balancer is made with any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bars {
    /// Everything but that members follow the Nodes: it cannot be told what is asked for.
    All,
    /// Every change of the parts of a load balancer but of its members.
    Parts,
    /// The status.
    Status,
    /// Nothing more: the load balancer has it from the beginning, or keeps what it has.
    Creation,
}

/// A class that a Service names.
pub(super) type Class<'a> = Option<(&'a str, &'a ClassOptions)>;

/// The settings whose values the cloud may refuse.
pub(super) fn settings(
    reader: &Reader<'_>,
    class: Class<'_>,
    options: &LoadBalancerOptions,
    spec: &ServiceSpec,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for entry in [
        &keys::NETWORK,
        &keys::SUBNET,
        &keys::MEMBER_SUBNET,
        &keys::PORT,
        &keys::FLOATING_NETWORK,
        &keys::FLOATING_SUBNET_ID,
        &keys::FLOATING_SUBNET,
        &keys::FLOATING_SUBNET_TAGS,
        &keys::TLS,
        &keys::CONNECTION_LIMIT,
        &keys::TIMEOUT_CLIENT_DATA,
        &keys::TIMEOUT_MEMBER_CONNECT,
        &keys::TIMEOUT_MEMBER_DATA,
        &keys::TIMEOUT_TCP_INSPECT,
        &keys::LB_METHOD,
        &keys::FLAVOR,
        &keys::ZONE,
        &keys::MONITOR_DELAY,
        &keys::MONITOR_TIMEOUT,
        &keys::MONITOR_MAX_RETRIES,
        &keys::MONITOR_MAX_RETRIES_DOWN,
        &keys::HOSTNAME,
        &keys::SOURCE_RANGES,
        &keys::X_FORWARDED_FOR,
    ] {
        settings.extend(setting(entry, reader, class, options));
    }
    let mut field = |what, origin: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        settings.extend(value.map(|value| Setting {
            what,
            origin: origin.to_owned(),
            value,
            place: Place::Other,
        }));
    };
    field(ADDRESS, ADDRESS, spec.load_balancer_ip.clone());
    let ranges = spec.load_balancer_source_ranges.as_deref();
    field(keys::SOURCE_RANGES.key, RANGES, ranges.map(|list| list.join(",")));
    let of_file = format!("{PROVIDER} of [LoadBalancer] in cloud.conf");
    field(PROVIDER, &of_file, Some(options.provider.clone()));
    settings
}

/// A setting by its annotation: what the Service, its class or the file says, whichever counts.
fn setting(
    entry: &AnnotationSpec,
    reader: &Reader<'_>,
    class: Class<'_>,
    options: &LoadBalancerOptions,
) -> Option<Setting> {
    let option = entry.default.strip_prefix("[LoadBalancer] ");
    let annotated = || {
        let value = reader.given(entry)?;
        Some((
            Place::Annotation,
            format!("annotation {}", entry.key),
            value.to_owned(),
        ))
    };
    let of_class = || {
        let (name, class) = class?;
        let value = class.value_of(option?).filter(|value| !value.is_empty())?;
        let origin = format!("{} of [LoadBalancerClass \"{name}\"] in cloud.conf", option?);
        Some((Place::Class, origin, value))
    };
    let of_file = || {
        let value = match entry.key {
            key if key == keys::MONITOR_DELAY.key => seconds(options.monitor.delay).to_string(),
            key if key == keys::MONITOR_TIMEOUT.key => seconds(options.monitor.timeout).to_string(),
            _ => options.value_of(option?)?,
        };
        let origin = format!("{} of [LoadBalancer] in cloud.conf", option?);
        Some((Place::Other, origin, value))
    };
    let (place, origin, value) = if is_floating(entry) {
        of_class().or_else(annotated).or_else(of_file)?
    } else {
        annotated().or_else(of_class).or_else(of_file)?
    };
    // Nothing is a word too, where a word is asked for.
    let says_something = !value.is_empty() || matches!(entry.accepts, Accepts::Words(_));
    says_something.then_some(Setting {
        what: entry.key,
        origin,
        value,
        place,
    })
}

/// Whether it says where floating IPs come from: there the class wins over the annotation.
fn is_floating(entry: &AnnotationSpec) -> bool {
    [
        keys::FLOATING_NETWORK.key,
        keys::FLOATING_SUBNET_ID.key,
        keys::FLOATING_SUBNET.key,
        keys::FLOATING_SUBNET_TAGS.key,
    ]
    .contains(&entry.key)
}

/// As Octavia takes times: in whole seconds.
pub(super) fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// What is wrong with the settings of a Service.
pub(super) fn flaws(settings: &[Setting], family: Option<Family>, has_monitor: bool) -> Vec<Flaw> {
    let flaws = settings
        .iter()
        .filter_map(|setting| flaw(setting, family, has_monitor));
    flaws.collect()
}

fn flaw(setting: &Setting, family: Option<Family>, has_monitor: bool) -> Option<Flaw> {
    let Setting {
        what, origin, value, ..
    } = setting;
    let (allowed, bars) = if *what == ADDRESS {
        (fault_of_address(family, value)?, Bars::Creation)
    } else {
        let entry = keys::annotation_table().iter().find(|entry| entry.key == *what)?;
        let is_of_monitor = entry.key.contains("/health-monitor-");
        match entry.accepts {
            Accepts::Between(least, most) if !is_of_monitor || has_monitor => {
                // What is no number at all has no effect, and is told elsewhere.
                let number: i64 = value.parse().ok()?;
                let is_good = (least..=most).contains(&number);
                let allowed = format!("a whole number from {least} to {most}");
                (Some(allowed).filter(|_| !is_good)?, Bars::Parts)
            }
            Accepts::Words(words) => {
                let is_good = words.contains(&value.as_str());
                let allowed = format!("one of {}", words.join(", "));
                (Some(allowed).filter(|_| !is_good)?, Bars::Creation)
            }
            Accepts::Hostname => {
                let allowed = "a DNS name in lower case, such as www.example.org".to_owned();
                (
                    Some(allowed).filter(|_| !facts::is_hostname(value))?,
                    Bars::Status,
                )
            }
            _ => return None,
        }
    };
    Some(Flaw {
        what,
        text: format!("{origin} is `{value}` and must be {allowed}"),
        bars,
    })
}

/// What an address has to be, if it is not.
fn fault_of_address(family: Option<Family>, value: &str) -> Option<String> {
    let is_good = match value.parse::<IpAddr>() {
        Ok(address) => family.is_none_or(|family| Family::of(address) == family),
        Err(_) => false,
    };
    let allowed = match family {
        Some(Family::V4) => "an IPv4 address, the first of spec.ipFamilies",
        Some(Family::V6) => "an IPv6 address, the first of spec.ipFamilies",
        None => "an IP address",
    };
    (!is_good).then(|| allowed.to_owned())
}
