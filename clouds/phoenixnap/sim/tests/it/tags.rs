//! The Tag API.

use crate::support::{Caller, account};

const TAGS: &str = "/tag-manager/v1/tags";

#[tokio::test(start_paused = true)]
async fn body_must_be_announced_as_json() {
    let sim = account();
    let caller = Caller::new(&sim).await;
    let request = http::Request::post(TAGS)
        .header("authorization", format!("Bearer {}", caller.token()))
        .body(r#"{"name":"x","isBillingTag":false}"#.to_owned())
        .unwrap();
    let (status, text) = crate::support::send(&sim, request).await.unwrap();
    assert_eq!(status, 415, "{text}");
}
