//! APIs that keep to their description and are otherwise as odd as it lets them be: nothing may lean on how the simulator
//! happens to answer.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::Transport;
use bowline_cloud_provider::{CloudProvider, InstanceAnswer, InstanceQuery, Node, PowerState, Purpose};
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use bowline_phoenixnap_sim::{BlockSpec, NetworkSpec, PhoenixnapSim, ServerSpec, ServerStatus};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

use crate::world::{CLUSTER, Interruption, NETWORK, World};

/// How an API is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Oddity {
    /// It leaves out whatever it may leave out.
    Sparing,
    /// It says `null` for what there is not: absent fields, empty lists, whole lists with nothing in them.
    Null,
    /// It has fields that nobody knows, and shouts its words.
    Modern,
    /// Its lists are the other way round, and say everything twice.
    Muddled,
    /// Every success is a 200, and no write has a body that it need not have.
    Curt,
    /// Every success is a 202.
    Hesitant,
    /// It shows neither networks nor single blocks: calls that the vendor's manager does not make.
    Small,
}

const ALL: [Oddity; 7] = [
    Oddity::Sparing,
    Oddity::Null,
    Oddity::Modern,
    Oddity::Muddled,
    Oddity::Curt,
    Oddity::Hesitant,
    Oddity::Small,
];

/// The fields that the API's description does not call optional, or without which nothing could be told.
const NEEDED: [&str; 17] = [
    "access_token",
    "id",
    "name",
    "value",
    "message",
    // Of a server.
    "status",
    "hostname",
    "type",
    "location",
    "privateIpAddresses",
    "publicIpAddresses",
    // Of a block.
    "cidr",
    "tags",
    "assignedResourceId",
    "assignedResourceType",
    // Of a network.
    "ipBlocks",
    "memberships",
];

impl Oddity {
    /// The transport to a simulator that answers so.
    fn over(self, sim: &PhoenixnapSim) -> Transport {
        let service = sim.service();
        Transport::memory(tower::service_fn(move |request: Request<Full<Bytes>>| {
            let service = service.clone();
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let is_extra = path.contains("/ip-blocks/") || !path.ends_with("/ip-blocks");
                let is_unknown =
                    path.contains("public-networks/") && is_extra || path.contains("/ip-blocks/");
                if self == Self::Small && method == Method::GET && is_unknown {
                    let mut answer = Response::new(Full::new(Bytes::from_static(b"Not Found")));
                    *answer.status_mut() = StatusCode::NOT_FOUND;
                    return Ok(answer);
                }
                let answer = service.oneshot(request).await?;
                let (mut head, body) = answer.into_parts();
                let body = body.collect().await?.to_bytes();
                if !head.status.is_success() || path.ends_with("/token") {
                    return Ok::<_, bowline_phoenixnap_sim::kit::TransportError>(Response::from_parts(
                        head,
                        Full::new(body),
                    ));
                }
                head.headers.clear();
                let is_curt =
                    method != Method::GET && !(method == Method::POST && path == "/ips/v1/ip-blocks");
                let body = match self {
                    Self::Curt => {
                        head.status = StatusCode::OK;
                        if is_curt { Bytes::new() } else { body }
                    }
                    Self::Hesitant => {
                        head.status = StatusCode::ACCEPTED;
                        body
                    }
                    _ => self
                        .answer(serde_json::from_slice(&body).unwrap())
                        .to_string()
                        .into(),
                };
                Ok(Response::from_parts(head, Full::new(body)))
            }
        }))
    }

    /// A whole answer.
    fn answer(self, value: Value) -> Value {
        match self.told(value) {
            Value::Array(list) if self == Self::Muddled => {
                let backwards = list.iter().rev();
                backwards.chain(&list).cloned().collect()
            }
            other => other,
        }
    }

    fn told(self, value: Value) -> Value {
        match value {
            Value::Array(list) if self == Self::Null && list.is_empty() => Value::Null,
            Value::Array(list) => list.into_iter().map(|it| self.told(it)).collect(),
            Value::Object(object) => self.object(object),
            other => other,
        }
    }

    fn object(self, object: Map<String, Value>) -> Value {
        let mut told: Map<String, Value> = object
            .into_iter()
            .filter(|(name, _)| self != Self::Sparing || NEEDED.contains(&name.as_str()))
            .map(|(name, value)| (name, self.told(value)))
            .collect();
        match self {
            Self::Null => {
                for name in [
                    "assignedResourceId",
                    "assignedResourceType",
                    "tags",
                    "value",
                    "description",
                ] {
                    told.entry(name).or_insert(Value::Null);
                }
                told.insert("createdOn".to_owned(), Value::Null);
            }
            Self::Modern => {
                for name in ["status", "assignedResourceType"] {
                    if let Some(Value::String(word)) = told.get_mut(name) {
                        *word = word.to_uppercase().replace(['-', ' '], "_");
                    }
                }
                told.insert("metadata".to_owned(), json!({ "generation": [1, null, {}] }));
                told.insert("createdOn".to_owned(), json!(1_700_000_000));
            }
            _ => {}
        }
        Value::Object(told)
    }
}

