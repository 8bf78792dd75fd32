//! A process that ends in the middle: after each single write, with the answer lost, with the write refused. Whatever
//! happens, the next process comes to the same end, with one balancer and nothing twice.

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::{FloatingSpec, Snapshot};
use serde_json::json;

use super::fuse::Fuse;
use super::objects::{key, service, web};
use super::world::{SECOND, Start, World};

/// What happens to a user's Service in these tests.
#[derive(Clone, Copy, Debug)]
enum Story {
    Create,
    Change,
    Delete,
}

/// What goes wrong in it.
#[derive(Clone, Copy, Debug)]
enum Accident {
    /// The process dies in its k-th write to the cloud.
    DeathAtCloudWrite,
    /// The process dies in its k-th write to Kubernetes.
    DeathAtKubeWrite,
    /// The k-th write to the cloud has its effect and its answer is lost.
    LostAnswer,
    /// The k-th write to the cloud is refused with 500.
    Failure,
}

impl Story {
    /// What is there before.
    async fn begin(self) -> World {
        let mut world = World::new();
        world.add_nodes(3);
        world.sim.add_floating_ip(FloatingSpec::default());
        if !matches!(self, Self::Create) {
            world.apply(web());
            world.start();
            world.settled("web").await;
            world.kill().await;
        }
        world
    }

    /// What the user asks for.
    fn ask(self, world: &World) {
        match self {
            Self::Create => {
                let floating = world.sim.floating_ips()[0].network.to_string();
                let mut web = web();
                web["metadata"]["annotations"] =
                    json!({ key("floating-ips"): json!([floating]).to_string() });
                world.apply(web);
            }
            // A listener, a pool, monitors and members change at once.
            Self::Change => world.edit_service("web", |web| {
                let changed = service("web", &[("web", 8081, 31300), ("www", 9000, 31201)]);
                web["spec"]["ports"] = changed["spec"]["ports"].clone();
                web["metadata"]["annotations"][key("health-monitor-type")] = json!("ping");
                web["metadata"]["annotations"][key("timeout-client-data-ms")] = json!("60000");
            }),
            Self::Delete => world.delete_service("web"),
        }
    }

    /// What there is in the end, in the cloud and of the Service.
    fn end(world: &World) -> (Snapshot, Option<serde_json::Value>) {
        let service = world.service("web").map(|mut service| {
            // Ids and versions depend on how many requests it took.
            for field in ["resourceVersion", "creationTimestamp", "uid"] {
                service["metadata"][field].take();
            }
            let annotations = service["metadata"]["annotations"].as_object_mut();
            annotations.map(|all| all.remove(&key("uuid")));
            for entry in service["status"]["loadBalancer"]["ingress"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                entry["ip"].take();
            }
            service
        });
        (world.sim.snapshot(), service)
    }

    async fn finish(self, world: &World) {
        // Longer than a lease that nobody gave up and the first steps of the backoff.
        world.pass(SECOND * 60).await;
        match self {
            Self::Delete => {
                world.until("it is gone", |w| w.service("web").is_none()).await;
            }
            _ => world.settled("web").await,
        }
        world.rest().await;
    }
}

/// Plays a story with an accident at its k-th write; nothing if there is no such write.
async fn play(story: Story, accident: Accident, k: usize) -> Option<World> {
    let mut world = story.begin().await;
    let fuse = Fuse::at(k);
    let mut start = Start::default();
    match accident {
        Accident::DeathAtCloudWrite => start.cloud_fuse = Some(fuse.clone()),
        Accident::DeathAtKubeWrite => start.kube_fuse = Some(fuse.clone()),
        Accident::LostAnswer | Accident::Failure => {}
    }
    world.start_with(start);
    // It takes over, and finds nothing to do yet.
    world.pass(SECOND * 30).await;
    let fault = match accident {
        Accident::LostAnswer => Some(Fault::write().nth(k as u64).lose_answer()),
        Accident::Failure => Some(Fault::write().nth(k as u64).status(500)),
        _ => None,
    };
    let fault = fault.map(|fault| world.sim.faults().add(fault));
    story.ask(&world);
    match fault {
        Some(fault) => {
            story.finish(&world).await;
            (world.sim.faults().struck(fault) > 0).then_some(world)
        }
        None => {
            let died = tokio::time::timeout(SECOND * 120, fuse.burnt()).await.is_ok();
            if died {
                world.restart().await;
                story.finish(&world).await;
            }
            died.then_some(world)
        }
    }
}

