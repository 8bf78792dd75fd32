//! What another project has, as an administrator's lists show it: it is nobody's here.

use bowline_openstack_sim::kit::journal::Entry;

use crate::world::{World, in_one_page};

/// A world whose manager sees what all projects have, and another project of it.
fn administered(manages_security_groups: bool) -> (World, String) {
    let mut world = World::with_nodes(1);
    world.options.manages_security_groups = manages_security_groups;
    world.restart_as_admin();
    let other = world.sim.add_project("other");
    (world, other)
}

/// What is thrown away need not be read: a cloud has thousands of groups, each with its rules.
#[tokio::test(start_paused = true)]
async fn what_other_projects_have_is_not_listed_where_it_does_not_count() {
    let (world, _) = administered(true);
    in_one_page(&world.sim);
    let (run, calls) = world.calls_of(world.run("web")).await;
    run.settled();
    let has = |call: &Entry, name: &str, value: &str| {
        let mut query = call.query.iter();
        query.any(|(key, there)| key == name && there == value)
    };
    let project = world.sim.home().project;
    for path in ["/v2.0/security-groups", "/v2.0/lbaas/loadbalancers"] {
        let lists = calls
            .iter()
            .filter(|call| !call.write && call.path.ends_with(path));
        let lists: Vec<_> = lists.collect();
        assert!(!lists.is_empty(), "{path}");
        assert!(
            lists.iter().all(|call| has(call, "project_id", &project)),
            "{lists:#?}"
        );
    }
    let unlimited: Vec<_> = calls
        .iter()
        .filter(|call| {
            let is_list = call.operation.ends_with(".list") && !call.operation.ends_with(".versions.list");
            is_list && !has(call, "limit", "1000")
        })
        .map(|call| call.operation.as_str())
        .collect();
    assert_eq!(unlimited, [""; 0]);
}
