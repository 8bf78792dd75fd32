//! What a person can do about a refusal of the cloud: which setting it is about, and where that is written.

use std::net::IpAddr;

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{ApiError, Class, LoadBalancer};
use bowline_plan::Refusal;

use crate::load_balancer::annotations as keys;
use crate::load_balancer::features::is_of_ovn;
use crate::load_balancer::intent::settings::{ADDRESS, PROVIDER, Setting};

/// The fewest characters of a value that stands for its setting wherever it appears: an ID, and no number.
const TELLING: usize = 8;

/// The most characters of a value that are shown.
const SHOWN: usize = 100;

/// How a refusal is known to be about a setting, if the value alone does not tell.
struct Field {
    /// The setting.
    what: &'static str,
    /// Words of Octavia and Neutron, one of which is in the refusal.
    words: &'static [&'static str],
    /// What to do.
    remedy: &'static str,
}

const NUMBER: &str = "choose another number";

/// Octavia's words for an option that the driver does not know.
const UNSUPPORTED: &str = "does not support a requested option";

/// Defines them: setting, words, remedy.
macro_rules! fields {
    ($($what:expr, $words:expr, $remedy:expr;)*) => {
        /// The settings that the cloud may refuse, those with the plainer words first.
        const FIELDS: &[Field] = &[$(Field { what: $what, words: &$words, remedy: $remedy }),*];
    };
}

fields! {
    keys::TIMEOUT_CLIENT_DATA.key, ["timeout_client_data"], NUMBER;
    keys::TIMEOUT_MEMBER_CONNECT.key, ["timeout_member_connect"], NUMBER;
    keys::TIMEOUT_MEMBER_DATA.key, ["timeout_member_data"], NUMBER;
    keys::TIMEOUT_TCP_INSPECT.key, ["timeout_tcp_inspect"], NUMBER;
    keys::CONNECTION_LIMIT.key, ["connection_limit"], NUMBER;
    keys::MONITOR_MAX_RETRIES_DOWN.key, ["max_retries_down"], NUMBER;
    keys::MONITOR_MAX_RETRIES.key, ["max_retries"], NUMBER;
    keys::MONITOR_DELAY.key, ["delay"], NUMBER;
    keys::MONITOR_TIMEOUT.key, ["timeout"], NUMBER;
    keys::LB_METHOD.key, ["lb_algorithm", "algorithm"],
        "choose a method that the provider of the load balancer knows";
    keys::FLAVOR.key, ["flavor_id", "flavor", "Flavor"],
        "name the ID of a flavor that `openstack loadbalancer flavor list` shows";
    keys::ZONE.key, ["availability_zone", "zone"],
        "name a zone that `openstack loadbalancer availabilityzone list` shows";
    ADDRESS, ["vip_address", "VIP", "floating_ip_address"],
        "take it off the Service, or have the cloud's operator give the project a floating IP of that address; for an internal Service it is a free address of the load balancer's subnet";
    keys::PORT.key, ["vip_port_id", "Port"],
        "name a port of the project that nothing uses: `openstack port list`";
    keys::MEMBER_SUBNET.key, ["subnet_id"], "name a subnet that the project sees: `openstack subnet list`";
    keys::SUBNET.key, ["vip_subnet_id", "subnet_id", "Subnet"],
        "name a subnet that the project sees: `openstack subnet list`";
    keys::NETWORK.key, ["vip_network_id", "network"],
        "name a network with a subnet that the project sees: `openstack network list`";
    keys::FLOATING_SUBNET_ID.key, [], "name a subnet of the floating network, or none";
    keys::FLOATING_NETWORK.key, ["floating_network_id"],
        "name an external network: `openstack network show` tells whether one is";
    keys::SOURCE_RANGES.key, ["allowed_cidrs", "CIDR"], "name networks of the load balancer's IP family";
    keys::TLS.key, ["default_tls_container_ref", "certificate", "Certificate"],
        "name a certificate that Octavia may read";
    keys::X_FORWARDED_FOR.key, ["UDP-CONNECT"],
        "take it off, or put the ports for UDP into a Service of their own: only HTTP can carry that header";
    PROVIDER, ["Provider"], "name a provider that `openstack loadbalancer provider list` shows";
}

/// What Octavia refused a load balancer for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The address that it is asked to have.
    Address,
    /// That there are too many load balancers, or no address left: an empty one would be refused, too.
    Number,
    /// Its parts, or anything else.
    Parts,
}

