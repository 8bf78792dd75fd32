//! The way through the load balancer, and through each Node.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{AddressType, Node, Service};
use bowline_kube_io::KubeError;
use bowline_kube_io::workloads::Pod;
use futures::StreamExt as _;
use tokio::time::{Instant, sleep};

use super::ask::{Answer, ask, read};
use super::ground::{Ground, Heard};
use super::source::{self, Whose, whose};
use super::{ANSWERS, ANSWERS_IPV6, Halt, LOCAL, NODES, Names, Trial};
use crate::doctor::Check;

/// So many answers in a row are taken for all: of three members that take turns, one that is down fails one question in three.
pub(super) const IN_A_ROW: usize = 20;

/// Between two questions. A trial is no load test.
const BETWEEN: Duration = Duration::from_millis(50);

/// Nodes that are asked at once.
const NODES_AT_ONCE: usize = 32;

/// How a Node answers.
enum Way {
    Direct,
    /// Asked by the API server.
    Proxied,
    /// It does not, for this reason.
    Silent(String),
    /// It cannot be asked, for this reason.
    Unknown(String),
}

/// What came of asking until it was steady.
pub(super) struct Steady {
    /// The answers in a row.
    pub(super) answers: Vec<Answer>,
    /// What was not as wanted before that.
    pub(super) missed: usize,
    pub(super) took: Duration,
}

impl Steady {
    /// In words, behind what was seen.
    pub(super) fn missed(&self) -> String {
        match self.missed {
            0 => String::new(),
            missed => format!(
                " ({missed} connections before that went otherwise, in {} s)",
                self.took.as_secs().max(1)
            ),
        }
    }
}

/// Where the load balancer is, as the status of the Service tells it.
pub(super) fn ingress(service: &Service) -> impl Iterator<Item = String> {
    let balancer = service.status.as_ref().and_then(|it| it.load_balancer.as_ref());
    let ingress = balancer.and_then(|it| it.ingress.as_deref()).unwrap_or_default();
    let place =
        |it: &bowline_cloud_provider::k8s::LoadBalancerIngress| it.ip.clone().or_else(|| it.hostname.clone());
    ingress.iter().filter_map(place).collect::<Vec<_>>().into_iter()
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod
            .status
            .conditions
            .iter()
            .any(|it| it.kind == "Ready" && it.status == "True")
}

/// What a pod waits for, as far as it is told.
pub(super) fn why_not_ready(pod: &Pod) -> String {
    let waiting = pod.status.container_statuses.iter();
    let waiting = waiting.filter_map(|it| it.state.waiting.as_ref().or(it.last_state.terminated.as_ref()));
    let reasons = waiting.map(|it| format!("{} {}", it.reason, it.message));
    let conditions = pod.status.conditions.iter().filter(|it| it.status == "False");
    let conditions = conditions.map(|it| format!("{} {}", it.reason, it.message));
    let why = reasons
        .chain(conditions)
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty());
    let end = match pod.metadata.deletion_timestamp {
        Some(_) => "it is being deleted".to_owned(),
        None => why.unwrap_or_else(|| format!("it is {}", pod.status.phase)),
    };
    format!("pod {}: {end}", pod.metadata.name)
}

