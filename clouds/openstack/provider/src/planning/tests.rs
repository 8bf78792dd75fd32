use super::*;

#[test]
fn pauses_grow_by_a_fifth() {
    let pauses: Vec<u128> = (0..5).map(|looks| pause(looks).as_millis()).collect();
    assert_eq!(pauses, [1_000, 1_000, 1_200, 1_440, 1_728]);
    assert!(pause(10_000) > Duration::from_secs(3_600));
}
