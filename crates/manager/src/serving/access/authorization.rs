//! Whether they may: masters may everything, everybody may read some paths, about the rest the API server is asked.

use bowline_kube_io::UserInfo;
use http::Method;
use serde_json::json;

use super::{Access, Client, Denial, Key, Unanswered};

/// Its members may do everything.
const MASTERS: &str = "system:masters";

impl Access {
    pub(super) async fn may(
        &self,
        user: &UserInfo,
        method: &Method,
        path: &str,
        client: &Client,
    ) -> Result<bool, Denial> {
        if user.groups.iter().any(|group| group == MASTERS) || self.is_open_to_all(path) {
            return Ok(true);
        }
        let Some(reviews) = self.reviews.clone() else {
            return Ok(false);
        };
        let verb = verb(method);
        let key = key(user, &verb, path);
        if let Some(decision) = self.decisions.recall(&key) {
            return Ok(decision);
        }
        let _review = client.place().map(|place| place.under_review());
        let (granted, refused) = (self.ttl.granted, self.ttl.refused);
        let (user, path) = (user.clone(), path.to_owned());
        let review = Box::pin(async move {
            reviews.access(&user, &verb, &path).await.inspect_err(|error| {
                tracing::warn!(error, user = user.name, path, "Reviewing an access failed");
            })
        });
        let ttl = move |decision: &bool| if *decision { granted } else { refused };
        let lane = self.lane(&key);
        self.decisions
            .ask(key, lane, client.origin(), review, ttl)
            .await
            .map_err(|reason| match reason {
                Unanswered::Full => Denial::Full,
                Unanswered::Failed(_) => Denial::Undecided,
            })
    }

    pub(super) fn is_open_to_all(&self, path: &str) -> bool {
        self.always_allowed
            .iter()
            .any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => path == allowed,
            })
    }
}

/// What the question is known by, whether the user may do this to a path.
pub(super) fn key(user: &UserInfo, verb: &str, path: &str) -> Key {
    // As JSON, one user cannot be taken for another.
    Key::of(&[
        json!(user).to_string().as_bytes(),
        verb.as_bytes(),
        path.as_bytes(),
    ])
}

/// The verb of a request for a path: its method in lower case.
pub(in super::super) fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}
