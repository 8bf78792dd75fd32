//! The verbs that change something: the cluster, the cloud's objects, the double.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::k8s::ServicePort;
use bowline_cloud_provider::{AddressType, NodeAddress, Service, keys};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::fault::{fault, word};
use super::path::{find, path_end, text, value};
use super::stage::Stage;
use super::text::Step;
use super::{Complaint, ScenarioCloud, parsed};
use crate::{Services, service_port};

type Done = Result<(), Complaint>;

impl<C: ScenarioCloud> Stage<'_, C> {
    /// Does what a verb says, if it is one of these.
    pub(super) fn given(&mut self, verb: &str, rest: &str, whole: &str, step: &Step) -> Option<Done> {
        Some(match verb {
            "nodes" => self.nodes(rest),
            "node" => {
                self.cloud_mut().add_node(rest);
                Ok(())
            }
            "drop-node" => self.drop_node(rest),
            "node-is" => self.change_node(whole),
            "add" => {
                let done = object(whole).and_then(|(kind, spec)| self.cloud_mut().add(kind, spec));
                done.map(|id| self.added = id)
            }
            "keep" => {
                self.kept = Some(self.cloud().state());
                Ok(())
            }
            _ => return self.touched(step),
        })
    }

    /// The same for what may also happen while a run is under way.
    pub(super) fn touched(&self, step: &Step) -> Option<Done> {
        let (rest, whole) = (step.rest(), step.whole());
        Some(match step.verb() {
            "add" => {
                let done = object(&whole).and_then(|(kind, spec)| self.cloud().add_object(kind, spec));
                done.map(drop)
            }
            // In a table, where another row has a step.
            "nothing" => Ok(()),
            "service" => self.service(&whole),
            "ports" => self.ports(&whole),
            "remove" => self.remove(rest),
            "edit" => self.edit(&whole),
            "switch" => self.switch(&whole),
            "fault" => self.fault(&whole, step),
            "clear" => self.clear(rest),
            "annotate" => self.annotate(rest),
            "patch" => self.patch(&whole, &[]),
            "spec" => self.patch(&whole, &["spec"]),
            "delete" => self.at_service(rest, |services| services.delete(rest, Timestamp::UNIX_EPOCH)),
            "deny-status" | "take-status" => self
                .services()
                .map(|services| services.deny_status(step.verb() == "deny-status")),
            "forget" => self.at_service(rest, |services| services.forget(rest)),
            _ => return None,
        })
    }

    fn nodes(&mut self, count: &str) -> Done {
        let count: usize = count.parse().map_err(|_| "nodes N".to_owned())?;
        for number in 1..=count {
            self.cloud_mut().add_node(&C::node_name(number));
        }
        Ok(())
    }

    fn drop_node(&mut self, name: &str) -> Done {
        let nodes = self.cloud_mut().nodes().ok_or("there are no nodes")?;
        let before = nodes.len();
        nodes.retain(|node| node.name.as_str() != name);
        match nodes.len() < before {
            true => Ok(()),
            false => Err(format!("no node {name}")),
        }
    }

    /// `node-is NAME JSON`: other labels or annotations, another provider ID, without addresses, not initialised yet, or drained.
    fn change_node(&mut self, whole: &str) -> Done {
        let (name, spec) = word(whole);
        let spec: Value = read(spec)?;
        let nodes = self.cloud_mut().nodes().ok_or("there are no nodes")?;
        let node = nodes.iter_mut().find(|node| node.name.as_str() == name);
        let node = Arc::make_mut(node.ok_or_else(|| format!("no node {name}"))?);
        for (field, value) in spec.as_object().into_iter().flatten() {
            match field.as_str() {
                "provider_id" => node.provider_id = value.as_str().map(Into::into),
                "addresses" => {
                    let addresses: Option<Vec<String>> = parsed(value)?;
                    let internal = |it| NodeAddress::new(AddressType::InternalIp, it);
                    node.addresses = addresses.into_iter().flatten().map(internal).collect();
                }
                "drained" => node.draining = (*value == json!(true)).then_some("DrainInProgress"),
                "labels" | "annotations" => {
                    let pairs: BTreeMap<String, String> = parsed(value)?;
                    let pairs = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                    match field.as_str() {
                        "labels" => node.labels = pairs.collect(),
                        _ => node.annotations = pairs.collect(),
                    }
                }
                "uninitialized" => {
                    let taint = json!({ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" });
                    node.taints = parsed(&json!(Vec::from_iter((*value != json!(false)).then_some(taint))))?;
                }
                other => return Err(format!("a node has no {other} here")),
            }
        }
        Ok(())
    }

    fn remove(&self, rest: &str) -> Done {
        let (kind, id) = word(rest);
        match self.cloud().remove(kind, id)? {
            true => Ok(()),
            false => Err(format!("no {kind} {id}")),
        }
    }

    fn at_service(&self, key: &str, act: impl FnOnce(&Services)) -> Done {
        let services = self.services()?;
        if services.find(key).is_none() {
            return Err(format!("no Service {key}"));
        }
        act(services);
        Ok(())
    }

    /// `service NAME [uid UID] [NAME=]TCP/80:30080 ...`
    fn service(&self, whole: &str) -> Done {
        let (key, mut rest) = word(whole);
        let mut uid = None;
        if let Some(after) = rest.strip_prefix("uid ") {
            let (given, left) = word(after);
            (uid, rest) = (Some(given), left);
        }
        let ports = ports(rest)?;
        self.services()?;
        self.cloud().put_service(key, uid, ports);
        Ok(())
    }

    /// Sets the ports of a Service, and leaves all else of it.
    fn ports(&self, whole: &str) -> Done {
        let (key, rest) = word(whole);
        let ports = ports(rest)?;
        let services = self.services()?;
        let before = services.find(key).ok_or_else(|| format!("no Service {key}"))?;
        self.cloud()
            .put_service(key, before.metadata.uid.as_deref(), ports);
        let made = services.service(key);
        let ports = made.spec.as_ref().and_then(|spec| spec.ports.clone());
        services.put(key, (*before).clone());
        services.edit(key, |service| service.spec.get_or_insert_default().ports = ports);
        Ok(())
    }

    /// `annotate NAME KEY [VALUE]`: without a value it is taken off; `""` is an empty one.
    fn annotate(&self, rest: &str) -> Done {
        let (key, rest) = word(rest);
        let (name, value) = word(rest);
        let value = match value {
            "" => None,
            "\"\"" => Some(""),
            value => Some(value),
        };
        let services = self.services()?;
        if services.find(key).is_none() {
            return Err(format!("no Service {key}"));
        }
        if self.annotation(key, name).as_deref() == value {
            return Err("it is so already".to_owned());
        }
        services.annotate(key, &self.full(name), value);
        Ok(())
    }

    /// A merge patch of a Service, or of a part of it.
    fn patch(&self, whole: &str, at: &[&str]) -> Done {
        let (key, patch) = word(whole);
        let patch = at.iter().rev().fold(read(patch)?, |inner: Value, part| {
            let mut outer = serde_json::Map::new();
            outer.insert((*part).to_owned(), inner);
            Value::Object(outer)
        });
        let services = self.services()?;
        let before = services.find(key).ok_or_else(|| format!("no Service {key}"))?;
        let mut object = serde_json::to_value(&*before).map_err(|error| error.to_string())?;
        json_patch::merge(&mut object, &patch);
        let after: Service = serde_json::from_value(object).map_err(|error| error.to_string())?;
        if after == *before {
            return Err("the patch changes nothing".to_owned());
        }
        services.put(key, after);
        Ok(())
    }

    /// `switch [either] NAME = VALUE`: `either` for a switch that only one of the worlds has so from the start.
    fn switch(&self, whole: &str) -> Done {
        let (is_either, whole) = match whole.strip_prefix("either ") {
            Some(whole) => (true, whole),
            None => (false, whole),
        };
        let (name, value) = whole.split_once('=').ok_or("switch NAME = VALUE")?;
        let value = self::value(value.trim());
        let mut switches = self.double()?.switches();
        let mut at = &mut switches;
        for part in name.trim().split('.') {
            at = at.get_mut(part).ok_or_else(|| format!("no switch {name}"))?;
        }
        if *at == value && !is_either {
            return Err("it is so already".to_owned());
        }
        *at = value;
        let done = self.double()?.set_switches(switches);
        done.map_err(|error| error.to_string())
    }

    /// `fault [maybe] WHAT HOW`: without `maybe` it has to strike.
    fn fault(&self, whole: &str, step: &Step) -> Done {
        let text = whole.strip_prefix("maybe ");
        let fault = fault(text.unwrap_or(whole), C::refusal)?;
        let id = self.double()?.faults().add(fault);
        if text.is_none() {
            self.faults.borrow_mut().push((id, step.place()));
        }
        Ok(())
    }

    fn clear(&self, what: &str) -> Done {
        if what != "faults" || self.double()?.faults().list().is_empty() {
            return Err("there are no such".to_owned());
        }
        self.all_have_struck()?;
        self.faults.borrow_mut().clear();
        self.double()?.faults().clear();
        Ok(())
    }

    /// `edit PATH PATCH`: a merge patch of all objects at a path that begins with their kind.
    fn edit(&self, whole: &str) -> Done {
        let end = path_end(whole);
        let (path, patch) = (&whole[..end], read(whole[end..].trim())?);
        let kind = path.split(['.', '[']).next().unwrap_or_default();
        let objects = find(&self.cloud().state(), path)?.items();
        if objects.is_empty() {
            return Err("there is no such object".to_owned());
        }
        for before in objects {
            let id = ["id", "uuid", "name"]
                .into_iter()
                .find_map(|name| before.get(name));
            let id = id.map(text).ok_or("an object without an ID")?;
            let mut object = before.clone();
            json_patch::merge(&mut object, &patch);
            if object == before {
                return Err("the patch changes nothing".to_owned());
            }
            let double = self.double()?;
            let is_done = double.replace(kind, &id, C::without_shown(object));
            if !is_done.map_err(|error| error.to_string())? {
                return Err(format!("{kind} cannot be edited"));
            }
        }
        Ok(())
    }
}

/// `add KIND [JSON]`: an object that Bowline did not make.
fn object(whole: &str) -> Result<(&str, Value), Complaint> {
    let (kind, spec) = word(whole);
    Ok((kind, read(if spec.is_empty() { "{}" } else { spec })?))
}

pub(super) fn read(text: &str) -> Result<Value, Complaint> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

fn ports(text: &str) -> Result<Vec<ServicePort>, Complaint> {
    let port = |word: &str| {
        let (name, rest) = match word.split_once('=') {
            Some((name, rest)) => (Some(name.to_owned()), rest),
            None => (None, word),
        };
        let (protocol, ports) = rest.split_once('/')?;
        let (port, node_port) = ports.split_once(':')?;
        let number = |text: &str| text.parse::<u16>().ok().map(i32::from);
        Some(ServicePort {
            name,
            ..service_port(protocol, number(port)?, number(node_port)?)
        })
    };
    let words = text.split_whitespace();
    words
        .map(|word| {
            port(word).ok_or_else(|| format!("{word:?} is no port: say TCP/80:30080 or web=TCP/80:30080"))
        })
        .collect()
}
