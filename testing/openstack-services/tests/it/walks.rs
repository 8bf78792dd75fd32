//! The simulator answers as the real services do. What they answered to a walk when they were asked last is kept beside it
//! (`walks/*.seen`); each run of the tests compares the simulator with that, and what differs is in a table by name. The real services
//! are compared with it where there are some; with `BOWLINE_RECORD` set, what they say takes its place.

use std::path::Path;
use std::time::Duration;

use bowline_kit::scenario::{play_on, scenarios};

use crate::compare::{Told, differences, told};
use crate::ground::Ground;
use crate::walk::{Answers, Walk};

mod known;

/// A change of the simulator ends when a walk waits for it.
const PENDING: Duration = Duration::from_secs(3_600);

/// What the real services answered, line by line.
fn seen(name: &str) -> Told {
    let path = place(name);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = text.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn place(name: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/walks");
    folder.join(format!("{name}.seen"))
}

/// Writes down what they answered, or compares it with what is written.
fn keep(name: &str, real: &Told) {
    if std::env::var_os("BOWLINE_RECORD").is_some() {
        let lines = real
            .iter()
            .map(|step| serde_json::to_string(step).unwrap() + "\n");
        std::fs::write(place(name), lines.collect::<String>()).unwrap();
        return;
    }
    let found = differences(real, &seen(name));
    assert!(
        found.is_empty(),
        "{name}: the real services answer otherwise than was written down; with BOWLINE_RECORD=1 it is written anew: {found:#?}"
    );
}

/// Compares the simulator with the real services.
///
/// # Panics
///
/// If something differs that the table does not know, or something in the table does not differ any more.
fn compare(name: &str, real: &Told, simulated: &Told) {
    let found = differences(real, simulated);
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

async fn go(name: &str, ground: &Ground) -> Told {
    let all = scenarios(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/walks"));
    let walk = all
        .into_iter()
        .find(|(full, _)| full.starts_with(&format!("{name}::")));
    let answers = Answers::default();
    let played = play_on(Walk::on(ground, &answers), &walk.unwrap().1.unwrap()).await;
    played.unwrap_or_else(|complaint| panic!("{complaint}"));
    told(&answers.lock().unwrap(), &[ground.user()])
}

macro_rules! walks {
    ($($test:ident: $module:ident),* $(,)?) => {
        mod simulator {$(
            #[tokio::test]
            async fn $test() {
                let name = stringify!($module);
                let simulated = super::go(name, &super::Ground::simulated(super::PENDING).await).await;
                super::compare(name, &super::seen(name), &simulated);
            }
        )*}

        mod real {$(
            #[tokio::test]
            async fn $test() {
                let name = stringify!($module);
                if let Some(ground) = super::Ground::real().await {
                    super::keep(name, &super::go(name, &ground).await);
                }
            }
        )*}
    };
}

walks! {
    logins_are_answered_alike: identity,
    servers_are_answered_alike: servers,
    networks_are_answered_alike: network,
    load_balancers_are_answered_alike: balancers,
    parts_of_load_balancers_are_answered_alike: parts,
    refused_load_balancers_are_answered_alike: refusals,
    odd_values_of_networks_are_answered_alike: neutron,
}