impl Trial<'_> {
    /// Asks each Node at the Service's node port: from here, and through the API server where that does not work.
    pub(super) async fn ask_nodes(&self, nodes: &[Arc<Node>], service: &Service) -> Result<Heard, Halt> {
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
        let port = ports.and_then(|ports| ports.first()?.node_port);
        let Some(port) = port
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port > 0)
        else {
            return Ok(Heard {
                check: NODES
                    .skipped("the Service has no node port: the load balancer asks the pods themselves"),
                silent: Vec::new(),
            });
        };
        let ways = nodes
            .iter()
            .map(|node| async move { (node.name.to_string(), self.way(node, port).await) });
        let ways = futures::stream::iter(ways).buffered(NODES_AT_ONCE).collect();
        tokio::select! {
            biased;
            () = self.interrupt.cancelled() => Err(Halt::Interrupted),
            ways = ways => Ok(heard(ways, port)),
        }
    }

    async fn way(&self, node: &Node, port: u16) -> Way {
        let mut failures = Vec::new();
        for kind in [AddressType::ExternalIp, AddressType::InternalIp] {
            let of_kind = node.addresses.iter().filter(|it| it.kind == kind);
            for ip in of_kind.filter_map(|it| it.address.parse::<IpAddr>().ok()) {
                match ask(SocketAddr::new(ip, port)).await {
                    Ok(_) => return Way::Direct,
                    Err(error) => failures.push(format!("{ip}: {error}")),
                }
            }
        }
        let proxied = self.kube.ask_node(&node.name, port).await;
        match proxied {
            Ok(body) if read(&body, None).is_ok() => return Way::Proxied,
            Ok(_) => failures.push("the API server heard something else".to_owned()),
            // It is not allowed, or there is no such way: nothing is known of the Node by that.
            Err(error @ (KubeError::Forbidden(_) | KubeError::NotFound(_))) => {
                failures.push(format!("through the API server: {error}"));
                return Way::Unknown(failures.join("; "));
            }
            Err(error) => failures.push(format!("through the API server: {error}")),
        }
        Way::Silent(failures.join("; "))
    }

    /// Asks until so many answers in a row are as wanted. Late, it says what was not.
    pub(super) async fn steady(
        &self,
        address: SocketAddr,
        is_wanted: impl Fn(&Answer) -> Result<(), String>,
    ) -> Result<Steady, Halt> {
        let asking = async {
            let begun = Instant::now();
            let (mut answers, mut missed, mut last) = (Vec::new(), 0, String::new());
            while answers.len() < IN_A_ROW {
                match ask(address)
                    .await
                    .and_then(|answer| is_wanted(&answer).map(|()| answer))
                {
                    Ok(answer) => answers.push(answer),
                    Err(error) => {
                        missed += 1;
                        answers.clear();
                        last = error;
                    }
                }
                if begun.elapsed() >= self.patience && answers.len() < IN_A_ROW {
                    return Err(Halt::Late(format!(
                        "{last}, {missed} times in {} s",
                        begun.elapsed().as_secs()
                    )));
                }
                sleep(BETWEEN).await;
            }
            let took = begun.elapsed();
            Ok(Steady {
                answers,
                missed,
                took,
            })
        };
        tokio::select! {
            biased;
            () = self.interrupt.cancelled() => Err(Halt::Interrupted),
            steady = asking => steady,
        }
    }

    /// Asks the load balancer with the policy Cluster.
    pub(super) async fn ask_balancer(
        &self,
        ground: &Ground<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<Vec<Answer>, Halt> {
        self.progress.is_at("asking the load balancer");
        match self.steady(ground.address, |_| Ok(())).await {
            Ok(steady) => {
                let pods: BTreeSet<&str> = steady.answers.iter().map(|answer| answer.pod.as_str()).collect();
                let pods: Vec<&str> = pods.into_iter().collect();
                let seen = format!(
                    "{}: {IN_A_ROW} connections answered by {}{}",
                    ground.address,
                    pods.join(" and "),
                    steady.missed()
                );
                checks.push(ANSWERS.ok(seen));
                Ok(steady.answers)
            }
            Err(Halt::Late(error)) => {
                checks.push(ANSWERS.failed(format!("{}: {error}", ground.address), ground.heard.remedy()));
                Err(Halt::Failed)
            }
            Err(halt) => Err(halt),
        }
    }

    pub(super) async fn ask_over_ipv6(
        &self,
        ground: &Ground<'_>,
        addresses: &[SocketAddr],
        checks: &mut Vec<Check>,
    ) -> Result<(), Halt> {
        let Some(&address) = addresses.iter().find(|it| it.is_ipv6()) else {
            let seen = "the Service asks for IPv6, and the load balancer got no such address";
            checks.push(ANSWERS_IPV6.warning(seen, "see in the manual of the cloud what IPv6 needs"));
            return Ok(());
        };
        match self.steady(address, |_| Ok(())).await {
            Ok(steady) => checks.push(ANSWERS_IPV6.ok(format!("{address}{}", steady.missed()))),
            Err(Halt::Late(error)) if error.contains("unreachable") => {
                checks.push(ANSWERS_IPV6.skipped(format!("this computer has no IPv6: {error}")));
            }
            Err(Halt::Late(error)) => {
                checks.push(ANSWERS_IPV6.failed(format!("{address}: {error}"), ground.heard.remedy()));
            }
            Err(halt) => return Err(halt),
        }
        Ok(())
    }

    /// Has only Nodes with a pod take traffic, and looks whose address the workload sees.
    pub(super) async fn try_local(
        &self,
        names: &Names,
        ground: &Ground<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), Halt> {
        self.progress.is_at("asking with externalTrafficPolicy Local");
        self.go_on()?;
        if let Err(error) = self.set_policy(names, "Local").await {
            checks.push(LOCAL.failed(format!("changing the Service: {error}"), "run it again"));
            return Err(Halt::Failed);
        }
        // Until the Nodes and the load balancer know of it, it is as before.
        let is_settled = |answer: &Answer| match whose(answer, ground) {
            Whose::Node(node) => Err(format!(
                "the workload saw {}, which is Node {node}'s",
                answer.source
            )),
            _ => Ok(()),
        };
        match self.steady(ground.address, is_settled).await {
            Ok(steady) => {
                let mut check = source::local(&steady.answers, ground);
                check.seen.push_str(&steady.missed());
                checks.push(check);
                Ok(())
            }
            Err(Halt::Late(error)) => {
                // What is wrong, seen with what comes through.
                checks.push(match ask(ground.address).await {
                    Ok(answer) => source::local(&[answer], ground),
                    Err(_) => LOCAL.failed(
                        error,
                        "the load balancer has to ask the Nodes at the health check port of the Service: see whether a firewall or a security \
                         group lets it",
                    ),
                });
                match checks.last().is_some_and(super::is_failed) {
                    true => Err(Halt::Failed),
                    false => Ok(()),
                }
            }
            Err(halt) => Err(halt),
        }
    }
}

