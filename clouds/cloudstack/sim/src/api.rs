//! The HTTP API: signatures, routing by command, and what is common to all commands.

use bowline_cloud_kit::service::json;
use bowline_cloud_kit::{Arrival, Cloud, Reply, Shared};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, DATE};
use http::{HeaderValue, Method, Request, StatusCode};
use indexmap::IndexMap;
use serde_json::{Map, Value, json as value};

use crate::error::ApiError;
use crate::jobs::{Effect, Order};
use crate::model::{Owner, Tag};
use crate::operation::{Operation, is_read};
use crate::options::{PATH, Role};
use crate::params::Params;
use crate::state::State;

mod account;
mod acls;
mod addresses;
mod admin;
mod admit;
mod firewall;
mod jobs;
mod members;
mod networks;
mod rules;
pub(crate) mod stickiness;
mod tags;
mod virtual_machines;

/// The payload of an answer, or why there is none.
type Answer = Result<Value, ApiError>;

/// The API over a shared state.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) shared: Shared<State>,
}

impl Api {
    fn answer(&self, request: &Request<Bytes>) -> Reply {
        if request.uri().path() != PATH {
            return no_such_page();
        }
        let params = Params::of(request);
        let answer = self.shared.write(|state| {
            let (caller, operation) = admit::admit(state, request.method(), &params)?;
            Call {
                state,
                params: &params,
                operation,
                caller,
            }
            .carry_out()
        });
        let name = format!("{}response", params.command.to_lowercase());
        match answer {
            Ok(payload) => json(StatusCode::OK, &enveloped(name, payload)),
            Err(error) => refusal(name, &error),
        }
    }
}

fn enveloped(name: String, payload: Value) -> Value {
    Value::Object(Map::from_iter([(name, payload)]))
}

/// What the web server answers where there is neither the API nor a file of its user interface.
fn no_such_page() -> Reply {
    let page = "<html><head><title>Error 404 Not Found</title></head><body><h2>HTTP ERROR 404 Not Found</h2></body></html>";
    let mut reply = Reply::new(Bytes::from_static(page.as_bytes()));
    *reply.status_mut() = StatusCode::NOT_FOUND;
    let kind = HeaderValue::from_static("text/html;charset=iso-8859-1");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

fn refusal(name: String, error: &ApiError) -> Reply {
    let name = if error.is_nameless {
        "errorresponse".to_owned()
    } else {
        name
    };
    let status = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = json(status, &enveloped(name, error.payload()));
    if let Ok(text) = HeaderValue::from_str(&error.text) {
        reply.headers_mut().insert("x-description", text);
    }
    reply
}

impl Cloud for Api {
    fn operation(&self, request: &Request<Bytes>) -> String {
        let command = Params::of(request).command;
        if command.is_empty() {
            request.uri().path().to_owned()
        } else {
            command
        }
    }

    /// By the command: a change may come as a GET.
    fn is_write(&self, request: &Request<Bytes>) -> bool {
        !is_read(&Params::of(request).command)
    }

    fn handle(&self, request: Request<Bytes>, _arrival: Arrival) -> BoxFuture<'static, Reply> {
        let api = self.clone();
        Box::pin(async move {
            let mut reply = api.answer(&request);
            let date = admit::date(&api.shared.read());
            if let Some(date) = date {
                reply.headers_mut().insert(DATE, date);
            }
            reply
        })
    }

    fn admin(&self, method: &Method, path: &str, body: &[u8]) -> Option<Reply> {
        let own = |state: &mut State, segments: &[&str]| admin::answer(state, method, segments, body);
        bowline_cloud_kit::admin::paths(&self.shared, method, path, body, own)
    }
}

/// Who calls.
#[derive(Clone, Debug)]
struct Caller {
    /// The user's id.
    user: String,
    account: String,
    role: Role,
}

/// Whose objects a list shows.
enum Scope {
    Everything,
    /// Those of no project.
    Accounts,
    Own,
    Project(String),
    /// The account's own ones and those of its projects.
    OwnAndProjects,
}

