//! `phoenixnap://<server id>`: how a Node names its server.

/// The name of this provider and the scheme of its provider IDs. In every Node's object, so fixed for ever.
pub const PROVIDER_NAME: &str = "phoenixnap";

const SEPARATOR: &str = "://";

/// Why a provider ID names no server of this cloud. The texts begin as upstream's do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// There is nothing to read.
    #[error("providerID cannot be empty")]
    Empty,
    /// It belongs to another cloud.
    #[error("provider name from providerID should be {PROVIDER_NAME}: {0}")]
    Foreign(String),
    /// It has no ID, or more parts than two.
    #[error("unexpected providerID format, it should be {PROVIDER_NAME}://<server id>: {0}")]
    Format(String),
}

/// Reads a provider ID; a bare server ID is one too.
///
/// # Errors
///
/// The first rule that the text breaks.
pub fn parse(text: &str) -> Result<&str, ProviderIdError> {
    if text.is_empty() {
        return Err(ProviderIdError::Empty);
    }
    match text.split_once(SEPARATOR) {
        None => Ok(text),
        Some((_, rest)) if rest.contains(SEPARATOR) => Err(ProviderIdError::Format(text.to_owned())),
        Some((name, _)) if name != PROVIDER_NAME => Err(ProviderIdError::Foreign(text.to_owned())),
        Some((_, "")) => Err(ProviderIdError::Format(text.to_owned())),
        Some((_, id)) => Ok(id),
    }
}

/// Writes a provider ID.
#[must_use]
pub fn format(server: &str) -> String {
    format!("{PROVIDER_NAME}{SEPARATOR}{server}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_text_is_read_as_upstream_reads_it() {
        let table = [
            ("64f0c2a9be11d37a5c90e1b4", Ok("64f0c2a9be11d37a5c90e1b4")),
            (
                "phoenixnap://64f0c2a9be11d37a5c90e1b4",
                Ok("64f0c2a9be11d37a5c90e1b4"),
            ),
            ("phoenixnap://a/b", Ok("a/b")),
            ("phoenixnap:/a", Ok("phoenixnap:/a")),
            ("", Err("providerID cannot be empty")),
            (
                "openstack:///abc",
                Err("provider name from providerID should be phoenixnap: openstack:///abc"),
            ),
            (
                "PhoenixNAP://a",
                Err("provider name from providerID should be phoenixnap: PhoenixNAP://a"),
            ),
            (
                "://a",
                Err("provider name from providerID should be phoenixnap: ://a"),
            ),
        ];
        for (text, expected) in table {
            let read = parse(text).map_err(|error| error.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), expected, "{text}");
        }
        for text in ["phoenixnap://", "phoenixnap://a://b", "x://y://z"] {
            assert!(matches!(parse(text), Err(ProviderIdError::Format(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(id in "[0-9a-f]{24}") {
            let written = format(&id);
            prop_assert_eq!(parse(&written), Ok(id.as_str()));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,50}") {
            let _ = parse(&text);
        }
    }
}
