//! Quotas and limits: each cloud says it in its own way, and an operator reads one reason.

use bowline_conformance::cloud::Stage;
use bowline_conformance::clouds::{CloudStack, Cloudscale, OpenStack, Phoenixnap};

use super::staged::play_all;

#[tokio::test(start_paused = true)]
async fn cloudscale_has_nothing_left() {
    play_all::<Stage<Cloudscale>>("quotas", "cloudscale").await;
}

#[tokio::test(start_paused = true)]
async fn phoenixnap_has_no_block_left_and_says_so_in_several_ways() {
    play_all::<Stage<Phoenixnap>>("quotas", "phoenixnap").await;
}

#[tokio::test(start_paused = true)]
async fn cloudstack_has_no_address_left_and_says_so_in_several_ways() {
    play_all::<Stage<CloudStack>>("quotas", "cloudstack").await;
}

#[tokio::test(start_paused = true)]
async fn octavia_and_neutron_have_nothing_left() {
    play_all::<Stage<OpenStack>>("quotas", "openstack").await;
}
