//! A process that ends in the middle: after each single write, with the answer lost, with the write refused. Whatever
//! happens, the next process comes to the same end, with one balancer and nothing twice.

use std::net::IpAddr;

use bowline_cloud_kit::Fault;
use bowline_cloud_provider::{ServiceClasses, keys};
use bowline_kube_api::{Effect, Fault as KubeFault, Status};
use serde_json::Value;

use super::fuse::Fuse;
use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, Start, World, web};

/// What happens to a user's Service.
#[derive(Clone, Copy, Debug, PartialEq)]
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

impl Accident {
    /// A manager that meets it. Only one that dies leaves a lease behind.
    fn start(self, fuse: &Fuse) -> Start {
        match self {
            Self::DeathAtCloudWrite => Start {
                cloud_fuse: Some(fuse.clone()),
                ..Start::default()
            },
            Self::DeathAtKubeWrite => Start {
                kube_fuse: Some(fuse.clone()),
                ..Start::default()
            },
            Self::LostAnswer | Self::Failure => Start::alone(),
        }
    }
}

impl Story {
    /// What is there before.
    async fn begin<C: CloudUnderTest>(self) -> World<C> {
        let mut world = World::new();
        world.add_nodes(2);
        if self != Self::Create {
            world.ask(web(), Wish::Rich);
            world.start_with(Start::alone());
            world.settled("web").await;
            world.kill().await;
        }
        world
    }

    /// What the user asks for.
    fn ask<C: CloudUnderTest>(self, world: &World<C>) {
        match self {
            Self::Create => world.ask(web(), Wish::Rich),
            Self::Change => world.change("web"),
            Self::Delete => world.delete_service("web"),
        }
    }

    async fn finish<C: CloudUnderTest>(self, world: &World<C>) {
        world.pass_lease().await;
        match self {
            Self::Delete => world.gone("web").await,
            _ => world.settled("web").await,
        }
    }

    /// The end of it without an accident, under a manager that is started like this.
    async fn undisturbed<C: CloudUnderTest>(self, start: Start) -> (String, Option<Value>) {
        let mut world = self.begin::<C>().await;
        world.start_with(start);
        world.pass(SECOND * 30).await;
        self.ask(&world);
        self.finish(&world).await;
        world.assert_served();
        end(&world)
    }
}

/// What there is in the end, in the cloud and of the Service.
fn end<C: CloudUnderTest>(world: &World<C>) -> (String, Option<Value>) {
    let service = world.service("web").map(|mut service| {
        // Ids, addresses and versions depend on how many requests it took.
        for field in ["resourceVersion", "creationTimestamp", "uid"] {
            service["metadata"][field].take();
        }
        for value in service["metadata"]["annotations"]
            .as_object_mut()
            .into_iter()
            .flat_map(|all| all.values_mut())
        {
            let is_chosen = |it: &str| uuid::Uuid::parse_str(it).is_ok() || it.parse::<IpAddr>().is_ok();
            if value.as_str().is_some_and(is_chosen) {
                value.take();
            }
        }
        for entry in service["status"]["loadBalancer"]["ingress"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            entry["ip"].take();
        }
        service
    });
    (world.sim.state(), service)
}

