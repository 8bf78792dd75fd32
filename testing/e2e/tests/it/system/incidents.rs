//! Incidents of a whole manager: what its pages show meanwhile, and which alerts fire.
//!
//! The manager is scraped once a minute. promtool evaluates the rules over what was scraped; without promtool only the line of the
//! page is looked at that the alert goes by. `cargo xtask monitoring` builds it.

use std::path::Path;

use bowline_checks::monitoring::{Promtool, RULES, Samples, root};
use bowline_cloud_kit::{Fault, faults::Canned};
use bowline_conformance::cloud::{CloudUnderTest, Denial, Instance, Start, Wish, tainted_node, web};
use bowline_conformance::clouds::{OpenStack, Phoenixnap};
use bowline_controllers::route::RouteTiming;
use bowline_kube_api::{Effect, Fault as KubeFault, Status};
use bowline_manager::config::RouteSettings;
use bowline_phoenixnap_sim::BlockSpec;
use serde_json::json;

use super::world::{Cloudscale, SECOND, World};

/// A world that is scraped.
struct Watched<C> {
    world: bowline_conformance::cloud::World<C>,
    samples: Samples,
    /// The wall time of the first scrape, which promtool takes for the start of all time.
    begun: Option<f64>,
    minutes: usize,
    /// What is to fire at which minute.
    expected: Vec<(usize, &'static [&'static str])>,
    last: String,
}

impl<C: CloudUnderTest> Watched<C> {
    fn over(world: bowline_conformance::cloud::World<C>) -> Self {
        Self {
            world,
            samples: Samples::default(),
            begun: None,
            minutes: 0,
            expected: Vec::new(),
            last: String::new(),
        }
    }

    /// With some Nodes and a Service that is served, for ten minutes.
    async fn healthy() -> Self {
        let mut world = bowline_conformance::cloud::World::new();
        world.add_nodes(3);
        world.start();
        world.ask(web(), Wish::Plain);
        world.settled("web").await;
        let mut watched = Self::over(world);
        watched.pass(10).await;
        watched.expect(&[]);
        watched
    }

    /// Scrapes once a minute.
    async fn pass(&mut self, minutes: usize) {
        for _ in 0..minutes {
            let holders = self.world.holders();
            let names: Vec<String> = holders.iter().map(|holder| (*holder).to_owned()).collect();
            let mut pages = Vec::new();
            for metrics in self.world.metrics() {
                pages.push(self.in_promtools_time(&metrics.render().unwrap()));
            }
            self.last = pages.concat();
            let named = names.iter().map(String::as_str);
            self.samples
                .scrape(named.zip(pages.iter().map(|page| Some(page.as_str()))));
            self.world.pass(SECOND * 60).await;
            self.minutes += 1;
        }
    }

    fn in_promtools_time(&mut self, page: &str) -> String {
        let moved = page
            .lines()
            .map(|line| match line.strip_prefix("wall_clock_seconds ") {
                Some(time) => {
                    let time: f64 = time.parse().unwrap();
                    // What has not run yet at the first scrape shows its first time later.
                    let since = 60.0 * self.minutes as f64;
                    let begun = *self.begun.get_or_insert(time - since);
                    format!("wall_clock_seconds {}\n", time - begun)
                }
                None => format!("{line}\n"),
            });
        moved.collect()
    }

