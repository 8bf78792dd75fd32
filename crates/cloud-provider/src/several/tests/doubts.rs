//! What a cloud may have of a Service that another one serves, left by an earlier process.

use super::*;
use crate::ask_all;

/// With the finalizer, as an earlier process left it.
fn begun(spec: Value, is_wanted: bool, annotation: Option<&str>) -> ServiceFacts {
    let mut facts = facts(spec, is_wanted, &[]);
    let mut service = Service::clone(&facts.service);
    service.metadata.finalizers = Some(vec![crate::keys::FINALIZER_LOAD_BALANCER.to_owned()]);
    service.metadata.annotations =
        annotation.map(|key| [(key.to_owned(), "id".to_owned())].into_iter().collect());
    facts.service = Arc::new(service);
    facts
}

#[test]
fn a_service_that_was_begun_and_that_its_cloud_wrote_nothing_on_is_asked_of_all_clouds_once() {
    let of_two = || json!({ "type": "LoadBalancer", "loadBalancerClass": "two" });
    for is_wanted in [true, false] {
        let (one, two) = (fake("one", &[], false), fake("two", &[], false));
        one.0.balancers.lock().unwrap().insert("u".to_owned());
        let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
        let steps = drive(&clouds, begun(of_two(), is_wanted, None));
        assert_eq!(
            steps,
            if is_wanted {
                vec!["remove", "make"]
            } else {
                vec!["remove"]
            }
        );
        assert!(!has(&one) && has(&two) == is_wanted);
        let looks = *one.0.looks.lock().unwrap();
        assert!(!is_wanted || drive(&clouds, begun(of_two(), true, None)).is_empty());
        assert_eq!(*one.0.looks.lock().unwrap(), looks, "asked once");
    }
    let plain = json!({ "type": "LoadBalancer" });
    for facts in [begun(plain.clone(), true, Some(ONE.key)), facts(plain, true, &[])] {
        let (one, two) = (fake("one", &[], false), fake("two", &[], true));
        let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
        assert_eq!(drive(&clouds, facts), ["make"]);
        assert_eq!(*two.0.looks.lock().unwrap(), 0);
    }
}

#[test]
fn a_cloud_that_does_not_answer_keeps_no_service_waiting_that_it_may_have_nothing_of() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], true));
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    let plain = || json!({ "type": "LoadBalancer" });
    assert_eq!(drive(&clouds, begun(plain(), true, None)), ["make"]);
    let looks = *two.0.looks.lock().unwrap();
    let mut session = clouds
        .load_balancer()
        .unwrap()
        .begin(begun(plain(), true, None))
        .unwrap();
    block_on(session.observe()).unwrap();
    assert!(session.plan().unwrap().again.is_some());
    assert_eq!(*two.0.looks.lock().unwrap() - looks, 1, "it is asked again");
}

fn orphan_facts(facts: &ServiceFacts) -> OrphanFacts {
    let services = vec![Arc::clone(&facts.service)];
    OrphanFacts {
        services: Arc::new(ServiceList {
            classes: ServiceClasses::all_of(&services),
            services,
        }),
        nodes: Arc::clone(&facts.nodes),
        cluster: Arc::clone(&facts.cluster),
        now: facts.now,
    }
}

/// Its class changed to two and back, and the process died after its first write in two: what it bears is of one's load balancer, which
/// is gone.
#[test]
fn what_another_cloud_has_of_a_service_that_bears_old_annotations_is_found_by_one_question_for_all() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], false));
    two.0.balancers.lock().unwrap().insert("u".to_owned());
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    let balancers = clouds.load_balancer().unwrap();
    let web = || begun(json!({ "type": "LoadBalancer" }), true, Some(ONE.key));
    assert_eq!(drive(&clouds, web()), ["make"]);
    assert_eq!(*two.0.looks.lock().unwrap(), 0, "a sick cloud would hold it up");
    let facts = orphan_facts(&web());
    let ask = || block_on(ask_all(balancers.left_elsewhere(&facts), future::pending)).0;
    let made: Vec<String> = ask().into_iter().map(|made| made.key.to_string()).collect();
    assert_eq!(made, ["default/web"], "the controller looks at it");
    assert_eq!(drive(&clouds, web()), ["remove"]);
    assert!(has(&one) && !has(&two));
    let looks = *two.0.looks.lock().unwrap();
    assert!(ask().is_empty() && drive(&clouds, web()).is_empty());
    assert_eq!(*two.0.looks.lock().unwrap(), looks, "what is gone is gone");
    let surveys = [&one, &two].map(|cloud| *cloud.0.surveys.lock().unwrap());
    assert_eq!(surveys, [1, 1], "once in the life of a process");
}

#[test]
fn a_cloud_that_does_not_answer_what_it_has_of_others_holds_up_nobody_and_is_asked_again() {
    let (one, two) = (fake("one", &[], true), fake("two", &[], false));
    two.0.balancers.lock().unwrap().insert("u".to_owned());
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    let web = begun(json!({ "type": "LoadBalancer" }), true, Some(ONE.key));
    let facts = orphan_facts(&web);
    let balancers = clouds.load_balancer().unwrap();
    let ask = || block_on(ask_all(balancers.left_elsewhere(&facts), future::pending));
    let answers = [(); 2]
        .map(|()| ask())
        .map(|(made, failed)| (made.len(), failed.len()));
    assert_eq!(answers, [(1, 1), (0, 1)]);
    let surveys = [&one, &two].map(|cloud| *cloud.0.surveys.lock().unwrap());
    assert_eq!(surveys, [2, 1]);
}

#[test]
fn a_service_that_goes_before_this_process_had_to_do_with_it_is_asked_of_all_clouds() {
    let (one, two) = (fake("one", &[], false), fake("two", &[], false));
    two.0.balancers.lock().unwrap().insert("u".to_owned());
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    let web = begun(json!({ "type": "LoadBalancer" }), false, Some(ONE.key));
    assert_eq!(drive(&clouds, web), ["remove"]);
    assert!(!has(&two));
}

#[test]
fn what_goes_in_one_cloud_does_not_wait_for_another_that_does_not_answer() {
    let (one, two) = (fake("one", &[], true), fake("two", &[], false));
    two.0.balancers.lock().unwrap().insert("u".to_owned());
    let clouds = Several::new(vec![of(&one, &["one"], true), of(&two, &["two"], false)], true).unwrap();
    let spec = json!({ "type": "LoadBalancer", "loadBalancerClass": "two" });
    let web = begun(spec, false, Some(ONE.key));
    let mut session = clouds.load_balancer().unwrap().begin(web).unwrap();
    block_on(session.observe()).unwrap();
    let Answer::Apply(wave) = session.plan().unwrap().answer else {
        panic!("two has a load balancer");
    };
    let wave = wave.into_steps();
    let learned = block_on(session.apply(&wave[0], &|| None)).unwrap();
    session.learn(&wave, vec![(0, learned)]);
    assert!(!has(&two));
    let error = loop {
        assert!(matches!(session.plan().unwrap().answer, Answer::LookAgain { .. }));
        if let Err(error) = block_on(session.observe()) {
            break error.to_string();
        }
    };
    assert_eq!(error, "one: down", "the finalizer stays until both are certain");
}
