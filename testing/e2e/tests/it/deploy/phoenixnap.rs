//! What is shipped for phoenixNAP alone: the Secret.

use bowline_cloud_provider::Environment;
use bowline_phoenixnap::{Given, Options, OptionsError, Setting};
use serde_json::Value;

use super::{given, secret};

#[test]
fn the_secret_holds_json_that_needs_nothing_but_credentials() {
    let text = secret("phoenixnap", "phoenixnap-cloud-config", "cloud-sa.json");
    let mut file: Value = serde_json::from_str(&text).unwrap();
    let known: Vec<&str> = Setting::ALL.iter().map(|setting| setting.key()).collect();
    for key in file.as_object().unwrap().keys() {
        assert!(known.contains(&key.as_str()), "{key}");
    }
    let read = |file: &Value| {
        let config = given(&file.to_string());
        Options::read(&Given::default(), &Environment::default(), &config)
    };
    let missing = |error| {
        matches!(
            error,
            OptionsError::Missing {
                setting: Setting::ClientId,
                ..
            }
        )
    };
    assert!(read(&file).is_err_and(missing));
    file["clientID"] = "id".into();
    file["clientSecret"] = "secret".into();
    assert_eq!(read(&file).unwrap().settings.credentials.client_id, "id");
}
