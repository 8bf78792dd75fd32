//! Rules that break the router of their network: it is told all of them at once, and cannot read a list of networks with
//! commas.

use bowline_plan::Note;

use super::home::Home;
use crate::events::ROUTER_CONFIG_BROKEN;
use crate::objects::{Abilities, Rule};
use crate::observe::Observed;

/// Whether there are such rules.
pub(super) fn is_broken(observed: &Observed, abilities: Abilities) -> bool {
    // Before 4.18 rules have no lists; what stands there comes from elsewhere.
    abilities.takes_cidrs != Some(false) && observed.rules.iter().any(Rule::breaks_router)
}

/// Tells people of them.
pub(super) fn note(observed: &Observed, home: &Home) -> Note {
    let broken = observed.rules.iter().filter(|rule| rule.breaks_router());
    let names: Vec<&str> = broken.map(|rule| rule.name.as_str()).collect();
    let text = format!(
        "load balancer rule {} lists source networks with commas, which the router of network {} cannot read: no change of a load \
         balancer in this network takes effect, and none works after a restart of the router; the rule is made anew with the next \
         change of the service, such as an annotation of any name",
        names.join(", "),
        home.network.name
    );
    ROUTER_CONFIG_BROKEN.note(text).even_at_start()
}
