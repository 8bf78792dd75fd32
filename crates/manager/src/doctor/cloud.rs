//! The cloud's API: whether it answers to what the controllers ask for.

use std::borrow::Cow;
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::effects::read_as;
use bowline_cloud_provider::orphans::{OrphanFacts, Standing};
use bowline_cloud_provider::{
    AnnotationSpec, BackgroundFacts, CloudError, ErrorKind, LoadBalancer, Misfit, Node, Question, Service,
    ServiceClasses, ServiceFacts, ServiceKey, ServiceList, ServicesView, facts,
};
use bowline_controllers::node_set;
use bowline_controllers::route::RouteSettings;
use bowline_drive::orphans::find;
use bowline_kube_io::{Kube, SeenEvent};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::timeout;

use super::answers::{Answers, NOBODY};
use super::{
    Check, Cloud, NAMED, Objects, PATIENCE, Patient, Topic, ask_each, events, listed, no_answer, some_lines,
    some_of, timed, too_late, took,
};
use crate::controllers::ControllerName;
use crate::orphans;
use crate::why::node::{NO_ROUTE, NOT_ROUTED, WITHOUT_NETWORK};
use crate::why::{of_here, remedy_of_error};

topics! { pub(super) Cloud:
    LOGIN = "cloud.provider", "the provider can be built", "docs/guides/troubleshoot.md#the-cloud";
    INSTANCES = "cloud.instances", "instances are listed", "docs/guides/troubleshoot.md#the-cloud";
    LOAD_BALANCERS = "cloud.load-balancers", "load balancers are read", "docs/guides/troubleshoot.md#the-cloud";
    FITS = "cloud.configuration", "the configuration fits the cloud", "docs/guides/troubleshoot.md#the-cloud";
    ROUTES = "cloud.routes", "routes are read", "docs/guides/troubleshoot.md#routes";
    BILLED = "cloud.billed", "what is billed belongs to a Service", "docs/runbooks/BowlineIPBlocksOrphaned.md";
    LEFT_BEHIND = "cloud.left-behind", "no load balancer is left behind",
        "docs/explanation/ownership.md#when-a-service-is-gone";
}

/// A listing that takes longer is a cloud in trouble. The alert of slow reads has the same.
const SLOW: Duration = Duration::from_secs(5);

/// Services that are tried until one can be looked up.
const TRIED: usize = 3;

const NO_PROVIDER: &str = "there is no provider";

/// The checks of this category where the cloud refused what is asked of it first. `detour`: how the manager goes there, and this does not.
pub(super) fn refused(error: &CloudError, detour: Option<&str>) -> [Check; 3] {
    let of_here = detour.and_then(|it| of_here(it, error.message()));
    [
        of_here.map_or_else(
            || LOGIN.failed(error.message(), remedy_of_start(error)),
            |text| LOGIN.skipped(text),
        ),
        INSTANCES.skipped(NO_PROVIDER),
        LOAD_BALANCERS.skipped(NO_PROVIDER),
    ]
}

/// What to do about an answer that ends a manager at its start: what it asks then comes from its configuration alone.
pub(super) fn remedy_of_start(error: &CloudError) -> Cow<'static, str> {
    match error.kind() {
        ErrorKind::Invalid | ErrorKind::NotFound => Cow::Borrowed(
            "correct what the text names in the configuration: the file of --cloud-config, the variables, the flags",
        ),
        _ => remedy_of_error(error),
    }
}

