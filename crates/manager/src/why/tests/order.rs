//! Which cause is told first.

use super::*;

fn ids(why: &Why) -> Vec<&str> {
    why.causes.iter().map(|cause| &*cause.id).collect()
}

fn down(is_total: bool) -> Ailment {
    Ailment {
        text: "members do not answer".to_owned(),
        is_total,
        remedy: "",
        is_of_making: false,
    }
}

#[test]
fn a_step_that_is_made_by_itself_never_stands_before_an_outage() {
    for is_total in [true, false] {
        let report = PlanReport {
            ailments: vec![down(is_total)],
            notes: vec![Note::warning("Odd", "it is odd")],
            ..with_step()
        };
        let why = of_service(&service(|_| {}), Some(&report), &known(&nodes(), &[]));
        assert_eq!(
            ids(&why),
            ["service.members-down", "service.differs", "event.Odd"]
        );
    }
}

#[test]
fn what_keeps_a_service_from_its_use_stands_before_what_is_only_warned_of() {
    let none = Endpoints {
        unready: 3,
        ..Endpoints::default()
    };
    let nodes = nodes();
    let known = Known {
        endpoints: Some(&none),
        ..known(&nodes, &[])
    };
    let why = of_service(&in_trouble("quota", QUOTA), Some(&with_step()), &known);
    assert_eq!(ids(&why), ["last-try.quota", "service.pods-not-ready"]);
}
