//! What the tables of annotations do not say: which keys are the cloud's, which annotations exclude each other, and which
//! changes come too late.

use bowline_cloud_provider::{AnnotationSpec, Changeability, keys};

/// A cloud as far as its policies go.
pub(crate) struct Cloud {
    /// The chart's name for it.
    pub(crate) name: &'static str,
    /// The name for people.
    pub(crate) title: &'static str,
    pub(crate) table: &'static [AnnotationSpec],
    /// Annotations of the table that stand on Nodes: a Service's key is no misspelling of them.
    pub(crate) on_nodes: &'static [&'static str],
    /// Every key that begins with one of these has to be in the table.
    pub(crate) prefixes: &'static [&'static str],
    /// A key that begins with this and is nearly one of the table is misspelt.
    pub(crate) domain: &'static str,
    /// What the table cannot say.
    pub(crate) rules: Vec<Rule>,
    /// What makes a later change come too late.
    pub(crate) fixed: Option<Fixed>,
}

/// A rule about several annotations, or about fields of the Service.
pub(crate) struct Rule {
    /// The annotations that it is about: a Service is looked at when one of them changes.
    pub(crate) keys: Vec<&'static str>,
    /// The fields of the spec that it is about.
    pub(crate) fields: &'static [&'static str],
    /// CEL that holds for good Services.
    pub(crate) holds: String,
    /// What is wrong.
    pub(crate) message: String,
}

/// Annotations that cannot change any more.
pub(crate) struct Fixed {
    /// CEL on the former Service: whether there is a load balancer.
    pub(crate) since: String,
    pub(crate) keys: Vec<FixedKey>,
    pub(crate) fields: Vec<FixedField>,
}

/// A field of the spec that cannot change as it likes.
pub(crate) struct FixedField {
    /// CEL that holds while it is left alone, or changed to what can be had.
    pub(crate) holds: String,
    /// What comes of a change, and what can be done.
    pub(crate) message: String,
}

/// One annotation that cannot change.
pub(crate) struct FixedKey {
    pub(crate) key: &'static str,
    pub(crate) rule: Late,
    /// What comes of a change, and what can be done.
    pub(crate) remedy: &'static str,
    /// CEL that holds where there is nothing yet that the annotation is about, so that a change counts.
    pub(crate) unless: Option<String>,
}

