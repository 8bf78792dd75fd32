//! What the path of a request means, and what the journal calls it.

use http::Method;

use crate::options::{INTERFACES, Service};

/// A service and the rest of the path: `/network/v2.0/ports` is Neutron and `v2.0`, `ports`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) service: Service,
    pub(crate) segments: Vec<&'a str>,
}

impl<'a> Place<'a> {
    /// `None` below another region or below no service. Every interface leads to the same service.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let mut segments = path.split('/').filter(|it| !it.is_empty());
        let first = segments.next()?;
        let folder = match INTERFACES.contains(&first) {
            true => segments.next()?,
            false => first,
        };
        let service = Service::ALL.into_iter().find(|it| it.folder() == folder)?;
        let segments = segments.collect();
        Some(Self { service, segments })
    }

    /// The segments below the version that the API is at.
    pub(crate) fn below_version(&self) -> Option<&[&'a str]> {
        match (self.service, self.segments.as_slice()) {
            (Service::Identity, ["v3", rest @ ..])
            | (Service::Compute, ["v2.1", rest @ ..])
            | (Service::Network, ["v2.0", rest @ ..])
            | (Service::LoadBalancer, ["v2.0" | "v2", "lbaas", rest @ ..])
            | (Service::KeyManager, ["v1", rest @ ..]) => Some(rest),
            _ => None,
        }
    }

    /// A name such as `neutron.ports.update`; the path of what the API does not know.
    pub(crate) fn operation(&self, method: &Method) -> Option<String> {
        let (_, name) = self.service.names();
        let rest = match self.below_version() {
            Some(rest) if !rest.is_empty() => rest,
            _ => return (*method == Method::GET).then(|| format!("{name}.versions.list")),
        };
        let on_all = match *method {
            Method::GET => Some("list"),
            Method::POST => Some("create"),
            Method::PUT => Some("replace"),
            _ => None,
        };
        let on_one = match *method {
            Method::GET => Some("get"),
            Method::PUT => Some("update"),
            Method::DELETE => Some("delete"),
            _ => None,
        };
        let (kind, verb) = match rest {
            ["auth", "tokens"] if *method == Method::GET => ("tokens", on_one?),
            ["auth", "tokens"] => ("tokens", on_all?),
            [kind @ ("servers" | "flavors"), "detail"] => (*kind, on_all?),
            ["pools", _, "members"] => ("members", on_all?),
            ["pools", _, "members", _] => ("members", on_one?),
            [_, _, "tags", _] => ("tags", on_one?),
            ["routers", _, action] => ("routers", *action),
            [kind] => (*kind, on_all?),
            [kind, _] => (*kind, on_one?),
            _ => return None,
        };
        Some(format!("{name}.{kind}.{verb}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names() {
        for (method, path, name) in [
            ("GET", "/identity", "keystone.versions.list"),
            ("POST", "/identity/v3/auth/tokens", "keystone.tokens.create"),
            ("GET", "/compute/v2.1/", "nova.versions.list"),
            ("GET", "/compute/v2.1/servers/detail", "nova.servers.list"),
            ("GET", "/compute/v2.1/servers/1", "nova.servers.get"),
            ("GET", "/network/v2.0/extensions", "neutron.extensions.list"),
            ("PUT", "/network/v2.0/ports/1", "neutron.ports.update"),
            (
                "PUT",
                "/network/v2.0/routers/1/add_extraroutes",
                "neutron.routers.add_extraroutes",
            ),
            ("DELETE", "/network/v2.0/ports/1/tags/x", "neutron.tags.delete"),
            (
                "POST",
                "/internal/load-balancer/v2.0/lbaas/loadbalancers",
                "octavia.loadbalancers.create",
            ),
            (
                "POST",
                "/load-balancer/v2/lbaas/pools/1/members",
                "octavia.members.create",
            ),
            (
                "PUT",
                "/load-balancer/v2.0/lbaas/pools/1/members",
                "octavia.members.replace",
            ),
            (
                "DELETE",
                "/load-balancer/v2.0/lbaas/pools/1/members/2",
                "octavia.members.delete",
            ),
            (
                "DELETE",
                "/load-balancer/v2.0/lbaas/loadbalancers/1",
                "octavia.loadbalancers.delete",
            ),
            ("GET", "/key-manager/v1/secrets/1", "barbican.secrets.get"),
        ] {
            let place = Place::of(path).unwrap();
            let method: Method = method.parse().unwrap();
            assert_eq!(place.operation(&method).as_deref(), Some(name), "{method} {path}");
        }
        assert_eq!(Place::of("/RegionTwo/network"), None);
        assert_eq!(Place::of("/"), None);
    }
}