/// Plays a story with an accident at its k-th write; nothing if there is no such write.
async fn play<C: CloudUnderTest>(story: Story, accident: Accident, k: usize) -> Option<World<C>> {
    let mut world = story.begin::<C>().await;
    let fuse = Fuse::at(k);
    world.start_with(accident.start(&fuse));
    // It takes over, and finds nothing to do yet.
    world.pass(SECOND * 30).await;
    let nth = k as u64;
    let fault = match accident {
        Accident::LostAnswer => Some(Fault::write().nth(nth).lose_answer()),
        Accident::Failure => Some(Fault::write().nth(nth).status(500)),
        _ => None,
    };
    let fault = fault.map(|fault| world.cloud().faults().add(fault));
    story.ask(&world);
    match fault {
        Some(fault) => {
            story.finish(&world).await;
            (world.cloud().faults().struck(fault) > 0).then_some(world)
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
async fn at_every_write<C: CloudUnderTest>(story: Story, accident: Accident) {
    let undisturbed = story.undisturbed::<C>(accident.start(&Fuse::never())).await;
    let mut k = 1;
    while let Some(world) = play::<C>(story, accident, k).await {
        let context = format!("{story:?}, {accident:?} at write {k}");
        assert_eq!(world.sim.violations(), Vec::<String>::new(), "{context}");
        assert_eq!(world.unserved(), Vec::<String>::new(), "{context}");
        assert_eq!(end(&world), undisturbed, "{context}");
        k += 1;
    }
    assert!(k > 1, "no write met an accident");
}

pub(super) async fn a_creation_survives_the_death_of_the_process_at_any_write_to_the_cloud<
    C: CloudUnderTest,
>() {
    at_every_write::<C>(Story::Create, Accident::DeathAtCloudWrite).await;
}

pub(super) async fn a_creation_survives_the_death_of_the_process_at_any_write_to_kubernetes<
    C: CloudUnderTest,
>() {
    at_every_write::<C>(Story::Create, Accident::DeathAtKubeWrite).await;
}

pub(super) async fn a_creation_survives_the_loss_of_any_answer<C: CloudUnderTest>() {
    at_every_write::<C>(Story::Create, Accident::LostAnswer).await;
}

pub(super) async fn a_creation_survives_the_failure_of_any_write<C: CloudUnderTest>() {
    at_every_write::<C>(Story::Create, Accident::Failure).await;
}

pub(super) async fn a_change_survives_the_death_of_the_process_at_any_write_to_the_cloud<
    C: CloudUnderTest,
>() {
    at_every_write::<C>(Story::Change, Accident::DeathAtCloudWrite).await;
}

pub(super) async fn a_change_survives_the_loss_of_any_answer<C: CloudUnderTest>() {
    at_every_write::<C>(Story::Change, Accident::LostAnswer).await;
}

pub(super) async fn a_change_survives_the_failure_of_any_write<C: CloudUnderTest>() {
    at_every_write::<C>(Story::Change, Accident::Failure).await;
}

pub(super) async fn a_deletion_survives_every_accident<C: CloudUnderTest>() {
    for accident in [
        Accident::DeathAtCloudWrite,
        Accident::DeathAtKubeWrite,
        Accident::LostAnswer,
        Accident::Failure,
    ] {
        at_every_write::<C>(Story::Delete, accident).await;
    }
}

pub(super) async fn a_creation_survives_any_trouble_with_kubernetes<C: CloudUnderTest>() {
    let undisturbed = Story::Create.undisturbed::<C>(Start::alone()).await;
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
    // The finalizer, then what the provider or the controller writes next, such as annotations and the status.
    for k in 0..3 {
        for effect in troubles() {
            let context = format!("{effect:?} at write {k}");
            let mut world = Story::Create.begin::<C>().await;
            world.start_with(Start::alone());
            world.rest().await;
            let fault = KubeFault::new(effect).verb("patch").resource("services");
            world.api.faults().inject(fault.after(k).times(1));
            Story::Create.ask(&world);
            Story::Create.finish(&world).await;
            assert_eq!(world.unserved(), Vec::<String>::new(), "{context}");
            assert_eq!(world.sim.violations(), Vec::<String>::new(), "{context}");
            assert_eq!(end(&world), undisturbed, "{context}");
        }
    }
}

/// A status that is refused once for another cause leaves the note of the class where it is.
pub(super) async fn the_note_of_the_class_stays_wherever_the_process_dies<C: CloudUnderTest>() {
    let start = |fuse: Fuse| {
        let mut start = Start::alone();
        start.config.service_classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
        start.kube_fuse = Some(fuse);
        start
    };
    let note = |world: &World<C>| {
        let service = world.service("web").unwrap();
        service["metadata"]["annotations"][keys::ANNOTATION_CLASS] == "ours"
    };
    for k in 1.. {
        let mut world = World::<C>::new();
        world.add_nodes(2);
        let mut service = web();
        service["spec"]["loadBalancerClass"] = "ours".into();
        world.ask(service, Wish::Plain);
        world.start_with(start(Fuse::never()));
        world.settled("web").await;
        world.kill().await;
        let state = world.sim.state();
        let fuse = Fuse::at(k);
        world.start_with(start(fuse.clone()));
        world.rest().await;
        let refusal = Status::new(
            403,
            "Forbidden",
            "admission webhook denied the request: try later",
        );
        let fault = KubeFault::new(Effect::Answer(refusal))
            .verb("patch")
            .resource("services");
        world.api.faults().inject(fault.subresource("status").times(1));
        world.edit_service("web", |web| _ = web["status"]["loadBalancer"].take());
        let died = tokio::time::timeout(SECOND * 120, fuse.burnt()).await.is_ok();
        if !died {
            assert!(note(&world) && k > 3, "{k}");
            break;
        }
        assert!(note(&world), "{k}");
        world.kill().await;
        world.start_with(start(Fuse::never()));
        world.settled("web").await;
        assert_eq!(world.sim.state(), state, "{k}");
    }
}