/// What counts as a change.
#[derive(Clone, Copy)]
pub(crate) enum Late {
    /// Another text than before, where absence is this text.
    Text(&'static str),
    /// Another text than before, if there is one: to ask for nothing is no change.
    Wish,
    /// As [`Late::Wish`]; and where nothing was said before, what is said now may be what the load balancer has: the
    /// provider writes it, or a person who wants it kept.
    Found,
    /// As [`Late::Wish`], of JSON: blanks do not count, and an empty list asks for nothing.
    JsonWish,
}

/// All clouds, in the order of the chart.
pub(crate) fn clouds() -> Vec<Cloud> {
    vec![cloudscale(), phoenixnap(), cloudstack(), openstack()]
}

/// The key in a table that ends like this.
///
/// # Panics
///
/// There is none: a mistake here, which every test and `cargo xtask generate` find.
#[expect(clippy::panic, reason = "a tool; its input is this file")]
fn key(table: &'static [AnnotationSpec], end: &str) -> &'static str {
    let found = table.iter().find(|spec| spec.key.ends_with(end));
    found.map_or_else(|| panic!("no annotation ends with {end}"), |spec| spec.key)
}

/// What Kubernetes itself defines, and reads as a restriction, is none here.
fn no_source_ranges_annotation(instead: &str) -> Rule {
    let key = keys::ANNOTATION_LOAD_BALANCER_SOURCE_RANGES;
    let literal = crate::admission::cel::text(key);
    Rule {
        keys: vec![key],
        fields: &[],
        holds: format!(
            "!({literal} in variables.annotations) || variables.annotations[{literal}].trim() == ''"
        ),
        message: format!("{key} has no effect, so everybody may connect: give the networks in {instead}"),
    }
}

/// Members need a port of the Nodes.
fn needs_node_ports() -> Rule {
    Rule {
        keys: Vec::new(),
        fields: &["allocateLoadBalancerNodePorts"],
        holds: "!has(object.spec.allocateLoadBalancerNodePorts) || object.spec.allocateLoadBalancerNodePorts\n|| has(object.spec.ports) && object.spec.ports.all(p, has(p.nodePort) && p.nodePort != 0)".to_owned(),
        message: "spec.allocateLoadBalancerNodePorts is false, and the load balancer reaches its members by their node ports: leave it out".to_owned(),
    }
}

/// `spec.loadBalancerIP` is handed to the cloud.
fn ip_is_address() -> Rule {
    Rule {
        keys: Vec::new(),
        fields: &["loadBalancerIP"],
        holds: "!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP.trim() == ''\n|| isIP(object.spec.loadBalancerIP.trim())".to_owned(),
        message: "spec.loadBalancerIP must be an IP address. Leave it out, and an address is allocated".to_owned(),
    }
}

/// Ports that the load balancer cannot serve.
fn only_tcp_and_udp(title: &str) -> Rule {
    Rule {
        keys: Vec::new(),
        fields: &["ports"],
        holds: "!has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol in ['TCP', 'UDP'])".to_owned(),
        message: format!("spec.ports: a load balancer of {title} takes the protocols TCP and UDP only"),
    }
}

fn cloudscale() -> Cloud {
    let table = bowline_cloudscale::annotation_table();
    let refused = table.iter().filter(|spec| spec.change == Changeability::Refused);
    let keys = refused.map(|spec| match spec.key.rsplit('-').next() {
        Some("flavor") => FixedKey {
            key: spec.key,
            rule: Late::Text(spec.default),
            remedy: "the load balancer cannot change its flavor. Take the change back, or ask cloudscale.ch for it",
            unless: None,
        },
        Some("zone") => FixedKey {
            key: spec.key,
            rule: Late::Found,
            remedy: "the load balancer cannot change its zone. Take the change back, or create the Service anew",
            unless: None,
        },
        _ => FixedKey {
            key: spec.key,
            rule: Late::JsonWish,
            remedy: "the load balancer cannot change its addresses. Take the change back, or create the Service anew",
            unless: None,
        },
    });
    Cloud {
        name: "cloudscale",
        title: "cloudscale.ch",
        table,
        on_nodes: &[],
        prefixes: &["k8s.cloudscale.ch/loadbalancer-"],
        domain: "k8s.cloudscale.ch/",
        rules: [
            only_tcp_and_udp("cloudscale.ch"),
            needs_node_ports(),
            no_source_ranges_annotation(key(table, "-listener-allowed-cidrs")),
            Rule {
                keys: Vec::new(),
                fields: &["loadBalancerSourceRanges"],
                holds: "!has(object.spec.loadBalancerSourceRanges) || size(object.spec.loadBalancerSourceRanges) == 0".to_owned(),
                message: format!(
                    "spec.loadBalancerSourceRanges has no effect, so everybody may connect: give the networks in {}",
                    key(table, "-listener-allowed-cidrs")
                ),
            },
        ]
        .into_iter()
        .chain(cloudscale_values(table))
        .collect(),
        fixed: Some(Fixed {
            since: has_annotation(key(table, "-uuid")),
            keys: keys.collect(),
            fields: Vec::new(),
        }),
    }
}

/// What the annotations' readers take, and the cloud refuses or nobody heeds.
fn cloudscale_values(table: &'static [AnnotationSpec]) -> Vec<Rule> {
    let rule = |key: &'static str, holds: &dyn Fn(&str) -> String, message: &str| {
        let literal = crate::admission::cel::text(key);
        let value = format!("variables.annotations[{literal}]");
        Rule {
            keys: vec![key],
            fields: &[],
            holds: format!("!({literal} in variables.annotations) || {}", holds(&value)),
            message: format!("{key}{message}"),
        }
    };
    let (ips, vips, http) = (
        key(table, "-floating-ips"),
        key(table, "-vip-addresses"),
        key(table, "-health-monitor-http"),
    );
    let known = |names: &'static [&'static str]| {
        move |value: &str| {
            let deep = crate::admission::cel::is_deep(value);
            format!(
                "{deep} || {}",
                crate::admission::cel::fields_are_known(value, names)
            )
        }
    };
    let field = |name: &'static str, expression: &'static str| {
        move |value: &str| crate::admission::cel::field_matches(value, name, expression)
    };
    vec![
        rule(
            ips,
            &|value| {
                let wide = crate::admission::cel::is_wide("i.trim()");
                format!(
                    "{}.all(i, !({wide}))",
                    crate::admission::cel::texts_of_list(value)
                )
            },
            ": a floating network cannot lead to a load balancer, which takes single addresses only",
        ),
        rule(
            vips,
            &known(&["subnet", "address"]),
            ": fields other than `subnet` and `address` have no effect",
        ),
        rule(
            http,
            &known(&["expected_codes", "method", "url_path", "version", "host"]),
            ": fields other than `expected_codes`, `method`, `url_path`, `version` and `host` have no effect",
        ),
        rule(
            http,
            &field(
                "method",
                "(?i:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|TRACE)",
            ),
            ": `method` must be one of CONNECT, DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, TRACE",
        ),
        rule(
            http,
            &field("version", r"1\.[01]"),
            ": `version` must be \"1.0\" or \"1.1\"",
        ),
        rule(
            http,
            &field("url_path", "/.*"),
            ": `url_path` must begin with `/`",
        ),
        rule(
            http,
            &|value| crate::admission::cel::fields_are_codes(value, "expected_codes"),
            ": `expected_codes` must be HTTP status codes, such as [\"200\", \"204\"], or one range, such as [\"200-204\"]",
        ),
        rule(
            http,
            &|value| {
                let texts = |name| crate::admission::cel::texts_of_field(value, name);
                format!(
                    "!({}.exists(t, t.trim() == '1.0') && {}.exists(t, t.trim() != ''))",
                    texts("version"),
                    texts("host")
                )
            },
            ": `host` cannot be used with `version` 1.0",
        ),
    ]
}

