//! Who is asked, and what the others tell where one does not answer.

use super::*;

fn ask(clouds: &Several, node: &Arc<Node>) -> InstanceResult {
    let query = InstanceQuery {
        node: Arc::clone(node),
        purpose: Purpose::Metadata,
    };
    block_on(clouds.instances().unwrap().instances(&[query])).remove(0)
}

fn id_of(answer: InstanceResult) -> Option<String> {
    match answer {
        Ok(InstanceAnswer::Present(instance)) => instance.metadata.provider_id,
        _ => None,
    }
}

#[test]
fn a_node_is_of_the_cloud_of_its_scheme_and_one_without_of_the_only_one_that_knows_it() {
    let (one, two) = (fake("one", &["a", "c"], false), fake("two", &["b", "c"], false));
    let clouds = Several::new(vec![of(&one, &[], true), of(&two, &["two"], false)], true).unwrap();
    assert_eq!(clouds.name(), "one,two");
    assert_eq!(id_of(ask(&clouds, &node("a", None))).as_deref(), Some("one://a"));
    assert_eq!(id_of(ask(&clouds, &node("b", None))).as_deref(), Some("two://b"));
    assert_eq!(
        id_of(ask(&clouds, &node("c", Some("two://c")))).as_deref(),
        Some("two://c")
    );
    let twice = ask(&clouds, &node("c", None)).unwrap_err().to_string();
    assert!(
        twice.contains("one and two") && twice.contains("--provider-id"),
        "{twice}"
    );
    let nobodys = ask(&clouds, &node("edge", None)).unwrap_err();
    assert_eq!(
        nobodys.kind(),
        crate::ErrorKind::NotFound,
        "no proof that it is gone"
    );
    let of = |node: Arc<Node>| clouds.instances().unwrap().cloud_of(&node);
    assert_eq!(of(node("b", Some("two://b"))), Some(1));
    assert_eq!(
        (of(node("b", None)), of(node("edge", Some("metal://1")))),
        (None, None)
    );
    assert_eq!(
        ask(&clouds, &node("edge", Some("metal://1"))),
        Ok(InstanceAnswer::Foreign)
    );
    let gone = ask(&clouds, &node("x", Some("one://x")));
    assert!(
        matches!(gone, Ok(InstanceAnswer::Absent(_))),
        "its own cloud proves it: {gone:?}"
    );
}

#[test]
fn while_a_cloud_does_not_answer_a_name_in_another_is_not_believed() {
    let (one, two) = (fake("one", &["a"], false), fake("two", &[], true));
    let clouds = Several::new(vec![of(&one, &[], true), of(&two, &["two"], false)], true).unwrap();
    assert_eq!(
        ask(&clouds, &node("a", None)).unwrap_err().to_string(),
        "two: down"
    );
    assert_eq!(
        id_of(ask(&clouds, &node("a", Some("one://a")))).as_deref(),
        Some("one://a")
    );
    let own = ask(&clouds, &node("b", Some("two://b"))).unwrap_err();
    assert_eq!(own.to_string(), "two: down");
}

#[test]
fn an_id_without_a_scheme_is_asked_of_the_clouds_whose_ids_have_its_form() {
    let (one, two) = (fake("one", &["a"], false), fake("two", &[], true));
    let clouds = Several::new(vec![of(&one, &[], true), of(&two, &["two"], false)], true).unwrap();
    let (own, gone) = (node("a", Some("one-1")), node("b", Some("one-2")));
    assert_eq!(id_of(ask(&clouds, &own)).as_deref(), Some("one://a"));
    assert!(matches!(ask(&clouds, &gone), Ok(InstanceAnswer::Absent(_))));
    assert_eq!(clouds.instances().unwrap().cloud_of(&own), Some(0));
    let of_nobody = ask(&clouds, &node("a", Some("x-1"))).unwrap_err();
    assert_eq!(of_nobody.to_string(), "two: down");
}

/// What `doctor` and the gauge of load balancers left behind ask.
#[test]
fn what_the_other_clouds_tell_is_used_where_one_fails_or_hangs_and_that_one_is_named() {
    let all = [
        fake("one", &["a"], false),
        fake("two", &[], true),
        fake("hanging", &["b"], false),
    ];
    let classes = [("", true), ("two", false), ("three", false)];
    let clouds = std::iter::zip(&all, classes).map(|(cloud, (class, rest))| match class {
        "" => of(cloud, &[], rest),
        class => of(cloud, &[class], rest),
    });
    let clouds = Several::new(clouds.collect(), true).unwrap();
    let facts = facts(json!({ "type": "LoadBalancer" }), true, &[]);
    let background = BackgroundFacts {
        services: Arc::clone(&facts.services),
        cluster: Arc::clone(&facts.cluster),
        now: facts.now,
    };
    let orphans = OrphanFacts {
        services: Arc::clone(&facts.services),
        nodes: Arc::clone(&facts.nodes),
        cluster: facts.cluster,
        now: facts.now,
    };
    all[0].0.balancers.lock().unwrap().insert("gone".to_owned());
    fn of_all<T>(questions: Vec<Question<'_, T>>) -> Vec<T> {
        let late = || future::ready(CloudError::transient("no answer"));
        let (told, failed) = block_on(crate::ask_all(questions, late));
        let failed: Vec<String> = failed.iter().map(|it| it.error().to_string()).collect();
        assert_eq!(failed, ["two: down", "hanging: no answer"]);
        assert_eq!(told.len(), 1);
        told
    }
    let (instances, balancers) = (clouds.instances().unwrap(), clouds.load_balancer().unwrap());
    assert_eq!(of_all(clouds.left_over(background)), ["left in one"]);
    assert_eq!(of_all(clouds.allowance())[0].text, "may");
    assert_eq!(of_all(instances.names()), ["a"]);
    assert_eq!(of_all(balancers.made_for(&*facts.services))[0].uid, "one");
    let found = of_all(balancers.surveyed(&orphans)).remove(0);
    assert_eq!(found.id, "one-gone");
    assert!(balancers.begin_removal(&found, &orphans).is_ok());
}
