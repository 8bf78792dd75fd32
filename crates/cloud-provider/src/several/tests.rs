mod doubts;
mod questions;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use bowline_plan::{Answer, Impact, Lane, Plan, Step};
use futures::future::{self, FutureExt as _};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::evidence::Traces;
use crate::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner, Standing};
use crate::{
    AbsenceProof, ClusterFacts, FoundBy, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery,
    InstanceResult, InstanceState, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep, MadeFor, Memory,
    NodeSet, PowerState, Purpose, Readiness, ReconcileKind, Reconciler, Seen, ServiceFacts, ServiceList,
};

/// Nothing here waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

/// A cloud that has instances by name, and a balancer for each Service that it was told of.
struct Fake {
    name: &'static str,
    instances: Vec<&'static str>,
    is_down: bool,
    balancers: Mutex<BTreeSet<String>>,
    /// The members that were asked for last.
    members: Mutex<Vec<String>>,
    looks: Mutex<usize>,
    surveys: Mutex<usize>,
    /// Whether the last reconcile was told that an earlier process may have begun.
    has_begun: Mutex<bool>,
    /// The reconciles that it was told the end of.
    reconciled: Mutex<Vec<(ReconcileKind, bool)>>,
}

#[derive(Clone)]
struct Shared(Arc<Fake>);

