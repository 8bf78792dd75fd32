//! What `plan` shows, with a cloud that is a number of parts.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::sync::Arc;

use bowline_cloud_provider::plan::{
    Answer, Impact, Lane, Plan, PlanReport, Refusal, ReportedOutcome, Step, render_text,
};
use bowline_cloud_provider::{
    CloudError, ClusterFacts, Ingress, KubeWrite, LoadBalancer, LoadBalancerPlan, LoadBalancerStatus,
    LoadBalancerStep, Memory, Node, Reconciler, Seen, Service, ServiceClasses, ServiceFacts, ServiceKey,
    ServiceList, facts,
};
use bowline_manager::plan::{PlanInput, plan_services};
use bowline_manager::why::{Known, of_service};
use jiff::Timestamp;
use serde_json::json;

/// A balancer of parts that are made one after the other, and a name that is written to the Service first.
struct Toy;

#[derive(Clone, PartialEq)]
struct MakePart(usize);

impl Step for MakePart {
    fn label(&self) -> String {
        format!("make-part({})", self.0)
    }

    fn object(&self) -> String {
        format!("part {}", self.0)
    }

    fn impact(&self) -> Impact {
        Impact::None
    }

    fn lanes(&self) -> Vec<Lane> {
        Vec::new()
    }
}

struct Intent {
    parts: usize,
    is_named: bool,
}

const NAME: &str = "example.com/name";
const PARTS: &str = "example.com/parts";

impl Reconciler for Toy {
    type Facts = ServiceFacts;
    type Intent = Intent;
    type Observed = usize;
    type Remembered = ();
    type Step = MakePart;
    type Learned = ();

    fn intent(&self, facts: &ServiceFacts) -> Result<Intent, Refusal> {
        let parts = facts::annotation(&facts.service, PARTS).unwrap_or("2");
        let is_named = facts::annotation(&facts.service, NAME).is_some();
        let parts = parts.parse().map_err(|_| Refusal::new("parts is no number"))?;
        Ok(Intent {
            parts: if facts.is_wanted { parts } else { 0 },
            is_named,
        })
    }

    async fn observe(
        &self,
        intent: &Intent,
        _: Option<usize>,
        _: &mut Memory<(), MakePart>,
    ) -> Result<usize, CloudError> {
        if intent.parts == 13 {
            Err(CloudError::other("the cloud is down"))
        } else {
            Ok(0)
        }
    }

    fn plan(&self, intent: &Intent, seen: &Seen<usize, (), MakePart>) -> LoadBalancerPlan<MakePart> {
        let step = if intent.parts > 0 && !intent.is_named {
            LoadBalancerStep::Kube(KubeWrite::AnnotateService(vec![(
                NAME.into(),
                Some("toy".into()),
            )]))
        } else {
            LoadBalancerStep::Cloud(MakePart(seen.observed))
        };
        let ip = (intent.parts > 0).then(|| "192.0.2.1".to_owned());
        let ingress = ip.map(|ip| Ingress {
            ip: Some(ip),
            ..Ingress::default()
        });
        let is_done = seen.observed == intent.parts && (intent.is_named || intent.parts == 0);
        let steps = if is_done { Vec::new() } else { vec![step] };
        Plan::new(Answer::apply_or(steps, || {
            Answer::Settled(LoadBalancerStatus {
                ingress: ingress.into_iter().collect(),
            })
        }))
    }

    async fn apply(&self, _: &Intent, _: &Seen<usize, (), MakePart>, _: &MakePart) -> Result<(), CloudError> {
        panic!("a plan writes nothing")
    }

    fn learn(&self, _: &mut Seen<usize, (), MakePart>, _: &MakePart, (): ()) {
        panic!("a plan writes nothing")
    }

    fn predict(&self, seen: &mut Seen<usize, (), MakePart>, _: &MakePart) {
        seen.observed += 1;
    }
}

impl LoadBalancer for Toy {
    fn load_balancer_name(&self, _: &ServiceFacts) -> String {
        "toy".to_owned()
    }

    fn selects(&self, service: &Service, node: &Node) -> bool {
        facts::annotation(service, "example.com/only").is_none_or(|only| only == node.name.as_str())
    }
}

#[test]
fn nodes_that_the_selector_leaves_out_are_no_members() {
    let nodes = ["a", "b", "c"].map(|name| Arc::new(Node::named(name)));
    let toy: &dyn LoadBalancer = &Toy;
    let known = Known {
        now: Timestamp::UNIX_EPOCH,
        nodes: Some(&nodes),
        node_set: Some(toy.node_set()),
        load_balancer: Some(toy),
        unserved: None,
        events: &[],
        classes: ServiceClasses::upstream(),
        services: &[],
        is_unled: false,
        restart: None,
        lacks_permissions: false,
        detour: None,
        endpoints: None,
        routes: None,
    };
    let told = |only: &str| {
        let service = service("web", |it| {
            it["metadata"]["annotations"]["example.com/only"] = only.into();
        });
        of_service(&service, None, &known)
    };
    let some = told("b").is;
    assert!(
        some.contains(&"1 of 3 Nodes may be members".to_owned()),
        "{some:?}"
    );
    assert!(
        some.contains(&"left out by the selector of Nodes: a, c".to_owned()),
        "{some:?}"
    );
    let none = told("d").causes;
    assert_eq!(none[0].id, "service.no-member");
    assert!(none[0].remedy.contains("corrects its selector"), "{none:?}");
}

