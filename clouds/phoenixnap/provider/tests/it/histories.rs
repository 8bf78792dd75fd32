//! Random histories of two processes on one cluster and one account, without a lease between them: the worst that an
//! operator can do. At no time has a Service two blocks, and in the end each that lives has one and nobody else has any.
//!
//! More of them: `BOWLINE_SEEDS=1000..2000`.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_phoenixnap_sim::kit::faults::FaultBuilder;
use bowline_phoenixnap_sim::kit::{Fault, journal};
use bowline_phoenixnap_sim::{BlockSpec, PhoenixnapSim};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use bowline_kit::Outcome;

use crate::world::{CLUSTER, Interruption, World};

const KEYS: [&str; 3] = ["shop/a", "shop/b", "web/a"];
const STEPS: usize = 25;

type Trouble = fn(FaultBuilder) -> Fault;

/// What may be wrong with one call.
const TROUBLES: [(&str, Trouble); 8] = [
    ("breaks before", FaultBuilder::drop_before),
    ("breaks after", FaultBuilder::lose_answer),
    ("hangs before", FaultBuilder::hang_before),
    ("hangs after", FaultBuilder::hang_after),
    ("answers 500", |it| it.status(500)),
    ("answers 500 after all", |it| it.status_after(500)),
    ("answers 409", |it| it.status(409)),
    ("takes 12 s", |it| it.delay(Duration::from_secs(12))),
];

/// The longest time, in seconds, after which a purchase comes true of which nobody heard any more.
const LATEST: u64 = 50;

struct History {
    worlds: [World; 2],
    random: StdRng,
    told: Vec<String>,
    late: tokio::task::JoinHandle<()>,
}

impl Drop for History {
    fn drop(&mut self) {
        self.late.abort();
    }
}

/// Half of the purchases whose request broke or hung come true later, as where a gateway in between lost only the answer.
async fn come_true_late(sim: PhoenixnapSim, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<(u64, Value)> = Vec::new();
    for second in 0.. {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lost = sim.journal().filter(|entry| {
            let is_over = matches!(
                entry.outcome,
                Some(journal::Outcome::Dropped | journal::Outcome::Hung | journal::Outcome::Abandoned)
            );
            entry.operation == "ip-blocks.create" && is_over && entry.handled.is_none()
        });
        for entry in lost {
            if seen.insert(entry.seq) && random.random_bool(0.5) {
                let arrived = entry.at.as_secs();
                waiting.push((arrived + random.random_range(1..LATEST), entry.body.unwrap()));
            }
        }
        waiting.retain(|(due, body)| {
            if *due > second {
                return true;
            }
            let tag = |name: &str| {
                let tags = body["tags"].as_array().unwrap();
                let tag = tags.iter().find(|tag| tag["name"] == name).unwrap();
                tag["value"].as_str().unwrap().to_owned()
            };
            sim.add_block(BlockSpec::of_service(
                CLUSTER,
                &tag("serviceNamespace"),
                &tag("serviceName"),
            ));
            false
        });
    }
}

