//! The calls that are simulated.

use http::Method;

use crate::options::Scope;

/// A call of one of the APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `POST /auth/realms/BMC/protocol/openid-connect/token`
    Token,
    /// `GET /bmc/v1/servers`
    ListServers,
    /// `GET /bmc/v1/servers/{server}`
    ReadServer,
    /// `GET /ips/v1/ip-blocks`
    ListBlocks,
    /// `POST /ips/v1/ip-blocks`
    CreateBlock,
    /// `GET /ips/v1/ip-blocks/{block}`
    ReadBlock,
    /// `PUT /ips/v1/ip-blocks/{block}/tags`
    TagBlock,
    /// `DELETE /ips/v1/ip-blocks/{block}`
    DeleteBlock,
    /// `GET /networks/v1/public-networks/{network}`
    ReadNetwork,
    /// `POST /networks/v1/public-networks/{network}/ip-blocks`
    AttachBlock,
    /// `DELETE /networks/v1/public-networks/{network}/ip-blocks/{block}`
    DetachBlock,
    /// `GET /tag-manager/v1/tags`
    ListTags,
    /// `POST /tag-manager/v1/tags`
    CreateTag,
}

impl Operation {
    /// Its name in the journal and in fault rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::ListServers => "servers.list",
            Self::ReadServer => "servers.read",
            Self::ListBlocks => "ip-blocks.list",
            Self::CreateBlock => "ip-blocks.create",
            Self::ReadBlock => "ip-blocks.read",
            Self::TagBlock => "ip-blocks.tag",
            Self::DeleteBlock => "ip-blocks.delete",
            Self::ReadNetwork => "public-networks.read",
            Self::AttachBlock => "public-networks.attach",
            Self::DetachBlock => "public-networks.detach",
            Self::ListTags => "tags.list",
            Self::CreateTag => "tags.create",
        }
    }

    /// The scope that a token needs for it; `None` for the token endpoint itself.
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Self::Token => None,
            Self::ListServers | Self::ReadServer | Self::ListBlocks | Self::ReadBlock | Self::ReadNetwork => {
                Some(Scope::BmcRead)
            }
            Self::CreateBlock
            | Self::TagBlock
            | Self::DeleteBlock
            | Self::AttachBlock
            | Self::DetachBlock => Some(Scope::Bmc),
            Self::ListTags => Some(Scope::TagsRead),
            Self::CreateTag => Some(Scope::Tags),
        }
    }

    /// The call that a request is, by its method and the segments of its path.
    pub(crate) fn of(method: &Method, segments: &[impl AsRef<str>]) -> Option<Self> {
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        match (method.as_str(), segments.as_slice()) {
            ("POST", ["auth", "realms", "BMC", "protocol", "openid-connect", "token"]) => Some(Self::Token),
            ("GET", ["bmc", "v1", "servers"]) => Some(Self::ListServers),
            ("GET", ["bmc", "v1", "servers", _]) => Some(Self::ReadServer),
            ("GET", ["ips", "v1", "ip-blocks"]) => Some(Self::ListBlocks),
            ("POST", ["ips", "v1", "ip-blocks"]) => Some(Self::CreateBlock),
            ("GET", ["ips", "v1", "ip-blocks", _]) => Some(Self::ReadBlock),
            ("PUT", ["ips", "v1", "ip-blocks", _, "tags"]) => Some(Self::TagBlock),
            ("DELETE", ["ips", "v1", "ip-blocks", _]) => Some(Self::DeleteBlock),
            ("GET", ["networks", "v1", "public-networks", _]) => Some(Self::ReadNetwork),
            ("POST", ["networks", "v1", "public-networks", _, "ip-blocks"]) => Some(Self::AttachBlock),
            ("DELETE", ["networks", "v1", "public-networks", _, "ip-blocks", _]) => Some(Self::DetachBlock),
            ("GET", ["tag-manager", "v1", "tags"]) => Some(Self::ListTags),
            ("POST", ["tag-manager", "v1", "tags"]) => Some(Self::CreateTag),
            _ => None,
        }
    }
}