#[derive(Debug, Clone, PartialEq)]
struct Change(&'static str);

impl Step for Change {
    fn label(&self) -> String {
        self.0.to_owned()
    }
    fn object(&self) -> String {
        "balancer".to_owned()
    }
    fn impact(&self) -> Impact {
        Impact::None
    }
    fn lanes(&self) -> Vec<Lane> {
        Vec::new()
    }
}

impl Reconciler for Shared {
    type Facts = ServiceFacts;
    type Intent = (String, bool);
    type Observed = bool;
    type Remembered = ();
    type Step = Change;
    type Learned = ();

    fn intent(&self, facts: &ServiceFacts) -> Result<Self::Intent, Refusal> {
        let others = facts.services.services();
        let asking = others.iter().filter(|it| facts.services.classes().is_wanted(it));
        assert!(
            !facts.is_wanted || asking.count() == 1,
            "a cloud takes only its own Services for some that ask"
        );
        let names = facts.nodes.iter().map(|node| node.name.to_string());
        *self.0.members.lock().unwrap() = names.collect();
        *self.0.has_begun.lock().unwrap() = facts.has_begun;
        Ok((facts.service.metadata.uid.clone().unwrap(), facts.is_wanted))
    }

    async fn observe(
        &self,
        (uid, _): &Self::Intent,
        _: Option<bool>,
        _: &mut Memory<(), Change>,
    ) -> Result<bool, CloudError> {
        *self.0.looks.lock().unwrap() += 1;
        match self.0.is_down {
            true => Err(CloudError::transient("down")),
            false => Ok(self.0.balancers.lock().unwrap().contains(uid)),
        }
    }

    fn plan(&self, (_, is_wanted): &Self::Intent, seen: &Seen<bool, (), Change>) -> LoadBalancerPlan<Change> {
        if self.0.name == "refusing" {
            return Plan::new(Answer::Refused(Refusal::new("not so")));
        }
        if self.0.name == "busy" {
            return Plan::new(Answer::Wait {
                after: Duration::from_secs(1),
                reason: "busy".to_owned(),
            });
        }
        let change = match (is_wanted, seen.observed) {
            (true, false) => Change("make"),
            (false, true) => Change("remove"),
            _ => return Plan::new(Answer::Settled(LoadBalancerStatus::empty())),
        };
        Plan::new(Answer::apply_or(
            vec![LoadBalancerStep::Cloud(change)],
            || unreachable!(),
        ))
    }

    async fn apply(
        &self,
        (uid, _): &Self::Intent,
        _: &Seen<bool, (), Change>,
        step: &Change,
    ) -> Result<(), CloudError> {
        if self.0.name == "failing" {
            return Err(CloudError::transient("not now"));
        }
        let mut balancers = self.0.balancers.lock().unwrap();
        match step.0 {
            "make" => balancers.insert(uid.clone()),
            _ => balancers.remove(uid),
        };
        Ok(())
    }

    fn learn(&self, seen: &mut Seen<bool, (), Change>, step: &Change, (): ()) {
        seen.observed = step.0 == "make";
    }

    fn predict(&self, seen: &mut Seen<bool, (), Change>, step: &Change) {
        self.learn(seen, step, ());
    }
}

crate::annotations! {
    "example.com/";
    ONE = "one", Text, "", Written, None, "What cloud one made.";
    MODE = "mode", Text, "", InPlace, None, "What a person asks for.";
}

impl LoadBalancer for Shared {
    fn annotations(&self) -> &'static [crate::AnnotationSpec] {
        if self.0.name == "one" { TABLE } else { &[] }
    }

    fn takes_addresses(&self) -> bool {
        self.0.name == "one"
    }

    fn node_set(&self) -> NodeSet {
        match self.0.name {
            "ready" => NodeSet::Ready,
            _ => NodeSet::Stable,
        }
    }

    fn load_balancer_name(&self, _: &ServiceFacts) -> String {
        self.0.name.to_owned()
    }

    fn marked<'a>(&'a self, facts: &'a OrphanFacts) -> BoxFuture<'a, Result<Vec<Found>, CloudError>> {
        *self.0.surveys.lock().unwrap() += 1;
        if self.0.is_down {
            return future::ready(Err(CloudError::transient("down"))).boxed();
        }
        let judge = Judge::new(facts, None, &[], |_| None);
        let found = |uid: &String| {
            let (id, owner) = (
                format!("{}-{uid}", self.0.name),
                Owner {
                    uid: uid.clone(),
                    ..Owner::default()
                },
            );
            let traces = Traces {
                id: &id,
                ..Traces::default()
            };
            let (standing, why) = judge.judge(&traces, &owner, false, OfCluster::This("it"), "tags");
            let (name, cluster_uid) = (String::new(), None);
            Found {
                kind: "balancer",
                id,
                name,
                made: None,
                owner,
                cluster_uid,
                standing,
                why,
            }
        };
        let found = self.0.balancers.lock().unwrap().iter().map(found).collect();
        match (self.0.name, self.0.is_down) {
            ("hanging", _) => future::pending().boxed(),
            (_, true) => future::ready(Err(CloudError::transient("down"))).boxed(),
            (_, false) => future::ready(Ok(found)).boxed(),
        }
    }

    fn made_for<'a>(&'a self, _: &'a dyn ServicesView) -> Vec<Question<'a, MadeFor>> {
        vec![self.told(|cloud| MadeFor {
            key: ServiceKey::new("default", "gone"),
            uid: cloud.to_owned(),
            balancer: String::new(),
        })]
    }

    fn drains(&self, _: &Service) -> bool {
        self.0.name != "ready"
    }

    fn reconciled(&self, _: &ServiceKey, kind: ReconcileKind, _: Duration, has_failed: bool) {
        self.0.reconciled.lock().unwrap().push((kind, has_failed));
    }
}

impl Routes for Shared {
    fn list_routes<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        future::ready(Ok(Vec::new())).boxed()
    }

    fn change_routes<'a>(
        &'a self,
        _: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>> {
        future::ready(changes.iter().map(|_| Ok(())).collect()).boxed()
    }
}

impl InstancesV2 for Shared {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        let answer = |query: &InstanceQuery| {
            if self.0.is_down {
                return Err(CloudError::transient("down"));
            }
            let name = query.node.name.as_str();
            if !self.0.instances.contains(&name) {
                return Ok(InstanceAnswer::Absent(AbsenceProof::new("404")));
            }
            Ok(InstanceAnswer::Present(Box::new(Instance {
                metadata: InstanceMetadata {
                    provider_id: Some(format!("{}://{name}", self.0.name)),
                    ..InstanceMetadata::default()
                },
                power: PowerState::On,
                state: InstanceState::default(),
                found_by: FoundBy::Name,
            })))
        };
        let answers = queries.iter().map(answer).collect();
        future::ready(answers).boxed()
    }

    fn names(&self) -> Vec<Question<'_, String>> {
        vec![self.told(|_| self.0.instances[0].to_owned())]
    }
}