/// The checks of this category.
pub(super) async fn checks(
    patient: &Patient<'_>,
    answers: Option<&Answers>,
    objects: &Objects,
) -> Vec<Check> {
    let (provider, time) = match &patient.cloud {
        Cloud::Built(provider, time) | Cloud::Partly(provider, time, _) => (provider, *time),
        Cloud::Refused(_) => return Vec::new(), // `refused` has told it
        Cloud::Unusable(_) | Cloud::Hidden(_) => {
            let because = match patient.cloud {
                Cloud::Hidden(_) => "you may not read what the manager is told",
                _ => "the configuration cannot be used",
            };
            return vec![
                LOGIN.skipped(because),
                INSTANCES.skipped(NO_PROVIDER),
                LOAD_BALANCERS.skipped(NO_PROVIDER),
            ];
        }
    };
    let listed = match answers.map(|answers| &answers.listing) {
        None => INSTANCES.ok("the provider has none"),
        Some(Ok(time)) if *time > SLOW => INSTANCES.warning(
            format!("in {}", took(*time)),
            "whatever changes waits so long: see the cloud's own status page, the network, and who else calls the API",
        ),
        Some(Ok(time)) => INSTANCES.ok(format!("in {}", took(*time))),
        Some(Err(error)) => {
            let detour = objects.detour.as_deref();
            match detour.and_then(|it| of_here(it, error.message())) {
                Some(text) => INSTANCES.skipped(text),
                None => failed(&INSTANCES, error),
            }
        }
    };
    let cause = answers.and_then(Answers::cause);
    let is_served = patient.config.controllers.includes(ControllerName::Service);
    let balanced = match provider.load_balancer() {
        None => LOAD_BALANCERS.ok("the provider makes none, as it is configured"),
        Some(_) if !is_served => LOAD_BALANCERS.ok("not needed: the service controller is switched off"),
        Some(load_balancer) => match look_up(&load_balancer, patient, objects).await {
            Ok(check) => check,
            Err(error) => failed_besides(&LOAD_BALANCERS, &error, cause),
        },
    };
    let refused: Vec<String> = patient.cloud.refused().iter().map(ToString::to_string).collect();
    let mut checks = vec![
        match refused.is_empty() {
            true => LOGIN.ok(format!("{}, in {}", provider.name(), took(time))),
            false => LOGIN.failed(
                refused.join("; "),
                "follow the text; the manager serves the other clouds meanwhile, and what stands below of all is about these",
            ),
        },
        listed,
        balanced,
    ];
    // Whoever is not let in sees nothing of what the configuration names.
    if is_served && cause.is_none() {
        checks.extend(fits(provider.misfits()).await);
    }
    let are_made = patient.config.controllers.includes(ControllerName::Route)
        && patient.config.settings.routes.is_wanted;
    if let (true, Some(routes)) = (are_made, provider.routes()) {
        checks.push(
            match timed(routes.list_routes(&patient.config.cluster_name)).await {
                None => failed_besides(&ROUTES, &CloudError::transient(no_answer()), cause),
                Some((Ok(there), time)) => {
                    let seen = format!("{}, in {}", there.len(), took(time));
                    let told = told_of_routes(patient.kube.as_ref().ok(), objects.nodes()).await;
                    judge_routes(seen, objects.nodes(), &patient.config.settings.routes, &told)
                }
                Some((Err(error), _)) => failed_besides(&ROUTES, &error, cause),
            },
        );
    }
    checks
}

/// Whether what the configuration names is in the cloud as it says, where a provider compares that. `None`: none does.
async fn fits(asked: Vec<Question<'_, Misfit>>) -> Option<Check> {
    if asked.is_empty() {
        return None;
    }
    let (all, unanswered) = ask_each(asked).await;
    Some(match (all.first(), unanswered.first()) {
        (None, None) => FITS.ok("as far as it is compared"),
        (None, Some(unanswered)) => failed(&FITS, &unanswered.error()),
        (Some(Misfit { text, remedy }), _) => {
            let more = all.iter().skip(1);
            let more = more.map(|Misfit { text, remedy }| format!("{text}; {remedy}"));
            FITS.failed(text.clone(), remedy.clone()).with(more.collect())
        }
    })
}

