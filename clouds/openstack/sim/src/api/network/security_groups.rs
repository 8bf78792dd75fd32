//! `/v2.0/security-groups` and `/v2.0/security-group-rules`

use http::StatusCode;
use ipnet::IpNet;

use super::no_group;
use crate::api::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::network::{Rule, RuleContent, SecurityGroup};

const DEFAULT: &str = "default";

const RULE_FILTERS: &str = "security_group_id direction ethertype protocol port_range_min port_range_max \
    remote_ip_prefix remote_group_id";

/// Protocols by name; a number is good too.
const PROTOCOLS: [&str; 8] = ["tcp", "udp", "sctp", "icmp", "icmpv6", "ipv6-icmp", "esp", "ah"];

/// Their numbers.
const NUMBERS: [(&str, &str); 8] = [
    ("tcp", "6"),
    ("udp", "17"),
    ("sctp", "132"),
    ("icmp", "1"),
    ("icmpv6", "58"),
    ("ipv6-icmp", "58"),
    ("esp", "50"),
    ("ah", "51"),
];

fn conflict(kind: &str, text: impl Into<String>) -> ApiError {
    ApiError::neutron(StatusCode::CONFLICT, kind, text)
}

fn bad_rule(kind: &str, text: impl Into<String>) -> ApiError {
    ApiError::neutron(StatusCode::BAD_REQUEST, kind, text)
}

