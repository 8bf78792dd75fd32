//! What is not known about the real APIs, or changes from day to day, as switches.

use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

const API: &str = "The vendor's API description.";
const NOBODY: &str = "Nobody says.";

bowline_cloud_kit::switches! {
    /// Switches that may be changed while the simulator runs. [`Default`] is the most likely behaviour, without waiting.
    Behaviour {
        /// How long a token is good.
        token_lifetime as "token_lifetime_ms" with "millis": Duration = Duration::from_secs(900),
            documented(API) "A token is good for this time, by default 15 minutes.";
        /// How the answer with a token says how long it is good.
        expires_in: ExpiresIn = ExpiresIn::Number,
            assumed(ExpiresIn::Number => ExpiresIn::Text, "A number in the description; clients are ready for \
                 text, zero and nothing.")
            "How the answer with a token says how long it is good.";
        /// Where the token endpoint looks for credentials.
        credentials_in: CredentialForm = CredentialForm::Either,
            assumed(CredentialForm::Either => CredentialForm::Header, "The Go manager tries the header first and \
                 the form then.")
            "Where the token endpoint looks for credentials.";
        /// Whether a token gets those of the scopes asked for that the credentials have, rather than the request being
        /// refused as `invalid_scope` when one is missing.
        drops_missing_scopes: bool = false,
            assumed(false => true, NOBODY) "A token lacks the scopes that the credentials have not, or is refused.";
        /// Whether answers 401 and 403 have a body of text, as those of a gateway in front of the APIs.
        plain_denials: bool = false,
            assumed(false => true, NOBODY) "Answers 401 and 403 have JSON or text, as those of a gateway.";
        /// The status of an id that does not exist, or no longer: 403 or 404.
        missing_status: u16 = 403,
            assumed(404 => 403, "The description knows no 404; it may come all the same.")
            "An id that does not exist, or no longer, is refused with 404 or 403.";
        /// How long a new block is `creating`.
        block_create_time as "block_create_time_ms" with "millis": Duration = Duration::ZERO,
            documented(API) "A new block is `creating` for this time.";
        /// How long lists do not show a block that was bought.
        list_lag as "list_lag_ms" with "millis": Duration = Duration::ZERO,
            on_demand() "Lists do not show a block for this time after its purchase.";
        /// How long a block is `assigning` and its network `BUSY`.
        attach_time as "attach_time_ms" with "millis": Duration = Duration::ZERO,
            documented(API) "A block is `assigning` and its network `BUSY` for this time.";
        /// How long a block is `unassigning`.
        detach_time as "detach_time_ms" with "millis": Duration = Duration::ZERO,
            documented(API) "A block is `unassigning` for this time.";
        /// How many attachments from now on end in `error assigning`.
        failing_attachments: u32 = 0,
            on_demand() "So many attachments end in `error assigning`.";
        /// Whether a block that is `error assigning` still names its network.
        failed_attachment_stays: bool = false,
            assumed(false => true, NOBODY) "A block that is `error assigning` still names its network.";
        /// Whether a block that is `error assigning` is neither attached nor deleted any more, but only taken off its network.
        failed_attachment_is_final: bool = false,
            assumed(false => true, NOBODY)
            "A block that is `error assigning` is not attached or deleted any more, only taken off its network.";
        /// How many detachments from now on end in `error unassigning`.
        failing_detachments: u32 = 0,
            on_demand() "So many detachments end in `error unassigning`.";
        /// Whether a block that is `assigning` names its network already.
        assigning_names_network: bool = true,
            assumed(true => false, "The Go manager accepts two spellings of the type, so more than one component \
                 may write it.")
            "A block that is `assigning` names its network already.";
        /// Whether a detachment keeps its network `BUSY`, and is refused with 409 while it is.
        busy_refuses_detachment: bool = false,
            assumed(false => true, NOBODY)
            "A detachment keeps its network `BUSY`, and is refused with 409 while it is.";
        /// How the type of an assignment and the status of a block are spelled.
        spelling: Spelling = Spelling::Words,
            assumed(Spelling::Words => Spelling::Constants, "Both occur in the Go manager's source.")
            "Words of the APIs are spelled as words or as constants.";
        /// The status of the deletion of a block that is attached or changing.
        delete_used_status: u16 = 409,
            assumed(409 => 403, NOBODY)
            "The deletion of a block that is attached or changing is refused with 409 or 403.";
        /// What several `tag` conditions of a list mean.
        tag_filter: TagFilter = TagFilter::All,
            assumed(TagFilter::All => TagFilter::Ignored, "The Go manager relies on the first.")
            "Several `tag` conditions of a list must all fit, one must, or they mean nothing.";
        /// Whether the credentials are those of another account, which is empty: lists show nothing and no id exists.
        shows_other_account: bool = false,
            on_demand() "Lists are empty and no id exists, as with the credentials of another account.";
        /// Whether every API, though not the token endpoint, answers 503.
        maintenance: bool = false,
            on_demand() "Every API but the token endpoint answers 503.";
        /// Limits of the account.
        quota: Quota = Quota::default(),
            documented(API) "A network has at most 10 IPv4 blocks. The description says so of a new network.";
    } and {
        "an id that does not exist": documented(API) "It is refused with 403 (`missing_status`).";
        "an attachment": documented(API)
            "It is refused with 400 for a block of another location, and with 409 where the network is not \
             `READY`, has all its blocks, or the block is not `unassigned`.";
        "a detachment": documented(API)
            "It is refused with 409 while a member of the network uses an address of the block.";
        "a purchase": documented(API)
            "It is refused with 400 for a tag whose name is not known, and with 406 where no block of that size is \
             free.";
        "the name of a tag": documented(API) "There is one of each; a second one is refused with 409.";
    }
}

/// How an answer says how long a token is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiresIn {
    /// Seconds as a number.
    Number,
    /// Seconds as text.
    Text,
    /// The number 0.
    Zero,
    /// Not at all.
    Missing,
}

/// Where the token endpoint looks for credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialForm {
    /// In both places.
    Either,
    /// In the Basic header.
    Header,
    /// In the form.
    Body,
}

/// How words of the APIs are spelled. Both occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spelling {
    /// `public network`
    Words,
    /// `PUBLIC_NETWORK`
    Constants,
}

impl Spelling {
    pub(crate) fn apply(self, words: &str) -> String {
        match self {
            Self::Words => words.to_owned(),
            Self::Constants => words.to_uppercase().replace(' ', "_"),
        }
    }
}

/// What several `tag` conditions of a list mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TagFilter {
    /// All must fit.
    All,
    /// One must fit.
    Any,
    /// Nothing: the list is whole.
    Ignored,
}

/// The most objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Blocks of the account; `None` is no limit but the pools' own.
    pub blocks: Option<usize>,
    /// IPv4 blocks of one network. The vendor's API description states the limit for creating a network.
    pub blocks_per_network: usize,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            blocks: None,
            blocks_per_network: 10,
        }
    }
}