/// What belongs to no Service, where the provider looks for it. `None`: it does not.
pub(super) async fn billed(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    objects: &Objects,
    answers: Option<&Answers>,
) -> Option<Check> {
    let cause = answers.and_then(Answers::cause);
    let provider = patient.cloud.provider()?;
    let of = |services: &[Arc<Service>]| BackgroundFacts {
        services: Arc::new(ServiceList {
            services: services.to_vec(),
            classes: objects.classes.clone(),
        }),
        cluster: Arc::clone(&objects.cluster),
        now: Timestamp::UNIX_EPOCH,
    };
    let first = provider.left_over(of(objects.services()));
    if first.is_empty() {
        return None;
    }
    let (Some(kube), Some(Ok(_))) = (kube, &objects.services) else {
        return Some(BILLED.skipped("Services are not read"));
    };
    if objects.cluster.uid.is_none() {
        return Some(BILLED.skipped("the UID of the cluster is not read"));
    }
    let (mut lines, mut failed) = ask_each(first).await;
    // A Service that came meanwhile may have bought what looked so.
    if !lines.is_empty()
        && let Ok(services) = listed(kube.list_services()).await
    {
        let (second, failed_by_now) = ask_each(provider.left_over(of(&services))).await;
        lines.retain(|line| second.contains(line));
        failed = failed_by_now;
    }
    Some(match (lines.is_empty(), failed.first()) {
        (true, Some(unanswered)) => failed_besides(&BILLED, &unanswered.error(), cause),
        (true, None) => BILLED.ok("all"),
        (false, _) => {
            let failed = failed.iter().map(|it| format!("not looked for: {}", it.error()));
            BILLED
                .warning(
                    format!("{} not, and no manager gives it back by itself", lines.len()),
                    "give it back, or let a Service take it again: the page says how",
                )
                .with(failed.chain(some_lines(lines)).collect())
        }
    })
}

/// What bears the marks or names of this cluster, and that none of its Services asks for, as `orphans` finds it. `None`: there are no
/// load balancers to look for.
pub(super) async fn left_behind(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    objects: &Objects,
    answers: Option<&Answers>,
) -> Option<Check> {
    let load_balancer = patient.cloud.provider()?.load_balancer()?;
    let cause = answers.and_then(Answers::cause);
    let (Some(kube), Some(Ok(services))) = (kube, &objects.services) else {
        return Some(LEFT_BEHIND.skipped("Services are not read"));
    };
    let (mut unread, mut renamed, mut unclear) = (Vec::new(), Vec::new(), 0);
    let mut look = async |services: &[Arc<Service>]| {
        let facts = OrphanFacts {
            services: orphans::services(services.to_vec()),
            nodes: objects.nodes().into(),
            cluster: Arc::clone(&objects.cluster),
            now: kube.clock().now(),
        };
        let (mut left, others, unanswered) = find(&load_balancer, &facts, too_late).await?;
        // Where a manager does not succeed with what it gives back by itself, what is billed tells of it.
        left.retain(|(group, _)| group.iter().any(|it| it.standing == Standing::Orphan));
        let uid = facts.services.cluster_uid().or_else(|| facts.cluster.uid.clone());
        unclear = others
            .iter()
            .filter(|it| it.standing == Standing::Unclear)
            .count();
        renamed = others;
        renamed.retain(|it| orphans::is_of_this_cluster(it, services, uid.as_deref()));
        unread = unanswered;
        Ok::<_, CloudError>(left)
    };
    let twice = async {
        let first = look(services).await?;
        if first.is_empty() {
            return Ok(Some(first));
        }
        // A Service may have come before the cloud answered.
        match listed(kube.list_services()).await {
            Ok(services) => Ok(Some(orphans::both(&first, look(&services).await?).0)),
            Err(_) => Ok(None),
        }
    };
    // Each look ends when the clouds had their time; the plans of what was found read, too.
    let left = match timeout(3 * PATIENCE, twice).await {
        Err(_) => {
            let error = CloudError::transient(no_answer());
            return Some(failed_besides(&LEFT_BEHIND, &error, cause));
        }
        Ok(Err(error)) => return Some(failed_besides(&LEFT_BEHIND, &error, cause)),
        Ok(Ok(None)) => return Some(LEFT_BEHIND.skipped("Services are not read")),
        Ok(Ok(Some(left))) => left,
    };
    let where_not = unread.iter().filter_map(|it| it.cloud);
    let where_not = where_not.map(|cloud| format!(", not looked for in {cloud}"));
    let where_not: String = where_not.collect();
    let unasked = unasked(services, &objects.classes, load_balancer.annotations());
    if left.is_empty() && !renamed.is_empty() {
        let lines = renamed.iter().map(|it| format!("{it}: {}", it.why));
        let seen = format!(
            "{} bear the name of another cluster and the marks of a Service here{where_not}",
            renamed.len()
        );
        let lines = lines.chain(unasked).collect();
        return Some(LEFT_BEHIND.warning(seen, RENAMED).with(some_lines(lines)));
    }
    let nothing = match unclear {
        0 => format!("`orphans` finds nothing{where_not}"),
        _ => format!("`orphans` finds nothing for certain, and says why {unclear} are unclear{where_not}"),
    };
    match (left.is_empty(), unasked.is_empty(), unread.first()) {
        (true, true, None) => return Some(LEFT_BEHIND.ok(nothing)),
        (true, true, Some(_)) => return Some(LEFT_BEHIND.skipped(nothing)),
        (true, false, _) => {
            let seen = format!(
                "{} may be: its Service left the class of this manager{where_not}",
                unasked.len()
            );
            let remedy = "if no other manager removes it, set the type of the Service to LoadBalancer once more, with the class that this manager serves, and then back: it removes what it made";
            return Some(LEFT_BEHIND.warning(seen, remedy).with(some_lines(unasked)));
        }
        (false, ..) => {}
    }
    let renamed = renamed.iter().map(|it| format!("{it}: {}", it.why));
    let lines = left.iter().map(|(group, _)| {
        let owner = group.first().map(|it| it.owner.to_string());
        format!(
            "{}, made for {}",
            orphans::objects(group),
            owner.unwrap_or_default()
        )
    });
    Some(
        LEFT_BEHIND
            .warning(
                format!("{}, and no manager deletes one by itself{where_not}", left.len()),
                "see `orphans`, which deletes them with --delete; a copy of this cluster, or the one that this is a copy of, may use them",
            )
            .with(some_lines(lines.chain(renamed).chain(unasked).collect())),
    )
}