impl Shared {
    /// What the cloud tells of itself.
    fn told<T: Send + 'static>(&self, what: impl FnOnce(&str) -> T) -> Question<'_, T> {
        match (self.0.name, self.0.is_down) {
            ("hanging", _) => Question::new(future::pending()),
            (_, true) => Question::new(future::ready(Err(CloudError::transient("down")))),
            (name, false) => Question::new(future::ready(Ok(vec![what(name)]))),
        }
    }
}

impl CloudProvider for Shared {
    fn has_bare_id(&self, id: &str) -> bool {
        id.split_once('-').is_some_and(|(name, _)| name == self.0.name)
    }
    fn left_over(&self, _: BackgroundFacts) -> Vec<Question<'_, String>> {
        vec![self.told(|cloud| format!("left in {cloud}"))]
    }
    fn allowance(&self) -> Vec<Question<'_, Allowance>> {
        vec![self.told(|_| Allowance {
            text: "may".to_owned(),
            is_lacking: false,
        })]
    }
    fn name(&self) -> &'static str {
        self.0.name
    }
    fn has_cluster_id(&self) -> bool {
        true
    }
    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::new(self.clone()))
    }
    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        Some(Arc::new(self.clone()))
    }
    fn routes(&self) -> Option<Arc<dyn Routes>> {
        let routes = self.0.name.starts_with("routed").then(|| self.clone());
        routes.map(|routes| Arc::new(routes) as Arc<dyn Routes>)
    }
}

fn fake(name: &'static str, instances: &[&'static str], is_down: bool) -> Shared {
    Shared(Arc::new(Fake {
        name,
        instances: instances.to_vec(),
        is_down,
        balancers: Mutex::default(),
        members: Mutex::default(),
        looks: Mutex::default(),
        surveys: Mutex::default(),
        has_begun: Mutex::default(),
        reconciled: Mutex::default(),
    }))
}

fn of(cloud: &Shared, classes: &[&str], serves_unclassed: bool) -> Cloud {
    let classes = classes.iter().map(|class| (*class).to_owned());
    Cloud {
        provider: Arc::new(cloud.clone()),
        classes: ServiceClasses::new(classes, serves_unclassed).unwrap(),
    }
}

fn node(name: &str, id: Option<&str>) -> Arc<Node> {
    Arc::new(Node {
        provider_id: id.map(Into::into),
        ..Node::named(name)
    })
}

#[test]
fn errors_and_refusals_begin_with_the_name_of_the_cloud() {
    let (down, refusing) = (fake("down", &[], true), fake("refusing", &[], false));
    let begin = |class: Option<&str>| {
        let clouds = vec![of(&down, &[], true), of(&refusing, &["two"], false)];
        let clouds = Several::new(clouds, true).unwrap();
        let spec = json!({ "type": "LoadBalancer", "loadBalancerClass": class });
        clouds
            .load_balancer()
            .unwrap()
            .begin(facts(spec, true, &[]))
            .unwrap()
    };
    let mut session = begin(None);
    for look in [block_on(session.observe()), block_on(session.verify())] {
        assert_eq!(look.unwrap_err().to_string(), "down: down");
    }
    let mut session = begin(Some("two"));
    block_on(session.observe()).unwrap();
    match session.plan().unwrap().answer {
        Answer::Refused(refusal) => assert_eq!(refusal.reason, "refusing: not so"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_of_the_clouds_may_have_routes_and_they_lead_to_its_own_nodes() {
    let (one, routed, other) = (
        fake("one", &[], false),
        fake("routed", &[], false),
        fake("routed2", &[], false),
    );
    let both = || vec![of(&routed, &[], true), of(&other, &["two"], false)];
    let error = Several::new(both(), true).err().unwrap().to_string();
    assert!(
        error.contains("routed and routed2 both have routes")
            && error.contains("--configure-cloud-routes=false"),
        "{error}"
    );
    assert!(Several::new(both(), false).is_ok());
    let clouds = Several::new(vec![of(&one, &[], true), of(&routed, &["two"], false)], true).unwrap();
    let routes = clouds.routes().unwrap();
    for (id, leads) in [(Some("routed://a"), true), (Some("one://a"), false), (None, true)] {
        assert_eq!(routes.leads_to(&node("a", id)), leads, "{id:?}");
    }
}

#[test]
fn clouds_that_claim_the_same_are_refused() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], false));
    let error = |clouds| Several::new(clouds, true).err().unwrap().to_string();
    assert!(error(vec![of(&one, &[], true), of(&one, &["a"], false)]).contains("named twice"));
    let both = error(vec![of(&one, &["a"], true), of(&two, &["a", "b"], false)]);
    assert!(
        both.contains("one and two both serve Services of class a"),
        "{both}"
    );
    let both = error(vec![of(&one, &[], true), of(&two, &["b"], true)]);
    assert!(both.contains("both serve Services without a class"), "{both}");
}

