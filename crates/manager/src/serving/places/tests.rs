use super::*;

const HANDSHAKE: Bounds = Stage::Handshake.bounds();
const FIRST_REQUEST: Bounds = Stage::FirstRequest.bounds();
const ANSWERED: Bounds = Stage::Answered.bounds();
const LATER: Duration = Duration::from_secs(1);

fn origin(last: u8) -> Origin {
    Origin::from(IpAddr::from([10, 0, 0, last]))
}

fn is_kept(place: &Place) -> bool {
    !place.gives_way.is_cancelled()
}

/// So many new connections in a stage.
async fn come(places: &Arc<Places>, origin: Origin, stage: Stage, count: usize) -> Vec<Place> {
    let mut come = Vec::new();
    for _ in 0..count {
        let place = places.enter(origin).await;
        if stage != Stage::Handshake {
            place.shaken_hands().await;
        }
        if stage == Stage::Answered {
            place.answered();
        }
        come.push(place);
    }
    come
}

async fn comes(places: &Arc<Places>, origin: Origin, stage: Stage) -> Place {
    come(places, origin, stage, 1).await.remove(0)
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_of_an_address_its_oldest_connection_of_the_stage_gives_way() {
    for stage in Stage::ALL {
        let places = Places::new();
        let other = comes(&places, origin(2), stage).await;
        let hostile = come(&places, origin(1), stage, stage.bounds().per_origin).await;
        tokio::time::advance(LATER).await;
        let begun = Instant::now();
        let new = come(&places, origin(1), stage, 2).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(!is_kept(&hostile[0]) && !is_kept(&hostile[1]));
        assert!(hostile[2..].iter().chain([&other]).chain(&new).all(is_kept));
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_of_all_whoever_holds_most_gives_way() {
    for stage in Stage::ALL {
        let bounds = stage.bounds();
        let places = Places::new();
        let prometheus = comes(&places, origin(3), stage).await;
        let some = come(
            &places,
            origin(2),
            stage,
            bounds.connections - bounds.per_origin - 1,
        )
        .await;
        let most = come(&places, origin(1), stage, bounds.per_origin).await;
        tokio::time::advance(LATER).await;
        let probe = comes(&places, origin(4), stage).await;
        assert!(!is_kept(&most[0]));
        let others = some.iter().chain([&prometheus, &probe]);
        assert!(most[1..].iter().chain(others).all(is_kept));
    }
}

#[tokio::test(start_paused = true)]
async fn with_one_connection_each_the_oldest_of_all_gives_way() {
    for stage in Stage::ALL {
        let places = Places::new();
        let mut held = Vec::new();
        for last in 0..u8::try_from(stage.bounds().connections).unwrap() {
            held.push(comes(&places, origin(last), stage).await);
        }
        tokio::time::advance(LATER).await;
        held.push(comes(&places, origin(200), stage).await);
        assert!(!is_kept(&held[0]) && held[1..].iter().all(is_kept));
    }
}

#[tokio::test(start_paused = true)]
async fn who_holds_one_more_than_the_others_and_is_new_does_not_make_everybody_wait() {
    let places = Places::new();
    let mut held = Vec::new();
    for number in 0..FIRST_REQUEST.connections - 1 {
        let origin = origin(u8::try_from(number / 2).unwrap());
        held.push(comes(&places, origin, Stage::FirstRequest).await);
    }
    tokio::time::advance(LATER).await;
    held.push(comes(&places, origin(0), Stage::FirstRequest).await);
    let begun = Instant::now();
    held.push(comes(&places, origin(200), Stage::FirstRequest).await);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(!is_kept(&held[0]) && held[1..].iter().all(is_kept));
}

#[tokio::test(start_paused = true)]
async fn before_its_first_answer_a_connection_has_its_time_and_the_next_one_waits_for_it() {
    for stage in [Stage::Handshake, Stage::FirstRequest] {
        let (places, bounds) = (Places::new(), stage.bounds());
        let begun = Instant::now();
        let held = come(&places, origin(1), stage, bounds.per_origin + 1).await;
        assert!(begun.elapsed() >= bounds.grace && begun.elapsed() < bounds.grace * 2);
        assert!(!is_kept(&held[0]) && held[1..].iter().all(is_kept));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_comes_in_as_soon_as_another_leaves() {
    for stage in [Stage::Handshake, Stage::FirstRequest] {
        let places = Places::new();
        let mut held = come(&places, origin(1), stage, stage.bounds().per_origin).await;
        let begun = Instant::now();
        let leaves = async {
            tokio::task::yield_now().await;
            held.pop();
        };
        let (new, ()) = tokio::join!(comes(&places, origin(1), stage), leaves);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(held.iter().chain([&new]).all(is_kept));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_room_for_a_request_does_not_give_way_to_those_who_shake_hands() {
    let places = Places::new();
    let hostile = come(&places, origin(1), Stage::FirstRequest, FIRST_REQUEST.per_origin).await;
    let waiting = come(&places, origin(1), Stage::Handshake, HANDSHAKE.per_origin).await;
    let all = futures::future::join_all(waiting.iter().map(Place::shaken_hands));
    let rush = async {
        let mut rush = Vec::new();
        for _ in 0..HANDSHAKE.per_origin {
            rush.push(places.enter(origin(1)).await);
        }
        rush
    };
    let begun = Instant::now();
    let (_, rush) = tokio::join!(all, rush);
    // It takes as many turns as there are roomfuls, and nobody of the last one has given way.
    assert!(begun.elapsed() < FIRST_REQUEST.grace * 5, "{:?}", begun.elapsed());
    assert!(!hostile.iter().any(is_kept) && rush.iter().all(is_kept));
    let last = &waiting[waiting.len() - FIRST_REQUEST.per_origin..];
    assert!(last.iter().all(is_kept));
}

#[tokio::test(start_paused = true)]
async fn longest_idle_connections_give_way_first_then_those_that_may_read_more_then_those_under_review() {
    let places = Places::new();
    let mut held = come(&places, origin(1), Stage::Answered, ANSWERED.per_origin).await;
    let asks = held.pop().unwrap();
    let rests = held.pop().unwrap();
    let scrapes = held.pop().unwrap();
    for place in [&scrapes, &rests, &asks] {
        tokio::time::advance(LATER).await;
        place.answered();
    }
    scrapes.trusted();
    // All others wait for the API server's word.
    let _reviews: Vec<_> = held.iter().map(Place::under_review).collect();
    for victim in [&rests, &asks, &scrapes, &held[0]] {
        assert!(is_kept(victim));
        let new = comes(&places, origin(1), Stage::Answered).await;
        assert!(!is_kept(victim));
        // The new one is a request that waits as well.
        std::mem::forget(new.under_review());
        std::mem::forget(new);
        tokio::time::advance(LATER).await;
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_ask_all_the_time_do_not_keep_out_one_that_is_about_to_ask() {
    let places = Places::new();
    let asks = come(&places, origin(1), Stage::Answered, ANSWERED.per_origin).await;
    let probe = comes(&places, origin(1), Stage::FirstRequest).await;
    for _ in 0..10 * ANSWERED.per_origin {
        tokio::time::advance(LATER).await;
        asks.iter().for_each(Place::answered);
        let _new = comes(&places, origin(1), Stage::Answered).await;
    }
    assert!(is_kept(&probe));
}

#[tokio::test(start_paused = true)]
async fn connections_that_never_ask_do_not_keep_out_one_that_does() {
    let places = Places::new();
    let asks = comes(&places, origin(1), Stage::Answered).await;
    let count = 10 * FIRST_REQUEST.per_origin;
    let _hostile = come(&places, origin(1), Stage::FirstRequest, count).await;
    assert!(is_kept(&asks));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_gives_its_place_back() {
    let places = Places::new();
    for stage in Stage::ALL {
        for _ in 0..3 {
            let held = come(&places, origin(1), stage, stage.bounds().per_origin).await;
            assert!(held.iter().all(is_kept));
        }
    }
    assert!(places.table().held.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_file_descriptors_one_connection_of_each_stage_gives_way_whatever_its_age() {
    let places = Places::new();
    let mut held = Vec::new();
    for stage in Stage::ALL {
        held.push(come(&places, origin(1), stage, 2).await);
    }
    places.yield_some();
    for of_stage in held {
        assert!(!is_kept(&of_stage[0]) && is_kept(&of_stage[1]));
    }
}

#[test]
fn one_network_of_ipv6_counts_as_one_address_and_mapped_addresses_as_what_they_stand_for() {
    let of = |text: &str| Origin::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:2"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), origin(1));
    assert_ne!(of("::ffff:10.0.0.1"), origin(2));
}

#[tokio::test(start_paused = true)]
async fn behind_640_connections_at_once_from_one_address_a_probe_has_its_turn_within_seven_tenths_of_a_second()
 {
    for stage in [Stage::Handshake, Stage::FirstRequest] {
        let places = Places::new();
        let begun = Instant::now();
        let mut hostile = Vec::new();
        for _ in 0..640 {
            hostile.push(places.enter(origin(1)).await);
            if stage == Stage::FirstRequest {
                hostile.last().unwrap().shaken_hands().await;
            }
        }
        let probe = comes(&places, origin(1), Stage::FirstRequest).await;
        assert!(
            begun.elapsed() < Duration::from_millis(700),
            "{:?}",
            begun.elapsed()
        );
        assert!(is_kept(&probe));
        let kept = hostile.iter().filter(|place| is_kept(place)).count();
        assert!(kept <= stage.bounds().per_origin);
    }
}