async fn ask(world: &World, name: &str, id: Option<String>, purpose: Purpose) -> InstanceAnswer {
    let node = Arc::new(Node {
        provider_id: id.map(Into::into),
        ..Node::named(name)
    });
    let instances = world.cloud.instances().unwrap();
    let answer = instances.instances(&[InstanceQuery { node, purpose }]).await;
    answer.into_iter().next().unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn services_live_and_go_whatever_the_apis_are_like() {
    for oddity in ALL {
        let sim = PhoenixnapSim::builder().seed(7).build();
        sim.add_network(NetworkSpec::with_id(NETWORK, "vips"));
        sim.set_behaviour(|behaviour| {
            behaviour.block_create_time = Duration::from_secs(2);
            behaviour.attach_time = Duration::from_secs(20);
            behaviour.detach_time = Duration::from_secs(5);
            behaviour.assigning_names_network = false;
        });
        let world = World::over(&sim, oddity.over(&sim));
        let keys = ["shop/checkout", "shop/search"];
        for key in keys {
            world.add(key);
            let address = world.run(key).await.published();
            assert_eq!(world.field(key), address[0], "{oddity:?}");
            let (run, calls) = world.calls_of(world.run(key)).await;
            assert_eq!(
                (run.published(), calls),
                (address, vec!["ip-blocks.list".to_owned()]),
                "{oddity:?}"
            );
        }
        assert_eq!(sim.blocks().len(), 2, "{oddity:?}");
        world.delete(keys[0]);
        world.run(keys[0]).await.settled();
        world.forget(keys[0]);
        // The first attempt may find its network busy.
        for _ in 0..5 {
            world.sweep().await;
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let left = sim.blocks();
        assert_eq!(left.len(), 1, "{oddity:?}: {left:#?}");
        assert_eq!(left[0].tag("serviceName"), Some("search"), "{oddity:?}");
        assert_eq!(left[0].tag("cluster"), Some(CLUSTER), "{oddity:?}");
        assert_eq!(sim.journal().count_operation("ip-blocks.create"), 2, "{oddity:?}");
        world.check(&format!("{oddity:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn servers_are_told_whatever_the_apis_are_like() {
    for oddity in ALL {
        let sim = PhoenixnapSim::builder().seed(7).build();
        let world = World::over(&sim, oddity.over(&sim));
        let id = sim.add_server(ServerSpec {
            public_addresses: Some(Vec::new()),
            ..ServerSpec::new("Worker-1")
        });
        sim.add_server(ServerSpec::new("worker-2"));
        for by_id in [false, true] {
            let id = by_id.then(|| format!("phoenixnap://{id}"));
            let answer = ask(&world, "worker-1", id, Purpose::Metadata).await;
            let InstanceAnswer::Present(instance) = answer else {
                panic!("{oddity:?}: {answer:?}")
            };
            assert_eq!(instance.metadata.region, "NLD", "{oddity:?}");
            assert_eq!(instance.metadata.addresses[0].address, "Worker-1", "{oddity:?}");
            assert!(instance.metadata.addresses.len() > 1, "{oddity:?}");
        }
        let provider_id = || Some(format!("phoenixnap://{id}"));
        sim.set_server_status(&id, ServerStatus::PoweredOff);
        let answer = ask(&world, "worker-1", provider_id(), Purpose::Existence).await;
        assert!(
            matches!(&answer, InstanceAnswer::Present(instance) if instance.power == PowerState::Off),
            "{oddity:?}: {answer:?}"
        );
        sim.remove_server(&id);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = ask(&world, "worker-1", provider_id(), Purpose::Existence).await;
        assert!(
            matches!(answer, InstanceAnswer::Absent(_)),
            "{oddity:?}: {answer:?}"
        );
    }
}

/// Whatever a call fails with, nothing is taken for gone and nothing is bought.
#[tokio::test(start_paused = true)]
async fn no_failure_of_any_kind_is_an_answer() {
    type Make = fn() -> Fault;
    let reads: [Make; 12] = [
        || Fault::path("/**").always().status(400),
        || Fault::path("/**").always().status(401),
        || Fault::path("/**").always().status(403),
        || Fault::path("/**").always().html(403),
        || Fault::path("/**").always().html(404),
        || Fault::path("/**").always().empty(404),
        || Fault::path("/**").always().empty(429),
        || {
            Fault::path("/**")
                .always()
                .too_many_requests(Duration::from_secs(3_600))
        },
        || Fault::path("/**").always().html(502),
        || Fault::path("/**").always().empty(200),
        || Fault::path("/**").always().html(200),
        || Fault::path("/**").always().drop_before(),
    ];
    for fault in reads {
        let world = World::with_service();
        let id = world.sim.add_server(ServerSpec::new("worker"));
        let what = format!("{:?}", fault());
        world.sim.faults().add(fault());
        let run = world.run("shop/checkout").await;
        assert!(!run.complaint().is_empty(), "{what}");
        assert!(
            world.sim.blocks().is_empty() && world.claim("shop/checkout").is_none(),
            "{what}"
        );
        world.delete("shop/checkout");
        assert!(!world.run("shop/checkout").await.complaint().is_empty(), "{what}");
        assert!(world.try_sweep().await.is_err(), "{what}");
        for name in [None, Some(format!("phoenixnap://{id}"))] {
            let node = Arc::new(Node {
                provider_id: name.map(Into::into),
                ..Node::named("worker")
            });
            for purpose in [Purpose::Existence, Purpose::Metadata] {
                let query = InstanceQuery {
                    node: Arc::clone(&node),
                    purpose,
                };
                let instances = world.cloud.instances().unwrap();
                let answer = instances.instances(&[query]).await.remove(0);
                assert!(answer.is_err(), "{what}: {answer:?}");
            }
        }
    }
}

fn listed(operation: &str, entries: &Value) -> Fault {
    let list = Canned::json(200, &entries.to_string());
    Fault::operation(operation).always().answer(list)
}

/// An entry that cannot be read costs no other server, and is no proof that its own is gone.
#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_read_hides_only_itself_and_never_proves_an_absence() {
    let good = json!({ "id": "s1", "hostname": "worker-1", "privateIpAddresses": ["10.0.0.1"] });
    for (odd, may_be_lost) in [
        (json!({ "id": "s2", "hostname": "Db", "status": 7 }), false),
        (json!({ "id": null, "hostname": "db" }), true),
        (json!(null), true),
        (json!({ "id": "lost", "status": 7 }), true),
    ] {
        let world = World::new();
        world
            .sim
            .set_behaviour(|behaviour| behaviour.missing_status = 403);
        world
            .sim
            .faults()
            .add(listed("servers.list", &json!([odd, good])));
        let answer = ask(&world, "worker-1", None, Purpose::Metadata).await;
        assert!(matches!(answer, InstanceAnswer::Present(_)), "{odd}: {answer:?}");
        let instances = world.cloud.instances().unwrap();
        let query = |name: &str, id: Option<&str>, purpose| InstanceQuery {
            node: Arc::new(Node {
                provider_id: id.map(Into::into),
                ..Node::named(name)
            }),
            purpose,
        };
        let lost = [query("w", Some("phoenixnap://lost"), Purpose::Existence)];
        let answer = instances.instances(&lost).await.remove(0);
        assert_eq!(answer.is_err(), may_be_lost, "{odd}: {answer:?}");
        if !may_be_lost {
            let named = [query("db", None, Purpose::Metadata)];
            let error = instances.instances(&named).await.remove(0).unwrap_err();
            assert!(error.to_string().contains("cannot be read"), "{odd}: {error}");
        }
    }
}

/// Somebody else's block that cannot be read is nobody's matter; one that may be the Service's bars a purchase and keeps the
/// Service.
#[tokio::test(start_paused = true)]
async fn a_block_that_cannot_be_read_bars_only_the_service_that_may_have_it() {
    let tags = |name: &str| {
        json!([
            { "name": "usage", "value": "cloud-provider-phoenixnap-auto" },
            { "name": "cluster", "value": CLUSTER },
            { "name": "serviceNamespace", "value": "shop" },
            { "name": "serviceName", "value": name },
        ])
    };
    for (odd, bars) in [
        (json!({ "id": "b9", "tags": [{ "value": "x" }] }), false),
        (
            json!({ "id": "b9", "tags": [{ "name": "x", "value": 7 }] }),
            false,
        ),
        (json!({ "id": "b9", "status": 7, "tags": tags("search") }), false),
        (json!({ "id": "b9", "status": 7, "tags": tags("checkout") }), true),
        (json!({ "id": null, "tags": tags("checkout") }), true),
        (json!(null), true),
    ] {
        let world = World::with_service();
        let list = world.sim.faults().add(listed("ip-blocks.list", &json!([odd])));
        let run = world.run("shop/checkout").await;
        if bars {
            assert!(run.complaint().contains("cannot be read"), "{odd}: {run:#?}");
        } else {
            run.settled();
        }
        assert_eq!(world.sim.blocks().len(), usize::from(!bars), "{odd}");
        world.sim.faults().remove(list);
        world.run("shop/checkout").await.settled();
        let bought = world.sim.blocks()[0].id.clone();
        // The block is listed so that it cannot be read: the Service must not be let go.
        let mut hidden = json!({ "id": bought, "tags": tags("checkout") });
        hidden["status"] = json!(7);
        world.sim.faults().add(listed("ip-blocks.list", &json!([hidden])));
        world.delete("shop/checkout");
        let mut world = world;
        world.restart();
        let run = world.run("shop/checkout").await;
        assert!(run.complaint().contains("cannot be read"), "{odd}: {run:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_appears_right_before_a_purchase_and_cannot_be_read_bars_it() {
    let world = World::with_service();
    // The process stands still before the purchase, so that it looks once more.
    let paused = world.run_with("shop/checkout", Interruption::Pause(6, Duration::from_secs(10)));
    let appears = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.sim.faults().add(listed("ip-blocks.list", &json!([null])));
    };
    let (run, ()) = tokio::join!(paused, appears);
    assert!(run.complaint().contains("cannot be read"), "{run:#?}");
    assert_eq!(world.sim.journal().count_operation("ip-blocks.create"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_block_is_not_gone_as_long_as_an_entry_that_cannot_be_read_may_be_it() {
    for (entries, is_told) in [(json!([]), false), (json!([null]), true)] {
        let world = World::new();
        world.sim.add_block(BlockSpec::marked(CLUSTER));
        let faults = world.sim.faults();
        faults.add(Fault::operation("ip-blocks.delete").always().status(403));
        let after = Fault::operation("ip-blocks.list").nth(2);
        faults.add(after.answer(Canned::json(200, &entries.to_string())));
        let notes = world.sweep().await;
        let told = notes.iter().any(|note| note.reason == "IPBlockSweepFailed");
        assert_eq!(told, is_told, "{entries}: {notes:?}");
    }
}
