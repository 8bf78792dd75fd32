//! What our controllers rely on in an API server, checked on the embedded one and on the real one.
//!
//! Most bodies are scenarios: text files in `scenarios/`, which speak JSON over HTTP, so that nothing between them and the server
//! can smooth a difference away. So do those in Rust, where a watch runs meanwhile, or versions differ; those of [`clients`] go
//! through our own client instead, as the controllers do. Each has a namespace and a prefix for the names of Nodes of its own, so
//! they run side by side on one server.
//!
//! # What only the embedded server is asked
//!
//! - **compaction**: a list or watch that begins before what the server still knows is answered with 410. The real
//!   server compacts every five minutes and keeps at least as much; nothing in its API brings that about.

use std::future::Future;
use std::pin::Pin;

use bowline_kit::scenario;

mod arm;
mod clients;
mod either_way;
mod player;
mod scope;
mod tables;
mod versions;
mod watches;

pub use arm::{Arm, ArmError};
pub use scope::Scope;

use self::player::Player;

/// A body that has been started.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One claim about an API server.
pub struct Body {
    /// What is claimed, as `module::fact`.
    pub name: String,
    run: Box<dyn Fn(Scope) -> Running + Send + Sync>,
}

macro_rules! bodies {
    ($($module:ident { $($name:ident),* $(,)? })*) => {
        [$($(Body {
            name: concat!(stringify!($module), "::", stringify!($name)).to_owned(),
            run: Box::new(|scope| Box::pin($module::$name(scope))),
        },)*)*]
    };
}

/// What every API server must do.
pub fn bodies() -> Vec<Body> {
    let in_rust = bodies! {
        versions {
            version_and_health_are_told,
            the_provider_id_is_set_once,
            access_is_answered_with_yes_or_no,
        }
        either_way {
            generation_counts_changes_of_the_spec,
            another_uid_is_refused,
            managed_fields_that_are_not_wanted_change_nothing_else,
        }
        watches {
            a_watch_shows_each_change_in_order,
            a_watch_goes_on_where_the_last_one_ended,
            a_selector_turns_changes_into_arrivals_and_departures,
            bookmarks_come_before_the_end,
            a_watch_can_begin_with_all_there_is,
        }
        tables {
            nodes_are_shown_as_a_person_sees_them,
            services_are_shown_as_a_person_sees_them,
        }
        clients {
            a_node_is_initialised,
            a_successor_of_a_node_is_never_written_to,
            a_service_is_guarded_published_and_let_go,
            annotations_and_address_of_a_service_are_written,
            a_lease_passes_from_hand_to_hand,
            events_are_written_and_counted_up,
            a_cache_follows_the_server,
            a_condition_without_a_time_is_stored_and_keeps_no_cache_from_being_filled,
            more_services_than_a_page_are_listed,
        }
    };
    let in_text = in_text().filter(|body| !is_of_compaction(body));
    in_rust.into_iter().chain(in_text).collect()
}

/// What can only be shown on the embedded server; why is said above.
pub fn embedded_only() -> Vec<Body> {
    let in_rust = bodies! { either_way { a_watch_from_a_forgotten_past_expires } };
    in_rust
        .into_iter()
        .chain(in_text().filter(is_of_compaction))
        .collect()
}

fn is_of_compaction(body: &Body) -> bool {
    body.name.starts_with("compaction::")
}

/// The scenarios.
fn in_text() -> impl Iterator<Item = Body> {
    let all = scenario::scenarios(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios"));
    all.into_iter().map(|(name, scenario)| {
        let run = move |scope| -> Running {
            let scenario = scenario.clone();
            Box::pin(async move {
                let played = match scenario {
                    Ok(scenario) => scenario::play_on(Player { scope }, &scenario).await,
                    Err(complaint) => Err(complaint),
                };
                played.unwrap_or_else(|complaint| panic!("{complaint}"));
            })
        };
        Body {
            name,
            run: Box::new(run),
        }
    })
}
