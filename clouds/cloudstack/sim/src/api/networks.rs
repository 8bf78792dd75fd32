//! Guest networks and VPCs.

use super::{Answer, Call, contains};
use crate::model::{Network, Vpc};
use crate::wire;

impl Call<'_> {
    pub(super) fn list_networks(&self) -> Answer {
        let scope = self.scope()?;
        self.check_id("id", |id| self.state.networks.contains_key(id))?;
        self.check_id("vpcid", |id| self.state.vpcs.contains_key(id))?;
        let fits = |it: &&Network| {
            (self.sees(&scope, &it.owner) || it.kind == "Shared")
                && self.fits("id", Some(&it.id))
                && self.fits("zoneid", Some(&it.zone))
                && self.fits("vpcid", it.vpc.as_deref())
                && self.fits("type", Some(&it.kind))
                && self.passes("keyword", |part| contains(&it.name, part))
        };
        let found = self.state.networks.values().filter(fits).collect();
        self.page("network", found, |it| wire::network(self.state, it))
    }

    pub(super) fn list_vpcs(&self) -> Answer {
        let scope = self.scope()?;
        self.check_id("id", |id| self.state.vpcs.contains_key(id))?;
        let fits = |it: &&Vpc| {
            self.sees(&scope, &it.owner)
                && self.fits("id", Some(&it.id))
                && self.fits("name", Some(&it.name))
                && self.fits("zoneid", Some(&it.zone))
        };
        let found = self.state.vpcs.values().filter(fits).collect();
        self.page("vpc", found, |it| wire::vpc(self.state, it))
    }
}