fn service(name: &str, change: impl FnOnce(&mut serde_json::Value)) -> Arc<Service> {
    let mut service = json!({
        "metadata": { "namespace": "default", "name": name, "uid": name, "annotations": {} },
        "spec": { "type": "LoadBalancer" },
    });
    change(&mut service);
    Arc::new(serde_json::from_value(service).unwrap())
}

async fn plans(services: Vec<Arc<Service>>, only: &[&str]) -> Vec<PlanReport> {
    let cluster = ClusterFacts {
        name: "kubernetes".into(),
        uid: None,
        server_version: None,
        holder: "plan".into(),
    };
    let input = PlanInput {
        services: ServiceList {
            services,
            ..ServiceList::default()
        },
        nodes: Vec::new(),
        cluster: Arc::new(cluster),
        now: Timestamp::UNIX_EPOCH,
    };
    let only: Vec<ServiceKey> = only
        .iter()
        .map(|name| ServiceKey::new("default", *name))
        .collect();
    let toy: Arc<dyn LoadBalancer> = Arc::new(Toy);
    plan_services(&toy, &input, &only).await
}

fn waves(report: &PlanReport) -> Vec<Vec<&str>> {
    report
        .waves
        .iter()
        .map(|wave| wave.steps.iter().map(|step| step.label.as_str()).collect())
        .collect()
}

#[tokio::test]
async fn waves_follow_from_predicted_ones_of_the_cloud_and_of_kubernetes() {
    let reports = plans(vec![service("web", |_| {})], &[]).await;
    assert_eq!(
        waves(&reports[0]),
        [
            ["annotate-service(example.com/name=toy)"],
            ["make-part(0)"],
            ["make-part(1)"]
        ]
    );
    assert_eq!(
        reports[0].outcome,
        ReportedOutcome::Settled {
            publishes: vec!["192.0.2.1".into()]
        }
    );
}

#[tokio::test]
async fn what_is_as_it_should_be_publishes_nothing() {
    let done = service("web", |service| {
        service["metadata"]["annotations"] = json!({ NAME: "toy", PARTS: "0" });
    });
    let reports = plans(vec![done], &[]).await;
    assert_eq!(render_text(&reports), "default/web: no changes\n");
}

#[tokio::test]
async fn a_balancer_that_is_no_longer_wanted_is_taken_back() {
    let leaving = service("web", |service| {
        service["spec"]["type"] = json!("ClusterIP");
        service["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
        service["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
    });
    let reports = plans(vec![leaving], &[]).await;
    assert_eq!(
        reports[0].outcome,
        ReportedOutcome::Settled {
            publishes: vec!["no address".into(), "no finalizer".into()]
        }
    );
}

#[tokio::test]
async fn one_that_cannot_be_planned_leaves_the_others_alone() {
    let services = vec![
        service("bad", |service| {
            service["metadata"]["annotations"] = json!({ PARTS: "many" })
        }),
        service("down", |service| {
            service["metadata"]["annotations"] = json!({ PARTS: "13" })
        }),
        service("endless", |service| {
            service["metadata"]["annotations"] = json!({ PARTS: "1000" })
        }),
        service("good", |_| {}),
        service("none", |service| service["spec"]["type"] = json!("ClusterIP")),
    ];
    let reports = plans(services, &[]).await;
    let outcomes: Vec<(&str, &ReportedOutcome)> = reports
        .iter()
        .map(|report| (report.object.as_str(), &report.outcome))
        .collect();
    let failed = |error: &str| ReportedOutcome::Failed {
        error: error.to_owned(),
    };
    assert_eq!(outcomes.len(), 4);
    assert_eq!(
        outcomes[0],
        (
            "default/bad",
            &ReportedOutcome::Refused {
                refusal: Refusal::new("parts is no number")
            }
        )
    );
    assert_eq!(outcomes[1], ("default/down", &failed("the cloud is down")));
    let endless = "the plan does not settle in 100 waves. This is a fault of Bowline: please report it with this text. The \
                   last two waves were [make-part(97)] and [make-part(98)]";
    assert_eq!(outcomes[2], ("default/endless", &failed(endless)));
    assert!(matches!(
        outcomes[3],
        ("default/good", ReportedOutcome::Settled { .. })
    ));
}

#[tokio::test]
async fn named_services_are_planned_in_the_order_given() {
    let services = vec![
        service("a", |_| {}),
        service("b", |service| service["spec"]["type"] = json!("ClusterIP")),
    ];
    let reports = plans(services, &["b", "missing", "a"]).await;
    let objects: Vec<&str> = reports.iter().map(|report| report.object.as_str()).collect();
    assert_eq!(objects, ["default/b", "default/missing", "default/a"]);
    assert_eq!(
        reports[0].outcome,
        ReportedOutcome::NotServed {
            because: "its type is ClusterIP, and a load balancer is made for type LoadBalancer".into()
        }
    );
    assert_eq!(
        reports[1].outcome,
        ReportedOutcome::Failed {
            error: "there is no such Service".into()
        }
    );
}