    /// At the last scrape these alerts fire, and no other.
    fn expect(&mut self, alerts: &'static [&'static str]) {
        self.expected.push((self.minutes - 1, alerts));
    }

    /// The last page has this line.
    #[track_caller]
    fn shows(&self, line: &str) {
        let name = line.split(['{', ' ']).next().unwrap();
        let found: Vec<&str> = self.last.lines().filter(|it| it.starts_with(name)).collect();
        assert!(found.contains(&line), "no {line} in {found:#?}");
    }

    /// The number behind this series on the last page.
    fn value(&self, series: &str) -> f64 {
        let values = self.last.lines().filter_map(|line| line.strip_prefix(series));
        let mut values = values.filter_map(|rest| rest.trim().parse().ok());
        values.next().unwrap_or(f64::NAN)
    }

    /// Has promtool say which alerts fire.
    #[track_caller]
    fn judge(self, what: &str) {
        let Some(promtool) = Promtool::or_skip() else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let rules = root().join(RULES);
        let test = self
            .samples
            .test(&rules.display().to_string(), "1m", &self.expected);
        std::fs::write(folder.path().join("test.yaml"), test).unwrap();
        let judged = promtool.run(Path::new(folder.path()), &["test", "rules", "test.yaml"]);
        judged.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn no_alert_fires_while_services_and_nodes_come_and_go() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    let world = &watched.world;
    world.ask_for("second", 31_300);
    watched.pass(5).await;
    watched.expect(&[]);
    watched.world.join("late");
    watched.pass(5).await;
    watched.expect(&[]);
    watched.world.delete_service("second");
    watched.world.sim.remove_instance("late");
    watched.world.set_ready("late", "Unknown");
    watched.pass(10).await;
    watched.expect(&[]);
    // The leader is replaced.
    watched.world.start();
    watched.pass(3).await;
    watched.world.kill().await;
    for _ in 0..15 {
        watched.pass(2).await;
        watched.expect(&[]);
    }
    for reason in ["pending", "waiting", "refused", "denied", "failed"] {
        watched.shows(&format!("load_balancers_unsettled{{reason=\"{reason}\"}} 0"));
    }
    watched.shows("nodes_uninitialized 0");
    watched.judge("a healthy hour");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_is_told_of_and_its_recovery_too() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    watched
        .world
        .cloud()
        .faults()
        .add(Fault::any().always().drop_before());
    watched.pass(25).await;
    assert!(watched.value("cloud_api_last_good_read_age_seconds{provider=\"cloudscale\"}") > 900.0);
    watched.expect(&["BowlineCloudUnreachable/down"]);
    watched.world.cloud().faults().clear();
    watched.pass(30).await;
    watched.expect(&[]);
    watched.judge("a cloud that does not answer");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_told_of() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    watched.world.sim.deny(Some(Denial::Unknown));
    watched.pass(25).await;
    watched.shows("load_balancers_unsettled{reason=\"denied\"} 1");
    watched.expect(&[
        "BowlineCloudCredentialsRefused/rejected",
        "BowlineCloudCredentialsRefused/denied",
    ]);
    watched.world.sim.deny(None);
    watched.pass(30).await;
    watched.expect(&[]);
    watched.judge("a wrong token");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_refused_is_told_of() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    watched.world.edit_service("web", |service| {
        service["metadata"]["annotations"]["k8s.cloudscale.ch/loadbalancer-health-monitor-delay-s"] =
            json!("soon");
    });
    watched.pass(5).await;
    watched.shows("load_balancers_unsettled{reason=\"refused\"} 1");
    watched.expect(&[]);
    watched.pass(20).await;
    watched.expect(&["BowlineServiceNotSettled"]);
    watched.judge("a Service that is refused");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_the_cloud_does_not_finish_is_told_of() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    watched
        .world
        .sim
        .set_behaviour(|it| it.lb_create_time = SECOND * 360_000);
    watched.world.ask_for("second", 31_300);
    watched.pass(25).await;
    watched.shows("load_balancers_unsettled{reason=\"waiting\"} 1");
    watched.expect(&["BowlineServiceNotSettled"]);
    watched.judge("a load balancer that is not finished");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_instance_is_told_of() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    watched.world.apply(tainted_node("stranger"));
    watched.pass(18).await;
    watched.shows("nodes_uninitialized 1");
    watched.expect(&["BowlineNodeNotInitialized"]);
    watched.judge("a Node without an instance");
}

#[tokio::test(start_paused = true)]
async fn credentials_of_another_project_are_told_of_before_a_node_is_deleted() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    watched.world.sim.deny(Some(Denial::OtherProject));
    let name = watched.world.sim.instances().into_keys().next().unwrap();
    watched.world.sim.deny(None);
    watched.world.sim.remove_instance(&name);
    watched.world.sim.deny(Some(Denial::OtherProject));
    watched.world.set_ready(&name, "Unknown");
    watched.pass(8).await;
    watched.shows("node_deletions_frozen 1");
    watched.expect(&["BowlineNodeDeletionHeld/frozen"]);
    assert!(watched.world.node(&name).is_some());
    watched.judge("credentials of another project");
}

#[tokio::test(start_paused = true)]
async fn many_instances_that_are_gone_at_once_are_told_of_while_their_nodes_are_there() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    let names = ["lost1", "lost2", "lost3", "lost4", "lost5", "lost6"];
    for name in names {
        watched.world.join(name);
    }
    watched.pass(5).await;
    for name in names {
        watched.world.sim.remove_instance(name);
        watched.world.set_ready(name, "Unknown");
    }
    watched.pass(8).await;
    watched.shows("node_deletions_throttled 3");
    watched.expect(&["BowlineNodeDeletionHeld/throttled"]);
    watched.pass(30).await;
    watched.shows("node_deletions_throttled 0");
    watched.expect(&[]);
    watched.judge("many instances that are gone at once");
}

#[tokio::test(start_paused = true)]
async fn a_role_that_lacks_a_rule_is_told_of() {
    let world = World::new();
    world.add_nodes(2);
    let refusal = Status::new(403, "Forbidden", "cannot list resource \"services\"");
    for verb in ["list", "watch"] {
        let fault = KubeFault::new(Effect::Answer(refusal.clone()));
        world.api.faults().inject(fault.verb(verb).resource("services"));
    }
    let mut watched = Watched::over(world);
    watched.world.start();
    watched.pass(30).await;
    watched.shows("controller_ready{name=\"service-lb-controller\"} 0");
    watched.expect(&[
        "BowlineKubernetesFailing/not-ready",
        "BowlineKubernetesFailing/stale",
        "BowlineKubernetesFailing/forbidden",
    ]);
    watched.judge("a role that lacks a rule");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_holds_is_told_of() {
    let world = World::new();
    world.add_nodes(2);
    world.apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "cloud-controller-manager", "namespace": "kube-system" },
        "spec": {
            "holderIdentity": "the former manager", "leaseDurationSeconds": 36_000, "leaseTransitions": 1,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }));
    let mut watched = Watched::over(world);
    watched.world.start();
    watched.pass(4).await;
    watched.expect(&[]);
    watched.pass(5).await;
    watched.shows("leader_election_master_status{name=\"cloud-controller-manager\"} 0");
    watched.expect(&["BowlineNotWorking/no-leader"]);
    watched.judge("a lease that somebody else holds");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_limits_the_rate_is_told_of() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    let lists = watched.world.cloud().faults();
    lists.add(Fault::write().always().too_many_requests(SECOND * 20));
    watched.world.ask_for("second", 31_300);
    watched.pass(40).await;
    watched.shows("load_balancers_unsettled{reason=\"throttled\"} 1");
    watched.expect(&["BowlineCloudSlow/throttled", "BowlineServiceNotSettled"]);
    watched.judge("a cloud that limits the rate");
}

