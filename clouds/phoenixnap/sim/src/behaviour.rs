//! What is not known about the real APIs, or changes from day to day, as switches.

mod table;

use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

/// Switches that may be changed while the simulator runs. [`Default`] is the most likely behaviour, without waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// How long a token is good.
    #[serde(rename = "token_lifetime_ms", with = "millis")]
    pub token_lifetime: Duration,
    /// How the answer with a token says how long it is good.
    pub expires_in: ExpiresIn,
    /// Where the token endpoint looks for credentials.
    pub credentials_in: CredentialForm,
    /// Whether a token gets those of the scopes asked for that the credentials have, rather than the request being
    /// refused as `invalid_scope` when one is missing.
    pub drops_missing_scopes: bool,
    /// Whether answers 401 and 403 have a body of text, as those of a gateway in front of the APIs.
    pub plain_denials: bool,
    /// The status of an id that does not exist, or no longer: 403 or 404.
    pub missing_status: u16,
    /// How long a new block is `creating`.
    #[serde(rename = "block_create_time_ms", with = "millis")]
    pub block_create_time: Duration,
    /// How long lists do not show a block that was bought.
    #[serde(rename = "list_lag_ms", with = "millis")]
    pub list_lag: Duration,
    /// How long a block is `assigning` and its network `BUSY`.
    #[serde(rename = "attach_time_ms", with = "millis")]
    pub attach_time: Duration,
    /// How long a block is `unassigning`.
    #[serde(rename = "detach_time_ms", with = "millis")]
    pub detach_time: Duration,
    /// How many attachments from now on end in `error assigning`.
    pub failing_attachments: u32,
    /// Whether a block that is `error assigning` still names its network.
    pub failed_attachment_stays: bool,
    /// Whether a block that is `error assigning` is neither attached nor deleted any more, but only taken off its network.
    pub failed_attachment_is_final: bool,
    /// How many detachments from now on end in `error unassigning`.
    pub failing_detachments: u32,
    /// Whether a block that is `assigning` names its network already.
    pub assigning_names_network: bool,
    /// Whether a detachment is refused with 409 while its network is `BUSY`.
    pub busy_refuses_detachment: bool,
    /// How the type of an assignment and the status of a block are spelled.
    pub spelling: Spelling,
    /// The status of the deletion of a block that is attached or changing.
    pub delete_used_status: u16,
    /// What several `tag` conditions of a list mean.
    pub tag_filter: TagFilter,
    /// Whether the credentials are those of another account, which is empty: lists show nothing and no id exists.
    pub shows_other_account: bool,
    /// Whether every API, though not the token endpoint, answers 503.
    pub maintenance: bool,
    /// Limits of the account.
    pub quota: Quota,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            token_lifetime: Duration::from_secs(900),
            expires_in: ExpiresIn::Number,
            credentials_in: CredentialForm::Either,
            drops_missing_scopes: false,
            plain_denials: false,
            missing_status: 403,
            block_create_time: Duration::ZERO,
            list_lag: Duration::ZERO,
            attach_time: Duration::ZERO,
            detach_time: Duration::ZERO,
            failing_attachments: 0,
            failed_attachment_stays: false,
            failed_attachment_is_final: false,
            failing_detachments: 0,
            assigning_names_network: true,
            busy_refuses_detachment: false,
            spelling: Spelling::Words,
            delete_used_status: 409,
            tag_filter: TagFilter::All,
            shows_other_account: false,
            maintenance: false,
            quota: Quota::default(),
        }
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