fn facts(spec: Value, is_wanted: bool, nodes: &[Arc<Node>]) -> ServiceFacts {
    let object = json!({ "metadata": { "namespace": "default", "name": "web", "uid": "u" }, "spec": spec });
    let service: Arc<Service> = Arc::new(serde_json::from_value(object).unwrap());
    let other = json!({ "metadata": { "name": "other", "uid": "o" }, "spec": {
        "type": "LoadBalancer", "loadBalancerClass": if service.spec.as_ref().unwrap().load_balancer_class.is_none() { "two" } else { "one" },
    } });
    let services = ServiceList {
        services: vec![
            Arc::clone(&service),
            Arc::new(serde_json::from_value(other).unwrap()),
        ],
        classes: ServiceClasses::default(),
    };
    ServiceFacts {
        service,
        is_wanted,
        has_begun: true,
        nodes: Arc::from(nodes),
        services: Arc::new(services),
        cluster: Arc::new(ClusterFacts {
            name: "kubernetes".into(),
            uid: None,
            server_version: None,
            holder: String::new(),
        }),
        now: Timestamp::UNIX_EPOCH,
    }
}

/// Brings a Service to its end, and gives the steps that this took.
fn drive(clouds: &Several, facts: ServiceFacts) -> Vec<String> {
    try_drive(clouds, facts).unwrap()
}

/// The same, or why it does not come to its end.
fn try_drive(clouds: &Several, facts: ServiceFacts) -> Result<Vec<String>, String> {
    let mut session = clouds.load_balancer().unwrap().begin(facts).unwrap();
    let (mut steps, mut is_unverified) = (Vec::new(), false);
    block_on(session.observe()).unwrap();
    for _ in 0..20 {
        match session.plan().unwrap().answer {
            Answer::Apply(wave) => {
                let wave = wave.into_steps();
                let learned =
                    block_on(session.apply(&wave[0], &|| None)).map_err(|error| error.to_string())?;
                session.learn(&wave, vec![(0, learned)]);
                steps.push(wave[0].view().label.clone());
                is_unverified = true;
            }
            Answer::LookAgain { .. } => block_on(session.observe()).unwrap(),
            Answer::Settled(_) if std::mem::take(&mut is_unverified) => {
                block_on(session.verify()).unwrap();
            }
            Answer::Settled(_) => {
                session.settled();
                return Ok(steps);
            }
            Answer::Refused(refusal) => return Err(refusal.reason),
            Answer::Wait { reason, .. } => return Err(reason),
        }
    }
    panic!("{steps:?}");
}

fn has(cloud: &Shared) -> bool {
    cloud.0.balancers.lock().unwrap().contains("u")
}

#[test]
fn a_service_is_balanced_by_the_cloud_of_its_class_and_leaves_nothing_in_the_one_before() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], false));
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    let plain = || json!({ "type": "LoadBalancer" });
    let of_two = || json!({ "type": "LoadBalancer", "loadBalancerClass": "two" });
    assert_eq!(drive(&clouds, facts(plain(), true, &[])), ["make"]);
    assert!(has(&one) && !has(&two));
    assert_eq!(
        *two.0.looks.lock().unwrap(),
        0,
        "who is not concerned is not asked"
    );
    // The class changed through ClusterIP, faster than anybody looked.
    assert_eq!(drive(&clouds, facts(of_two(), true, &[])), ["remove", "make"]);
    assert!(!has(&one) && has(&two));
    let looks = *one.0.looks.lock().unwrap();
    assert!(drive(&clouds, facts(of_two(), true, &[])).is_empty());
    assert_eq!(*one.0.looks.lock().unwrap(), looks, "what is gone is gone");
    assert!(
        !*two.0.has_begun.lock().unwrap(),
        "what this process begins in a cloud, no earlier one left there"
    );
    // A new process does not know where a Service without a class had something.
    let anew = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    assert_eq!(
        drive(&anew, facts(json!({ "type": "ClusterIP" }), false, &[])),
        ["remove"]
    );
    assert!(!has(&one) && !has(&two));
}