/// What to do about what was made under another name of this cluster.
const RENAMED: &str = "if --cluster-name was changed by mistake, set it back: a Service whose load balancer is found by its name alone gets another \
    one, with another address. If the new name is to stay, whoever owns the project deletes what stands here when nobody goes by its address any \
    more: no manager does";

/// Services that are no load balancers any more, and that a manager of this cloud made something for: without their class, and a note
/// of it, this manager, which serves only some, does not know whether it was itself. And those that went on to another class.
fn unasked(services: &[Arc<Service>], classes: &ServiceClasses, table: &[AnnotationSpec]) -> Vec<String> {
    let is_left = |service: &&Arc<Service>| facts::has_finalizer(service) && !classes.concern(service);
    let told = services.iter().filter(is_left).filter_map(|service| {
        if let Some(class) = classes.lost(service) {
            return Some(format!(
                "Service {} had the class {class} and has another one now: this manager leaves it and what it made for it to others",
                ServiceKey::of(service)
            ));
        } else if facts::is_type(service, "LoadBalancer") {
            return None;
        }
        let written = table.iter().find(|it| it.is_written_on(service))?;
        Some(format!(
            "Service {} has the finalizer and the annotation {}, and no class any more: this manager leaves it to others",
            ServiceKey::of(service),
            written.key
        ))
    });
    told.collect()
}

/// The Nodes that have no route of the manager, as their condition tells.
fn without_route(nodes: &[Arc<Node>]) -> impl Iterator<Item = &Arc<Node>> {
    nodes.iter().filter(|node| {
        let network = node.network_unavailable.as_ref();
        network.is_some_and(|it| it.is_unavailable && &*it.reason == NOT_ROUTED)
    })
}

/// What the events of Nodes without a route tell, as long as the API server keeps them: the route controller repeats them.
async fn told_of_routes(kube: Option<&Kube>, nodes: &[Arc<Node>]) -> Vec<SeenEvent> {
    let mut told = Vec::new();
    for node in without_route(nodes).take(NAMED) {
        let all = events(kube, Some(("Node", "", node.name.as_str()))).await;
        told.extend(all.into_iter().rfind(|it| it.reason == NO_ROUTE));
    }
    told
}