fn phoenixnap() -> Cloud {
    let table = bowline_phoenixnap::annotation_table();
    let location = FixedKey {
        key: key(table, "/ip-location"),
        rule: Late::Wish,
        remedy: "the IP block is bought, and stays where it is. Create the Service anew",
        unless: None,
    };
    Cloud {
        name: "phoenixnap",
        title: "phoenixNAP",
        table,
        on_nodes: &["phoenixnap.com/server-id"],
        // The operator may choose another key for the location.
        prefixes: &[],
        domain: "phoenixnap.com/",
        rules: vec![
            Rule {
                keys: Vec::new(),
                fields: &["loadBalancerIP"],
                holds: "!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP == ''\n|| isIP(object.spec.loadBalancerIP.trim()) && ip(object.spec.loadBalancerIP.trim()).family() == 4".to_owned(),
                message: "spec.loadBalancerIP must be an IPv4 address. Leave it out, and an address is allocated".to_owned(),
            },
            needs_ipv4("IP blocks of phoenixNAP"),
            no_source_ranges_annotation("spec.loadBalancerSourceRanges"),
        ],
        fixed: Some(Fixed {
            // An address alone may be one that a person typed, for which nothing was bought.
            since: format!("has(oldObject.spec.loadBalancerIP) && oldObject.spec.loadBalancerIP != '' && {IS_SERVED}"),
            keys: vec![location],
            fields: vec![FixedField {
                holds: format!(
                    "!has(object.spec.loadBalancerIP) || object.spec.loadBalancerIP == ''\n|| !isIP(object.spec.loadBalancerIP.trim()) || !isIP(oldObject.spec.loadBalancerIP.trim())\n|| {}\n|| cidr(oldObject.spec.loadBalancerIP.trim() + '/29').masked().containsIP(ip(object.spec.loadBalancerIP.trim()))",
                    is_same("object.spec.loadBalancerIP", "oldObject.spec.loadBalancerIP")
                ),
                message: "spec.loadBalancerIP: the IP block is bought, and this address is not in it. Take the change back, or create the Service anew".to_owned(),
            }],
        }),
    }
}

