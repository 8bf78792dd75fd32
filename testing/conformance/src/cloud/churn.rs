//! Random histories: users, instances, accidents and illnesses in any order. Whatever happened, the end is what the
//! Services and Nodes that are left ask for, no more and no less.

use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_kube_api::{Effect, Fault as KubeFault, Status};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::under_test::{Ability, CloudUnderTest, Wish};
use super::world::{EXCLUDED, SECOND, World, service};

/// Instances and Services come from small sets of names, so that the same ones come and go.
const NAMES: usize = 5;

/// Steps of one history.
const STEPS: usize = 50;

struct Churn<C> {
    world: World<C>,
    random: StdRng,
    /// What was done, for whoever has to find out why it went wrong.
    told: Vec<String>,
}

impl<C: CloudUnderTest> Churn<C> {
    fn new(seed: u64) -> Self {
        let mut world = World::<C>::seeded(seed);
        world.sim.be_strict();
        world.cloud().set_latency(Duration::from_millis(20));
        world.start();
        Self {
            world,
            random: StdRng::seed_from_u64(seed),
            told: Vec::new(),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    async fn step(&mut self) {
        let told = match self.below(4) {
            0 => self.instances(),
            1 if self.world.can(Ability::LoadBalancers) => self.services(),
            2 => self.accident().await,
            _ => self.illness(),
        };
        self.told.push(told);
        let pause = self.random.random_range(0..8_000);
        self.world.pass(Duration::from_millis(pause)).await;
    }

    fn instances(&mut self) -> String {
        let name = format!("n{}", self.below(NAMES));
        let (instances, has_node) = (self.world.sim.instances(), self.world.node(&name).is_some());
        let has_instance = instances.contains_key(&name);
        match self.below(4) {
            0 | 1 if !has_instance && !has_node => {
                self.world.join(&name);
                format!("{name} joins")
            }
            0 if has_instance && has_node && instances.len() > 2 => {
                self.world.break_instance(&name);
                format!("{name} breaks")
            }
            2 if has_instance && has_node && self.world.can(Ability::NewAddresses) => {
                self.world.sim.renumber(&name);
                format!("{name} gets other addresses")
            }
            3 if has_node => {
                let is_out = self.random.random_bool(0.5);
                self.world.label_node(&name, EXCLUDED, is_out.then_some(""));
                format!("{name} is left out: {is_out}")
            }
            _ => "nothing".to_owned(),
        }
    }

    fn services(&mut self) -> String {
        let number = self.below(NAMES) as u16;
        let name = format!("s{number}");
        let is_wanted = self
            .world
            .service(&name)
            .map(|it| it["metadata"]["deletionTimestamp"].is_null());
        let mut ports = vec![("p0", 80, 30_000 + number * 100)];
        for (index, port) in ["p1", "p2"].into_iter().enumerate() {
            if self.random.random_bool(0.5) {
                let (at, index) = (self.random.random_range(0..2), 10 * (index as u16 + 1));
                ports.push((port, 80 + index + at, 30_000 + number * 100 + index));
            }
        }
        let object = service(&name, &ports);
        match (is_wanted, self.below(4)) {
            (None, _) => {
                self.world.ask(object, Wish::Plain);
                format!("{name} is created")
            }
            (Some(true), 0) => {
                self.world.delete_service(&name);
                format!("{name} is deleted")
            }
            (Some(true), 1) => {
                self.world
                    .edit_service(&name, |it| self.world.sim.ask(it, Wish::Changed));
                format!("{name} is changed")
            }
            (Some(true), _) => {
                self.world
                    .edit_service(&name, |it| it["spec"]["ports"] = object["spec"]["ports"].clone());
                format!("{name} gets other ports")
            }
            (Some(false), _) => "nothing".to_owned(),
        }
    }

    async fn accident(&mut self) -> String {
        match self.below(6) {
            0 => {
                self.world.restart().await;
                "power cut".to_owned()
            }
            1 => {
                self.world.stop().await;
                self.world.start();
                "restart".to_owned()
            }
            2 => {
                self.world.api.compact();
                self.world.api.close_watches();
                "watches end, history is forgotten".to_owned()
            }
            3 => {
                let dice = self.below(1_000);
                let told = self.world.sim.tamper(dice);
                told.unwrap_or_else(|| "nothing".to_owned())
            }
            4 if self.world.can(Ability::Repair) => {
                let balancers = self.world.sim.balancers();
                let Some(balancer) = balancers.first() else {
                    return "nothing".to_owned();
                };
                self.world.sim.lose_balancer(&balancer.service);
                "somebody deletes a balancer".to_owned()
            }
            _ => "nothing".to_owned(),
        }
    }

    fn illness(&mut self) -> String {
        let nth = self.random.random_range(1..6);
        let faults = self.world.cloud().faults().clone();
        match self.below(4) {
            0 => {
                faults.add(Fault::write().nth(nth).lose_answer());
                format!("answer {nth} gets lost")
            }
            1 => {
                let times = self.random.random_range(1..4);
                faults.add(Fault::any().nth(nth).times(times).status(503));
                format!("503 from {nth} on, {times} times")
            }
            2 => {
                faults.add(Fault::write().nth(nth).status(500));
                format!("500 at write {nth}")
            }
            _ => {
                let effect = match self.below(3) {
                    0 => Effect::DropBefore,
                    1 => Effect::DropAfter,
                    _ => Effect::Answer(Status::internal("etcd is ill")),
                };
                let told = format!("{effect:?} to a patch");
                let fault = KubeFault::new(effect).verb("patch").times(1);
                self.world.api.faults().inject(fault.after(nth as u32));
                told
            }
        }
    }

    /// Without any instance to balance over a cloud may not know where a balancer belongs, so let there be one.
    fn give_a_place(&mut self) {
        for name in self.world.sim.instances().keys() {
            match self.world.node(name) {
                Some(_) => self.world.label_node(name, EXCLUDED, None),
                // Its Node was deleted while it was not known yet; a kubelet registers again.
                None => drop(self.world.apply(super::world::tainted_node(name))),
            }
        }
        if self.world.sim.instances().is_empty() {
            self.world.join("spare");
        }
    }

    fn is_done(&self) -> bool {
        self.world.unserved().is_empty()
            && self.world.unlike().is_empty()
            && self.world.sim.violations().is_empty()
            && self.unfinished() == 0
    }

    /// How many Services still go.
    fn unfinished(&self) -> usize {
        let services = self.world.api.objects("Service");
        let goes = |it: &&serde_json::Value| !it["metadata"]["deletionTimestamp"].is_null();
        services.iter().filter(goes).count()
    }
}

async fn play<C: CloudUnderTest>(seed: u64) {
    let mut churn = Churn::<C>::new(seed);
    for _ in 0..STEPS {
        churn.step().await;
    }
    churn.world.cloud().faults().clear();
    churn.world.api.faults().clear();
    churn.give_a_place();
    // The slowest way back: a backoff of five minutes, a periodic check, the windows of node deletion.
    for _ in 0..600 {
        if churn.is_done() {
            break;
        }
        churn.world.pass(SECOND * 5).await;
    }
    churn.world.rest().await;
    let history = format!("seed {seed}\n{}", churn.told.join("\n"));
    let none = Vec::<String>::new();
    assert_eq!(churn.world.unserved(), none, "{history}");
    assert_eq!(churn.world.unlike(), none, "{history}");
    assert_eq!(churn.world.sim.violations(), none, "{history}");
    churn.world.assert_one_writer();
    churn.world.assert_hidden();
    assert_eq!(churn.unfinished(), 0, "{history}");
}

/// More of them: `BOWLINE_SEEDS=1000..2000`.
pub(super) async fn whatever_happens_the_end_is_what_the_objects_ask_for<C: CloudUnderTest>() {
    let seeds = std::env::var("BOWLINE_SEEDS").unwrap_or_else(|_| "1..9".to_owned());
    let (first, last) = seeds.split_once("..").unwrap();
    for seed in first.parse().unwrap()..last.parse().unwrap() {
        play::<C>(seed).await;
    }
}
