//! Nova: servers and their flavors.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::Id;

/// A virtual machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Its id.
    pub id: Id,
    /// Its name; not unique.
    pub name: String,
    /// The project's id.
    pub project: String,
    /// `ACTIVE`, `SHUTOFF`, ... as Nova writes it.
    pub status: String,
    /// The flavor's id.
    pub flavor: String,
    /// Where it runs.
    pub zone: String,
    /// A hash of the host that it runs on; empty if it runs on none.
    pub host_id: String,
    /// An address that somebody noted by hand; empty if nobody did.
    pub access_v4: String,
    /// As [`Self::access_v4`].
    pub access_v6: String,
    /// What somebody noted.
    pub metadata: BTreeMap<String, String>,
    /// What its `addresses` show instead of what its ports say. A server that is put in its place as JSON shows nothing else.
    #[serde(skip)]
    pub shown_addresses: Option<BTreeMap<String, Vec<ShownAddress>>>,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub updated_at: String,
}

/// An address as Nova shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownAddress {
    /// The address.
    pub address: IpAddr,
    /// `fixed` or `floating`; some clouds leave it out.
    pub kind: Option<&'static str>,
    /// The port's hardware address; some clouds leave it out.
    pub mac: Option<String>,
}

/// What a server is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flavor {
    /// Its id: often a UUID, sometimes a number.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub ram_mib: u32,
    /// Disk in GiB.
    pub disk_gib: u32,
}
