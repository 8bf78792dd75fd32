//! What Octavia's kinds of objects have in common: how they are found, listed, shown, counted and taken away.

use http::StatusCode;
use indexmap::IndexMap;
use serde_json::Value;

use crate::api::{Answer, Call, path_id};
use crate::behaviour::Quota;
use crate::error::ApiError;
use crate::fields::{Dialect, Fields};
use crate::model::Id;
use crate::model::balancing::{Listener, LoadBalancer, Member, Monitor, Part, Pool, Provisioning};
use crate::state::State;
use crate::wire::Wire;

/// A kind of Octavia's objects.
pub(super) trait Kind: Sized + 'static {
    /// The name of one in a body.
    const ROOT: &'static str;
    /// The name of their list.
    const LIST: &'static str;
    /// What refusals call it.
    const WHAT: &'static str;
    fn all(state: &State) -> &IndexMap<Id, Self>;
    fn all_mut(state: &mut State) -> &mut IndexMap<Id, Self>;
    fn part(&self) -> &Part;
    fn part_mut(&mut self) -> &mut Part;
    fn shown(&self, wire: &Wire<'_>) -> Value;
    /// How many of them a project may have.
    fn most(quota: &Quota) -> Option<usize>;
}

macro_rules! kinds {
    ($($object:ident: $all:ident, $show:ident, $quota:ident, $root:literal, $list:literal, $what:literal;)+) => {
        $(impl Kind for $object {
            const ROOT: &'static str = $root;
            const LIST: &'static str = $list;
            const WHAT: &'static str = $what;

            fn all(state: &State) -> &IndexMap<Id, Self> {
                &state.$all
            }

            fn all_mut(state: &mut State) -> &mut IndexMap<Id, Self> {
                &mut state.$all
            }

            fn part(&self) -> &Part {
                &self.part
            }

            fn part_mut(&mut self) -> &mut Part {
                &mut self.part
            }

            fn shown(&self, wire: &Wire<'_>) -> Value {
                wire.$show(self)
            }

            fn most(quota: &Quota) -> Option<usize> {
                quota.$quota
            }
        })+
    };
}

kinds! {
    LoadBalancer: load_balancers, load_balancer, load_balancers, "loadbalancer", "loadbalancers", "Load Balancer";
    Listener: listeners, listener, listeners, "listener", "listeners", "Listener";
    Pool: pools, pool, pools, "pool", "pools", "Pool";
    Member: members, member, members, "member", "members", "Member";
    Monitor: monitors, monitor, health_monitors, "healthmonitor", "healthmonitors", "Health Monitor";
}

/// A kind that is written one by one, below a path of its own.
pub(super) trait Written: Kind {
    /// The fields that a body may have at any time.
    const TAKEN: &'static str;
    /// Those that only a new object has.
    const FIXED: &'static str;
    /// What lists are filtered by beside what all are.
    const FILTERS: &'static str;

    /// A filter by which objects are chosen before they are rendered.
    const KEY: &'static str;

    /// What one has there.
    fn key(&self) -> String;

