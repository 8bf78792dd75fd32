//! What is written on a Service, and what is read from it.

use bowline_cloud_provider::{KubeWrite, Pairs};

use super::*;

/// What is read after a change was written.
fn changed(service: &mut Service, change: impl FnOnce(&mut Claim)) -> Claim {
    let mut claim = Claim::of(service);
    change(&mut claim);
    let texts = claim.texts().map(|(key, text)| (key.to_owned(), text));
    KubeWrite::AnnotateService(texts.into()).predict(service);
    let read = Claim::of(service);
    assert_eq!(read.texts(), claim.texts());
    read
}

#[test]
fn a_claim_reads_back_as_it_was_written() {
    let service = &mut Service::default();
    assert_eq!(Claim::of(service).held, None);
    let one = changed(service, |claim| claim.insert(Claimed::Address("one".into())));
    assert!(one.names(&"one".into()) && !one.names(&"two".into()));
    for known in [&["three", "four"][..], &[]] {
        let any_address = AnyAddress {
            network: "debut-1".into(),
            since: known.first().map(|_| Timestamp::UNIX_EPOCH),
            known: known.iter().map(|id| PublicIpId::from(*id)).collect(),
        };
        let any = changed(service, |claim| claim.insert(Claimed::Any(any_address.clone())));
        assert_eq!(any.any_address(), Some(&any_address));
    }
    let asked = Claimed::Asked("two".into(), Timestamp::UNIX_EPOCH);
    let both = changed(service, |claim| claim.insert(asked.clone()));
    assert!(both.any_address().is_some() && both.names(&"two".into()));
    assert_eq!(both.asked(&"two".into()), Some(Timestamp::UNIX_EPOCH));
    assert_eq!(both.open_requests().collect::<Vec<_>>(), [asked.asked().unwrap()]);
    // What came takes the place of what was asked for.
    let two = changed(service, |claim| {
        claim.retain(|claimed| !matches!(claimed, Claimed::Any(_)));
        claim.insert(Claimed::Address("two".into()));
    });
    assert_eq!(
        two.ids().collect::<Vec<_>>(),
        ["one", "two"].map(PublicIpId::from).each_ref()
    );
    assert_eq!((two.any_address(), two.asked(&"two".into())), (None, None));
    let three = changed(service, |claim| claim.insert(Claimed::Shared("three".into())));
    assert!(three.shares(&"three".into()) && !three.names(&"three".into()) && three.names(&"two".into()));
    let going = changed(service, |claim| claim.insert(Claimed::Going("two".into())));
    assert!(going.is_going(&"two".into()) && going.names(&"two".into()) && !going.is_going(&"one".into()));
    let none = changed(service, |claim| claim.retain(|_| false));
    assert_eq!(none.held, Some(Vec::new()));
    assert!(changed(service, |claim| claim.is_marked = true).is_marked);
    let cleared = changed(service, |claim| *claim = Claim::default());
    assert_eq!(cleared, Claim::default());
    assert_eq!(service.metadata.annotations, Some(Pairs::default()));
}

#[test]
fn of_places_those_of_claimed_addresses_are_written() {
    let service = &mut Service::default();
    let place = |vpc: Option<&str>| Place {
        network: "n1".into(),
        vpc: vpc.map(Into::into),
    };
    let claim = changed(service, |claim| {
        claim.insert(Claimed::Address("one".into()));
        claim.insert(Claimed::Shared("two".into()));
        for (id, vpc) in [("one", None), ("two", Some("v")), ("three", None)] {
            claim.leads(&id.into(), place(vpc));
        }
    });
    let known = ["one", "two", "three"].map(|id| claim.place(&id.into()).cloned());
    assert_eq!(known, [Some(place(None)), Some(place(Some("v"))), None]);
}

#[test]
fn sources_are_remembered_until_nothing_is_open_for_them() {
    let service = &mut Service::default();
    let sources = |texts: &[&str]| Sources::new(texts.iter().map(|text| (*text).to_owned()));
    let (one, two) = (
        sources(&["192.0.2.0/24", "10.0.0.0/8"]),
        sources(&["198.51.100.0/24"]),
    );
    changed(service, |claim| claim.open(&one));
    let both = changed(service, |claim| claim.open(&two));
    assert!(both.has_opened(&one.cidrs) && both.has_opened(&two.cidrs));
    assert_eq!(changed(service, |claim| claim.open(&one)), both);
    let only = changed(service, |claim| claim.opens_only(&two.cidrs));
    assert!(!only.has_opened(&one.cidrs) && only.has_opened(&two.cidrs));
    let none = changed(service, |claim| claim.opens_only(&Cidrs::default()));
    assert_eq!(none, Claim::default());
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
