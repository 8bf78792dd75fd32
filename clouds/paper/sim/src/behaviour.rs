//! What may differ from day to day, as switches.

use std::time::Duration;

use bowline_cloud_kit::millis;

const GUIDE: &str = "[The guide](../guides/new-provider.md) that invents the cloud.";

bowline_cloud_kit::switches! {
    /// What may differ from day to day. The default waits for nothing.
    Behaviour {
        /// How long a new balancer is `building`.
        build_time as "build_time_ms" with "millis": Duration = Duration::ZERO,
            documented(GUIDE) "A new balancer is `building` for this time.";
        /// How long a deleted balancer is still listed.
        delete_time as "delete_time_ms" with "millis": Duration = Duration::ZERO,
            documented(GUIDE) "A deleted balancer is listed for this time.";
        /// Objects on one page of a list.
        page_size: usize = 100,
            assumed(100 => 2, "The guide promises pages and not their size.")
            "So many objects are on one page of a list.";
    } and {
        "a write": documented(GUIDE) "It is refused with 409 while another one changes the balancer.";
    }
}
