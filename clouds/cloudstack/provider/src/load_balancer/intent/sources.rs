//! The source networks that a Service lists.

use std::net::IpAddr;

use bowline_cloud_provider::{Service, facts, keys};
use bowline_plan::Note;
use ipnet::IpNet;

use crate::load_balancer::annotations::{self, SOURCE_CIDRS};
use crate::load_balancer::cidrs::Sources;
use crate::messages::NO_SOURCE_CIDRS;

/// The networks of the annotation. Host bits may be set and are sent as they are.
pub(super) fn source_cidrs(service: &Service, problems: &mut Vec<String>, notes: &mut Vec<Note>) -> Sources {
    let text = annotations::text(service, &SOURCE_CIDRS);
    // A blank is no word for everybody: what stood there was lost, and nothing is opened for that.
    let written = service.metadata.annotations.iter().flatten();
    let is_blank = |(key, value): (&str, &String)| key == SOURCE_CIDRS.key && !value.is_empty();
    if text.is_empty() && !written.into_iter().any(is_blank) {
        notes.push(NO_SOURCE_CIDRS.note(format!(
            "annotation {} is empty, which restricts nothing",
            SOURCE_CIDRS.key
        )));
        return Sources::new([]);
    }
    let place = format!("annotation {}", SOURCE_CIDRS.key);
    cidrs(text.split(','), &place, problems)
}

/// Whom the firewall or the network ACL lets in. Addresses are IPv4, so nobody comes from a network of IPv6. Servers refuse these, or
/// take them for a router that has no use for them.
pub(super) fn source_ranges(service: &Service, problems: &mut Vec<String>) -> Sources {
    let spec = service.spec.as_ref();
    let ranges = spec.and_then(|spec| spec.load_balancer_source_ranges.as_deref());
    let ranges = ranges.unwrap_or_default().iter().map(String::as_str);
    if ranges.len() == 0 {
        // Leaseweb's manager reads the annotation where the field is empty; Apache's does not.
        let annotated = facts::annotation(service, keys::ANNOTATION_LOAD_BALANCER_SOURCE_RANGES);
        let annotated = annotated.map(str::trim).filter(|text| !text.is_empty());
        let annotated = annotated.filter(|_| annotations::is_of_leaseweb(service));
        return annotated.map_or_else(Sources::everything, |text| {
            usable(
                text.split(','),
                keys::ANNOTATION_LOAD_BALANCER_SOURCE_RANGES,
                problems,
            )
        });
    }
    usable(ranges, SOURCE_RANGES, problems)
}

fn usable<'a>(ranges: impl Iterator<Item = &'a str>, place: &str, problems: &mut Vec<String>) -> Sources {
    let all = cidrs(ranges, place, problems);
    let usable: Vec<String> = all.texts.iter().filter(|text| !is_ipv6(text)).cloned().collect();
    if usable.is_empty() && !all.texts.is_empty() {
        problems.push(format!(
            "{place} has networks of IPv6 only, and nobody reaches an address of IPv4 from these"
        ));
    }
    Sources::new(usable)
}

const SOURCE_RANGES: &str = "spec.loadBalancerSourceRanges";

pub(super) fn is_ipv6(network: &str) -> bool {
    matches!(network.parse(), Ok(IpNet::V6(_)))
}

fn cidrs<'a>(items: impl Iterator<Item = &'a str>, place: &str, problems: &mut Vec<String>) -> Sources {
    let mut texts = Vec::new();
    for item in items.map(str::trim) {
        match check_cidr(item) {
            Ok(()) => texts.push(item.to_owned()),
            Err(error) => problems.push(format!("invalid CIDR {item} in {place}: {error}")),
        }
    }
    Sources::new(texts)
}

/// Whether the cloud takes a network as it is written.
fn check_cidr(text: &str) -> Result<(), String> {
    text.parse::<IpNet>().map_err(|error| error.to_string())?;
    let (address, _) = text.split_once('/').unwrap_or((text, ""));
    // Octets with leading zeros are decimal to some and octal to others, so the parser of the standard library takes none.
    match address.parse::<IpAddr>() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{error}; leading zeros are not allowed")),
    }
}
