//! The worked examples of each cloud's manual do what they say.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::under_test::CloudUnderTest;
use super::world::{Start, World};

/// What stands in an example for something of the reader's.
const OWN: &str = "YOUR_";

/// Each of the YAML blocks in a manual's section `Examples`.
fn examples(manual: &str) -> Vec<String> {
    let path = format!("../../docs/clouds/{manual}.md");
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (_, section) = page.split_once("\n### Examples\n").unwrap();
    let section = section.split("\n##").next().unwrap_or_default();
    let blocks = section.split("```yaml\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// Puts what the simulator has in the place of each `YOUR_...`: the same for the same word.
fn filled_in<C: CloudUnderTest>(example: &str, sim: &C, own: &mut BTreeMap<String, String>) -> String {
    let mut text = example.to_owned();
    while let Some(at) = text.find(OWN) {
        let length = text[at..].find(|it: char| !it.is_ascii_uppercase() && it != '_');
        let word = text[at..at + length.unwrap_or(text.len() - at)].to_owned();
        let value = own.entry(word.clone()).or_insert_with(|| sim.own(&word));
        assert!(!value.contains(OWN), "{word} is {value}");
        text = text.replace(&word, value);
    }
    text
}

pub(super) async fn every_example_gets_its_balancer_without_a_warning_and_goes<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.add_nodes(2);
    world.start_with(Start::alone());
    world.rest().await;
    let (mut own, mut names) = (BTreeMap::new(), Vec::new());
    for example in examples(C::MANUAL) {
        let text = filled_in(&example, &world.sim, &mut own);
        let service: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let name = service["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(world.service(&name).is_none(), "two examples are called {name}");
        let mut asked = service;
        asked["metadata"]["namespace"] = "default".into();
        world.apply(asked);
        world.settled(&name).await;
        let reasons = world.reasons(&name);
        assert!(
            reasons == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"],
            "{text}{:#?}",
            world.events(&name)
        );
        names.push(name);
    }
    assert!(names.len() > 2, "{names:?}");
    assert_eq!(world.sim.violations(), Vec::<String>::new());
    for name in names {
        world.delete_service(&name);
        world.gone(&name).await;
    }
    assert_eq!(world.sim.balancers(), []);
}
