//! Rules that break the router of their network: it is told all of them at once, and cannot read a list of networks with
//! commas.

use bowline_plan::Note;

use super::Draft;
use super::home::Home;
use super::ports::{self, Means};
use crate::events::ROUTER_CONFIG_BROKEN;
use crate::intent::Wanted;
use crate::objects::{Abilities, Rule};
use crate::observe::Observed;

/// Whether rules that break the router are put right: not as long as nothing of the Service is to be changed, because that
/// interrupts their ports. But whatever is changed takes effect only when the router can read all of its rules.
pub(super) fn is_mended(draft: &mut Draft<'_>, wanted: &Wanted, home: &Home, abilities: Abilities) -> bool {
    let observed = draft.observed;
    // Before 4.18 rules have no lists; what stands there comes from elsewhere.
    if abilities.takes_cidrs == Some(false) || !observed.rules.iter().any(Rule::breaks_router) {
        return false;
    }
    let is_begun = !observed.pending.is_empty() || !wanted.identity.replaced.is_empty();
    if !is_begun {
        draft.notes.push(router_is_broken(observed, home));
    }
    if is_begun || observed.is_changed {
        return true;
    }
    let mut trial = Draft::new(draft.identity, observed);
    ports::all(
        &mut trial,
        wanted,
        home,
        Means {
            abilities,
            mends: false,
        },
    );
    !trial.steps.is_empty() || !trial.annotations().is_empty()
}

fn router_is_broken(observed: &Observed, home: &Home) -> Note {
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
