//! Cases that are text: the scenarios of a file, one after the other, each in a world of its own.

use bowline_kit::scenario::{Complaint, ScenarioCloud, play_on, scenarios};
use serde_json::Value;

/// Plays all scenarios of a file. Those that fail are told together.
pub(super) async fn play_all<C: ScenarioCloud>(folder: &str, file: &str) {
    let folder = format!("{}/tests/it/system/{folder}", env!("CARGO_MANIFEST_DIR"));
    let (mut played, mut failed) = (0, Vec::new());
    for (name, scenario) in scenarios(&folder) {
        if name.split("::").next() != Some(file) {
            continue;
        }
        let done = match scenario {
            Ok(scenario) => play_on(C::begin().await, &scenario).await,
            Err(complaint) => Err(complaint),
        };
        played += 1;
        failed.extend(done.err().map(|complaint| format!("{name}: {complaint}")));
    }
    assert!(played > 0, "nothing is in {folder}/{file}.scenario");
    assert!(
        failed.is_empty(),
        "{} of {played} failed:\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}

/// JSON of a scenario.
pub(super) fn object(text: &str) -> Result<Value, Complaint> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}