/// What one process does in one step.
enum Deed {
    Reconcile(&'static str, Interruption),
    Sweep,
    Nothing,
}

impl History {
    fn new(seed: u64) -> Self {
        let one = World::new();
        let two = one.other_process("two");
        one.sim
            .service()
            .set_latency(Duration::from_millis(10 + seed % 4 * 150));
        Self {
            late: tokio::spawn(come_true_late(one.sim.clone(), seed)),
            worlds: [one, two],
            random: StdRng::seed_from_u64(seed),
            told: Vec::new(),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    fn key(&mut self) -> &'static str {
        KEYS[self.below(KEYS.len())]
    }

    /// What people do, and what goes wrong.
    fn befall(&mut self) -> String {
        let key = self.key();
        match (self.below(7), self.worlds[0].is_there(key)) {
            (0 | 1, None) => {
                self.worlds[0].add(key);
                format!("{key} is created")
            }
            (0, Some(true)) => {
                self.worlds[0].delete(key);
                format!("{key} is deleted")
            }
            (1, Some(true)) => {
                self.worlds[0].annotate(key, "tier", &self.told.len().to_string());
                format!("{key} is changed")
            }
            (2, _) => {
                let process = self.below(2);
                self.worlds[process].restart();
                format!("process {process} is killed")
            }
            (3 | 4, _) => {
                let nth = self.random.random_range(1..5);
                let (name, trouble) = TROUBLES[self.below(TROUBLES.len())];
                let is_of_purchase = self.random.random_bool(0.5);
                let faults = self.worlds[0].sim.faults();
                if is_of_purchase {
                    faults.add(trouble(Fault::operation("ip-blocks.create").nth(1)));
                    format!("the next purchase {name}")
                } else {
                    faults.add(trouble(Fault::write().nth(nth)));
                    format!("write {nth} from now on {name}")
                }
            }
            _ => "nothing".to_owned(),
        }
    }

    fn deed(&mut self, key: &'static str) -> (Deed, String) {
        if self.worlds[0].is_there(key).is_none() {
            return (Deed::Nothing, "idles".to_owned());
        }
        let (step, seconds) = (self.below(9), [5, 31, 58, 62, 119, 125, 400][self.below(7)]);
        match self.below(6) {
            0 => (Deed::Sweep, "sweeps".to_owned()),
            1 => {
                let stop = Interruption::BeforeStep(step);
                (
                    Deed::Reconcile(key, stop),
                    format!("syncs {key}, ends before step {step}"),
                )
            }
            2 => {
                let pause = Interruption::Pause(step, Duration::from_secs(seconds));
                let told = format!("syncs {key}, stands still for {seconds} s before step {step}");
                (Deed::Reconcile(key, pause), told)
            }
            _ => (Deed::Reconcile(key, Interruption::Never), format!("syncs {key}")),
        }
    }

    async fn step(&mut self) {
        let befallen = self.befall();
        let key = self.key();
        let is_same = self.random.random_bool(0.7);
        let other = if is_same { key } else { self.key() };
        let ((first, one), (second, two)) = (self.deed(key), self.deed(other));
        self.told
            .push(format!("{befallen}; the first {one}, the second {two}"));
        let longest = [3, 300, 3_000, 130_000][self.below(4)];
        let later = Duration::from_millis(self.random.random_range(0..longest));
        let [first_world, second_world] = &self.worlds;
        tokio::join!(act(first_world, first), async {
            tokio::time::sleep(later).await;
            act(second_world, second).await;
        });
        self.check();
    }

    /// Nobody has two blocks. That writes of two processes meet is in the nature of having two.
    #[track_caller]
    fn check(&self) {
        let mut found = self.worlds[0].sim.check_invariants();
        found.retain(|text| !text.contains("at work at once"));
        assert_eq!(found, Vec::<String>::new(), "{}", self.told.join("\n"));
    }

    async fn finish(&mut self) {
        let world = &self.worlds[0];
        world.sim.faults().clear();
        for _ in 0..3 {
            for key in KEYS {
                if world.is_there(key).is_some() {
                    act(world, Deed::Reconcile(key, Interruption::Never)).await;
                }
            }
            act(world, Deed::Sweep).await;
            tokio::time::sleep(Duration::from_secs(130)).await; // longer than a claim stands and a purchase is late
        }
        self.check();
        let told = self.told.join("\n");
        let living: Vec<&str> = KEYS
            .into_iter()
            .filter(|key| world.is_there(key) == Some(true))
            .collect();
        for key in &living {
            let run = world.run(key).await;
            assert!(
                matches!(run.outcome, Outcome::Settled(_)),
                "{key}: {run:#?}\n{told}"
            );
            assert_eq!(run.published(), [world.field(key)], "{told}");
            assert_eq!(world.claim(key), None, "{told}");
        }
        let blocks = world.sim.blocks();
        let of_cluster = blocks
            .iter()
            .filter(|block| block.has_tag("cluster", Some(CLUSTER)));
        assert_eq!(of_cluster.count(), living.len(), "{blocks:#?}\n{told}");
        for key in KEYS {
            assert_ne!(world.is_there(key), Some(false), "{key} never goes\n{told}");
        }
    }
}

/// A Service that goes is gone when its removal settled, as when its finalizer is off.
async fn act(world: &World, deed: Deed) {
    match deed {
        Deed::Reconcile(key, interruption) => {
            let Some(uid) = world.uid(key) else { return };
            let goes = world.is_there(key) == Some(false);
            let run = world.run_with(key, interruption).await;
            if goes && matches!(run.outcome, Outcome::Settled(_)) && world.uid(key) == Some(uid) {
                world.forget(key);
            }
        }
        Deed::Sweep => drop(world.try_sweep().await),
        Deed::Nothing => {}
    }
}

async fn play(seed: u64) {
    let mut history = History::new(seed);
    for _ in 0..STEPS {
        history.step().await;
    }
    history.told.push(format!("seed {seed}"));
    history.finish().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_no_service_has_two_blocks_and_none_is_forgotten() {
    let seeds = std::env::var("BOWLINE_SEEDS").unwrap_or_else(|_| "1..120".to_owned());
    let (first, last) = seeds.split_once("..").unwrap();
    for seed in first.parse().unwrap()..last.parse().unwrap() {
        play(seed).await;
    }
}
