//! `/v2.0/routers`

use std::net::IpAddr;

use http::StatusCode;
use ipnet::IpNet;
use serde_json::Value;

use crate::api::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Id;
use crate::model::network::{Route, Router};

impl Call<'_> {
    pub(super) fn routers(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let routers = self.state.routers.values();
                let routers = routers.filter(|it| self.sees(&it.meta.project));
                let shown = routers.map(|it| self.wire().router(it)).collect();
                self.neutron_list("routers", "admin_state_up", shown)
            }
            ("GET", [id]) => {
                let router = self.router(id)?;
                self.one("router", self.wire().router(router))
            }
            ("PUT", [id]) => {
                let fields = self.neutron_fields("router")?;
                fields.only("name description routes")?;
                let mut router = self.router(id)?.clone();
                self.check_revision(&router.meta)?;
                router.name = fields.text("name")?.unwrap_or(router.name);
                router.meta.description = fields.text("description")?.unwrap_or(router.meta.description);
                if fields.has("routes") {
                    self.require_extension("extraroute", "routes")?;
                    router.routes = routes(&fields)?;
                    self.check_routes(&router)?;
                }
                self.replace_router(router, false)
            }
            ("PUT", [id, "add_extraroutes"]) if self.state.has_extension("extraroute-atomic") => {
                let new = routes(&self.neutron_fields("router")?)?;
                let mut router = self.router(id)?.clone();
                let missing = new.into_iter().filter(|it| !router.routes.contains(it));
                let missing: Vec<Route> = missing.collect();
                router.routes.extend(missing);
                self.check_routes(&router)?;
                self.replace_router(router, true)
            }
            ("PUT", [id, "remove_extraroutes"]) if self.state.has_extension("extraroute-atomic") => {
                let old = routes(&self.neutron_fields("router")?)?;
                let mut router = self.router(id)?.clone();
                router.routes.retain(|it| !old.contains(it));
                self.check_routes(&router)?;
                self.replace_router(router, true)
            }
            _ => self.no_such_path(),
        }
    }

    fn router(&self, id: &str) -> Result<&Router, ApiError> {
        let router = path_id(id).and_then(|id| self.state.routers.get(&id));
        let router = router.filter(|it| self.sees(&it.meta.project));
        router.ok_or_else(|| ApiError::no("RouterNotFound", "Router", id))
    }

    fn require_extension(&self, alias: &str, attribute: &str) -> Result<(), ApiError> {
        match self.state.has_extension(alias) {
            true => Ok(()),
            false => Err(ApiError::bad_input(format!(
                "Unrecognized attribute(s) '{attribute}'"
            ))),
        }
    }

    /// Puts a router back. Its revision grows only if its routes, or anything else, are others than before.
    fn replace_router(&mut self, mut router: Router, is_extra: bool) -> Answer {
        let id = router.id;
        let before = self.state.routers.get(&id);
        let is_changed = before.is_some_and(|it| {
            (&it.routes, &it.name, &it.meta.description)
                != (&router.routes, &router.name, &router.meta.description)
        });
        if is_changed {
            router.meta.touch(&self.state.clock.rfc3339_seconds());
        }
        self.state.routers.insert(id, router.clone());
        let mut shown = self.wire().router(&router);
        if is_extra {
            // These answers show a few fields more.
            shown["distributed"] = Value::from(false);
            shown["ha"] = Value::from(false);
            shown["ha_vr_id"] = Value::from(0);
            shown["enable_snat"] = Value::from(true);
            shown["enable_default_route_ecmp"] = Value::from(false);
            shown["enable_default_route_bfd"] = Value::from(false);
        }
        self.answer(StatusCode::OK, "router", shown)
    }

    fn check_routes(&self, router: &Router) -> Result<(), ApiError> {
        let interfaces = self.state.interfaces(router.id);
        let ranges: Vec<IpNet> =
            self.connected(router, &interfaces.iter().map(|it| it.subnet).collect::<Vec<_>>());
        for route in &router.routes {
            let reason = match route.nexthop {
                hop if !ranges.iter().any(|it| it.contains(&hop)) => {
                    "the nexthop is not connected with router"
                }
                hop if interfaces.iter().any(|it| it.address == hop) => "the nexthop is used by router",
                _ => continue,
            };
            let shown = |it: &Route| {
                format!(
                    "{{'destination': '{}', 'nexthop': '{}'}}",
                    it.destination, it.nexthop
                )
            };
            let shown: Vec<String> = router.routes.iter().map(shown).collect();
            let text = format!("Invalid format for routes: [{}], {reason}", shown.join(", "));
            return Err(ApiError::neutron(StatusCode::BAD_REQUEST, "InvalidRoutes", text));
        }
        let breaks_on = self.state.behaviour.breaks_on_route.as_deref();
        if router.routes.iter().any(|it| Some(&*it.destination) == breaks_on) {
            let text = "Request Failed: internal server error while processing your request.";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Err(ApiError::neutron(
                status,
                "HTTPInternalServerError",
                text.to_owned(),
            ));
        }
        if router.routes.len() > self.state.behaviour.max_routes {
            return Err(ApiError::over_quota("router_route"));
        }
        Ok(())
    }

    /// The ranges that a router can send into: those of its interfaces and of its gateway.
    fn connected(&self, router: &Router, subnets: &[Id]) -> Vec<IpNet> {
        let gateway = router.gateway.map(|(_, address)| address.subnet);
        let subnets = subnets.iter().copied().chain(gateway);
        let found = subnets.filter_map(|id| self.state.subnets.get(&id));
        found.map(|it| it.cidr).collect()
    }
}

fn routes(fields: &Fields) -> Result<Vec<Route>, ApiError> {
    let mut routes: Vec<Route> = Vec::new();
    for route in fields.objects("routes")?.unwrap_or_default() {
        route.only("destination nexthop")?;
        let destination = route.given("destination", route.text("destination")?)?;
        if destination.parse::<IpNet>().is_err() {
            let text = format!("Invalid input for routes. Reason: '{destination}' is not a valid CIDR.");
            return Err(ApiError::bad_input(text));
        }
        let nexthop = route.given("nexthop", route.text("nexthop")?)?;
        let nexthop: IpAddr = nexthop.parse().map_err(|_| {
            let text = format!("Invalid input for routes. Reason: '{nexthop}' is not a valid IP address.");
            ApiError::bad_input(text)
        })?;
        let route = Route { destination, nexthop };
        if routes.contains(&route) {
            let text = format!(
                "Invalid input for routes. Reason: Duplicate hostroute '{{'destination': '{}', 'nexthop': '{}'}}'.",
                route.destination, route.nexthop
            );
            return Err(ApiError::bad_input(text));
        }
        routes.push(route);
    }
    Ok(routes)
}