/// What a cloud has no addresses for.
fn needs_ipv4(addresses: &str) -> Rule {
    Rule {
        keys: Vec::new(),
        fields: &["ipFamilies"],
        holds: "!has(object.spec.ipFamilies) || size(object.spec.ipFamilies) == 0 || 'IPv4' in object.spec.ipFamilies".to_owned(),
        message: format!("spec.ipFamilies must have IPv4: {addresses} are IPv4"),
    }
}

fn cloudstack() -> Cloud {
    Cloud {
        name: "cloudstack",
        title: "Apache CloudStack",
        table: bowline_cloudstack::annotation_table(),
        on_nodes: &[],
        prefixes: &["service.beta.kubernetes.io/cloudstack-"],
        domain: "service.beta.kubernetes.io/",
        rules: vec![
            only_tcp_and_udp("Apache CloudStack"),
            needs_node_ports(),
            ip_is_address(),
            needs_ipv4("public addresses of Apache CloudStack"),
            no_source_ranges_annotation("spec.loadBalancerSourceRanges"),
        ],
        fixed: None,
    }
}

fn openstack() -> Cloud {
    let table = bowline_openstack::annotation_table();
    let [proxy, forwarded, tls] = [
        "/proxy-protocol",
        "/x-forwarded-for",
        "/default-tls-container-ref",
    ]
    .map(|end| key(table, end));
    let is_on = |key: &str, words: &str| {
        let key = crate::admission::cel::text(key);
        format!("{key} in variables.annotations && variables.annotations[{key}] {words}")
    };
    let fixed = [
        "/network-id",
        "/subnet-id",
        "/port-id",
        "/flavor-id",
        "/availability-zone",
    ];
    let of_balancer = fixed.map(|end| FixedKey {
        key: key(table, end),
        rule: Late::Found,
        remedy: "a change has no effect on the load balancer that is there. Take it back, or create the Service anew",
        unless: None,
    });
    let [internal, was_internal] = ["annotations", "before"].map(|map| {
        let key = crate::admission::cel::text(key(table, "/openstack-internal-load-balancer"));
        format!("({key} in variables.{map} ? variables.{map}[{key}] : '')")
    });
    // A floating IP is made when an internal load balancer becomes another one, which may be so by cloud.conf alone.
    let has_none =
        format!("{was_internal} == 'true' || {internal} != {was_internal} && {internal} != 'true'");
    let of_floating_ip = [
        "/class",
        "/floating-network-id",
        "/floating-subnet-id",
        "/floating-subnet",
        "/floating-subnet-tags",
    ];
    let of_floating_ip = of_floating_ip.map(|end| FixedKey {
        key: key(table, end),
        rule: Late::Wish,
        remedy: "a change counts when a load balancer or a floating IP is created, and has no effect on those that are there. Take it back, or create the Service anew",
        unless: Some(has_none.clone()),
    });
    let (before, now) = ("oldObject.spec.loadBalancerIP", "object.spec.loadBalancerIP");
    let address = crate::admission::cel::text(key(table, "/load-balancer-address"));
    let fields = vec![
        FixedField {
            holds: format!(
                "!has({now}) || {now} == ''\n|| {internal} != {was_internal}\n|| has({before}) && {}\n|| {address} in variables.before && {}\n|| {IS_SERVED} && oldObject.status.loadBalancer.ingress.exists(i, has(i.ip) && {})",
                is_same(now, before),
                is_same(now, &format!("variables.before[{address}]")),
                is_same(now, "i.ip")
            ),
            message: "spec.loadBalancerIP: the load balancer has another address and keeps it. Take the change back, or create the Service anew".to_owned(),
        },
        FixedField {
            holds: "!has(object.spec.ipFamilies) || size(object.spec.ipFamilies) < 2\n|| has(oldObject.spec.ipFamilies) && size(oldObject.spec.ipFamilies) > 1".to_owned(),
            message: "spec.ipFamilies: a load balancer that is there gets no second address. Take the change back, or create the Service anew".to_owned(),
        },
    ];
    Cloud {
        name: "openstack",
        title: "OpenStack",
        table,
        on_nodes: &[],
        prefixes: &[
            "loadbalancer.openstack.org/",
            "service.beta.kubernetes.io/openstack-",
        ],
        domain: "service.beta.kubernetes.io/",
        rules: vec![
            Rule {
                keys: vec![proxy, forwarded],
                fields: &[],
                holds: format!(
                    "!({} && {})",
                    is_on(proxy, "in ['true', 'v1', 'v2']"),
                    is_on(forwarded, "== 'true'")
                ),
                message: format!("{proxy} and {forwarded} cannot be used together: remove one of them"),
            },
            Rule {
                keys: vec![forwarded],
                fields: &["ports"],
                holds: format!(
                    "!({})\n|| !has(object.spec.ports) || object.spec.ports.all(p, object.spec.ports.filter(q, q.port == p.port).size() == 1)",
                    is_on(forwarded, "== 'true'")
                ),
                message: format!(
                    "spec.ports: with {forwarded} a port number can stand for one protocol only, because both would be one HTTP listener"
                ),
            },
            Rule {
                keys: vec![forwarded],
                fields: &["ports"],
                holds: format!(
                    "!({})\n|| !has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol == 'TCP')",
                    is_on(forwarded, "== 'true'")
                ),
                message: format!(
                    "spec.ports: with {forwarded} every port must be TCP, because each becomes an HTTP listener. Give the others a Service of their own"
                ),
            },
            ip_is_address(),
            Rule {
                keys: vec![tls],
                fields: &["ports"],
                holds: format!(
                    "!({})\n|| !has(object.spec.ports) || object.spec.ports.all(p, !has(p.protocol) || p.protocol == 'TCP')",
                    is_on(tls, "!= ''")
                ),
                message: format!(
                    "spec.ports: with {tls} every port must be TCP, because TLS ends at the load balancer for all of them. Give the others a Service of their own"
                ),
            },
        ],
        fixed: Some(Fixed {
            since: has_annotation(key(table, "/load-balancer-id")),
            keys: of_balancer.into_iter().chain(of_floating_ip).collect(),
            fields,
        }),
    }
}

/// Whether the former Service shows an address.
const IS_SERVED: &str = "has(oldObject.status) && has(oldObject.status.loadBalancer) && has(oldObject.status.loadBalancer.ingress) && size(oldObject.status.loadBalancer.ingress) > 0";

/// Whether the former Service bears an annotation that is not empty.
fn has_annotation(key: &str) -> String {
    let key = crate::admission::cel::text(key);
    format!(
        "has(oldObject.metadata.annotations) && {key} in oldObject.metadata.annotations && oldObject.metadata.annotations[{key}] != ''"
    )
}

/// Whether two texts are the same, or spellings of one address.
fn is_same(one: &str, other: &str) -> String {
    let (one, other) = (format!("{one}.trim()"), format!("{other}.trim()"));
    format!("({one} == {other} || isIP({one}) && isIP({other}) && ip({one}) == ip({other}))")
}
