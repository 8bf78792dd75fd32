//! Whether they may: masters may everything, everybody may read some paths, about the rest the API server is asked.

use bowline_kube_io::UserInfo;
use http::Method;

use super::{Access, Denial};

/// Its members may do everything.
const MASTERS: &str = "system:masters";

/// The longest path that an answer is remembered for.
const MAX_REMEMBERED_PATH: usize = 1024;

impl Access {
    pub(super) async fn may(&self, user: &UserInfo, method: &Method, path: &str) -> Result<bool, Denial> {
        if user.groups.iter().any(|group| group == MASTERS) || self.is_open_to_all(path) {
            return Ok(true);
        }
        let Some(reviews) = &self.reviews else {
            return Ok(false);
        };
        let key = (user.clone(), verb(method), path.to_owned());
        if let Some(decision) = self.decisions.recall(&key) {
            return Ok(decision);
        }
        let _turn = self.turns.acquire().await;
        // Whoever waited may find that the one before asked the same.
        if let Some(decision) = self.decisions.recall(&key) {
            return Ok(decision);
        }
        match reviews.access(user, &key.1, path).await {
            Ok(decision) => {
                let ttl = if decision {
                    self.ttl.granted
                } else {
                    self.ttl.refused
                };
                // Whoever may send requests could fill the memory with long paths.
                if path.len() <= MAX_REMEMBERED_PATH {
                    self.decisions.remember(key, decision, ttl);
                }
                Ok(decision)
            }
            Err(error) => {
                tracing::warn!(error, user = user.name, path, "Reviewing an access failed");
                Err(Denial::Undecided)
            }
        }
    }

    fn is_open_to_all(&self, path: &str) -> bool {
        self.always_allowed
            .iter()
            .any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => path == allowed,
            })
    }
}

/// The verb of a request for a path: its method in lower case.
pub(in super::super) fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}
