//! Names of load balancer rules. They are the only link between a Service and what was made for it, so none may ever
//! change.

use std::fmt;

use bowline_cloud_provider::ServiceKey;
use serde::{Deserialize, Serialize};

/// What a load balancer rule speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// TCP with a PROXY protocol header.
    TcpProxy,
}

impl Protocol {
    /// Reads the API's word. There are others, which belong to nobody here.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut all = [Self::Tcp, Self::Udp, Self::TcpProxy].into_iter();
        all.find(|protocol| protocol.as_str() == text)
    }

    /// The API's word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::TcpProxy => "tcp-proxy",
        }
    }

    /// The protocol for firewalls and network ACLs, which know no `tcp-proxy`.
    pub(crate) fn ip(self) -> IpProtocol {
        match self {
            Self::Tcp | Self::TcpProxy => IpProtocol::Tcp,
            Self::Udp => IpProtocol::Udp,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What firewalls and network ACLs tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum IpProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl IpProtocol {
    /// Reads the API's word, in any letter case.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "tcp" => Some(Self::Tcp),
            "udp" => Some(Self::Udp),
            _ => None,
        }
    }
}

/// The API's word.
impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// The longest name of a load balancer (Kubernetes' cloud-provider library, `DefaultLoadBalancerName`).
const MAX_BALANCER_NAME: usize = 32;

/// The name of a Service's load balancer: `a` and the UID without hyphens, cut. The last digit of a UID is lost.
pub(crate) fn balancer(service_uid: &str) -> String {
    let digits = service_uid.chars().filter(|c| *c != '-');
    std::iter::once('a')
        .chain(digits)
        .take(MAX_BALANCER_NAME)
        .collect()
}

/// The most bytes of a name that Leaseweb's manager gives (`Sprintf255` in its `cloudstack/util.go`).
const MAX_LEASEWEB_NAME: usize = 255;

/// The name of a Service's load balancer as Leaseweb's manager v1.8.1 has it.
pub(crate) fn leaseweb_balancer(cluster: &str, service: &ServiceKey) -> String {
    let mut name = format!("K8s_svc_{cluster}_{}_{}", service.namespace, service.name);
    let end = (0..=MAX_LEASEWEB_NAME)
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or_default());
    name
}

/// The name of the rule of a port.
pub(crate) fn rule(balancer: &str, protocol: Protocol, port: u16) -> String {
    format!("{balancer}-{protocol}-{port}")
}

/// Whether a rule is one of this balancer, by its name. The API's search finds names and descriptions that merely hold the
/// balancer's name.
pub(crate) fn is_rule(balancer: &str, name: &str) -> bool {
    protocol_of(balancer, name).is_some()
}

/// The protocol that the name of a rule tells; `None` if it is not a rule of this balancer. The provider that was part of
/// Kubernetes made TCP rules only, and wrote no protocol.
pub(crate) fn protocol_of(balancer: &str, name: &str) -> Option<Protocol> {
    let rest = name.strip_prefix(balancer)?.strip_prefix('-')?;
    let (protocol, port) = match rest.rsplit_once('-') {
        Some((protocol, port)) => (Protocol::parse(protocol)?, port),
        None => (Protocol::Tcp, rest),
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some(protocol)
}

/// The balancer in the name of a rule, if a manager may have given that.
pub(crate) fn balancer_of(rule: &str) -> Option<&str> {
    let balancer = rule.get(..MAX_BALANCER_NAME)?;
    let digits = balancer.strip_prefix('a')?;
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, 'a'..='f');
    (digits.chars().all(is_digit) && is_rule(balancer, rule)).then_some(balancer)
}

/// What is left of a UID in the name of its balancer: the last digit is lost.
pub(crate) fn uid_of(balancer: &str) -> String {
    format!("{}…", balancer.get(1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_live_rules_have() {
        let name = balancer("11111111-2222-3333-4444-555555555555");
        assert_eq!(name, "a1111111122223333444455555555555");
        assert_eq!(
            balancer("7c9e6679-7425-40de-944b-e07fc1f90ae7"),
            "a7c9e6679742540de944be07fc1f90ae"
        );
        assert_eq!(
            rule(&name, Protocol::TcpProxy, 443),
            format!("{name}-tcp-proxy-443")
        );
    }

    /// That manager takes all rules whose names begin with the balancer's and a hyphen, also those of a Service `web-tcp`.
    #[test]
    fn a_rule_of_leasewebs_manager_is_known_whole() {
        let name = leaseweb_balancer("lab", &ServiceKey::new("shop", "web"));
        assert_eq!(name, "K8s_svc_lab_shop_web");
        for (rule, is_own) in [
            ("K8s_svc_lab_shop_web-tcp-443", true),
            ("K8s_svc_lab_shop_web-tcp-proxy-443", true),
            ("K8s_svc_lab_shop_web-tcp-tcp-443", false),
            ("K8s_svc_lab_shop_web2-tcp-443", false),
            ("K8s_svc_other_shop_web-tcp-443", false),
        ] {
            assert_eq!(is_rule(&name, rule), is_own, "{rule}");
        }
        let long = leaseweb_balancer(&"ä".repeat(200), &ServiceKey::new("shop", "web"));
        assert!(long.len() <= 255);
    }

    #[test]
    fn only_exact_names_are_our_own() {
        let protocol = |name: &str| protocol_of("ab", name);
        assert_eq!(protocol("ab-tcp-443"), Some(Protocol::Tcp));
        assert_eq!(protocol("ab-udp-53"), Some(Protocol::Udp));
        assert_eq!(protocol("ab-tcp-proxy-443"), Some(Protocol::TcpProxy));
        assert_eq!(protocol("ab-443"), Some(Protocol::Tcp));
        for foreign in [
            "ab",
            "ab-",
            "ab-tcp-",
            "ab-tcp-443x",
            "xab-tcp-443",
            "abc-tcp-443",
            "ab-TCP-443",
            "ab-ssl-443",
            "ab--443",
            "ab-tcp-proxy",
            "ab-tcp--443",
            "ab-proxy-443",
            "ab-443 ",
            "ab-tcp-+443",
            "AB-tcp-443",
        ] {
            assert_eq!(protocol(foreign), None, "{foreign}");
        }
    }
}
