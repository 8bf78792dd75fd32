use std::collections::BTreeSet;

use bowline_cloudscale_sim::{FloatingSpec, Target};

use crate::world::World;

/// As where two clusters fight over it.
#[tokio::test(start_paused = true)]
async fn each_move_of_a_floating_ip_is_news() {
    let world = World::with_nodes(1);
    let server = world.sim.servers()[0].uuid;
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
    world.run("web").await.settled();
    let mut said = BTreeSet::new();
    for _ in 0..3 {
        world
            .sim
            .assign_floating_ip(address, Some(Target::Server(server)));
        let run = world.run("web").await.settled();
        let news = run.notes.iter();
        let news: Vec<_> = news
            .filter(|it| said.insert((it.text.clone(), it.occasion)))
            .collect();
        assert_eq!(news.len(), 1);
        assert!(
            news[0].text.contains(&format!("from server {server}")),
            "{news:?}"
        );
    }
}
