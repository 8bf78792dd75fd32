//! What every provider must do, whatever its cloud: played on its simulator, in memory, under a stopped clock.
//!
//! A cloud plugs in by implementing [`CloudUnderTest`] and is handed to [`scenarios`]; nothing else is to be written. Each
//! body is one asynchronous function over a [`World`]: a simulator, an embedded API server and as many managers as it
//! takes, on one thread, from one seed. What is expected is told by what reached the cloud and the API server, and is
//! worked out from the objects and the simulator's own model, never by the code under test.
//!
//! # What is not asked of every cloud
//!
//! A body says which [`Ability`]s it needs. For a cloud that lacks one it is listed all the same, as ignored and with
//! what is missing in front of its name.
//!
//! # What is not here
//!
//! What is particular to a cloud: its annotations, the names of its objects, its states and quotas. That is tested
//! beside its provider and, as a whole system, in `testing/e2e`. What a controller decides whatever the cloud answers: that
//! is tested in `crates/controllers`.

use std::future::Future;
use std::pin::Pin;

use bowline_kit::scenario::{ScenarioCloud as _, play_on};
use tokio::runtime::Runtime;

mod balanced;
mod churn;
mod crashes;
mod doctors;
mod fuse;
mod hanging;
mod late;
mod lifecycle;
mod manuals;
mod nodes;
mod orphans;
mod outages;
mod plans;
mod routes;
mod services;
mod session;
mod stage;
mod takeover;
mod under_test;
mod world;

pub use fuse::{End, Fuse, Writer};
pub use stage::Stage;
pub use under_test::{
    Ability, Balancer, CloudUnderTest, Denial, Instance, Seat, StrayRoute, Wish, without_ids,
};
pub use world::{
    AUTOSCALER, EXCLUDED, FINALIZER, SECOND, SHUTDOWN, Since, Start, UNINITIALIZED, World, service,
    tainted_node, web,
};

/// A body that has been started.
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One claim about a cloud.
struct Body {
    name: &'static str,
    needs: &'static [Ability],
    run: fn() -> Running,
}

macro_rules! bodies {
    ($cloud:ident: $($module:ident ($($need:ident),*) { $($name:ident),* $(,)? })*) => {{
        let mut all: Vec<Body> = Vec::new();
        $({
            let needs: &'static [Ability] = &[$(Ability::$need),*];
            $(all.push(Body {
                name: concat!(stringify!($module), "::", stringify!($name)),
                needs,
                run: || Box::pin($module::$name::<$cloud>()),
            });)*
        })*
        all
    }};
}

fn bodies<C: CloudUnderTest>() -> Vec<Body> {
    bodies! { C:
        nodes () {
            the_calls_for_many_nodes_are_those_for_a_few,
        }
        lifecycle () {
            a_pass_costs_the_same_for_many_nodes,
        }
        services (LoadBalancers) {
            a_failure_is_told_and_tried_again_by_the_schedule,
        }
        late (LoadBalancers) {
            a_creation_that_comes_late_is_left_by_no_deletion,
            a_creation_that_comes_late_is_left_by_no_new_process,
            a_change_that_comes_late_undoes_no_newer_one,
            a_change_that_comes_late_undoes_no_newer_one_of_a_new_process,
            a_removal_that_comes_late_takes_nothing_from_a_service_that_comes_back,
        }
        late (LoadBalancers, ChosenAddresses) {
            an_address_that_moved_on_meanwhile_is_not_left_with_the_service_before,
            an_address_that_moved_on_meanwhile_is_brought_back_by_a_new_process,
        }
        late (LoadBalancers, ChosenAddresses, ReturnedAddresses) {
            an_address_that_is_given_back_late_stays_with_the_service_that_has_it_by_then,
        }
        hanging (LoadBalancers) {
            a_deletion_does_not_wait_for_a_call_that_hangs,
            a_deletion_does_not_wait_for_a_read_that_hangs,
        }
        hanging (LoadBalancers, BalancedNodes) {
            a_change_does_not_wait_for_a_removal_that_hangs,
            a_change_does_not_wait_in_the_next_process_either,
            members_do_not_wait_for_a_call_of_another_port_that_hangs,
        }
        manuals (LoadBalancers, Manual) {
            every_example_gets_its_balancer_without_a_warning_and_goes,
        }
        balanced (LoadBalancers, BalancedNodes) {
            nodes_that_come_together_are_few_updates,
        }
        balanced (LoadBalancers, BalancedNodes, ServiceParts) {
            a_part_that_is_not_deleted_keeps_nothing_else_from_following,
        }
        routes (Routes) {
            a_period_costs_the_same_for_many_nodes,
        }
        routes (Routes, RoutesByAddress, NewAddresses) {
            new_addresses_of_a_node_make_its_route_anew,
        }
        plans (LoadBalancers) {
            a_plan_is_made_without_a_write,
            what_is_printed_is_what_is_done_in_that_order,
            what_is_predicted_is_what_becomes,
            a_plan_that_is_done_has_nothing_left_to_do,
        }
        doctors () {
            nothing_is_wrong_where_a_manager_works,
            the_calls_for_many_nodes_are_those_for_a_few,
        }
        doctors (LoadBalancers) {
            a_balancer_that_is_lost_is_told,
            what_a_load_balancer_consists_of_is_explained,
        }
        outages () {
            a_stated_delay_is_kept,
        }
        outages (LoadBalancers) {
            a_slow_cloud_is_told_as_that_with_few_writes,
            a_cloud_that_does_not_answer_is_told_while_it_is_waited_for,
        }
        crashes (LoadBalancers) {
            a_creation_survives_the_death_of_the_process_at_any_write_to_the_cloud,
            a_creation_survives_the_death_of_the_process_at_any_write_to_kubernetes,
            a_creation_survives_the_loss_of_any_answer,
            a_creation_survives_the_failure_of_any_write,
            a_creation_survives_any_trouble_with_kubernetes,
            a_deletion_survives_every_accident,
            the_note_of_the_class_stays_wherever_the_process_dies,
        }
        crashes (LoadBalancers, ServiceParts) {
            a_change_survives_the_death_of_the_process_at_any_write_to_the_cloud,
            a_change_survives_the_loss_of_any_answer,
            a_change_survives_the_failure_of_any_write,
        }
        takeover () {
            an_idle_cluster_costs_the_same_whatever_its_size,
            the_same_seed_gives_the_same_history,
        }
        takeover (LoadBalancers) {
            a_copied_manifest_touches_nothing_of_a_service_whose_publication_is_refused,
        }
        orphans (LoadBalancers) {
            a_removal_is_finished_by_the_next_run_wherever_it_ended,
        }
        churn () {
            whatever_happens_the_end_is_what_the_objects_ask_for,
        }
    }
}

