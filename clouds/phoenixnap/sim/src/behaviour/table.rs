//! What this double does, and how that is known.

use bowline_cloud_kit::behaviour::{Basis, Behaves, Behaviour as Row};

use super::{Behaviour, CredentialForm, ExpiresIn, Spelling, TagFilter};

const API: &str = "The vendor's API description.";
const ANY: &str = "Any API may.";
const NOBODY: &str = "Nobody says.";

const fn known(name: &'static str, does: &'static str, source: &'static str) -> Row<Behaviour> {
    Row::known(Basis::Documented, name, does, source)
}

const fn on_demand(name: &'static str, does: &'static str) -> Row<Behaviour> {
    Row::known(Basis::OnDemand, name, does, ANY)
}

impl Behaves for Behaviour {
    const TABLE: &'static [Row<Self>] = &[
        known(
            "token_lifetime_ms",
            "A token is good for this time, by default 15 minutes.",
            API,
        ),
        known(
            "block_create_time_ms",
            "A new block is `creating` for this time.",
            API,
        ),
        known(
            "attach_time_ms",
            "A block is `assigning` and its network `BUSY` for this time.",
            API,
        ),
        known("detach_time_ms", "A block is `unassigning` for this time.", API),
        on_demand(
            "list_lag_ms",
            "Lists do not show a block for this time after its purchase.",
        ),
        on_demand(
            "failing_attachments",
            "So many attachments end in `error assigning`.",
        ),
        on_demand(
            "failing_detachments",
            "So many detachments end in `error unassigning`.",
        ),
        on_demand("maintenance", "Every API but the token endpoint answers 503."),
        on_demand(
            "shows_other_account",
            "Lists are empty and no id exists, as with the credentials of another account.",
        ),
        known(
            "quota",
            "A network has at most 10 IPv4 blocks. The description says so of a new network.",
            API,
        ),
        known(
            "an id that does not exist",
            "It is refused with 403 (`missing_status`).",
            API,
        ),
        known(
            "an attachment",
            "It is refused with 400 for a block of another location, and with 409 where the network is not \
             `READY`, has all its blocks, or the block is not `unassigned`.",
            API,
        ),
        known(
            "a detachment",
            "It is refused with 409 while a member of the network uses an address of the block.",
            API,
        ),
        known(
            "a purchase",
            "It is refused with 400 for a tag whose name is not known, and with 406 where no block of that size is \
             free.",
            API,
        ),
        known(
            "the name of a tag",
            "There is one of each; a second one is refused with 409.",
            API,
        ),
        Row::assumed(
            "expires_in",
            "How the answer with a token says how long it is good.",
            "A number in the description; clients are ready for text, zero and nothing.",
            |it, world| it.expires_in = world.pick(ExpiresIn::Number, ExpiresIn::Text),
        ),
        Row::assumed(
            "credentials_in",
            "Where the token endpoint looks for credentials.",
            "The Go manager tries the header first and the form then.",
            |it, world| it.credentials_in = world.pick(CredentialForm::Either, CredentialForm::Header),
        ),
        Row::assumed(
            "drops_missing_scopes",
            "A token lacks the scopes that the credentials have not, or is refused.",
            NOBODY,
            |it, world| it.drops_missing_scopes = world.pick(false, true),
        ),
        Row::assumed(
            "plain_denials",
            "Answers 401 and 403 have JSON or text, as those of a gateway.",
            NOBODY,
            |it, world| it.plain_denials = world.pick(false, true),
        ),
        Row::assumed(
            "missing_status",
            "An id that does not exist, or no longer, is refused with 404 or 403.",
            "The description knows no 404; it may come all the same.",
            |it, world| it.missing_status = world.pick(404, 403),
        ),
        Row::assumed(
            "failed_attachment_stays",
            "A block that is `error assigning` still names its network.",
            NOBODY,
            |it, world| it.failed_attachment_stays = world.pick(false, true),
        ),
        Row::assumed(
            "failed_attachment_is_final",
            "A block that is `error assigning` is not attached or deleted any more, only taken off its network.",
            NOBODY,
            |it, world| it.failed_attachment_is_final = world.pick(false, true),
        ),
        Row::assumed(
            "assigning_names_network",
            "A block that is `assigning` names its network already.",
            "The Go manager accepts two spellings of the type, so more than one component may write it.",
            |it, world| it.assigning_names_network = world.pick(true, false),
        ),
        Row::assumed(
            "busy_refuses_detachment",
            "A detachment is refused with 409 while its network is `BUSY`.",
            NOBODY,
            |it, world| it.busy_refuses_detachment = world.pick(false, true),
        ),
        Row::assumed(
            "spelling",
            "Words of the APIs are spelled as words or as constants.",
            "Both occur in the Go manager's source.",
            |it, world| it.spelling = world.pick(Spelling::Words, Spelling::Constants),
        ),
        Row::assumed(
            "delete_used_status",
            "The deletion of a block that is attached or changing is refused with 409 or 403.",
            NOBODY,
            |it, world| it.delete_used_status = world.pick(409, 403),
        ),
        Row::assumed(
            "tag_filter",
            "Several `tag` conditions of a list must all fit, one must, or they mean nothing.",
            "The Go manager relies on the first.",
            |it, world| it.tag_filter = world.pick(TagFilter::All, TagFilter::Ignored),
        ),
    ];
}
