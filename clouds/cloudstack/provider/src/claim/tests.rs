//! What is written on a Service, and what is read from it.

use super::*;

fn read(write: &KubeWrite, service: &mut Service) -> Claim {
    write.predict(service);
    Claim::of(service)
}

#[test]
fn a_claim_reads_back_as_it_was_written() {
    let mut service = Service::default();
    let nothing = Claim::of(&service);
    assert_eq!(nothing.held, None);
    let one = read(
        &nothing.with([Claimed::Address("one".into())], false),
        &mut service,
    );
    assert!(one.names(&"one".into()) && !one.names(&"two".into()));
    for known in [&["three", "four"][..], &[]] {
        let any_address = AnyAddress {
            network: "debut-1".into(),
            since: known.first().map(|_| Timestamp::UNIX_EPOCH),
            known: known.iter().map(|id| PublicIpId::from(*id)).collect(),
        };
        let any = read(
            &one.with([Claimed::Any(any_address.clone())], false),
            &mut service,
        );
        assert_eq!(any.any_address(), Some(&any_address));
    }
    let any = Claim::of(&service);
    let asked = Claimed::Asked("two".into(), Timestamp::UNIX_EPOCH);
    let both = read(&any.with([asked.clone()], false), &mut service);
    assert!(both.any_address().is_some() && both.names(&"two".into()));
    assert_eq!(both.asked(&"two".into()), Some(Timestamp::UNIX_EPOCH));
    assert_eq!(asked_in(&both.with([], false)), [asked.asked().unwrap()]);
    // What the cloud chose takes the place of "any", and what came that of what was asked for.
    let two = read(&any.with([Claimed::Address("two".into())], true), &mut service);
    assert_eq!(
        two.ids().collect::<Vec<_>>(),
        ["one", "two"].map(PublicIpId::from).each_ref()
    );
    assert_eq!(two.any_address(), None);
    let three = read(&two.with([Claimed::Shared("three".into())], false), &mut service);
    assert!(three.shares(&"three".into()) && !three.names(&"three".into()) && three.names(&"two".into()));
    let none = read(&three.keeping(|_| false), &mut service);
    assert_eq!(none.held, Some(Vec::new()));
    let marked = read(&Claim::mark(), &mut service);
    assert!(marked.is_marked && marked.is_written());
    assert!(!read(&marked.clear(), &mut service).is_written());
}

#[test]
fn sources_are_remembered_until_nothing_is_open_for_them() {
    let mut service = Service::default();
    let sources = |texts: &[&str]| Sources::new(texts.iter().map(|text| (*text).to_owned()));
    let (one, two) = (
        sources(&["192.0.2.0/24", "10.0.0.0/8"]),
        sources(&["198.51.100.0/24"]),
    );
    let first = read(&Claim::of(&service).with_sources(&one), &mut service);
    let both = read(&first.with_sources(&two), &mut service);
    assert!(both.has_opened(&one.cidrs) && both.has_opened(&two.cidrs));
    let only = read(&both.opened_only(&two.cidrs).unwrap(), &mut service);
    assert!(!only.has_opened(&one.cidrs) && only.opened_only(&two.cidrs).is_none());
    assert!(!read(&only.opened_only(&Cidrs::default()).unwrap(), &mut service).is_written());
}

#[test]
fn a_claim_stands_for_two_minutes_in_either_direction() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let left = |age: i64| stands_for(at(1_000), at(1_000 + age));
    assert_eq!(left(0), Some(PATIENCE + WRITTEN_TO));
    assert_eq!(left(120), Some(WRITTEN_TO));
    assert_eq!((left(121), left(-400)), (None, None));
    assert_eq!(left(-20), Some(Duration::from_secs(101)));
}

#[test]
fn what_cannot_be_read_holds_nothing() {
    let mut service = Service::default();
    KubeWrite::AnnotateService(vec![(IP_IDS.key.to_owned(), Some(" , , 7 ".to_owned()))])
        .predict(&mut service);
    assert_eq!(Claim::of(&service).held, Some(vec![Claimed::Address("7".into())]));
}