/// One scenario of one cloud, ready to be run.
pub struct Scenario {
    /// `cloud::NAME::module::fact`, the name with its place.
    pub name: String,
    /// What the cloud cannot do and the scenario is about; it is not applicable then.
    pub missing: Option<&'static str>,
    run: Box<dyn Fn() -> Running + Send>,
}

impl Scenario {
    /// Plays it; panics when the claim does not hold.
    ///
    /// The runtime has one thread and its clock is stopped.
    pub fn play(&self, runtime: &Runtime) {
        runtime.block_on((self.run)());
    }
}

/// The modules of scenarios that look no different from one place of a cloud to another.
const OF_ANY_PLACE: [&str; 4] = ["doctors::", "leadership::", "lifecycle::", "nodes::"];

/// Every scenario, for this cloud; in a further place those that the place may change.
///
/// # Panics
///
/// Where a file of scenarios cannot be read.
#[must_use]
pub fn scenarios<C: CloudUnderTest>() -> Vec<Scenario> {
    let place = C::PLACE.map_or_else(String::new, |place| format!("-{place}"));
    let is_played = |name: &str| {
        let is_of_any = OF_ANY_PLACE.iter().any(|module| name.starts_with(module));
        C::PLACE.is_none() || !is_of_any
    };
    let scenario = |name: &str, needs: &[Ability], run| Scenario {
        name: format!("cloud::{}{place}::{name}", C::NAME),
        missing: needs
            .iter()
            .find(|need| !C::ABILITIES.contains(need))
            .map(|need| need.missing()),
        run,
    };
    let bodies = bodies::<C>().into_iter().filter(|body| is_played(body.name));
    let mut all: Vec<Scenario> = bodies
        .map(|body| scenario(body.name, body.needs, Box::new(body.run)))
        .collect();
    let texts = bowline_kit::scenario::scenarios(concat!(env!("CARGO_MANIFEST_DIR"), "/clouds"));
    all.extend(
        texts
            .into_iter()
            .filter(|(name, _)| is_played(name))
            .map(|(name, text)| {
                let text = text.unwrap_or_else(|complaint| panic!("{name}: {complaint}"));
                let needs = text
                    .told("needs")
                    .split_whitespace()
                    .map(|need| Ability::named(need).unwrap());
                let needs: Vec<Ability> = needs.collect();
                let run = move || -> Running {
                    let text = text.clone();
                    Box::pin(async move {
                        let played = play_on(stage::Stage::<C>::begin().await, &text).await;
                        played.unwrap_or_else(|complaint| panic!("{complaint}"));
                    })
                };
                scenario(&name, &needs, Box::new(run))
            }),
    );
    all
}
