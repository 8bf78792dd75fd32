//! Provider IDs: `openstack:///UUID`, and with the region `openstack://REGION/UUID`.

/// The provider's name: the value of `--cloud-provider` and the scheme of provider IDs.
pub const PROVIDER_NAME: &str = "openstack";

/// What stands between the scheme and the rest.
const MARK: &str = "://";

/// What the provider ID of a Node says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A server.
    Server {
        /// The region; empty if none is named.
        region: &'a str,
        /// The server's id.
        id: &'a str,
    },
    /// An instance of another cloud.
    Foreign,
    /// Nothing that can be read.
    Unreadable,
}

/// Reads a provider ID. Without a scheme it is one of ours.
#[must_use]
pub fn parse(text: &str) -> Reference<'_> {
    let rest = match text.split_once(MARK) {
        Some((PROVIDER_NAME, rest)) => rest,
        Some((scheme, _)) if !scheme.is_empty() => return Reference::Foreign,
        Some(_) => return Reference::Unreadable,
        None => text,
    };
    match rest.split_once('/') {
        Some((region, id)) if !id.is_empty() && !id.contains('/') => Reference::Server { region, id },
        _ => Reference::Unreadable,
    }
}

/// Writes a provider ID; with an empty region, none is named.
#[must_use]
pub fn format(region: &str, id: &str) -> String {
    format!("{PROVIDER_NAME}{MARK}{region}/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0515d69e-c223-40dd-9f73-7a22b9274f16";

    fn server(region: &'static str) -> Reference<'static> {
        Reference::Server { region, id: ID }
    }

    #[test]
    fn ids_are_read_with_or_without_scheme_and_region() {
        assert_eq!(parse(&format!("openstack:///{ID}")), server(""));
        assert_eq!(parse(&format!("openstack://RegionOne/{ID}")), server("RegionOne"));
        assert_eq!(parse(&format!("/{ID}")), server(""));
    }

    #[test]
    fn what_has_another_form_is_unreadable_and_what_has_another_scheme_is_another_clouds() {
        for text in [
            "",
            ID,
            "openstack://",
            "openstack:///",
            "openstack:///a/b",
            "://x/y",
        ] {
            assert_eq!(parse(text), Reference::Unreadable, "{text}");
        }
        assert_eq!(parse(&format!("openstack://{ID}")), Reference::Unreadable);
        assert_eq!(parse(&format!("other:///{ID}")), Reference::Foreign);
    }

    #[test]
    fn what_is_written_reads_back() {
        for region in ["", "RegionOne"] {
            assert_eq!(parse(&format(region, ID)), server(region));
        }
    }
}
