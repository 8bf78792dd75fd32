//! The addresses that a Service shows: which it loses, and which other Services show one of them, too.

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{AddressBefore, Service, ServiceKey, facts};

use super::{Cause, Known, Why};
use crate::outcome::Outcome;

/// What the load balancer has less than the Service asks.
pub(super) const DIFFERS: &str = "service.differs";

/// The load balancer is as it should be, and its address is not shown.
pub(super) const UNPUBLISHED: &str = "service.not-published";

const CHANGES: &str = "service.address-changes";

/// The Service showed another address before, which leads to somebody else now.
pub(crate) const CHANGED: &str = "service.address-changed";

/// Tells of addresses that are shown by another Service, too, and of those that the plan takes away. After what the plan tells.
pub(super) fn of_addresses(why: &mut Why, service: &Service, report: Option<&PlanReport>, known: &Known<'_>) {
    let change = report.and_then(|it| Some((it, it.address_change.as_ref()?)));
    if let Some((report, change)) = change {
        let mut text = report.headline();
        let mut remedy = GET_BACK.to_owned();
        let others = change.from.iter().flat_map(|it| others(service, it, known));
        let others: Vec<String> = others.map(|(key, _)| key.to_string()).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            text = format!("{text}. What the Service shows is by now shown by Service {others}");
            remedy = format!(
                "{FOLLOW}: the old address leads to Service {others}, whose plan (`plan`) says whether it keeps it"
            );
        }
        let cause = Cause::new(CHANGES, Outcome::Failed, text, remedy);
        // The same steps, of which this is what matters.
        match why
            .causes
            .iter_mut()
            .find(|it| [DIFFERS, UNPUBLISHED].contains(&&*it.id))
        {
            Some(place) => *place = cause,
            None => why.causes.push(cause),
        }
    }
    for address in facts::published_addresses(service) {
        if change.is_some_and(|(_, change)| change.from.contains(&address)) {
            continue;
        }
        for (other, port) in others(service, &address, known) {
            let Some(port) = port else {
                why.is.push(format!("Service {other} shows {address}, too"));
                continue;
            };
            let text = format!(
                "Service {other} shows {address}, too, and has the port {port} as well: one of the two is not reached there"
            );
            why.add("service.address-shared", Outcome::Warning, text, SHARED);
        }
    }
}

/// What a Service showed before, in words, and which other Services show that now; `None`: nothing is told.
pub(crate) fn before(service: &Service, known: &Known<'_>) -> Option<(String, Vec<String>)> {
    let AddressBefore { from, until, why } = AddressBefore::told(service, known.now)?;
    let text = format!("its address was {} until {until} ({why})", from.join(", "));
    let taken = from.iter().flat_map(|address| {
        let others = others(service, address, known).into_iter();
        others.map(move |(other, _)| format!("{address} is now that of Service {other}"))
    });
    Some((text, taken.collect()))
}

/// What to do about an address that was shown before.
pub(crate) const FOLLOWS: &str = "whoever owns the Service has DNS and firewalls follow to the address that it shows now. The condition stays for 7 days, or until \
    it is acknowledged: kubectl -n NAMESPACE patch service NAME --subresource=status \
    -p '{\"status\":{\"conditions\":[{\"type\":\"LoadBalancerAddressChanged\",\"$patch\":\"delete\"}]}}'";

/// Tells of it: as a cause where the old address leads to somebody else.
pub(super) fn of_before(why: &mut Why, service: &Service, known: &Known<'_>) {
    match before(service, known) {
        None => {}
        Some((text, taken)) if taken.is_empty() => {
            why.is.push(format!("{text}: {FOLLOWS}"));
        }
        Some((text, taken)) => {
            let text = format!("{text}; {}", taken.join(", "));
            why.add(CHANGED, Outcome::Warning, text, FOLLOWS);
        }
    }
}

const FOLLOW: &str = "whoever owns the Service has DNS and clients follow when the new address is there";

const GET_BACK: &str = "if the address is still in the project and free, or leads elsewhere, whoever owns the project has it lead to this load \
    balancer again before the manager makes another one, or asks for it by the annotation of the cloud or spec.loadBalancerIP; else whoever owns \
    the Service has DNS and clients follow. If the Service was changed to ask for the other address, this is as it was asked";

const SHARED: &str = "ask `explain` about both: the plan of one of them says that its address changes, and the clients of that one have to follow. If \
    neither does, whoever owns them looks in the cloud which load balancer has the address";

/// Which other Services show an address, each with a port that both have, if there is one. One that is being deleted is on its way out:
/// its address may have been given back.
fn others(service: &Service, address: &str, known: &Known<'_>) -> Vec<(ServiceKey, Option<String>)> {
    let own = ServiceKey::of(service);
    let ports = ports(service);
    let shows = |it: &Service| {
        facts::published_addresses(it)
            .iter()
            .any(|shown| shown == address)
    };
    let others = known.services.iter().filter(|it| {
        facts::is_type(it, "LoadBalancer") && it.metadata.deletion_timestamp.is_none() && shows(it)
    });
    let others = others.map(|it| (ServiceKey::of(it), self::ports(it)));
    let others = others.filter(|(key, _)| *key != own);
    others
        .map(|(key, theirs)| (key, ports.iter().find(|port| theirs.contains(port)).cloned()))
        .collect()
}

/// The ports, such as `80/TCP`.
fn ports(service: &Service) -> Vec<String> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref());
    let ports = ports.unwrap_or_default().iter();
    ports
        .map(|it| format!("{}/{}", it.port, it.protocol.as_deref().unwrap_or("TCP")))
        .collect()
}
