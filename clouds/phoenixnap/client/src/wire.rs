//! What stands on the wire: objects as the APIs answer them, and bodies as they take them.

mod block;
mod network;
mod server;
mod tag;

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Deserializer};

pub use self::block::{AssignedResource, BlockStatus, IpBlock, NewIpBlock};
pub use self::network::{Membership, NetworkBlock, PublicNetwork};
pub use self::server::{Server, ServerStatus};
pub use self::tag::{BlockTag, NewTag, Tag, TagFilter};

/// Takes anything that is not a text for none.
fn text_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().map(str::to_owned))
}

/// A word in the spelling that is compared: the APIs write one word as `public network` here and `PUBLIC_NETWORK` there.
fn plain(word: &str) -> String {
    word.trim()
        .chars()
        .map(|letter| match letter {
            '_' | ' ' => '-',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}
