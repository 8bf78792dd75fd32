//! What the simulators do, from the tables of the simulators.

use bowline_cloud_kit::behaviour::{Behaves, table};

/// Each double that has a table.
macro_rules! doubles {
    ($each:ident) => {
        [
            $each::<bowline_cloudscale_sim::Behaviour>("cloudscale.ch"),
            $each::<bowline_cloudstack_sim::Behaviour>("CloudStack"),
            $each::<bowline_openstack_sim::Behaviour>("OpenStack"),
            $each::<bowline_phoenixnap_sim::Behaviour>("phoenixNAP"),
            $each::<bowline_paper_sim::Behaviour>("Paper"),
        ]
    };
}

/// The page of all of them.
pub(crate) fn page() -> String {
    fn part<B: Behaves>(cloud: &str) -> String {
        format!("\n## {cloud}\n\n{}", table::<B>())
    }
    let head = "# What the simulators do\n\nEach behaviour is *documented*, *read in the source* of the server, *seen on the \
         wire*, *assumed*, or comes *on demand* of a test. What is assumed is a switch, and there are two worlds: in the kind \
         one the double forgives most, in the unkind one least. The suites of the providers run in both; the environment \
         variable `BOWLINE_SIM_WORLD` (`kind` or `unkind`, the default) chooses for a run by hand. Switches are turned while a \
         simulator runs with `PUT /_sim/behaviour`.\n";
    head.to_owned() + &doubles!(part).concat()
}

#[test]
fn every_switch_of_a_double_is_in_its_table() {
    use bowline_cloud_kit::behaviour::mistakes;
    fn told<B: Behaves>(cloud: &str) -> (String, Vec<String>) {
        (cloud.to_owned(), mistakes::<B>())
    }
    for (cloud, mistakes) in doubles!(told) {
        assert!(mistakes.is_empty(), "{cloud}: {mistakes:#?}");
    }
}
