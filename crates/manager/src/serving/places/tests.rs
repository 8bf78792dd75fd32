use super::*;

const BOUNDS: Bounds = CONVERSATIONS;
const LATER: Duration = Duration::from_secs(1);

fn origin(last: u8) -> Origin {
    Origin::from(IpAddr::from([10, 0, 0, last]))
}

fn is_kept(place: &Place) -> bool {
    !place.gives_way.is_cancelled()
}

async fn enter(places: &Arc<Places>, origin: Origin, count: usize) -> Vec<Place> {
    let mut entered = Vec::new();
    for _ in 0..count {
        entered.push(places.enter(origin).await);
    }
    entered
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_of_an_address_its_oldest_unfinished_connection_gives_way() {
    let places = Places::new(BOUNDS);
    let other = places.enter(origin(2)).await;
    let hostile = enter(&places, origin(1), BOUNDS.per_origin).await;
    tokio::time::advance(LATER).await;
    let begun = Instant::now();
    let new = enter(&places, origin(1), 2).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(!is_kept(&hostile[0]) && !is_kept(&hostile[1]));
    assert!(hostile[2..].iter().chain([&other]).chain(&new).all(is_kept));
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_of_all_whoever_holds_most_gives_way() {
    let places = Places::new(BOUNDS);
    let prometheus = places.enter(origin(3)).await;
    let some = enter(&places, origin(2), BOUNDS.connections - BOUNDS.per_origin - 1).await;
    let most = enter(&places, origin(1), BOUNDS.per_origin).await;
    tokio::time::advance(LATER).await;
    let probe = places.enter(origin(4)).await;
    assert!(!is_kept(&most[0]));
    assert!(
        most[1..]
            .iter()
            .chain(&some)
            .chain([&prometheus, &probe])
            .all(is_kept)
    );
}

#[tokio::test(start_paused = true)]
async fn with_one_connection_each_the_oldest_of_all_gives_way() {
    let places = Places::new(BOUNDS);
    let mut held = Vec::new();
    for last in 0..u8::try_from(BOUNDS.connections).unwrap() {
        held.push(places.enter(origin(last)).await);
    }
    tokio::time::advance(LATER).await;
    held.push(places.enter(origin(200)).await);
    assert!(!is_kept(&held[0]) && held[1..].iter().all(is_kept));
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_some_time_for_its_request_and_the_next_one_waits_for_it() {
    for bounds in [HANDSHAKES, CONVERSATIONS] {
        let places = Places::new(bounds);
        let begun = Instant::now();
        let held = enter(&places, origin(1), bounds.per_origin + 1).await;
        assert!(begun.elapsed() >= bounds.grace && begun.elapsed() < bounds.grace * 2);
        assert!(!is_kept(&held[0]) && held[1..].iter().all(is_kept));
    }
}

#[tokio::test(start_paused = true)]
async fn unfinished_connections_give_way_first_then_idle_ones_and_those_that_may_read_more_at_last() {
    let places = Places::new(BOUNDS);
    let mut held = enter(&places, origin(1), BOUNDS.per_origin).await;
    let unfinished = held.pop().unwrap();
    let rests = held.pop().unwrap();
    let asks = held.pop().unwrap();
    let scrapes = held.pop().unwrap();
    for place in [&scrapes, &rests, &asks] {
        tokio::time::advance(LATER).await;
        place.answered();
    }
    scrapes.trusted();
    // All others wait for the API server's word.
    let _reviews: Vec<_> = held.iter().map(Place::under_review).collect();
    tokio::time::advance(LATER).await;
    asks.answered();
    for victim in [&unfinished, &rests, &asks, &scrapes] {
        assert!(is_kept(victim));
        let new = places.enter(origin(1)).await;
        assert!(!is_kept(victim));
        // The new one is a request that waits as well.
        std::mem::forget(new.under_review());
        held_for_ever(new);
        tokio::time::advance(LATER).await;
    }
    let new = places.enter(origin(1)).await;
    assert!(is_kept(&new) && !is_kept(&held[0]) && held[1..].iter().all(is_kept));
}

/// The place is never given back.
fn held_for_ever(place: Place) {
    std::mem::forget(place);
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_asking_does_not_keep_others_out() {
    let places = Places::new(BOUNDS);
    let held = enter(&places, origin(1), BOUNDS.per_origin).await;
    tokio::time::advance(LATER).await;
    held.iter().for_each(Place::answered);
    tokio::time::advance(LATER).await;
    held.iter().for_each(Place::answered);
    let begun = Instant::now();
    let new = places.enter(origin(1)).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(is_kept(&new));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_gives_its_place_back() {
    let places = Places::new(BOUNDS);
    for _ in 0..3 {
        let held = enter(&places, origin(1), BOUNDS.per_origin).await;
        assert!(held.iter().all(is_kept));
    }
    assert!(places.table().held.is_empty());
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
async fn of_640_connections_at_once_from_one_address_the_last_one_is_let_in_within_half_a_second() {
    let places = Places::new(HANDSHAKES);
    let begun = Instant::now();
    let held = enter(&places, origin(1), 641).await;
    assert!(
        begun.elapsed() < Duration::from_millis(500),
        "{:?}",
        begun.elapsed()
    );
    assert!(held.iter().filter(|place| is_kept(place)).count() == HANDSHAKES.per_origin);
}