impl Call<'_> {
    pub(super) fn security_groups(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let groups = self.state.groups.values();
                let may_pass = |group: &&SecurityGroup| {
                    self.sees(&group.meta.project) && self.query.may_be("name", &group.name)
                };
                let shown = groups.filter(may_pass);
                let shown = shown.map(|it| self.wire().security_group(it)).collect();
                self.neutron_list("security_groups", "", shown)
            }
            ("POST", []) => self.create_group(),
            ("GET", [id]) => {
                let group = self.group(id)?;
                self.one("security_group", self.wire().security_group(group))
            }
            ("DELETE", [id]) => {
                let group = self.group(id)?;
                self.check_revision(&group.meta)?;
                let id = group.id;
                if group.name == DEFAULT {
                    let text = "Insufficient rights for removing default security group.";
                    return Err(conflict("SecurityGroupCannotRemoveDefault", text));
                }
                if self.state.is_in_use(id) {
                    let text = format!("Security Group {id} in use.");
                    return Err(conflict("SecurityGroupInUse", text));
                }
                self.state.remove_group(id);
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    fn group(&self, id: &str) -> Result<&SecurityGroup, ApiError> {
        let group = path_id(id).and_then(|id| self.state.groups.get(&id));
        let group = group.filter(|it| self.sees(&it.meta.project));
        group.ok_or_else(|| no_group(id))
    }

    fn create_group(&mut self) -> Answer {
        let fields = self.neutron_fields("security_group")?;
        fields.only("name description stateful project_id tenant_id")?;
        let name = fields.text("name")?.unwrap_or_default();
        if name == DEFAULT {
            let text = "Default security group already exists.";
            return Err(conflict("SecurityGroupDefaultAlreadyExists", text));
        }
        let project = self.caller.project.clone();
        let own = self.state.groups.values();
        let own = own.filter(|it| it.meta.project == project).count();
        if self
            .state
            .behaviour
            .quota
            .security_groups
            .is_some_and(|most| own >= most)
        {
            return Err(ApiError::over_quota("security_group"));
        }
        let description = fields.text("description")?.unwrap_or_default();
        let id = self.state.insert_group(&project, &name, &description);
        let group = self.state.groups.get(&id).ok_or_else(|| no_group(id))?;
        self.created("security_group", self.wire().security_group(group))
    }

    pub(super) fn security_group_rules(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let may_pass = |rule: &&Rule| {
                    self.sees(&rule.meta.project)
                        && self.query.may_be("security_group_id", &rule.group.to_string())
                };
                let rules = self.state.rules.values().filter(may_pass);
                let shown = rules.map(|it| self.wire().security_group_rule(it)).collect();
                self.neutron_list("security_group_rules", RULE_FILTERS, shown)
            }
            ("POST", []) => self.create_rule(),
            ("GET", [id]) => {
                let rule = self.rule(id)?;
                self.one("security_group_rule", self.wire().security_group_rule(rule))
            }
            ("DELETE", [id]) => {
                let (id, group) = {
                    let rule = self.rule(id)?;
                    self.check_revision(&rule.meta)?;
                    (rule.id, rule.group)
                };
                self.state.rules.shift_remove(&id);
                self.touch_group(group);
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    fn rule(&self, id: &str) -> Result<&Rule, ApiError> {
        let rule = path_id(id).and_then(|id| self.state.rules.get(&id));
        let rule = rule.filter(|it| self.sees(&it.meta.project));
        rule.ok_or_else(|| {
            let text = format!("Security group rule {id} does not exist");
            ApiError::neutron(StatusCode::NOT_FOUND, "SecurityGroupRuleNotFound", text)
        })
    }

    /// A group's revision grows with each change of its rules.
    fn touch_group(&mut self, group: crate::model::Id) {
        let now = self.state.clock.rfc3339_seconds();
        if let Some(group) = self.state.groups.get_mut(&group) {
            group.meta.touch(&now);
        }
    }

    fn create_rule(&mut self) -> Answer {
        let fields = self.neutron_fields("security_group_rule")?;
        fields.only(
            "security_group_id direction ethertype protocol port_range_min port_range_max \
            remote_ip_prefix remote_group_id description project_id tenant_id",
        )?;
        let id = fields.given("security_group_id", fields.id("security_group_id")?)?;
        let group = self.group(&id.to_string())?;
        let project = group.meta.project.clone();
        let content = rule_content(&fields)?;
        if let Some(remote) = content.remote_group {
            self.group(&remote.to_string())?;
        }
        let description = fields.text("description")?.unwrap_or_default();
        if let Some(twin) = self.state.rules_of(id).find(|it| is_twin(&it.content, &content)) {
            let text = format!("Security group rule already exists. Rule id is {}.", twin.id);
            return Err(conflict("SecurityGroupRuleExists", text));
        }
        let most = self.state.behaviour.quota.security_group_rules;
        let own = self.state.rules.values();
        let own = own.filter(|it| it.meta.project == project).count();
        if most.is_some_and(|most| own >= most) {
            return Err(ApiError::over_quota("security_group_rule"));
        }
        let rule = self.state.insert_rule(id, &project, content, Some(description));
        self.touch_group(id);
        let rule = self.rule(&rule.to_string())?;
        self.created("security_group_rule", self.wire().security_group_rule(rule))
    }
}

/// Whether Neutron takes two rules for one (`_rule_to_key`): a protocol is its number too, and everybody is nobody in particular.
fn is_twin(one: &RuleContent, other: &RuleContent) -> bool {
    let plain = |content: &RuleContent| {
        let everybody = ["0.0.0.0/0", "::/0"];
        let mut content = content.clone();
        content.remote_prefix = content
            .remote_prefix
            .filter(|it| !everybody.contains(&it.as_str()));
        content.protocol = content.protocol.map(|name| {
            let number = NUMBERS.iter().find(|(known, _)| *known == name);
            number.map_or(name, |(_, number)| (*number).to_owned())
        });
        content
    };
    plain(one) == plain(other)
}

fn rule_content(fields: &Fields) -> Result<RuleContent, ApiError> {
    let one_of = |name: &str, words: &[&str]| {
        let word = fields.text(name)?;
        match word.as_ref().is_none_or(|it| words.contains(&it.as_str())) {
            true => Ok(word),
            false => {
                let value = word.unwrap_or_default();
                let text = format!("Invalid input for {name}. Reason: {value} is not in valid_values.");
                Err(ApiError::bad_input(text))
            }
        }
    };
    let direction = fields.given("direction", one_of("direction", &["ingress", "egress"])?)?;
    let ethertype = one_of("ethertype", &["IPv4", "IPv6"])?.unwrap_or_else(|| "IPv4".to_owned());
    let protocol = fields.text("protocol")?.map(|it| it.to_lowercase());
    let is_known = |it: &String| PROTOCOLS.contains(&it.as_str()) || it.parse::<u8>().is_ok();
    if let Some(unknown) = protocol.as_ref().filter(|it| !is_known(it)) {
        let text = format!(
            "Security group rule protocol {unknown} not supported. Only protocol values [None, {}] and integer \
             representations [0 to 255] are supported.",
            PROTOCOLS.join(", ")
        );
        return Err(bad_rule("SecurityGroupRuleInvalidProtocol", text));
    }
    let port = |name: &str| -> Result<Option<u16>, ApiError> {
        let number = fields.number(name, i64::MIN, i64::MAX)?;
        let port = number.map(|it| u16::try_from(it).ok().filter(|it| *it > 0).ok_or(it));
        port.transpose().map_err(|it| {
            let text = format!("Invalid value for port {it}");
            bad_rule("SecurityGroupInvalidPortValue", text)
        })
    };
    let (port_min, port_max) = (port("port_range_min")?, port("port_range_max")?);
    if (port_min.is_some() || port_max.is_some()) && protocol.is_none() {
        let text = "Must also specify protocol if port range is given.";
        return Err(bad_rule("SecurityGroupProtocolRequiredWithPorts", text));
    }
    if port_min.is_some() != port_max.is_some() || port_min > port_max {
        let text = "For TCP/UDP protocols, port_range_min must be <= port_range_max";
        return Err(bad_rule("SecurityGroupInvalidPortRange", text));
    }
    let remote_prefix = fields.text("remote_ip_prefix")?;
    let remote_group = fields.id("remote_group_id")?;
    if remote_prefix.is_some() && remote_group.is_some() {
        let text =
            "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.";
        return Err(bad_rule("SecurityGroupMultipleRemoteEntites", text));
    }
    let remote_prefix = remote_prefix.map(|text| network(&ethertype, &text)).transpose()?;
    Ok(RuleContent {
        direction,
        ethertype,
        protocol,
        port_min,
        port_max,
        remote_prefix,
        remote_group,
    })
}

/// A range of the rule's family, as it was written; an address alone is a range of one.
fn network(ethertype: &str, text: &str) -> Result<String, ApiError> {
    let alone = || text.parse::<std::net::IpAddr>().map(IpNet::from);
    let range = text.parse::<IpNet>().or_else(|_| alone());
    let range = range.map_err(|_| {
        let text = format!("Invalid CIDR {text} given as IP prefix.");
        bad_rule("InvalidCIDR", text)
    })?;
    let family = if range.addr().is_ipv4() { "IPv4" } else { "IPv6" };
    match family == ethertype {
        true if text.contains('/') => Ok(text.to_owned()),
        true => Ok(range.to_string()),
        false => {
            let text = format!("Conflicting value ethertype {ethertype} for CIDR {text}");
            Err(bad_rule("SecurityGroupRuleParameterConflict", text))
        }
    }
}