#[tokio::test(start_paused = true)]
async fn credentials_that_may_read_and_not_write_are_told_of() {
    let mut watched = Watched::<Cloudscale>::healthy().await;
    let faults = watched.world.cloud().faults();
    faults.add(Fault::write().always().status(403));
    watched.world.ask_for("second", 31_300);
    watched.pass(25).await;
    watched.shows("load_balancers_unsettled{reason=\"denied\"} 1");
    watched.expect(&["BowlineCloudCredentialsRefused/denied"]);
    watched.judge("credentials that may not write");
}

#[tokio::test(start_paused = true)]
async fn a_block_that_no_service_has_is_told_of() {
    let mut watched = Watched::<Phoenixnap>::healthy().await;
    let namespace = watched.world.api.object("Namespace", "", "kube-system").unwrap();
    let cluster = namespace["metadata"]["uid"].as_str().unwrap();
    watched
        .world
        .sim
        .add_block(BlockSpec::of_service(cluster, "default", "gone"));
    watched.pass(35).await;
    watched.shows("phoenixnap_ip_blocks{state=\"orphaned\"} 1");
    watched.expect(&["BowlineIPBlocksOrphaned/orphaned"]);
    watched.judge("an orphaned block");
}

#[tokio::test(start_paused = true)]
async fn routes_that_cannot_be_read_are_told_of() {
    let mut world = bowline_conformance::cloud::World::<OpenStack>::new();
    for name in ["n0", "n1"] {
        world.sim.add_instance(&Instance::plain(name));
        let mut node = tainted_node(name);
        let network = format!("10.200.{}.0/24", &name[1..]);
        node["spec"]["providerID"] = json!(world.provider_id(name));
        node["spec"]["podCIDR"] = json!(network);
        node["spec"]["podCIDRs"] = json!([network]);
        world.apply(node);
    }
    let mut start = Start::default();
    start.config.settings.routes =
        RouteSettings::new(true, "10.200.0.0/16", RouteTiming::Periodic(SECOND * 10));
    world.start_with(start);
    world
        .until("every node has its route", |w| w.sim.routes().len() == 2)
        .await;
    let mut watched = Watched::over(world);
    watched.pass(10).await;
    watched.expect(&[]);
    let faults = watched.world.cloud().faults();
    faults.add(Fault::operation("neutron.routers.get").always().status(404));
    watched.pass(20).await;
    watched.shows("routes_failing{operation=\"list\"} 1");
    watched.expect(&["BowlineRoutesFailing"]);
    watched.judge("a router that is gone");
}

#[tokio::test(start_paused = true)]
async fn credentials_that_may_not_look_for_servers_are_told_of_without_a_service_that_waits() {
    let mut watched = Watched::<OpenStack>::healthy().await;
    let refusal = r#"{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:servers:detail to be performed."}}"#;
    let faults = watched.world.cloud().faults();
    faults.add(
        Fault::operation("nova.servers.list")
            .always()
            .answer(Canned::json(403, refusal)),
    );
    watched.pass(40).await;
    watched.shows("load_balancers_unsettled{reason=\"denied\"} 0");
    for _ in 0..10 {
        watched.pass(1).await;
        watched.expect(&["BowlineCloudCredentialsRefused/nodes"]);
    }
    watched.world.cloud().faults().clear();
    watched.pass(30).await;
    watched.expect(&[]);
    watched.judge("credentials that may not look for servers");
}

#[tokio::test(start_paused = true)]
async fn an_application_credential_that_was_deleted_is_told_of_as_refused_credentials() {
    let mut watched = Watched::<OpenStack>::healthy().await;
    watched.world.sim.revoke_tokens();
    let gone = r#"{"error": {"code": 404, "message": "Could not find Application Credential: 7.", "title": "Not Found"}}"#;
    let faults = watched.world.cloud().faults();
    faults.add(
        Fault::operation("keystone.tokens.create")
            .always()
            .answer(Canned::json(404, gone)),
    );
    watched.pass(25).await;
    for _ in 0..20 {
        watched.pass(1).await;
        watched.expect(&[
            "BowlineCloudCredentialsRefused/rejected",
            "BowlineCloudCredentialsRefused/denied",
        ]);
    }
    watched.judge("an application credential that was deleted");
}
