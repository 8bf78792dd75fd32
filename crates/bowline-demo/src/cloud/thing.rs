//! What is in a project besides its instances, as it is drawn: load balancers and their parts, or what stands for them.

use std::net::IpAddr;

use serde::Serialize;

use super::Instance;

/// How something is doing, for its colour. The words beside it say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tone {
    /// It does its work.
    Good,
    /// It is on its way.
    Busy,
    /// It does not work.
    Bad,
    /// It has no state of its own.
    #[default]
    Plain,
}

/// An object of the cloud with its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Thing {
    /// What it is, in the cloud's words.
    pub(crate) noun: &'static str,
    /// What tells it from others.
    pub(crate) name: String,
    /// How it is doing, in the cloud's words; empty if it has no state.
    pub(crate) state: String,
    pub(crate) tone: Tone,
    /// What else is to be known.
    pub(crate) facts: Vec<String>,
    pub(crate) parts: Vec<Thing>,
}

impl Thing {
    pub(super) fn new(noun: &'static str, name: impl Into<String>) -> Self {
        Self {
            noun,
            name: name.into(),
            ..Self::default()
        }
    }

    pub(super) fn state(self, state: impl Into<String>, tone: Tone) -> Self {
        Self {
            state: state.into(),
            tone,
            ..self
        }
    }

    pub(super) fn fact(mut self, fact: impl Into<String>) -> Self {
        self.facts.push(fact.into());
        self
    }

    pub(super) fn facts(mut self, facts: impl IntoIterator<Item = String>) -> Self {
        self.facts.extend(facts);
        self
    }

    pub(super) fn parts(mut self, parts: impl IntoIterator<Item = Self>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// A member of a pool, by the instance that has its address.
    pub(super) fn member(instances: &[Instance], address: IpAddr, is_healthy: Option<bool>) -> Self {
        let instance = instances.iter().find(|instance| instance.address() == address);
        let name = instance.map_or_else(|| address.to_string(), |instance| instance.name.clone());
        let (state, tone) = match is_healthy {
            Some(true) => ("up", Tone::Good),
            Some(false) => ("down", Tone::Bad),
            None => ("not probed yet", Tone::Plain),
        };
        Self::new("member", name).state(state, tone)
    }
}