/// What is made of the ways.
fn heard(ways: Vec<(String, Way)>, port: u16) -> Heard {
    let all = ways.len();
    let (mut answering, mut proxied) = (0, 0);
    let (mut silent, mut unknown, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (node, way) in ways {
        match way {
            Way::Direct => answering += 1,
            Way::Proxied => proxied += 1,
            Way::Silent(why) => {
                lines.push(format!("{node}: {why}"));
                silent.push(node);
            }
            Way::Unknown(why) => unknown.push((node, why)),
        }
    }
    // Where others are reached from here, one that is not does not answer.
    if answering > 0 {
        for (node, why) in std::mem::take(&mut unknown) {
            lines.push(format!("{node}: {why}"));
            silent.push(node);
        }
    }
    let how = match proxied {
        0 => String::new(),
        proxied => format!(", {proxied} of them asked by the API server"),
    };
    let seen = format!("{} of {all} at node port {port}{how}", answering + proxied);
    lines.extend(unknown.iter().map(|(node, why)| format!("{node}: {why}")));
    let check = if answering + proxied == 0 || silent.is_empty() && !unknown.is_empty() {
        // Neither this computer nor the API server may have a way to their network.
        NODES.skipped(format!("{seen}; the others cannot be reached from here"))
    } else if silent.is_empty() {
        NODES.ok(seen)
    } else {
        let seen = format!("{seen}; not {}", silent.join(", "));
        let remedy = "look there at kube-proxy and the network plugin, and whether a firewall or a security group closes the node port";
        NODES.failed(seen, remedy)
    };
    let check = check.with(lines);
    Heard { check, silent }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{NodeAddress, ServiceKey};
    use bowline_kube_api::{Effect, Fault, KubeApi, Status};
    use bowline_kube_io::{Kube, KubeOptions};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::doctor::Outcome;
    use crate::doctor::Progress;
    use crate::traffic::{Explain, Lines, Wanted};

    fn outcome(ways: Vec<Way>) -> (Outcome, usize) {
        let named = ways
            .into_iter()
            .enumerate()
            .map(|(number, way)| (number.to_string(), way));
        let heard = heard(named.collect(), 30_000);
        (heard.check.outcome, heard.check.details.len())
    }

    #[test]
    fn a_node_is_silent_only_where_others_are_reached_in_the_same_way() {
        let silent = || Way::Silent("no route".to_owned());
        let unknown = || Way::Unknown("forbidden".to_owned());
        assert_eq!(outcome(vec![Way::Direct, Way::Proxied]), (Outcome::Ok, 0));
        assert_eq!(outcome(vec![Way::Direct, silent()]), (Outcome::Failed, 1));
        assert_eq!(outcome(vec![Way::Direct, unknown()]), (Outcome::Failed, 1));
        assert_eq!(outcome(vec![Way::Proxied, unknown()]), (Outcome::Skipped, 1));
        assert_eq!(
            outcome(vec![silent(), silent()]),
            (Outcome::Skipped, 2),
            "nothing is known of their network"
        );
        assert_eq!(outcome(Vec::new()), (Outcome::Skipped, 0));
    }

    fn why<'a>(_: ServiceKey) -> Lines<'a> {
        Box::pin(async { Vec::new() })
    }

    const WHY: Explain<'static> = &why;

    /// A computer outside of the cluster's network reaches no Node, and the API server asks for it (`nodes/proxy`).
    #[tokio::test]
    async fn a_node_that_is_not_reached_from_here_is_asked_by_the_api_server() {
        let body = "Hostname: pod-a\nIP: 10.1.0.7\nRemoteAddr: 192.0.2.9:4711\n";
        for (answer, expected) in [
            (Effect::Text(200, body), "proxied"),
            (Effect::Text(200, "<html>welcome</html>"), "silent"),
            (Effect::Answer(Status::unavailable("no route to host")), "silent"),
            (
                Effect::Answer(Status::new(403, "Forbidden", "nodes/proxy is not yours")),
                "unknown",
            ),
        ] {
            let api = KubeApi::builder().build();
            api.faults().inject(Fault::new(answer).verb("get"));
            let trial = Trial {
                kube: Kube::with_service(api.service(), KubeOptions::new("test")),
                wanted: Wanted::default(),
                run: "test".to_owned(),
                patience: Duration::from_secs(1),
                pause: Duration::from_millis(5),
                search: Err("there is no cloud".to_owned()),
                explain: WHY,
                progress: Progress::default(),
                interrupt: CancellationToken::new(),
            };
            // Nobody listens at port 9 of this address.
            let address = NodeAddress::new(AddressType::InternalIp, "127.77.0.9");
            let node = Node {
                addresses: vec![address],
                ..Node::named("n1")
            };
            let way = match trial.way(&node, 9).await {
                Way::Direct => "direct",
                Way::Proxied => "proxied",
                Way::Silent(_) => "silent",
                Way::Unknown(_) => "unknown",
            };
            assert_eq!(way, expected);
            let asked = api.journal().all();
            assert_eq!(asked[0].path, "/api/v1/nodes/http:n1:9/proxy/");
        }
    }
}
