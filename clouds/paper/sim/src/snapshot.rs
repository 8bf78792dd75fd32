//! The end state without ids, times and addresses, and what should never be.

use bowline_cloud_kit::Inspect;
use bowline_cloud_kit::snapshot::sorted;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::State;

impl Inspect for State {
    fn snapshot(&self) -> Value {
        let name = |id: &Uuid| self.machines.get(id).map(|machine| machine.name.clone());
        let balancers = self.balancers.values().map(|it| {
            json!({
                "name": it.name, "owner": it.owner, "cluster": it.cluster, "state": it.state,
                "ports": sorted(&it.ports), "members": sorted(it.members.iter().map(name)),
            })
        });
        let routes = self.routes.values().map(|it| {
            json!({
                "destination": it.destination, "machine": it.machine.as_ref().and_then(name),
                "cluster": it.cluster, "via": it.via, "blackhole": it.blackhole,
            })
        });
        json!({ "balancers": sorted(balancers), "routes": sorted(routes) })
    }

    /// Two balancers of one owner.
    fn violations(&self) -> Vec<String> {
        let owners = self.balancers.values().filter_map(|it| it.owner.clone());
        let mut owners: Vec<String> = owners.collect();
        owners.sort();
        let twice = owners.windows(2).filter(|pair| pair[0] == pair[1]);
        twice
            .map(|pair| format!("{} owns two balancers", pair[0]))
            .collect()
    }
}
