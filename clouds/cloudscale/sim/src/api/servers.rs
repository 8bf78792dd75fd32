//! `/v1/servers`

use bowline_cloud_kit::clock::{later, pending};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Answer, Call, found, path_id};
use crate::error::ApiError;
use crate::fields::{Fields, given};
use crate::model::{Address, Interface, Server, ServerStatus, Volume};
use crate::state::State;
use crate::wire::Wire;

impl Call<'_> {
    pub(super) fn servers(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => self.list(self.state.servers.values(), |it| &it.tags, Wire::server),
            ("POST", []) => self.create_server(),
            (_, []) => self.wrong_method(),
            (method, [id, action @ ..]) => {
                let uuid = path_id(id)?;
                let server = found(&self.state.servers, &uuid)?;
                match (method, action) {
                    ("GET", []) => return self.one(&self.wire().server(server)),
                    ("PATCH", []) => self.patch_server(uuid)?,
                    ("DELETE", []) => {
                        let creating = server.creating && pending(server.changing_until);
                        if creating {
                            return Err(ApiError::detail("The server is still being created."));
                        }
                        self.state.remove_server(uuid);
                    }
                    (_, []) => return self.wrong_method(),
                    ("POST", ["start"]) => self.power(uuid, ServerStatus::Stopped, ServerStatus::Running)?,
                    ("POST", ["stop"]) => self.power(uuid, ServerStatus::Running, ServerStatus::Stopped)?,
                    ("POST", ["reboot"]) => self.power(uuid, ServerStatus::Running, ServerStatus::Running)?,
                    (_, ["start" | "stop" | "reboot"]) => return self.wrong_method(),
                    _ => return Err(ApiError::not_found()),
                }
                self.done()
            }
        }
    }

    fn power(&mut self, uuid: Uuid, from: ServerStatus, to: ServerStatus) -> Result<(), ApiError> {
        let until = later(self.state.behaviour.server_change_time);
        let server = self
            .state
            .servers
            .get_mut(&uuid)
            .ok_or_else(ApiError::not_found)?;
        match State::server_status(server) {
            ServerStatus::Changing => Err(ApiError::detail("The server is changing.")),
            status if status == to && from != to => Ok(()),
            status if status != from => Err(ApiError::detail("The server is not running.")),
            _ => {
                (server.status, server.changing_until, server.creating) = (to, until, false);
                Ok(())
            }
        }
    }

    fn patch_server(&mut self, uuid: Uuid) -> Result<(), ApiError> {
        let mut fields = self.patch(true)?;
        fields.forbid(&["image", "zone", "volume_size_gb"]);
        let (name, tags) = (fields.text("name"), fields.tags());
        let flavor = fields
            .has("flavor")
            .then(|| self.flavor_field(&mut fields))
            .flatten();
        let interfaces = fields.objects("interfaces");
        fields.check()?;
        if flavor.is_some() {
            let server = found(&self.state.servers, &uuid)?;
            if State::server_status(server) != ServerStatus::Stopped {
                return Err(ApiError::field(
                    "flavor",
                    "The server must be stopped to change its flavor.",
                ));
            }
        }
        let interfaces = match interfaces {
            Some(wishes) => Some(self.replace_interfaces(uuid, wishes)?),
            None => None,
        };
        let server = self
            .state
            .servers
            .get_mut(&uuid)
            .ok_or_else(ApiError::not_found)?;
        server.name = name.unwrap_or_else(|| server.name.clone());
        server.tags = tags.unwrap_or_else(|| server.tags.clone());
        server.flavor = flavor.unwrap_or_else(|| server.flavor.clone());
        server.interfaces = interfaces.unwrap_or_else(|| server.interfaces.clone());
        Ok(())
    }

    /// The new list in the order given. An interface of a network that the server is in keeps its addresses.
    fn replace_interfaces(
        &mut self,
        uuid: Uuid,
        wishes: Vec<Map<String, Value>>,
    ) -> Result<Vec<Interface>, ApiError> {
        let old = found(&self.state.servers, &uuid)?.interfaces.clone();
        let mut new = Vec::new();
        for wish in wishes {
            let made = self.network_of(&wish).and_then(|wanted| {
                let fits = |it: &&Interface| it.network == wanted && !wish.contains_key("addresses");
                match old.iter().find(fits) {
                    Some(interface) => Ok(interface.clone()),
                    None => self.interface(wish),
                }
            });
            match made {
                Ok(interface) => new.push(interface),
                Err(error) => {
                    self.release_all_but(&new, &old);
                    return Err(error);
                }
            }
        }
        self.release_all_but(&old, &new);
        Ok(new)
    }

    /// Frees the addresses of `gone` that are not in `kept` as well.
    fn release_all_but(&mut self, gone: &[Interface], kept: &[Interface]) {
        let kept: Vec<&Address> = kept.iter().flat_map(|interface| &interface.addresses).collect();
        for address in gone.iter().flat_map(|interface| &interface.addresses) {
            if !kept.contains(&address) {
                self.state.release(address);
            }
        }
    }

    fn flavor_field(&mut self, fields: &mut Fields) -> Option<String> {
        let flavor = fields.text("flavor")?;
        if !self
            .state
            .options
            .flavors
            .iter()
            .any(|known| known.slug == flavor)
        {
            fields.refuse("flavor", format!("{flavor:?} is not a valid choice."));
        }
        Some(flavor)
    }

    fn create_server(&mut self) -> Answer {
        let mut fields = self.new_fields(&["name", "flavor", "image"])?;
        let name = fields.text("name");
        let flavor = self.flavor_field(&mut fields);
        let image = fields.text("image");
        let zone = self.zone(&mut fields);
        let size_gb = fields.number("volume_size_gb", 10, 100_000).unwrap_or(10);
        let use_public = fields.flag("use_public_network").unwrap_or(true);
        let use_private = fields.flag("use_private_network").unwrap_or(false);
        let use_v6 = fields.flag("use_ipv6").unwrap_or(true);
        let wishes = fields.objects("interfaces");
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let most = self.state.behaviour.quota.servers;
        ApiError::unless_full(most, self.state.servers.len(), "servers")?;
        let mut interfaces = Vec::new();
        match wishes {
            Some(wishes) => {
                for wish in wishes {
                    match self.interface(wish) {
                        Ok(interface) => interfaces.push(interface),
                        Err(error) => {
                            self.release_all_but(&interfaces, &[]);
                            return Err(error);
                        }
                    }
                }
            }
            None => {
                if use_public {
                    interfaces.push(self.state.public_interface(use_v6)?);
                }
                if use_private {
                    interfaces.push(self.state.private_interface(self.state.home.private)?);
                }
            }
        }
        let (uuid, created_at) = self.birth();
        let server = Server {
            uuid,
            name: given(name, "name")?,
            created_at,
            status: ServerStatus::Running,
            changing_until: later(self.state.behaviour.server_change_time),
            creating: true,
            zone,
            flavor: given(flavor, "flavor")?,
            image: given(image, "image")?,
            volumes: vec![Volume {
                uuid: self.state.seed.uuid(),
                size_gb,
            }],
            interfaces,
            tags,
        };
        self.state.servers.insert(uuid, server.clone());
        self.created(&self.wire().server(&server))
    }

    /// The network that an entry of `interfaces` means: by id, by its subnet, or the public one.
    fn network_of(&self, wish: &Map<String, Value>) -> Result<Uuid, ApiError> {
        let unknown = || ApiError::field("interfaces", "The network or subnet does not exist.");
        let id = |value: &Value| value.as_str().and_then(|text| Uuid::parse_str(text).ok());
        match wish.get("network") {
            Some(Value::String(word)) if word == "public" => Ok(self.state.home.public_network),
            Some(network) => id(network)
                .filter(|uuid| self.state.networks.contains_key(uuid))
                .ok_or_else(unknown),
            None => {
                let subnet = wish
                    .get("addresses")
                    .and_then(|list| list.get(0))
                    .and_then(|it| it.get("subnet"));
                let subnet = subnet.and_then(id).and_then(|uuid| self.state.subnets.get(&uuid));
                subnet.map(|subnet| subnet.network).ok_or_else(unknown)
            }
        }
    }

    /// The first subnet of a network.
    fn subnet_of(&self, network: Uuid) -> Option<Uuid> {
        let mut subnets = self.state.subnets.values();
        subnets
            .find(|subnet| subnet.network == network)
            .map(|subnet| subnet.uuid)
    }

    fn interface(&mut self, wish: Map<String, Value>) -> Result<Interface, ApiError> {
        let network = self.network_of(&wish)?;
        if network == self.state.home.public_network {
            return self.state.public_interface(true);
        }
        let Some(list) = Fields::new(wish).objects("addresses") else {
            return match self.subnet_of(network) {
                Some(subnet) => self.state.private_interface(subnet),
                None => Ok(Interface {
                    public: false,
                    network,
                    addresses: Vec::new(),
                }),
            };
        };
        let mut addresses = Vec::new();
        for entry in list {
            let mut entry = Fields::new(entry);
            let (subnet, address) = (entry.uuid("subnet"), entry.address("address"));
            entry.check()?;
            let subnet = subnet.or_else(|| self.subnet_of(network));
            let subnet = subnet.ok_or_else(|| ApiError::field("interfaces", "No subnet."))?;
            addresses.push(match address {
                Some(address) => self.state.reserve(subnet, address)?,
                None => self.state.allocate(subnet)?,
            });
        }
        Ok(Interface {
            public: false,
            network,
            addresses,
        })
    }
}

impl State {
    /// An interface in the provider's network with fresh addresses.
    pub(crate) fn public_interface(&mut self, v6: bool) -> Result<Interface, ApiError> {
        let home = self.home;
        let mut addresses = vec![self.allocate(home.public_v4)?];
        if v6 {
            addresses.push(self.allocate(home.public_v6)?);
        }
        Ok(Interface {
            public: true,
            network: home.public_network,
            addresses,
        })
    }

    /// An interface in a private network with a fresh address.
    pub(crate) fn private_interface(&mut self, subnet: Uuid) -> Result<Interface, ApiError> {
        let network = self.subnets.get(&subnet).ok_or_else(ApiError::not_found)?.network;
        Ok(Interface {
            public: false,
            network,
            addresses: vec![self.allocate(subnet)?],
        })
    }
}
