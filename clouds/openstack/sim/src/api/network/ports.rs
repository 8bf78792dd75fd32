//! `/v2.0/ports`

use http::StatusCode;

use super::{no_group, no_port};
use crate::api::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::model::Id;
use crate::model::network::{AddressPair, Port};

const FILTERS: &str = "network_id mac_address device_id device_owner admin_state_up security_groups \
    binding:vnic_type port_security_enabled";

impl Call<'_> {
    pub(super) fn ports(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                // Told from the object, so that a question about one server does not render the ports of all.
                let may_pass = |port: &&Port| {
                    self.sees(&port.meta.project)
                        && self.query.may_be("device_id", &port.device)
                        && self.query.may_be("network_id", &port.network.to_string())
                };
                let ports = self.state.ports.values().filter(may_pass);
                let shown = ports.map(|it| self.wire().port(it)).collect();
                self.neutron_list("ports", FILTERS, shown)
            }
            ("GET", [id]) => {
                let port = self.port(id)?;
                self.one("port", self.wire().port(port))
            }
            ("PUT", [id]) => {
                let port = self.port(id)?.clone();
                let id = port.id;
                // A group that is not there is found out before an old revision is.
                let changed = self.changed_port(port.clone())?;
                self.check_revision(&port.meta)?;
                self.state.ports.insert(id, changed);
                self.port_answer(id)
            }
            ("DELETE", [id]) => {
                let port = self.port(id)?;
                // `prevent_l3_port_deletion`: others may be deleted, whatever has them.
                if port.device_owner.starts_with("network:router_") {
                    let text = format!(
                        "Port {id} cannot be deleted directly via the port API: has device owner {}.",
                        port.device_owner
                    );
                    return Err(ApiError::neutron(StatusCode::CONFLICT, "ServicePortInUse", text));
                }
                let id = port.id;
                self.state.remove_port(id);
                self.done()
            }
            ("DELETE", [id, "tags", tag]) => {
                let port = self.port(id)?.id;
                let now = self.state.clock.rfc3339_seconds();
                let tags = self.state.ports.get_mut(&port).map(|it| &mut it.meta);
                let found = tags.and_then(|meta| {
                    let at = meta.tags.iter().position(|it| it == tag)?;
                    meta.touch(&now);
                    Some(meta.tags.remove(at))
                });
                let text = format!("Tag {tag} could not be found.");
                found.ok_or_else(|| ApiError::neutron(StatusCode::NOT_FOUND, "TagNotFound", text))?;
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    /// A port that the caller may see.
    pub(super) fn port(&self, id: &str) -> Result<&Port, ApiError> {
        let port = path_id(id).and_then(|id| self.state.ports.get(&id));
        let port = port.filter(|it| self.sees(&it.meta.project));
        port.ok_or_else(|| no_port(id))
    }

    fn port_answer(&self, id: Id) -> Answer {
        let port = self.state.ports.get(&id).ok_or_else(|| no_port(id))?;
        self.answer(StatusCode::OK, "port", self.wire().port(port))
    }

    fn changed_port(&self, mut port: Port) -> Result<Port, ApiError> {
        let fields = self.neutron_fields("port")?;
        fields.only("name description security_groups allowed_address_pairs")?;
        port.name = fields.text("name")?.unwrap_or(port.name);
        port.meta.description = fields.text("description")?.unwrap_or(port.meta.description);
        if let Some(named) = fields.texts("security_groups")? {
            let mut groups: Vec<Id> = Vec::new();
            for name in named {
                let why = match path_id(&name) {
                    None => format!("'{name}' is not a valid UUID."),
                    Some(id) if groups.contains(&id) => format!("Duplicate items in the list: '{id}'."),
                    Some(id) => {
                        groups.push(id);
                        continue;
                    }
                };
                let text = format!("Invalid input for security_groups. Reason: {why}");
                return Err(ApiError::bad_input(text));
            }
            let is_known = |id: &&Id| {
                let group = self.state.groups.get(*id);
                group.is_some_and(|it| self.sees(&it.meta.project))
            };
            if let Some(unknown) = groups.iter().find(|it| !is_known(it)) {
                return Err(no_group(unknown));
            }
            if !groups.is_empty() && !port.port_security {
                let text = "Port security must be enabled and port must have an IP address in order to use security \
                            groups.";
                let kind = "PortSecurityAndIPRequiredForSecurityGroups";
                return Err(ApiError::neutron(StatusCode::BAD_REQUEST, kind, text));
            }
            port.groups = groups;
        }
        if let Some(pairs) = fields.objects("allowed_address_pairs")? {
            if !pairs.is_empty() && !port.port_security {
                let text = "Port Security must be enabled in order to have allowed address pairs on a port.";
                let kind = "AddressPairAndPortSecurityRequired";
                return Err(ApiError::neutron(StatusCode::CONFLICT, kind, text));
            }
            let most = self.state.behaviour.max_address_pairs;
            if pairs.len() > most {
                let text = format!("The number of allowed address pair exceeds the maximum {most}.");
                let kind = "AllowedAddressPairExhausted";
                return Err(ApiError::neutron(StatusCode::BAD_REQUEST, kind, text));
            }
            let mut known: Vec<AddressPair> = Vec::new();
            for pair in pairs {
                pair.only("ip_address mac_address")?;
                let text = "AllowedAddressPair must contain ip_address";
                let lacking =
                    || ApiError::neutron(StatusCode::BAD_REQUEST, "AllowedAddressPairsMissingIP", text);
                let address = pair.text("ip_address")?.ok_or_else(lacking)?;
                if address.parse::<ipnet::IpNet>().is_err() && address.parse::<std::net::IpAddr>().is_err() {
                    let text = format!("'{address}' is not a valid IP address");
                    return Err(ApiError::bad_input(text));
                }
                let named = pair.text("mac_address")?;
                let shown = named.clone().unwrap_or_else(|| "None".to_owned());
                let mac = named.unwrap_or_else(|| port.mac.clone());
                let pair = AddressPair { address, mac };
                if known.contains(&pair) {
                    let text = format!(
                        "Request contains duplicate address pair: mac_address {} ip_address {}.",
                        shown, pair.address
                    );
                    return Err(ApiError::neutron(
                        StatusCode::BAD_REQUEST,
                        "DuplicateAddressPairInRequest",
                        text,
                    ));
                }
                known.push(pair);
            }
            port.address_pairs = known;
        }
        port.meta.touch(&self.state.clock.rfc3339_seconds());
        Ok(port)
    }
}
