//! Incidents of a whole manager: what its pages show meanwhile, and which alerts fire.
//!
//! Each is a scenario of the folder `incidents`. The manager is scraped once a minute. promtool evaluates the rules over what was
//! scraped; without promtool only the line of the page is looked at that the alert goes by. `cargo xtask monitoring` builds it.

use bowline_checks::monitoring::{Promtool, RULES, Samples, root};
use bowline_cloud_kit::Double;
use bowline_conformance::cloud::{CloudUnderTest, Stage, Wish, World, web};
use bowline_conformance::clouds::{OpenStack, Phoenixnap};
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, word};
use bowline_phoenixnap_sim::BlockSpec;
use serde_json::Value;

use super::staged::play_all;
use super::world::{Cloudscale, SECOND};

/// A world that is scraped.
struct Watched<C> {
    stage: Stage<C>,
    samples: Samples,
    /// The wall time of the first scrape, which promtool takes for the start of all time.
    begun: Option<f64>,
    minutes: usize,
    /// What is to fire at which minute.
    expected: Vec<(usize, Vec<String>)>,
    /// The page of the last scrape, with round brackets around labels.
    last: String,
}

impl<C: CloudUnderTest> ScenarioCloud for Watched<C> {
    const RUNS_BY_ITSELF: bool = true;

    async fn begin() -> Self {
        Self {
            stage: Stage::around(World::new()),
            samples: Samples::default(),
            begun: None,
            minutes: 0,
            expected: Vec::new(),
            last: String::new(),
        }
    }

    fn double(&self) -> Option<&dyn Double> {
        self.stage.double()
    }

    fn part(&self, name: &str) -> Value {
        self.stage.part(name)
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "healthy" => self.become_healthy().await,
            "scrape" => self.scrape(words.rest.parse().map_err(|_| "how often?")?).await,
            // At the last scrape these alerts fire, and no other.
            "fires" => {
                let alerts = words.rest.split_whitespace().filter(|it| *it != "nothing");
                self.expected
                    .push((self.minutes - 1, alerts.map(str::to_owned).collect()));
            }
            "shows" => self.shows(words.rest)?,
            "exceeds" => {
                let (least, series) = word(words.rest);
                let least: f64 = least.parse().map_err(|_| "how much?")?;
                let mut values = self
                    .last
                    .lines()
                    .filter_map(|line| line.strip_prefix(series)?.trim().parse().ok());
                let value: f64 = values.next().unwrap_or(f64::NAN);
                return if value > least {
                    Ok(true)
                } else {
                    Err(format!("it is {value}"))
                };
            }
            // Has promtool say which alerts fire.
            "judged" => self.judge()?,
            _ => return self.stage.act(words).await,
        }
        Ok(true)
    }
}

impl<C: CloudUnderTest> Watched<C> {
    /// With some Nodes and a Service that is served, for ten minutes.
    async fn become_healthy(&mut self) {
        let world = &mut self.stage.world;
        world.add_nodes(3);
        world.start();
        world.ask(web(), Wish::Plain);
        world.settled("web").await;
        self.scrape(10).await;
        self.expected.push((self.minutes - 1, Vec::new()));
    }

    /// Scrapes once a minute.
    async fn scrape(&mut self, minutes: usize) {
        for _ in 0..minutes {
            let holders = self.stage.world.holders();
            let names: Vec<String> = holders.iter().map(|holder| (*holder).to_owned()).collect();
            let mut pages = Vec::new();
            for metrics in self.stage.world.metrics() {
                pages.push(self.in_promtools_time(&metrics.render().unwrap()));
            }
            self.last = pages.concat().replace('{', "(").replace('}', ")");
            let named = names.iter().map(String::as_str);
            self.samples
                .scrape(named.zip(pages.iter().map(|page| Some(page.as_str()))));
            self.stage.world.pass(SECOND * 60).await;
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

    /// The last page has this line.
    fn shows(&self, line: &str) -> Result<(), Complaint> {
        let name = line.split(['(', ' ']).next().unwrap_or_default();
        let found: Vec<&str> = self.last.lines().filter(|it| it.starts_with(name)).collect();
        let is_there = found.contains(&line);
        is_there
            .then_some(())
            .ok_or_else(|| format!("it is not in {found:#?}"))
    }

    fn judge(&self) -> Result<(), Complaint> {
        let Some(promtool) = Promtool::or_skip() else {
            return Ok(());
        };
        let folder = tempfile::tempdir().unwrap();
        let rules = root().join(RULES);
        let test = self
            .samples
            .test(&rules.display().to_string(), "1m", &self.expected);
        std::fs::write(folder.path().join("test.yaml"), test).unwrap();
        let judged = promtool.run(folder.path(), &["test", "rules", "test.yaml"]);
        judged.map(drop).map_err(|error| error.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn incidents_are_told_of() {
    play_all::<Watched<Cloudscale>>("incidents", "cloudscale").await;
}

#[tokio::test(start_paused = true)]
async fn incidents_of_routes_and_of_the_look_for_servers_are_told_of() {
    play_all::<Watched<OpenStack>>("incidents", "openstack").await;
}

#[tokio::test(start_paused = true)]
async fn a_block_that_no_service_has_is_told_of() {
    let mut watched = Watched::<Phoenixnap>::begin().await;
    watched.become_healthy().await;
    let world = &watched.stage.world;
    let namespace = world.api.object("Namespace", "", "kube-system").unwrap();
    let cluster = namespace["metadata"]["uid"].as_str().unwrap();
    world
        .sim
        .add_block(BlockSpec::of_service(cluster, "default", "gone"));
    watched.scrape(35).await;
    watched
        .shows("phoenixnap_ip_blocks(state=\"orphaned\") 1")
        .unwrap();
    let orphaned = vec!["BowlineIPBlocksOrphaned/orphaned".to_owned()];
    watched.expected.push((watched.minutes - 1, orphaned));
    watched.judge().unwrap();
}