/// The routes were read: whether each Node has its own, and why some have none: by their pod networks, else by these events.
fn judge_routes(seen: String, nodes: &[Arc<Node>], routes: &RouteSettings, told: &[SeenEvent]) -> Check {
    let lacking: Vec<&Arc<Node>> = without_route(nodes).collect();
    if lacking.is_empty() {
        return ROUTES.ok(seen);
    }
    let names = lacking.iter().map(|it| it.name.to_string());
    let seen = format!("{seen}; {} Nodes have none: {}", lacking.len(), some_of(names));
    let odd = |node: &Node| {
        let odd = routes.odd_networks(node, nodes).into_iter();
        let odd = odd.map(|(_, text)| format!("{}: {text}", node.name));
        let told = told.iter().filter(|it| it.object == node.name.as_str());
        let told = told.map(|it| format!("{}: {}", node.name, it.message));
        let odd: Vec<String> = odd.collect();
        if odd.is_empty() { told.collect() } else { odd }
    };
    let odd: Vec<Vec<String>> = lacking.iter().map(|node| odd(node)).collect();
    let remedy = match odd.iter().any(Vec::is_empty) {
        true => WITHOUT_NETWORK,
        false => "follow what stands behind the names",
    };
    ROUTES.failed(seen, remedy).with(some_lines(odd.concat()))
}

fn failed(topic: &'static Topic, error: &CloudError) -> Check {
    topic.failed(error.message(), remedy_of_error(error))
}

/// What failed, where something else may have failed as well: one cause is one failure. Where not even instances are listed, a thing that
/// is not found is no other one.
fn failed_besides(topic: &'static Topic, error: &CloudError, cause: Option<&CloudError>) -> Check {
    let is_of = |cause: &CloudError| {
        error.kind() == ErrorKind::NotFound || discriminant(&error.kind()) == discriminant(&cause.kind())
    };
    match cause.is_some_and(is_of) {
        true => topic.skipped("the cloud fails as it does where instances are listed"),
        false => failed(topic, error),
    }
}

/// Reads the balancer of one Service, as a reconcile would; of one that is made up if there is none.
async fn look_up(
    load_balancer: &Arc<dyn LoadBalancer>,
    patient: &Patient<'_>,
    objects: &Objects,
) -> Result<Check, CloudError> {
    let view: Arc<dyn ServicesView> = Arc::new(objects.list());
    let balanced = node_set::balanced(objects.nodes(), load_balancer.node_set());
    let wanted = objects
        .services()
        .iter()
        .filter(|service| objects.classes.is_wanted(service));
    let facts_of = |service: Arc<Service>| {
        let nodes = node_set::of_service(balanced.clone(), &service, &**load_balancer);
        ServiceFacts::of(
            service,
            nodes.into(),
            Arc::clone(&view),
            Arc::clone(&objects.cluster),
            Timestamp::UNIX_EPOCH,
        )
    };
    let made_up = stand_in().map(|service| {
        // What has no Service any more is looked for whatever that one said, and without Nodes.
        let facts = ServiceFacts {
            is_wanted: false,
            ..facts_of(service)
        };
        ("one that is not there".to_owned(), facts)
    });
    let real = wanted.take(TRIED).cloned().map(|service| {
        let facts = facts_of(service);
        (format!("the one of Service {}", facts.key()), facts)
    });
    for (name, facts) in real.chain(made_up) {
        // What a Service asks for may be refused; a plan tells that.
        let Ok(mut session) = Arc::clone(load_balancer).begin(facts) else {
            continue;
        };
        return match timed(session.observe()).await {
            None => Err(CloudError::transient(no_answer())),
            Some((Ok(()), time)) => Ok(LOAD_BALANCERS.ok(format!("{name}, in {}", took(time)))),
            Some((Err(error), _)) if patient.cloud.is_of_refused(&error) => continue,
            Some((Err(error), _)) => Err(error),
        };
    }
    Ok(LOAD_BALANCERS.skipped("there is no Service whose load balancer could be read"))
}