    /// Makes one.
    fn create(call: &mut Call<'_>) -> Result<Id, ApiError>;

    /// Changes one that the caller sees.
    fn change(call: &mut Call<'_>, id: Id) -> Result<(), ApiError>;

    /// Takes one away that the caller sees.
    fn remove(call: &mut Call<'_>, id: Id) -> Result<(), ApiError>;

    /// Answers one that was made.
    fn show_made(call: &Call<'_>, id: Id) -> Answer {
        call.show_made::<Self>(id)
    }
}

impl Call<'_> {
    /// What the API does with the objects of a kind.
    pub(super) fn objects<K: Written>(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let may_pass = |it: &K| self.query.may_be(K::KEY, &it.key());
                // What an object shows itself is looked at again.
                let applied = Some(K::KEY).filter(|key| *key != "name");
                self.list(K::FILTERS, applied.as_slice(), may_pass)
            }
            ("POST", []) => {
                let id = K::create(self)?;
                K::show_made(self, id)
            }
            ("GET", [id]) => self.show::<K>(self.found::<K>(id)?),
            ("PUT", [id]) => {
                let id = self.found::<K>(id)?;
                K::change(self, id)?;
                self.show::<K>(id)
            }
            ("DELETE", [id]) => {
                let id = self.found::<K>(id)?;
                K::remove(self, id)?;
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    /// The body of a new object.
    pub(super) fn new_fields<K: Written>(&self) -> Result<Fields, ApiError> {
        self.octavia_fields::<K>(K::FIXED)
    }

    /// The body of a change.
    pub(super) fn changed_fields<K: Written>(&self) -> Result<Fields, ApiError> {
        self.octavia_fields::<K>("")
    }

    fn octavia_fields<K: Written>(&self, more: &str) -> Result<Fields, ApiError> {
        let fields = Fields::parse(Dialect::Octavia, K::ROOT, self.request.body())?;
        self.only(&fields, [K::TAKEN, more, ""])?;
        Ok(fields)
    }

    /// The ID of an object that is there and not somebody else's.
    pub(super) fn found<K: Kind>(&self, id: &str) -> Result<Id, ApiError> {
        let object = path_id(id).and_then(|id| K::all(self.state).get(&id));
        let text = format!("{} {id} not found.", K::WHAT);
        let part = object
            .ok_or_else(|| ApiError::octavia(StatusCode::NOT_FOUND, text))?
            .part();
        match self.sees(&part.meta.project) {
            true => Ok(part.id),
            false => {
                let text = "Policy does not allow this request to be performed.";
                Err(ApiError::octavia(StatusCode::FORBIDDEN, text))
            }
        }
    }

    fn shown<K: Kind>(&self, id: Id) -> Value {
        let object = K::all(self.state).get(&id);
        object.map_or(Value::Null, |it| it.shown(&self.wire()))
    }

    /// Answers an object.
    pub(super) fn show<K: Kind>(&self, id: Id) -> Answer {
        self.one(K::ROOT, self.dated(self.shown::<K>(id)))
    }

    /// Answers an object that was made.
    pub(super) fn show_made<K: Kind>(&self, id: Id) -> Answer {
        self.created(K::ROOT, self.dated(self.shown::<K>(id)))
    }

    /// A list of the caller's objects that may pass, told before they are rendered, and pass the filters of the query but those
    /// of these names, which were applied so.
    pub(super) fn list<K: Kind>(
        &self,
        filters: &str,
        applied: &[&str],
        may_pass: impl Fn(&K) -> bool,
    ) -> Answer {
        let objects = K::all(self.state).values();
        let shown = objects.filter(|it| self.sees(&it.part().meta.project) && may_pass(it));
        let shown = shown.map(|it| it.shown(&self.wire())).collect();
        self.octavia_list(K::LIST, filters, applied, shown)
    }

    /// What a body says about a new object as every object has it.
    pub(super) fn new_part(&self, fields: &Fields, project: &str) -> Result<Part, ApiError> {
        let text = |name| fields.text(name).map(Option::unwrap_or_default);
        let tags = fields.texts("tags")?.unwrap_or_default();
        let part = self
            .state
            .part(project, text("name")?, text("description")?, tags);
        let is_up = fields.flag("admin_state_up")?.unwrap_or(true);
        Ok(Part { is_up, ..part })
    }

    /// Whether a project may have as many more objects of a kind.
    pub(super) fn check_quota<K: Kind>(&self, project: &str, more: usize) -> Result<(), ApiError> {
        let objects = K::all(self.state).values();
        let used = objects.filter(|it| it.part().meta.project == project).count();
        let most = K::most(&self.state.behaviour.quota);
        match most.is_some_and(|most| used + more > most) && more > 0 {
            true => Err(ApiError::met_quota(K::WHAT)),
            false => Ok(()),
        }
    }

    /// Begins to take an object away.
    pub(super) fn begin_to_delete<K: Kind>(&mut self, id: Id) {
        if let Some(object) = K::all_mut(self.state).get_mut(&id) {
            object.part_mut().status = Provisioning::PendingDelete;
        }
    }
}