/// Whether a creation was refused for a quota of the parts of a load balancer (`QuotaException` of Octavia).
fn is_of_part_quota(why: &Refusal) -> bool {
    let said = why.reason.to_ascii_lowercase();
    let mut parts = ["listener", "pool", "member", "health monitor", "l7"].iter();
    parts.any(|part| said.contains(&format!("resources: {part}")))
}

/// Whether a load balancer was refused for what Octavia, or its driver, looks at when its port is made (`post` in
/// `octavia/api/v2/controllers/load_balancer.py`). Of other words it is not known.
pub(crate) fn had_port(why: &Refusal) -> bool {
    is_of_part_quota(why) || why.reason.contains(UNSUPPORTED)
}

impl About {
    /// As the words tell: those of Neutron and of Octavia.
    pub(crate) fn of(why: &Refusal) -> Self {
        match why.is_limit {
            true if !is_of_part_quota(why) => Self::Number,
            false if why.reason.contains("IP address") => Self::Address,
            _ => Self::Parts,
        }
    }
}

/// What the operator of the cloud is asked for where a load balancer does not recover. The driver of OVN has no failover
/// (`loadbalancer_failover` in `driver.py` of ovn-octavia-provider).
pub(crate) fn failover(balancer: &LoadBalancer) -> String {
    match is_of_ovn(balancer) {
        true => "to have OVN's database brought in line with Octavia's (`octavia-ovn-db-sync-util`; the provider ovn has no failover)".to_owned(),
        false => format!("for a failover (`openstack loadbalancer failover {}`)", balancer.id),
    }
}

/// A failed write, with what a person can do in front of the service's own words.
pub(crate) fn of_write(settings: &[Setting], error: ApiError) -> CloudError {
    let remedy = remedy(settings, &error);
    let error = CloudError::of_write(error);
    match remedy {
        Some(remedy) => error.context(&remedy).with_remedy(remedy),
        None => error,
    }
}

/// A refusal that holds up nothing else, in the same words.
pub(crate) fn refusal(settings: &[Setting], error: &ApiError) -> Refusal {
    let text = match remedy(settings, error) {
        Some(remedy) => format!("{remedy}: {error}"),
        None => error.to_string(),
    };
    Refusal::new(text).of_limit(error.class == Class::Exhausted)
}

/// Which setting was refused and what to do; `None` if the words do not tell.
fn remedy(settings: &[Setting], error: &ApiError) -> Option<String> {
    if !matches!(
        error.class,
        Class::Invalid | Class::NotFound | Class::Conflict | Class::Denied
    ) {
        return None;
    }
    let message = error.message.as_deref()?;
    // It names network and subnet, and neither need be wrong.
    if error.word.as_deref() == Some("ExternalGatewayForFloatingIPNotFound") {
        let text = "no router joins the load balancer's subnet and the floating network; connect them, name another \
                    floating-network-id, or mark the Service as internal";
        return Some(text.to_owned());
    }
    if let Some((setting, field)) = refused(settings, message) {
        let shown: String = setting.value.chars().take(SHOWN).collect();
        return Some(format!(
            "{} is `{shown}`, which the cloud refuses; {}",
            setting.origin, field.remedy
        ));
    }
    if message.contains(UNSUPPORTED) {
        let text = "the provider of the load balancer does not do what is asked for: take off the option that its words name, or choose a \
                    flavor that has it";
        return Some(text.to_owned());
    }
    if message.contains("reports error") {
        let text = "the provider of the load balancer failed at it: correct what its words name, or ask the operator of the cloud";
        return Some(text.to_owned());
    }
    (error.status() == Some(403)).then(|| {
        "the user of cloud.conf may not do this; give it the role that the cloud asks for, often `load-balancer_member` for load \
         balancers and `member` for all else"
            .to_owned()
    })
}