/// One admitted request and the state it works on.
struct Call<'a> {
    state: &'a mut State,
    params: &'a Params,
    operation: Operation,
    caller: Caller,
}

impl Call<'_> {
    fn carry_out(&mut self) -> Answer {
        match self.operation {
            Operation::ListManagementServersMetrics => self.list_management_servers(),
            Operation::ListCapabilities => self.list_capabilities(),
            Operation::ListProjects => self.list_projects(),
            Operation::ListZones => self.list_zones(),
            Operation::ListVirtualMachines => self.list_virtual_machines(),
            Operation::ListNetworks => self.list_networks(),
            Operation::ListVpcs => self.list_vpcs(),
            Operation::ListPublicIpAddresses => self.list_addresses(),
            Operation::AssociateIpAddress => self.associate_address(),
            Operation::DisassociateIpAddress => self.disassociate_address(),
            Operation::ListLoadBalancerRules => self.list_rules(),
            Operation::CreateLoadBalancerRule => self.create_rule(),
            Operation::UpdateLoadBalancerRule => self.update_rule(),
            Operation::DeleteLoadBalancerRule => self.delete_rule(),
            Operation::AssignToLoadBalancerRule => self.assign_members(),
            Operation::RemoveFromLoadBalancerRule => self.remove_members(),
            Operation::ListLoadBalancerRuleInstances => self.list_members(),
            Operation::ListStickinessPolicies => self.list_policies(),
            Operation::CreateStickinessPolicy => self.create_policy(),
            Operation::DeleteStickinessPolicy => self.delete_policy(),
            Operation::ListPortForwardingRules => self.list_port_forwardings(),
            Operation::ListFirewallRules => self.list_firewall_rules(),
            Operation::CreateFirewallRule => self.create_firewall_rule(),
            Operation::DeleteFirewallRule => self.delete_firewall_rule(),
            Operation::ListNetworkAclLists => self.list_acl_lists(),
            Operation::ListNetworkAcls => self.list_acl_items(),
            Operation::CreateNetworkAcl => self.create_acl_item(),
            Operation::UpdateNetworkAclItem => self.update_acl_item(),
            Operation::DeleteNetworkAcl => self.delete_acl_item(),
            Operation::CreateTags => self.create_tags(),
            Operation::DeleteTags => self.delete_tags(),
            Operation::ListTags => self.list_tags(),
            Operation::QueryAsyncJobResult => self.query_job(),
        }
    }

    /// Accepts a job about an object.
    fn accept(
        &mut self,
        lane: Option<String>,
        instance: Option<(&'static str, &str)>,
        effect: Effect,
    ) -> Answer {
        let is_create = matches!(
            effect,
            Effect::Associate(_)
                | Effect::CreateRule(_)
                | Effect::CreatePolicy { .. }
                | Effect::CreateFirewall(_)
                | Effect::CreateAcl(_)
        );
        let object = instance.map(|(_, id)| id.to_owned());
        let job = self.state.accept(Order {
            operation: self.operation,
            user: self.caller.user.clone(),
            account: self.caller.account.clone(),
            lane,
            instance: instance.map(|(kind, id)| (kind, id.to_owned())),
            effect,
        });
        Ok(match object.filter(|_| is_create) {
            Some(id) => value!({ "id": id, "jobid": job }),
            None => value!({ "jobid": job }),
        })
    }

    fn unknown(&self, parameter: &str, id: &str) -> ApiError {
        ApiError::unknown(&self.params.command, parameter, id)
    }

    /// The object whose id a parameter names.
    fn known<'o, T>(
        &'o self,
        objects: &'o IndexMap<String, T>,
        parameter: &str,
        id: &str,
    ) -> Result<&'o T, ApiError> {
        objects.get(id).ok_or_else(|| self.unknown(parameter, id))
    }

    /// That the caller may change what somebody owns.
    fn permit(&self, owner: &Owner, what: &str) -> Result<(), ApiError> {
        let Caller { account, role, .. } = &self.caller;
        if self.state.may(account, *role, owner) {
            Ok(())
        } else {
            Err(ApiError::permission(account, what))
        }
    }

    /// Whose objects a list shows. Root admins may look at any object whose id they name.
    fn scope(&self) -> Result<Scope, ApiError> {
        let is_admin = self.caller.role == Role::Admin;
        match self.params.text("projectid") {
            Some("-1") if is_admin => Ok(Scope::Everything),
            Some("-1") => Ok(Scope::OwnAndProjects),
            Some(id) => {
                if !self.state.projects.contains_key(id) {
                    return Err(self.unknown("projectid", id));
                }
                self.permit(&Owner::Project(id.to_owned()), id)?;
                Ok(Scope::Project(id.to_owned()))
            }
            None if is_admin && (self.params.text("id").is_some() || self.params.text("ids").is_some()) => {
                Ok(Scope::Everything)
            }
            None if is_admin && self.params.flag("listall") == Some(true) => Ok(Scope::Accounts),
            None => Ok(Scope::Own),
        }
    }

    fn sees(&self, scope: &Scope, owner: &Owner) -> bool {
        let account = &self.caller.account;
        match (scope, owner) {
            (Scope::Everything, _) | (Scope::Accounts, Owner::Account(_)) => true,
            (Scope::Own | Scope::OwnAndProjects, Owner::Account(name)) => name == account,
            (Scope::OwnAndProjects, Owner::Project(id)) => self.state.is_in_project(account, id),
            (Scope::Project(wanted), Owner::Project(id)) => wanted == id,
            (Scope::Accounts | Scope::Own, Owner::Project(_)) | (Scope::Project(_), Owner::Account(_)) => {
                false
            }
        }
    }

    /// Whether a filter, if it is given, has this value.
    fn fits(&self, parameter: &str, value: Option<&str>) -> bool {
        self.passes(parameter, |wanted| value == Some(wanted))
    }

    /// Whether something passes a filter, if it is given.
    fn passes(&self, parameter: &str, test: impl FnOnce(&str) -> bool) -> bool {
        self.params.text(parameter).is_none_or(test)
    }

    /// Whether the tags pass the filter, which any of its pairs opens.
    fn fits_tags(&self, tags: &[Tag]) -> bool {
        let wanted = self.params.tags();
        wanted.is_empty() || wanted.iter().any(|tag| tags.contains(tag))
    }

    /// That an `id`, if one is given, is one of something.
    fn check_id(&self, parameter: &str, exists: impl FnOnce(&str) -> bool) -> Result<(), ApiError> {
        match self.params.text(parameter) {
            Some(id) if !exists(id) => Err(self.unknown(parameter, id)),
            _ => Ok(()),
        }
    }

    /// One page of a list: the number of all items, and those of the page. An empty list is an empty object.
    fn page<T>(&self, key: &str, items: Vec<&T>, render: impl Fn(&T) -> Value) -> Answer {
        let limit = self.state.behaviour.page_size;
        let page = self.params.number::<usize>("page")?;
        let size = self.params.number::<usize>("pagesize")?;
        let (skipped, shown) = match (page, size) {
            (None, None) => (0, limit.unwrap_or(usize::MAX)),
            (Some(page), Some(size)) => {
                if limit.is_some_and(|limit| size > limit) {
                    return Err(ApiError::parameter(format!(
                        "Page size can't exceed max allowed page size value: {}",
                        limit.unwrap_or_default()
                    )));
                }
                if page == 0 || size == 0 {
                    return Err(ApiError::parameter("page and pagesize begin at 1"));
                }
                ((page - 1).saturating_mul(size), size)
            }
            _ => {
                return Err(ApiError::parameter("page and pagesize must be given together"));
            }
        };
        let mut payload = Map::new();
        if !items.is_empty() {
            payload.insert("count".to_owned(), value!(items.len()));
        }
        let shown: Vec<Value> = items.into_iter().skip(skipped).take(shown).map(render).collect();
        if !shown.is_empty() {
            payload.insert(key.to_owned(), Value::Array(shown));
        }
        Ok(Value::Object(payload))
    }
}

/// Whether one text is part of another, without regard to case.
fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}
