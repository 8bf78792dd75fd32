//! What a scenario can see.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_provider::{Purpose, keys};
use bowline_kit::scenario::kube::shown;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::instances::Call;
use super::world::{FINALIZER, World};

const UNINITIALIZED: &str = keys::TAINT_UNINITIALIZED;

impl World {
    /// What a scenario can see.
    pub(super) fn see(&self, name: &str) -> Value {
        let cloud = || self.cloud.state.lock().unwrap();
        match name {
            "uid" => json!(self.uids),
            "balancers" => json!(
                cloud()
                    .balancers
                    .iter()
                    .map(|(uid, nodes)| (uid, nodes.join(" ")))
                    .collect::<BTreeMap<_, _>>()
            ),
            "balancer" => {
                let cloud = cloud();
                let of = |uid| cloud.balancers.get(uid).map(|nodes| nodes.join(" "));
                json!(
                    self.uids
                        .iter()
                        .map(|(name, uid)| (name, of(uid)))
                        .collect::<BTreeMap<_, _>>()
                )
            }
            "asked" => json!(cloud().calls.iter().map(|(_, call)| call).collect::<Vec<_>>()),
            "at" => {
                let mut seconds = BTreeMap::<&str, Vec<u64>>::new();
                let cloud = cloud();
                for (at, call) in &cloud.calls {
                    let verb = call.split([' ', '(']).next().unwrap_or_default();
                    seconds.entry(verb).or_default().push(at.as_secs());
                }
                json!(seconds)
            }
            "members" => json!(cloud().balancers.values().map(Vec::len).collect::<Vec<_>>()),
            "reconciled" => json!(cloud().reconciled),
            "node_lists" => json!(cloud().nodes.len()),
            "sweeps" => json!(cloud().sweeps),
            "busy_looks" => json!(cloud().ways.busy_looks),
            "service" => self.by_name("Service", Value::clone),
            "node" => self.by_name("Node", Value::clone),
            "address" => self.by_name("Service", |it| {
                it["status"]["loadBalancer"]["ingress"][0]["ip"].clone()
            }),
            "addressed" => {
                let addresses = self.see("address");
                let some = addresses
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, it)| !it.is_null());
                json!(some.map(|(name, _)| name).collect::<Vec<_>>())
            }
            "annotations" => self.by_name("Service", |it| it["metadata"]["annotations"].clone()),
            "conditions" => self.by_name("Service", conditions),
            "finalizer" => self.by_name("Service", |it| {
                json!(it["metadata"]["finalizers"].to_string().contains(FINALIZER))
            }),
            "events" => self.events(|mine| json!(mine)),
            "reasons" => self.events(|mine| {
                let reasons = mine.iter().map(|event| event["reason"].as_str().unwrap());
                json!(reasons.collect::<Vec<_>>().join(" "))
            }),
            "told" => {
                let mut told = BTreeMap::<String, u64>::new();
                for event in self.api.objects("Event") {
                    let reason = event["reason"].as_str().unwrap().to_owned();
                    *told.entry(reason).or_default() += event["count"].as_u64().unwrap();
                }
                json!(told)
            }
            "requests" => json!(self.api.journal().all().iter().map(shown).collect::<Vec<_>>()),
            "written" => json!(self.api.journal().writes().iter().map(shown).collect::<Vec<_>>()),
            "stalled" => {
                let stalled = self.heartbeats.iter().filter_map(|it| it.check().err());
                json!(stalled.map(|stalled| stalled.name).collect::<Vec<_>>().join(" "))
            }
            "since_ms" => json!(self.since.elapsed().as_millis()),
            "series" => json!(self.series()),
            "unsettled" => json!(self.unsettled()),
            _ => self.see_of_nodes(name),
        }
    }

    /// The same of what belongs to Nodes.
    fn see_of_nodes(&self, name: &str) -> Value {
        let calls = || self.instances.calls();
        match name {
            "names" => json!(
                self.by_name("Node", |_| Value::Null)
                    .as_object()
                    .map(|all| all.keys().cloned().collect::<Vec<_>>())
            ),
            "known" => json!(self.nodes.len()),
            "initialized" => self.by_name("Node", |it| {
                json!(!listed(&it["spec"]["taints"], "key").contains(UNINITIALIZED))
            }),
            "zones" => json!(
                self.api
                    .objects("Node")
                    .iter()
                    .map(|it| it["metadata"]["labels"]["topology.kubernetes.io/zone"].clone())
                    .collect::<Vec<_>>()
            ),
            "addressed_nodes" => json!(
                self.see("addresses")
                    .as_object()
                    .map(|all| all.values().cloned().collect::<Vec<_>>())
            ),
            "oldest_uninitialized" => {
                let series = self.series();
                let age = series
                    .iter()
                    .find_map(|line| line.strip_prefix("nodes_uninitialized_oldest_seconds "));
                json!(age.and_then(|age| age.parse::<f64>().ok()))
            }
            "tainted" => json!(
                self.api
                    .objects("Node")
                    .iter()
                    .map(|it| listed(&it["spec"]["taints"], "key"))
                    .collect::<BTreeSet<_>>()
            ),
            "existence_of" => json!(
                self.asked(Purpose::Existence)
                    .as_object()
                    .map(|all| all.keys().cloned().collect::<Vec<_>>())
            ),
            "bodies" => json!(
                self.api
                    .journal()
                    .writes()
                    .iter()
                    .filter(|it| it.resource != "events")
                    .map(|it| it.body.clone())
                    .collect::<Vec<_>>()
            ),
            "taints" => self.by_name("Node", |it| json!(listed(&it["spec"]["taints"], "key"))),
            "labels" => self.by_name("Node", |it| it["metadata"]["labels"].clone()),
            "addresses" => self.by_name("Node", |it| {
                let all = it["status"]["addresses"].as_array().into_iter().flatten();
                let all = all.map(|it| format!("{} {}", text(&it["type"]), text(&it["address"])));
                json!(all.collect::<Vec<_>>().join(", "))
            }),
            "networks" => self.by_name("Node", |it| {
                let all = it["spec"]["podCIDRs"].as_array().into_iter().flatten().map(text);
                let all = all.collect::<Vec<_>>();
                assert_eq!(it["spec"]["podCIDR"].as_str(), all.first().map(String::as_str));
                json!(all.join(" "))
            }),
            "texts" => self.events(|mine| {
                let said = |it: &Value| {
                    format!(
                        "{} {}: {}",
                        text(&it["type"]),
                        text(&it["reason"]),
                        text(&it["message"])
                    )
                };
                json!(mine.iter().map(said).collect::<Vec<_>>())
            }),
            // How many Nodes each question was about, and of each Node the times at which it was asked for, in milliseconds.
            "questions" => json!(calls().iter().map(|it| it.asked.len()).collect::<Vec<_>>()),
            "questions_with" => {
                let mut with = BTreeMap::<String, Vec<usize>>::new();
                for call in calls() {
                    for (node, _) in &call.asked {
                        with.entry(node.clone()).or_default().push(call.asked.len() - 1);
                    }
                }
                json!(with)
            }
            "platforms" => {
                let of = |call: &Call| {
                    call.asked
                        .iter()
                        .map(|(name, _)| name[..1].to_owned())
                        .collect::<BTreeSet<_>>()
                        .len()
                };
                json!(calls().iter().map(of).collect::<Vec<_>>())
            }
            "metadata" => self.asked(Purpose::Metadata),
            "existence" => self.asked(Purpose::Existence),
            "checks" => self.asked(Purpose::CredentialCheck),
            "routes" => json!(self.routes.routes()),
            "route_calls" => json!(
                self.routes
                    .lock()
                    .calls
                    .iter()
                    .map(|call| &call.what)
                    .collect::<Vec<_>>()
            ),
            // Milliseconds of each call by its first words.
            "route_at" => {
                let mut at = BTreeMap::<String, Vec<u128>>::new();
                for call in &self.routes.lock().calls {
                    at.entry(call.short()).or_default().push(self.millis(call.at));
                }
                json!(at)
            }
            "last_deletion_ended" => {
                let table = self.routes.lock();
                let deletions = table.calls.iter().filter(|call| call.what.starts_with("delete"));
                let last = deletions.map(|call| self.millis(call.at + table.latency)).max();
                json!(last)
            }
            "route_syncs" => {
                let name = "route_controller_route_sync_total";
                let mut all: Vec<String> = self
                    .series()
                    .iter()
                    .filter_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
                    .collect();
                all.sort();
                json!(all)
            }
            "networks_given" => {
                let nodes = self.api.objects("Node");
                json!(
                    nodes
                        .iter()
                        .flat_map(|it| it["spec"]["podCIDRs"].as_array().cloned().unwrap_or_default())
                        .collect::<Vec<_>>()
                )
            }
            "write_gaps_ms" => {
                let writes = self
                    .api
                    .journal()
                    .matching(|it| it.is_write() && it.resource == "nodes");
                let gaps = writes
                    .windows(2)
                    .map(|pair| pair[1].at.duration_since(pair[0].at).as_millis());
                json!(gaps.collect::<Vec<_>>())
            }
            "batches" => json!(self.routes.lock().batches),
            "most_in_flight" => json!(self.routes.lock().most_in_flight),
            "condition" => self.by_name("Node", |it| {
                conditions(it)
                    .get("NetworkUnavailable")
                    .map_or(Value::Null, |it| {
                        assert!(
                            it["lastTransitionTime"].is_string() && it["lastHeartbeatTime"].is_string(),
                            "{it}"
                        );
                        json!(format!(
                            "{} {} {}",
                            text(&it["status"]),
                            text(&it["reason"]),
                            text(&it["message"])
                        ))
                    })
            }),
            "routed" => {
                let routed = |it: &&Value| {
                    conditions(it)["NetworkUnavailable"]["message"] == "RouteController created a route"
                };
                let nodes = self.api.objects("Node");
                json!(
                    nodes
                        .iter()
                        .filter(routed)
                        .map(|it| it["metadata"]["name"].clone())
                        .collect::<Vec<_>>()
                )
            }
            _ => Value::Null,
        }
    }

    fn millis(&self, at: Instant) -> u128 {
        at.saturating_duration_since(self.since).as_millis()
    }

    /// When each Node was asked for with this purpose, in milliseconds, and how long that was after the time before.
    fn asked(&self, purpose: Purpose) -> Value {
        let mut asked = BTreeMap::<String, (Vec<u128>, Vec<u128>)>::new();
        for call in self.instances.calls() {
            let at = self.millis(call.at);
            for (node, _) in call.asked.iter().filter(|(_, why)| *why == purpose) {
                let (times, gaps) = asked.entry(node.clone()).or_default();
                gaps.extend(times.last().map(|last| at - last));
                times.push(at);
            }
        }
        let shown = asked
            .into_iter()
            .map(|(node, (at, gaps))| (node, json!({ "at": at, "gaps": gaps })));
        Value::Object(shown.collect())
    }

    fn by_name(&self, kind: &str, part: impl Fn(&Value) -> Value) -> Value {
        let objects = self.api.objects(kind);
        let named = objects
            .iter()
            .map(|it| (it["metadata"]["name"].as_str().unwrap().to_owned(), part(it)));
        Value::Object(named.collect())
    }

    /// The events on each object, in order.
    fn events(&self, part: impl Fn(&[Value]) -> Value) -> Value {
        let mut events = self.api.objects("Event");
        let version = |it: &Value| {
            it["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        events.sort_by_key(version);
        let mut of = BTreeMap::<String, Vec<Value>>::new();
        for event in events {
            let name = event["involvedObject"]["name"].as_str().unwrap().to_owned();
            of.entry(name).or_default().push(event);
        }
        let parts = of.iter().map(|(name, mine)| (name.clone(), part(mine)));
        Value::Object(parts.collect())
    }

    /// The lines of the series, with round brackets around their labels.
    fn series(&self) -> Vec<String> {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let round = |line: &str| line.replace('{', "(").replace('}', ")");
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(round)
            .collect()
    }

    /// `REASON COUNT AGE` of the Services that are shown as not settled, with the age of the oldest in whole seconds.
    fn unsettled(&self) -> Vec<String> {
        let series = self.series();
        let values = |name: &str| -> Vec<(String, u64)> {
            let start = format!("{name}(reason=\"");
            let lines = series.iter().filter_map(|line| line.strip_prefix(&start));
            let values = lines.map(|line| {
                let (reason, value) = line.split_once("\") ").unwrap();
                (reason.to_owned(), value.parse::<f64>().unwrap() as u64)
            });
            values.collect()
        };
        let oldest = values("load_balancers_unsettled_oldest_seconds");
        let counts = values("load_balancers_unsettled").into_iter().zip(oldest);
        let some = counts.filter(|((_, count), (_, oldest))| (*count, *oldest) != (0, 0));
        some.map(|((reason, count), (of, oldest))| {
            assert_eq!(reason, of);
            format!("{reason} {count} {oldest}")
        })
        .collect()
    }
}

/// The conditions of a Service by type.
fn conditions(service: &Value) -> Value {
    let all = service["status"]["conditions"].as_array().into_iter().flatten();
    let named = all.map(|it| (it["type"].as_str().unwrap().to_owned(), it.clone()));
    Value::Object(named.collect())
}

/// A field of each object of a list.
fn listed(list: &Value, field: &str) -> String {
    let all = list.as_array().into_iter().flatten().map(|it| text(&it[field]));
    all.collect::<Vec<_>>().join(" ")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
