//! `cloudscale://<server uuid>`: how a Node names its server.

use bowline_cloudscale_client::ServerId;
use uuid::Uuid;

/// The name of this provider and the scheme of its provider IDs. In every Node's object, so fixed for ever.
pub const PROVIDER_NAME: &str = "cloudscale";

/// Why a provider ID names no server of this cloud. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// It has no scheme.
    #[error("bad providerID: {0} has no '://'")]
    NoScheme(String),
    /// The scheme is empty.
    #[error("bad providerID: no provider in {0}")]
    NoProvider(String),
    /// It belongs to another cloud.
    #[error("not a cloudscale providerID: {0}")]
    Foreign(String),
    /// Nothing stands after the scheme.
    #[error("bad providerID: no id in {0}")]
    NoId(String),
    /// What stands after the scheme is not a UUID.
    #[error("bad providerID (no uuid at end): {0}")]
    NoUuid(String),
}

/// Reads a provider ID. Blanks around both halves are forgiven, and every spelling of a UUID is understood.
///
/// # Errors
///
/// The first rule that the text breaks.
pub fn parse(text: &str) -> Result<ServerId, ProviderIdError> {
    let owned = || text.to_owned();
    let (provider, id) = text
        .split_once("://")
        .ok_or_else(|| ProviderIdError::NoScheme(owned()))?;
    let (provider, id) = (provider.trim_matches(' '), id.trim_matches(' '));
    if provider.is_empty() {
        return Err(ProviderIdError::NoProvider(owned()));
    }
    if provider != PROVIDER_NAME {
        return Err(ProviderIdError::Foreign(owned()));
    }
    if id.is_empty() {
        return Err(ProviderIdError::NoId(owned()));
    }
    parse_uuid(id)
        .map(ServerId)
        .ok_or_else(|| ProviderIdError::NoUuid(owned()))
}

/// Writes a provider ID.
#[must_use]
pub fn format(server: ServerId) -> String {
    format!("{PROVIDER_NAME}://{server}")
}

/// A UUID in any of its spellings: with hyphens, 32 digits, in braces, or behind `urn:uuid:`; any letter case.
pub(crate) fn parse_uuid(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    // The parser also takes braces around 32 digits and other crossings, which upstream's does not.
    let is_known_form = match bytes.len() {
        32 | 36 => true,
        38 => bytes.first() == Some(&b'{') && bytes.last() == Some(&b'}'),
        45 => text
            .get(..9)
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case("urn:uuid:")),
        _ => false,
    };
    if !is_known_form {
        return None;
    }
    // `urn:uuid:` is read in lower case only.
    Uuid::parse_str(&text.to_ascii_lowercase()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_broken_rule_names_the_error() {
        let table = [
            ("", "bad providerID:  has no '://'"),
            ("cloudscale:/x", "bad providerID: cloudscale:/x has no '://'"),
            ("://x", "bad providerID: no provider in ://x"),
            ("  ://", "bad providerID: no provider in   ://"),
            ("aws:///eu/i-1", "not a cloudscale providerID: aws:///eu/i-1"),
            ("Cloudscale://x", "not a cloudscale providerID: Cloudscale://x"),
            ("cloudscale://", "bad providerID: no id in cloudscale://"),
            ("cloudscale://  ", "bad providerID: no id in cloudscale://  "),
            (
                "cloudscale://x",
                "bad providerID (no uuid at end): cloudscale://x",
            ),
            (
                "cloudscale://\t6f9619ff-8b86-d011-b42d-00cf4fc964ff",
                "bad providerID (no uuid at end): cloudscale://\t6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            ),
            (
                "cloudscale://a://6f9619ff-8b86-d011-b42d-00cf4fc964ff",
                "bad providerID (no uuid at end): cloudscale://a://6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            ),
        ];
        for (text, error) in table {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn every_spelling_of_a_uuid_is_read_and_one_is_written() {
        for id in [
            "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
            "6f9619ff8b86d011b42d00cf4fc964ff",
            "{6F9619FF-8B86-D011-B42D-00CF4FC964FF}",
            "urn:uuid:6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "URN:UUID:6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        ] {
            let server = parse(&format!(" cloudscale :// {id} ")).unwrap();
            assert_eq!(
                format(server),
                "cloudscale://6f9619ff-8b86-d011-b42d-00cf4fc964ff",
                "{id}"
            );
        }
        assert!(parse_uuid("{6f9619ff8b86d011b42d00cf4fc964ff}").is_none());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(id in any::<u128>()) {
            let server = ServerId(Uuid::from_u128(id));
            prop_assert_eq!(parse(&format(server)), Ok(server));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,50}") {
            let _ = parse(&text);
        }
    }
}