/// As the command `plan` does it: nothing is written, so a look would show again what is there.
#[test]
fn what_is_predicted_to_go_in_one_cloud_is_gone_when_the_other_begins() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], false));
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    drive(&clouds, facts(json!({ "type": "LoadBalancer" }), true, &[]));
    let of_two = facts(
        json!({ "type": "LoadBalancer", "loadBalancerClass": "two" }),
        true,
        &[],
    );
    let mut session = clouds.load_balancer().unwrap().begin(of_two.clone()).unwrap();
    let mut steps = Vec::new();
    block_on(session.observe()).unwrap();
    for _ in 0..10 {
        match session.plan().unwrap().answer {
            Answer::Apply(wave) => wave.into_steps().iter().for_each(|step| {
                session.predict(step);
                steps.push(step.view().label.clone());
            }),
            Answer::LookAgain { .. } => block_on(session.observe()).unwrap(),
            _ => break,
        }
    }
    assert_eq!(steps, ["remove", "make"]);
    assert!(has(&one) && !has(&two));
    assert_eq!(
        drive(&clouds, of_two),
        steps,
        "what was predicted is not taken for done"
    );
}

#[test]
fn a_removal_that_one_cloud_refuses_is_made_in_the_others() {
    for (name, why) in [
        ("refusing", "refusing: not so"),
        ("busy", "busy: busy"),
        ("failing", "failing: not now"),
    ] {
        let (first, two) = (fake(name, &[], false), fake("two", &[], false));
        for cloud in [&first, &two] {
            cloud.0.balancers.lock().unwrap().insert("u".to_owned());
        }
        let clouds = Several::new(vec![of(&first, &[], true), of(&two, &["two"], false)], true).unwrap();
        let removal = facts(json!({ "type": "ClusterIP" }), false, &[]);
        assert_eq!(try_drive(&clouds, removal).unwrap_err(), why);
        assert!(has(&first) && !has(&two), "{name}");
    }
    // Where one makes way for another, what the first has is gone first.
    let (first, two) = (fake("refusing", &[], false), fake("one", &[], false));
    let clouds = Several::new(vec![of(&first, &["a"], false), of(&two, &["b"], false)], true).unwrap();
    let of_class = |class: &str| {
        facts(
            json!({ "type": "LoadBalancer", "loadBalancerClass": class }),
            true,
            &[],
        )
    };
    for class in ["a", "b"] {
        assert_eq!(
            try_drive(&clouds, of_class(class)).unwrap_err(),
            "refusing: not so"
        );
    }
    assert!(!has(&two));
}

/// Of what an earlier process did, the annotations on the Service tell.
#[test]
fn a_new_process_removes_what_the_annotations_say_was_made_in_the_cloud_of_the_class_before() {
    for (key, is_removed) in [(ONE.key, true), (MODE.key, false)] {
        let (one, two) = (fake("one", &[], false), fake("two", &[], false));
        one.0.balancers.lock().unwrap().insert("u".to_owned());
        let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
        let marked = |is_wanted| {
            let spec = json!({ "type": "LoadBalancer", "loadBalancerClass": "two" });
            let mut facts = facts(spec, is_wanted, &[]);
            let mut service = Service::clone(&facts.service);
            service.metadata.annotations = Some([(key.to_owned(), "id".to_owned())].into_iter().collect());
            facts.service = Arc::new(service);
            facts
        };
        let steps = if is_removed {
            vec!["remove", "make"]
        } else {
            vec!["make"]
        };
        assert_eq!(drive(&clouds, marked(true)), steps);
        let looks = *one.0.looks.lock().unwrap();
        assert!(drive(&clouds, marked(true)).is_empty());
        assert_eq!(
            *one.0.looks.lock().unwrap(),
            looks,
            "asked once, although the annotation is still there"
        );
        // The same if the Service goes before a new process had to do with it.
        one.0.balancers.lock().unwrap().insert("u".to_owned());
        let anew = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
        drive(&anew, marked(false));
        assert_eq!(has(&one), !is_removed);
        assert!(!has(&two));
    }
}

