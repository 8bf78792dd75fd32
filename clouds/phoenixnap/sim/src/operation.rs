//! The calls that are simulated.

use http::Method;

use crate::options::Scope;

bowline_cloud_kit::operations! {
    /// A call of one of the APIs.
    Operation {
        Token "token",
        ListServers "servers.list",
        ReadServer "servers.read",
        ListBlocks "ip-blocks.list",
        CreateBlock "ip-blocks.create",
        ReadBlock "ip-blocks.read",
        TagBlock "ip-blocks.tag",
        DeleteBlock "ip-blocks.delete",
        ReadNetwork "public-networks.read",
        AttachBlock "public-networks.attach",
        DetachBlock "public-networks.detach",
        ListTags "tags.list",
        CreateTag "tags.create",
    }
}

impl Operation {
    /// Its method, its path, and the scope that a token needs for it; `None` for the token endpoint itself.
    fn call(self) -> (&'static str, &'static str, Option<Scope>) {
        match self {
            Self::Token => ("POST", "/auth/realms/BMC/protocol/openid-connect/token", None),
            Self::ListServers => ("GET", "/bmc/v1/servers", Some(Scope::BmcRead)),
            Self::ReadServer => ("GET", "/bmc/v1/servers/{server}", Some(Scope::BmcRead)),
            Self::ListBlocks => ("GET", "/ips/v1/ip-blocks", Some(Scope::BmcRead)),
            Self::CreateBlock => ("POST", "/ips/v1/ip-blocks", Some(Scope::Bmc)),
            Self::ReadBlock => ("GET", "/ips/v1/ip-blocks/{block}", Some(Scope::BmcRead)),
            Self::TagBlock => ("PUT", "/ips/v1/ip-blocks/{block}/tags", Some(Scope::Bmc)),
            Self::DeleteBlock => ("DELETE", "/ips/v1/ip-blocks/{block}", Some(Scope::Bmc)),
            Self::ReadNetwork => (
                "GET",
                "/networks/v1/public-networks/{network}",
                Some(Scope::BmcRead),
            ),
            Self::AttachBlock => (
                "POST",
                "/networks/v1/public-networks/{network}/ip-blocks",
                Some(Scope::Bmc),
            ),
            Self::DetachBlock => (
                "DELETE",
                "/networks/v1/public-networks/{network}/ip-blocks/{block}",
                Some(Scope::Bmc),
            ),
            Self::ListTags => ("GET", "/tag-manager/v1/tags", Some(Scope::TagsRead)),
            Self::CreateTag => ("POST", "/tag-manager/v1/tags", Some(Scope::Tags)),
        }
    }

    /// The scope that a token needs for it; `None` for the token endpoint itself.
    pub(crate) fn scope(self) -> Option<Scope> {
        self.call().2
    }

    /// The call that a request is, by its method and the segments of its path.
    pub(crate) fn of(method: &Method, segments: &[String]) -> Option<Self> {
        let fits = |path: &str| {
            let mut wanted = path.split('/').skip(1);
            let is_like = |given: &String| wanted.next().is_some_and(|it| it.starts_with('{') || it == given);
            segments.iter().all(is_like) && wanted.next().is_none()
        };
        let mut all = Self::ALL.iter().copied();
        all.find(|it| *method == it.call().0 && fits(it.call().1))
    }
}
