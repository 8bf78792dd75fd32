//! The simulator answers as the real services do: the same walks on both, and what differs is in a table by name.

use bowline_openstack_services::Answer;

use crate::compare::differences;
use crate::ground::Ground;
use crate::walk::Walk;

mod balancers;
mod identity;
mod known;
mod network;
mod servers;

/// Compares a walk on both grounds.
///
/// # Panics
///
/// If something differs that the table does not know, or something in the table does not differ any more.
fn compare(
    name: &str,
    real: Vec<(&'static str, Answer)>,
    simulated: Vec<(&'static str, Answer)>,
    own: &[&str],
) {
    let found = differences(&real, &simulated, own);
    let unknown: Vec<String> = found
        .iter()
        .filter(|difference| !known::is_known(name, difference))
        .map(|difference| {
            format!(
                "{}: {}\n    real:      {}\n    simulated: {}",
                difference.step, difference.place, difference.real, difference.simulated
            )
        })
        .collect();
    let idle = known::idle(name, &found);
    assert!(
        unknown.is_empty() && idle.is_empty(),
        "{name}: {} differences are not in the table:\n{}\nin the table, and no difference: {idle:?}",
        unknown.len(),
        unknown.join("\n")
    );
}

macro_rules! walks {
    ($($test:ident: $module:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $test() {
            let Some(real) = Ground::real(stringify!($test)).await else {
                return;
            };
            let simulated = Ground::simulated().await;
            let mut walk = Walk::on(&real);
            $module::walk(&mut walk).await;
            let real_answers = walk.answers();
            let mut walk = Walk::on(&simulated);
            $module::walk(&mut walk).await;
            let own = [real.user(), simulated.user()];
            compare(stringify!($module), real_answers, walk.answers(), &own);
        }
    )*};
}

walks! {
    logins_are_answered_alike: identity,
    servers_are_answered_alike: servers,
    networks_are_answered_alike: network,
    load_balancers_are_answered_alike: balancers,
}