#[test]
fn what_a_living_service_left_in_a_cloud_that_does_not_serve_it_is_an_orphan_and_nothing_of_a_class_of_nobody()
 {
    for (class, standings) in [
        (Some("two"), [Standing::Orphan, Standing::InUse]),
        (None, [Standing::InUse, Standing::Orphan]),
        (Some("of-nobody"), [Standing::InUse, Standing::InUse]),
    ] {
        let (one, two) = (fake("one", &[], false), fake("two", &[], false));
        for cloud in [&one, &two] {
            cloud.0.balancers.lock().unwrap().insert("u".to_owned());
        }
        let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
        let spec = json!({ "type": "LoadBalancer", "loadBalancerClass": class });
        let ServiceFacts {
            service,
            nodes,
            cluster,
            now,
            ..
        } = facts(spec, true, &[]);
        let services = ServiceList {
            classes: ServiceClasses::all_of(&[Arc::clone(&service)]),
            services: vec![service],
        };
        let facts = OrphanFacts {
            services: Arc::new(services),
            nodes,
            cluster,
            now,
        };
        let balancers = clouds.load_balancer().unwrap();
        let (found, _) = block_on(crate::ask_all(balancers.surveyed(&facts), future::pending));
        let seen: Vec<Standing> = found.iter().map(|it| it.standing).collect();
        assert_eq!(seen, standings, "{class:?}");
        if let Some(orphan) = found.iter().find(|it| it.standing == Standing::Orphan) {
            assert!(
                orphan.why.contains("which another cloud serves by now"),
                "{}",
                orphan.why
            );
            assert!(Arc::clone(&balancers).begin_removal(orphan, &facts).is_ok());
        }
    }
}

/// OpenStack has series of its own for them.
#[test]
fn the_end_of_a_reconcile_is_told_to_the_clouds_that_took_part() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], false));
    let clouds = Several::new(vec![of(&one, &[], true), of(&two, &["two"], false)], true).unwrap();
    let balancers = clouds.load_balancer().unwrap();
    let key = ServiceKey::new("default", "web");
    let of_two = || json!({ "type": "LoadBalancer", "loadBalancerClass": "two" });
    for (spec, is_wanted, kind, of_one, of_other) in [
        (
            json!({ "type": "LoadBalancer" }),
            true,
            ReconcileKind::Ensure,
            vec![ReconcileKind::Ensure],
            vec![],
        ),
        (
            of_two(),
            true,
            ReconcileKind::Ensure,
            vec![ReconcileKind::Delete],
            vec![ReconcileKind::Ensure],
        ),
        (
            of_two(),
            true,
            ReconcileKind::Update,
            vec![],
            vec![ReconcileKind::Update],
        ),
        (
            json!({ "type": "ClusterIP" }),
            false,
            ReconcileKind::Delete,
            vec![],
            vec![ReconcileKind::Delete],
        ),
    ] {
        drive(&clouds, facts(spec, is_wanted, &[]));
        balancers.reconciled(&key, kind, Duration::ZERO, false);
        balancers.reconciled(&key, kind, Duration::ZERO, true); // of a reconcile that no cloud began
        let told = |cloud: &Shared| std::mem::take(&mut *cloud.0.reconciled.lock().unwrap());
        let expected =
            |kinds: Vec<ReconcileKind>| kinds.into_iter().map(|kind| (kind, false)).collect::<Vec<_>>();
        assert_eq!(told(&one), expected(of_one), "{kind:?}");
        assert_eq!(told(&two), expected(of_other), "{kind:?}");
    }
}

