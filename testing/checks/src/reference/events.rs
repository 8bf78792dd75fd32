//! The events of the controllers and of the clouds, from the tables they are raised from.

use std::fmt::Write as _;

use bowline_cloud_provider::AddressLoss;
use bowline_plan::{EventSpec, NoteKind};

use crate::reference::cell;

fn kind(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Normal => "Normal",
        NoteKind::Warning => "Warning",
    }
}

pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Events\n\n## Of the controllers\n\n| reason | type | on | message | meaning | what to do |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for event in bowline_controllers::events::EVENTS {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            event.reason,
            kind(event.kind),
            event.object,
            cell(event.message),
            cell(event.meaning),
            cell(event.remedy)
        );
    }
    page.push_str(
        "\n## Of the clouds, on Services\n\nAn event is raised when its text is new, and again only after it has not held for a while.\n",
    );
    table(&mut page, "cloudscale.ch", bowline_cloudscale::EVENTS);
    table(&mut page, "phoenixNAP", bowline_phoenixnap::EVENTS);
    table(&mut page, "Apache CloudStack", bowline_cloudstack::EVENTS);
    table(&mut page, "OpenStack", bowline_openstack::EVENTS);
    table(&mut page, "Paper", bowline_paper::EVENTS);
    page.push_str(
        "\n## In the log only\n\nWork of a cloud that is for no Service has no object to raise an event on. Its lines bear these reasons, once as long as they\nhold.\n",
    );
    table(
        &mut page,
        "phoenixNAP: the sweeper",
        bowline_phoenixnap::SWEEPER_EVENTS,
    );
    page.push_str(CONDITION);
    for loss in AddressLoss::ALL {
        let _ = writeln!(page, "| `{}` | {} |", loss.name(), loss.text());
    }
    page
}

/// What stands before the reasons of a condition, which tells what an event told.
const CONDITION: &str = "\n## The condition LoadBalancerAddressChanged\n\nEvents are gone after an hour. A Service that showed another address before has the condition\n`LoadBalancerAddressChanged` with status `True`: the address, until when, and why. Bowline writes it with the status\nthat shows the next address, and takes it away with a later one: after 7 days, or when the old address is shown again.\nIt goes with the load balancer, too, when the Service has another type or class.\nThe reasons:\n\n| reason | what it means |\n| --- | --- |\n";

fn table(page: &mut String, cloud: &str, events: &[EventSpec]) {
    let _ = writeln!(
        page,
        "\n### {cloud}\n\n| reason | type | meaning | what to do |\n| --- | --- | --- | --- |"
    );
    for event in events {
        let reason = event.reason;
        let (kind, meaning, remedy) = (kind(event.kind), cell(event.meaning), cell(event.remedy));
        let _ = writeln!(page, "| `{reason}` | {kind} | {meaning} | {remedy} |");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn reasons_are_single_words_and_differ_and_every_event_says_what_to_do() {
        let mut kinds = BTreeMap::new();
        for table in [
            bowline_controllers::events::EVENTS,
            bowline_cloudscale::EVENTS,
            bowline_cloudstack::EVENTS,
            bowline_openstack::EVENTS,
            bowline_paper::EVENTS,
            bowline_phoenixnap::EVENTS,
            bowline_phoenixnap::SWEEPER_EVENTS,
        ] {
            let reasons: BTreeSet<&str> = table.iter().map(|event| event.reason).collect();
            assert_eq!(reasons.len(), table.len(), "{reasons:?}");
            for event in table {
                let kind = *kinds.entry(event.reason).or_insert(event.kind);
                assert_eq!(kind, event.kind, "{} is the same everywhere", event.reason);
                assert!(
                    event.reason.chars().all(|c| c.is_ascii_alphanumeric()),
                    "{event:?}"
                );
                assert!(
                    event.meaning.ends_with('.') && event.remedy.ends_with('.'),
                    "{event:?}"
                );
                assert!(!event.message.ends_with('.'), "{event:?}");
            }
        }
    }

    #[test]
    fn a_warning_of_a_controller_has_a_remedy_and_nothing_else_has_one() {
        for event in bowline_controllers::events::EVENTS {
            let is_warning = event.kind == NoteKind::Warning;
            // Upstream has two that are Normal although somebody should look.
            let is_upstreams = event.reason.starts_with("CIDR");
            let has_remedy = event.remedy != "Nothing to do.";
            assert_eq!(is_warning || is_upstreams, has_remedy, "{event:?}");
        }
    }
}
