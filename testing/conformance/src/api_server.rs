//! What our controllers rely on in an API server, checked on the embedded one and on the real one.
//!
//! Bodies speak JSON over HTTP, so that nothing between them and the server can smooth a difference away; those of
//! [`clients`] go through our own client instead, as the controllers do. Each has a namespace and a prefix for the names of
//! Nodes of its own, so they run side by side on one server.
//!
//! # What only the embedded server is asked
//!
//! - **compaction**: a list or watch that begins before what the server still knows is answered with 410. The real
//!   server compacts every five minutes and keeps at least as much; nothing in its API brings that about.

use std::future::Future;
use std::pin::Pin;

mod arm;
mod clients;
mod compaction;
mod deletes;
mod discovery;
mod events;
mod leases;
mod lists;
mod nodes;
mod patches;
mod preconditions;
mod reviews;
mod scope;
mod services;
mod tables;
mod watches;

pub use arm::{Arm, ArmError};
pub use scope::Scope;

/// A body that has been started.
pub type Running = Pin<Box<dyn Future<Output = ()>>>;

/// One claim about an API server.
#[derive(Clone, Copy)]
pub struct Body {
    /// What is claimed, as `module::fact`.
    pub name: &'static str,
    /// Starts it; it panics when the claim does not hold.
    pub run: fn(Scope) -> Running,
}

macro_rules! bodies {
    ($($module:ident { $($name:ident),* $(,)? })*) => {
        &[$($(Body {
            name: concat!(stringify!($module), "::", stringify!($name)),
            run: |scope| Box::pin($module::$name(scope)),
        },)*)*]
    };
}

/// What every API server must do.
pub const BODIES: &[Body] = bodies! {
    discovery {
        the_kinds_we_use_are_listed_with_their_verbs,
        version_and_health_are_told,
        unknown_paths_kinds_and_methods_are_refused,
    }
    lists {
        pages_show_one_moment,
        labels_select,
        fields_select,
        an_unknown_field_is_no_selector,
        a_list_of_nothing_is_a_list,
        an_object_that_is_not_there_is_not_found,
        a_list_may_begin_at_a_version,
        managed_fields_that_are_not_wanted_change_nothing_else,
    }
    watches {
        a_watch_shows_each_change_in_order,
        a_watch_goes_on_where_the_last_one_ended,
        a_selector_turns_changes_into_arrivals_and_departures,
        bookmarks_come_before_the_end,
        a_watch_can_begin_with_all_there_is,
    }
    patches {
        each_kind_of_patch_works,
        what_changes_nothing_keeps_its_version,
        lists_of_nodes_merge_by_their_keys,
        a_failed_test_changes_nothing,
        bad_patches_are_refused,
        a_dry_run_is_not_kept,
        generation_counts_changes_of_the_spec,
    }
    preconditions {
        an_old_version_is_a_conflict,
        another_uid_is_refused,
        a_name_is_given_once,
        a_deletion_may_be_tied_to_uid_and_version,
        names_can_be_generated,
    }
    deletes {
        a_finalizer_holds_an_object,
        the_status_is_a_way_to_its_finalizers,
        no_finalizer_is_added_on_the_way_out,
        a_deletion_tells_what_is_gone,
    }
    nodes {
        a_new_node_keeps_its_status,
        status_and_spec_are_written_apart,
        the_provider_id_is_set_once,
        taints_are_replaced_as_a_list,
        wrong_nodes_are_refused,
    }
    services {
        a_new_service_gets_its_defaults,
        addresses_and_ports_are_given_out_once,
        tcp_and_udp_of_one_number_share_a_node_port,
        node_ports_can_be_declined,
        local_traffic_has_a_health_check_port,
        ingress_gets_its_mode,
        another_type_clears_ports_and_status,
        an_external_name_has_no_address,
        what_may_not_change_is_refused,
        wrong_services_are_refused,
        a_manifest_sent_again_keeps_what_was_given_out,
        a_port_that_stays_keeps_its_node_port,
    }
    leases {
        a_lease_is_created_and_replaced_in_its_version,
        times_keep_their_microseconds,
    }
    events {
        an_event_is_created_and_counted_up,
        an_event_lies_where_its_object_does,
    }
    reviews {
        a_minted_token_names_its_account,
        an_unknown_token_is_nobody,
        access_is_answered_with_yes_or_no,
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

/// What can only be shown on the embedded server; why is said above.
pub const EMBEDDED_ONLY: &[Body] = bodies! {
    compaction {
        a_watch_from_a_forgotten_past_expires,
        a_page_of_a_forgotten_past_expires,
    }
};