#[test]
fn members_are_the_nodes_of_the_cloud_and_those_of_none() {
    let (one, ready) = (fake("one", &[], false), fake("ready", &[], false));
    let clouds = Several::new(vec![of(&one, &[], true), of(&ready, &["two"], false)], true).unwrap();
    let mut up = Node::clone(&node("b", Some("ready://b")));
    up.readiness = Readiness::Ready;
    let nodes = [
        node("a", Some("one://a")),
        Arc::new(up),
        node("c", Some("ready://c")),
        node("edge", None),
        node("metal", Some("metal://1")),
    ];
    drive(&clouds, facts(json!({ "type": "LoadBalancer" }), true, &nodes));
    assert_eq!(*one.0.members.lock().unwrap(), ["a", "edge", "metal"]);
    assert!(*one.0.has_begun.lock().unwrap(), "an earlier process may have");
    drive(
        &clouds,
        facts(
            json!({ "type": "LoadBalancer", "loadBalancerClass": "two" }),
            true,
            &nodes,
        ),
    );
    assert_eq!(
        *ready.0.members.lock().unwrap(),
        ["b"],
        "this cloud checks no health"
    );
    let balancers = clouds.load_balancer().unwrap();
    assert_eq!(balancers.node_set(), NodeSet::Both, "each cloud chooses from all");
    for (class, drains) in [(None, true), (Some("two"), false)] {
        let service = json!({ "spec": { "type": "LoadBalancer", "loadBalancerClass": class } });
        let service = serde_json::from_value(service).unwrap();
        assert_eq!(balancers.drains(&service), drains, "its cloud decides: {class:?}");
    }
}

#[test]
fn beside_other_managers_the_nodes_of_theirs_are_no_members() {
    let of_flag = vec!["metal".to_owned()];
    for (platforms, members) in [(Vec::new(), ["a", "edge"]), (of_flag, ["edge", "metal"])] {
        let one = fake("one", &[], false);
        let clouds = Several::beside_managers(of(&one, &[], true), &platforms);
        assert_eq!(clouds.name(), "one");
        let nodes = [
            node("a", Some("one://a")),
            node("b", Some("two://b")),
            node("edge", None),
            node("metal", Some("metal://1")),
        ];
        let asked = || facts(json!({ "type": "LoadBalancer" }), true, &nodes);
        assert_eq!(drive(&clouds, asked()), ["make"]);
        assert_eq!(*one.0.members.lock().unwrap(), members);
        // Nobody has to be told which cloud it is.
        let down = fake("one", &[], true);
        let clouds = Several::beside_managers(of(&down, &[], true), &platforms);
        let mut session = clouds.load_balancer().unwrap().begin(asked()).unwrap();
        assert_eq!(block_on(session.observe()).unwrap_err().to_string(), "down");
    }
}

/// Of a Node that two clouds may have, or that none has, a cloud that looks members up would say that it does not know it.
#[test]
fn a_node_that_is_not_known_to_be_of_the_cloud_is_no_member_where_members_are_looked_up() {
    let (one, two) = (fake("one", &[], false), fake("two", &["twin"], false));
    let clouds = Several::new(vec![of(&one, &[], true), of(&two, &["two"], false)], true).unwrap();
    let new = |name| {
        let taint = crate::Taint {
            key: crate::keys::TAINT_UNINITIALIZED.into(),
            value: None,
            effect: crate::TaintEffect::NoSchedule,
            time_added: None,
        };
        Arc::new(Node {
            taints: vec![taint],
            ..Node::named(name)
        })
    };
    let nodes = [
        node("a", Some("one://a")),
        node("b", Some("two://b")),
        node("bare", Some("1234")),
        node("edge", None),
        node("metal", Some("metal://1")),
        new("twin"),
    ];
    drive(&clouds, facts(json!({ "type": "LoadBalancer" }), true, &nodes));
    assert_eq!(*one.0.members.lock().unwrap(), ["a", "bare", "edge", "metal"]);
    let spec = json!({ "type": "LoadBalancer", "loadBalancerClass": "two" });
    drive(&clouds, facts(spec, true, &nodes));
    assert_eq!(*two.0.members.lock().unwrap(), ["b", "bare"]);
    let balancers = clouds.load_balancer().unwrap();
    let service = facts(json!({ "type": "LoadBalancer" }), true, &[]).service;
    let counted = nodes.iter().filter(|node| balancers.may_lead_to(&service, node));
    assert_eq!(counted.count(), 4, "explain counts the same");
}