/// The setting that a refusal is about: the one whose value it names, else the one whose words.
fn refused<'a>(settings: &'a [Setting], message: &str) -> Option<(&'a Setting, &'static Field)> {
    let is_told_by_value = |setting: &&Setting| {
        let value = setting.value.as_str();
        let is_telling = value.len() >= TELLING || value.parse::<IpAddr>().is_ok();
        is_telling && message.contains(value)
    };
    let words: Vec<&str> = message
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
        .collect();
    // Octavia names the provider in what it says of its options too.
    let is_provider_unknown = ["is not enabled", "was not found"]
        .iter()
        .any(|end| message.contains(end));
    let of = |field: &'static Field| {
        let mut set = settings.iter().filter(|setting| setting.what == field.what);
        set.next()
            .filter(|_| field.what != PROVIDER || is_provider_unknown)
    };
    let by_value = FIELDS.iter().find_map(|field| {
        let setting = of(field).filter(is_told_by_value)?;
        Some((setting, field))
    });
    by_value.or_else(|| {
        FIELDS.iter().find_map(|field| {
            let is_named = field.words.iter().any(|word| words.contains(word));
            Some((of(field).filter(|_| is_named)?, field))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancer::intent::settings::Place;

    fn setting(what: &'static str, origin: &str, value: &str) -> Setting {
        Setting {
            what,
            origin: origin.to_owned(),
            value: value.to_owned(),
            place: Place::Other,
        }
    }

    /// The words are Octavia's and Neutron's own.
    #[test]
    fn a_load_balancer_is_refused_for_its_address_its_number_or_its_parts() {
        for (said, is_limit, about) in [
            (
                "Quota has been met for resources: Load Balancer",
                true,
                About::Number,
            ),
            ("No more IP addresses available on subnet s.", true, About::Number),
            (
                "Quota has been met for resources: Health Monitor",
                true,
                About::Parts,
            ),
            ("Quota has been met for resources: pool", true, About::Parts),
            (
                "Validation failure: CIDR fd00::/8 IP version incompatible",
                false,
                About::Parts,
            ),
            (
                "Provider 'ovn' does not support a requested option: OVN provider does not support SOURCE_IP algorithm",
                false,
                About::Parts,
            ),
            (
                "The VIP IP address is already in use: IP address 10.0.0.9 already allocated in subnet s",
                false,
                About::Address,
            ),
            (
                "Provider 'amphora' reports error: IP address 10.9.9.9 is not a valid IP for the specified subnet.",
                false,
                About::Address,
            ),
        ] {
            assert_eq!(About::of(&Refusal::new(said).of_limit(is_limit)), about, "{said}");
        }
    }

    #[test]
    fn a_refusal_is_about_the_setting_whose_value_or_words_it_has() {
        let subnet = "0c3e6a2f-0000-4000-8000-000000000001";
        let network = "0c3e6a2f-0000-4000-8000-000000000002";
        let settings = [
            setting(keys::MEMBER_SUBNET.key, "member-subnet-id", subnet),
            setting(
                keys::SUBNET.key,
                "subnet-id",
                "0c3e6a2f-0000-4000-8000-000000000003",
            ),
            setting(keys::FLOATING_NETWORK.key, "floating-network-id", network),
            setting(keys::FLAVOR.key, "flavor-id", "big"),
            setting(keys::MONITOR_TIMEOUT.key, "monitor-timeout", "5"),
            setting(keys::TIMEOUT_CLIENT_DATA.key, "timeout-client-data", "5"),
            setting(keys::X_FORWARDED_FOR.key, "x-forwarded-for", "true"),
            setting(ADDRESS, ADDRESS, "10.9.9.9"),
            setting(PROVIDER, "lb-provider", "amphora"),
        ];
        for (message, origin) in [
            (format!("Subnet {subnet} not found."), Some("member-subnet-id")),
            ("Subnet x not found.".to_owned(), Some("subnet-id")),
            (
                format!("Network {network} is not a valid external network"),
                Some("floating-network-id"),
            ),
            ("Validation failure: Invalid flavor_id.".to_owned(), Some("flavor-id")),
            (
                "Invalid input for field/attribute timeout_client_data. Value: '5'.".to_owned(),
                Some("timeout-client-data"),
            ),
            (
                "Invalid input for field/attribute timeout. Value: '5'.".to_owned(),
                Some("monitor-timeout"),
            ),
            (
                "(rule:create_floatingip and rule:create_floatingip:floating_ip_address) is disallowed by policy"
                    .to_owned(),
                Some(ADDRESS),
            ),
            ("Provider 'amphora' is not enabled.".to_owned(), Some("lb-provider")),
            (
                "UDP-CONNECT type is only supported for pools of type UDP/SCTP".to_owned(),
                Some("x-forwarded-for"),
            ),
            (
                "Provider 'amphora' does not support a requested option: no HTTP".to_owned(),
                None,
            ),
            (
                "Provider 'amphora' does not support a requested option: no flavor".to_owned(),
                Some("flavor-id"),
            ),
            // Nobody set one.
            ("Validation failure: Invalid availability zone.".to_owned(), None),
            ("Load Balancer b is immutable and cannot be updated.".to_owned(), None),
        ] {
            let found = refused(&settings, &message).map(|(setting, _)| setting.origin.as_str());
            assert_eq!(found, origin, "{message}");
        }
    }
}