/// A Service that nobody has made.
pub(super) fn stand_in() -> Option<Arc<Service>> {
    let service = json!({
        "metadata": {
            "namespace": bowline_kube_io::rbac::NAMESPACE,
            "name": NOBODY,
            "uid": "00000000-0000-4000-8000-000000000000",
        },
        "spec": {
            "type": "LoadBalancer",
            "sessionAffinity": "None",
            "ports": [{ "name": "http", "port": 80, "nodePort": 30080, "protocol": "TCP" }],
        },
    });
    read_as(&service).ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::NetworkUnavailable;

    use super::*;

    bowline_cloud_provider::annotations! {
        "example.com/";
        MADE = "made", Text, "", Written, None, "What was made.";
    }

    #[test]
    fn a_node_without_a_route_is_told_what_is_wrong_with_its_pod_network() {
        let node = |name: &str, network: &str, is_unavailable| {
            Arc::new(Node {
                pod_cidrs: vec![network.to_owned()],
                network_unavailable: Some(NetworkUnavailable {
                    is_unavailable,
                    reason: "NoRouteCreated".into(),
                }),
                ..Node::named(name)
            })
        };
        let timing = RouteSettings::default().timing;
        let routes = RouteSettings::new(true, "10.244.0.0/16", timing);
        let nodes = [
            node("a", "10.244.1.0/24", false),
            node("twin", "10.244.1.0/24", true),
            node("outside", "192.168.7.0/24", true),
            node("full", "10.244.9.0/24", true),
        ];
        let check = judge_routes("1".to_owned(), &nodes[..3], &routes, &[]);
        assert_eq!(check.details.len(), 2, "{check:?}");
        assert!(
            check.details[0].starts_with(
                "twin: The pod network 10.244.1.0/24 has addresses in common with that of node a"
            )
        );
        assert!(check.details[1].contains("is not in --cluster-cidr"), "{check:?}");
        assert!(!check.remedy.contains("router"), "{check:?}");
        let check = judge_routes("1".to_owned(), &nodes, &routes, &[]);
        assert!(check.remedy.contains("router"), "{check:?}");
        let told = SeenEvent {
            object: "full".to_owned(),
            is_warning: true,
            reason: NO_ROUTE.to_owned(),
            message: "Could not create route: Quota exceeded for resources: routes".to_owned(),
            count: 1,
            last: Timestamp::UNIX_EPOCH,
            process: String::new(),
        };
        let check = judge_routes("1".to_owned(), &nodes, &routes, &[told]);
        assert!(
            check.details[2].contains("full: Could not create route: Quota exceeded"),
            "{check:?}"
        );
        assert!(!check.remedy.contains("router"), "{check:?}");
    }

    #[test]
    fn a_service_that_left_the_class_while_no_manager_ran_is_told_of() {
        let service = |name: &str, spec: serde_json::Value, is_made: bool| -> Arc<Service> {
            let annotations = if is_made {
                json!({ MADE.key: "1" })
            } else {
                json!({})
            };
            let metadata = json!({
                "namespace": "default", "name": name, "annotations": annotations,
                "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
            });
            Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
        };
        let left = || json!({ "type": "ClusterIP" });
        let services = [
            service("left", left(), true),
            service("of-another", left(), false),
            service(
                "served",
                json!({ "type": "LoadBalancer", "loadBalancerClass": "a" }),
                true,
            ),
            service(
                "of-class-b",
                json!({ "type": "LoadBalancer", "loadBalancerClass": "b" }),
                true,
            ),
        ];
        let gone_on = json!({
            "metadata": {
                "namespace": "default", "name": "gone-on", "annotations": { "bowline/load-balancer-class": "a" },
                "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
            },
            "spec": { "type": "LoadBalancer", "loadBalancerClass": "b" },
        });
        let gone_on = Arc::new(serde_json::from_value(gone_on).unwrap());
        let classes = |serves_unclassed| ServiceClasses::new(["a".to_owned()], serves_unclassed).unwrap();
        let told = unasked(&services, &classes(false), TABLE);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("Service default/left has the finalizer and the annotation example.com/made")
        );
        assert!(
            unasked(&services, &classes(true), TABLE).is_empty(),
            "this manager removes it itself"
        );
        let told = unasked(&[gone_on], &classes(true), TABLE);
        assert!(
            told[0].starts_with("Service default/gone-on had the class a and has another one now"),
            "{told:?}"
        );
    }
}
