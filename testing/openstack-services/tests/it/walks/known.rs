//! What the simulator answers otherwise than the real services, and why that is right or does no harm.

use crate::compare::Difference;

/// One row: the walk, the step (`*` is every one), the place, and the reason. A place that ends with `/**` is all that begins
/// so; one that begins with `**/` is all that ends so.
type Row = (&'static str, &'static str, &'static str, &'static str);

const KNOWN: &[Row] = &[
    (
        "identity",
        "*",
        "/token/catalog/**",
        "the simulator has Barbican and no Glance or Placement, and ids that can be read",
    ),
    (
        "identity",
        "*",
        "/token/roles/*/id",
        "ids of the simulator can be read",
    ),
    (
        "identity",
        "trust",
        "/token/roles/**",
        "a trust of the simulator gives all roles, with fields of their tokens",
    ),
    ("identity", "trust", "/token/is_domain", "nobody reads it"),
    (
        "identity",
        "application credential by id",
        "/token/application_credential/**",
        "nobody reads it",
    ),
    (
        "identity",
        "application credential by name",
        "/token/application_credential/**",
        "nobody reads it",
    ),
    (
        "identity",
        "version of nova",
        "/version/links/**",
        "a link to a web page",
    ),
    (
        "servers",
        "*",
        "/servers/*/image/links/**",
        "the simulator has no images",
    ),
    (
        "servers",
        "*",
        "/server/image/links/**",
        "the simulator has no images",
    ),
    (
        "network",
        "extension",
        "**",
        "the simulator lists extensions and does not show one",
    ),
    (
        "network",
        "unknown extension",
        "**",
        "the simulator lists extensions and does not show one",
    ),
    (
        "network",
        "own networks",
        "/networks/*/is_default",
        "nobody reads it",
    ),
    (
        "network",
        "subnets",
        "/subnets/*/ipv6_address_mode",
        "the simulator's subnet for IPv6 is written as one without modes",
    ),
    (
        "network",
        "subnets",
        "/subnets/*/ipv6_ra_mode",
        "the simulator's subnet for IPv6 is written as one without modes",
    ),
    (
        "network",
        "*",
        "/router/gw_port_id",
        "the answer to a change of routes says it; nobody reads it",
    ),
    (
        "network",
        "ports of the router",
        "/ports/*/status",
        "no agent makes the real one ACTIVE",
    ),
    (
        "network",
        "attach",
        "/floatingip/status",
        "no agent makes the real one ACTIVE",
    ),
    (
        "network",
        "*",
        "**/standard_attr_id",
        "a number of Neutron's database",
    ),
    ("network", "*", "**/belongs_to_default_sg", "nobody reads it"),
    ("network", "*", "/security_group_rule/tags", "nobody reads it"),
    ("network", "*", "/security_group_rules/*/tags", "nobody reads it"),
    (
        "parts",
        "a weight that is a word",
        "/faultstring",
        "the words are Python's",
    ),
    (
        "refusals",
        "a word for a number",
        "/faultstring",
        "the words are Python's",
    ),
    (
        "neutron",
        "*",
        "**/standard_attr_id",
        "a number of Neutron's database",
    ),
    ("neutron", "*", "/security_group_rule/tags", "nobody reads it"),
    (
        "neutron",
        "an unknown protocol",
        "/NeutronError/message",
        "the simulator knows fewer protocols",
    ),
    (
        "neutron",
        "groups by an unknown key",
        "**",
        "the simulator does not sort",
    ),
    (
        "balancers",
        "port of the VIP",
        "/port/admin_state_up",
        "the real worker plugs nothing in, and that would switch it on",
    ),
    (
        "balancers",
        "port of the VIP",
        "/port/port_security_enabled",
        "the real worker plugs nothing in",
    ),
    (
        "balancers",
        "port of the VIP",
        "/port/security_groups/**",
        "the real worker plugs nothing in",
    ),
];

fn matches(row: &Row, walk: &str, difference: &Difference) -> bool {
    let (of, step, place, _) = row;
    let found = difference.place.as_str();
    let is_there = match (place.strip_suffix("/**"), place.strip_prefix("**")) {
        (Some(start), _) => found
            .strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        (None, Some(end)) => found.ends_with(end),
        (None, None) => found == *place,
    };
    *of == walk && (*step == "*" || *step == difference.step) && is_there
}

/// Whether the table has it.
pub(crate) fn is_known(walk: &str, difference: &Difference) -> bool {
    KNOWN.iter().any(|row| matches(row, walk, difference))
}

/// Rows of this walk that no difference needs.
pub(crate) fn idle(walk: &str, found: &[Difference]) -> Vec<(&'static str, &'static str)> {
    KNOWN
        .iter()
        .filter(|row| row.0 == walk)
        .filter(|row| !found.iter().any(|difference| matches(row, walk, difference)))
        .map(|(_, step, place, _)| (*step, *place))
        .collect()
}

#[test]
fn a_row_stands_for_its_step_and_its_places() {
    let difference = |place: &str| Difference {
        step: "pools".to_owned(),
        place: place.to_owned(),
        real: String::new(),
        simulated: String::new(),
    };
    for (place, found, is_known) in [
        ("/a", "/a", true),
        ("/a", "/a/b", false),
        ("/a/**", "/a/b", true),
        ("/a/**", "/a", true),
        ("/a/**", "/ab", false),
        ("**/b", "/a/b", true),
        ("**", "status", true),
    ] {
        let row = ("balancers", "*", place, "");
        assert_eq!(
            matches(&row, "balancers", &difference(found)),
            is_known,
            "{place} {found}"
        );
    }
    assert!(!matches(
        &("balancers", "members", "**", ""),
        "balancers",
        &difference("/a")
    ));
    assert!(!matches(
        &("network", "*", "**", ""),
        "balancers",
        &difference("/a")
    ));
}
