//! Ports that refused creations of load balancers left behind: Octavia makes the port first, looks at all else then, and does not take
//! the port back. They use up addresses, and nobody else removes them.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::Port;

use crate::observe::View;
use crate::step::CloudStep;

/// Deletes those of which it is sure that no load balancer comes to them any more: for so long there was none, or the creation that was
/// refused was this reconcile's own, because the port came with it and has the address that was `asked` for.
pub(super) fn removal(seen: &View<'_>, asked: Option<&str>) -> Vec<CloudStep> {
    let own = &seen.memory.own;
    let is_own = |port: &Port| {
        let mut known = own.ports_before.iter().flat_map(|before| before.iter());
        let came = own.ports_before.is_some() && known.all(|known| known.id != port.id);
        let mut addresses = port
            .fixed_ips
            .iter()
            .map(|fixed| spelling::of_address(&fixed.ip_address));
        came && asked.is_some_and(|asked| addresses.any(|address| address == spelling::of_address(asked)))
    };
    let leaked = seen.leaked().into_iter().flat_map(|leaked| &leaked.ports);
    let sure = leaked.filter(|port| own.ripe_leaks.contains(&port.id) || is_own(port));
    sure.map(|port| CloudStep::DeletePort {
        port: port.id.clone(),
        name: port.name.clone(),
    })
    .collect()
}