/// Plays it once without an accident, then with one at each write.
async fn every_write(story: Story, accident: Accident, least: usize) {
    let undisturbed = {
        let mut world = story.begin().await;
        world.start();
        world.pass(SECOND * 30).await;
        story.ask(&world);
        story.finish(&world).await;
        Story::end(&world)
    };
    let mut k = 1;
    while let Some(world) = play(story, accident, k).await {
        let context = format!("{story:?}, {accident:?} at write {k}");
        assert_eq!(world.sim.check_invariants(), Vec::<String>::new(), "{context}");
        let balancers = world.sim.load_balancers().len();
        assert_eq!(
            balancers,
            usize::from(!matches!(story, Story::Delete)),
            "{context}"
        );
        assert_eq!(Story::end(&world), undisturbed, "{context}");
        k += 1;
    }
    assert!(k > least, "only {} writes met an accident", k - 1);
}

/// The balancer, 2 pools, 6 members, 2 listeners, 2 monitors, a floating IP.
const CREATE: usize = 14;

#[tokio::test(start_paused = true)]
async fn c51_creation_survives_the_death_of_the_process_at_any_write_to_the_cloud() {
    every_write(Story::Create, Accident::DeathAtCloudWrite, CREATE).await;
}

#[tokio::test(start_paused = true)]
async fn creation_survives_the_death_of_the_process_at_any_write_to_kubernetes() {
    every_write(Story::Create, Accident::DeathAtKubeWrite, 3).await;
}

#[tokio::test(start_paused = true)]
async fn creation_survives_the_loss_of_any_answer() {
    every_write(Story::Create, Accident::LostAnswer, CREATE).await;
}

#[tokio::test(start_paused = true)]
async fn creation_survives_the_failure_of_any_write() {
    every_write(Story::Create, Accident::Failure, CREATE).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_survives_the_death_of_the_process_at_any_write_to_the_cloud() {
    every_write(Story::Change, Accident::DeathAtCloudWrite, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_survives_the_loss_of_any_answer() {
    every_write(Story::Change, Accident::LostAnswer, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_survives_the_failure_of_any_write() {
    every_write(Story::Change, Accident::Failure, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_survives_every_accident() {
    for accident in [
        Accident::DeathAtCloudWrite,
        Accident::DeathAtKubeWrite,
        Accident::LostAnswer,
        Accident::Failure,
    ] {
        every_write(Story::Delete, accident, 1).await;
    }
}

/// The three writes to Kubernetes of a creation: finalizer, annotations, status.
#[tokio::test(start_paused = true)]
async fn creation_survives_any_trouble_with_kubernetes() {
    use bowline_kube_api::{Effect, Fault, Status};

    let undisturbed = {
        let mut world = Story::Create.begin().await;
        world.start();
        world.rest().await;
        Story::Create.ask(&world);
        Story::Create.finish(&world).await;
        Story::end(&world)
    };
    let troubles = || {
        [
            Effect::DropBefore,
            Effect::DropAfter,
            Effect::Answer(Status::internal("etcd is ill")),
            Effect::Answer(Status::new(409, "Conflict", "the object has been modified")),
            Effect::Answer(Status::too_many_requests(3)),
            Effect::Delay(SECOND * 40),
        ]
    };
    for k in 0..3 {
        for effect in troubles() {
            let context = format!("{effect:?} at write {k}");
            let mut world = Story::Create.begin().await;
            world.start();
            world.rest().await;
            let fault = Fault::new(effect)
                .verb("patch")
                .resource("services")
                .after(k)
                .times(1);
            world.api.faults().inject(fault);
            Story::Create.ask(&world);
            Story::Create.finish(&world).await;
            assert_eq!(world.sim.check_invariants(), Vec::<String>::new(), "{context}");
            assert_eq!(Story::end(&world), undisturbed, "{context}");
        }
    }
}
