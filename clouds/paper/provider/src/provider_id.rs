//! `paper://<machine id>`: how a Node names its machine.

use bowline_paper_client::MachineId;

/// The name of this provider and the scheme of its provider IDs. It stands in every Node, so it is fixed for ever.
pub const PROVIDER_NAME: &str = "paper";

/// Why a provider ID names no machine of this cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderIdError {
    /// The Node belongs to another cloud: it is left alone, and nobody is bothered with it.
    #[error("{0} is a provider ID of another cloud")]
    Foreign(String),
    /// The text is damaged: a person has to look.
    #[error("{0} is not of the form {PROVIDER_NAME}://<machine id>")]
    Malformed(String),
}

// guide: provider-id
/// Reads a provider ID.
///
/// # Errors
///
/// It names no machine of this cloud.
pub fn parse(text: &str) -> Result<MachineId, ProviderIdError> {
    match text.split_once("://") {
        Some((PROVIDER_NAME, id)) if !id.is_empty() && !id.contains('/') => Ok(id.into()),
        Some((scheme, _)) if scheme != PROVIDER_NAME && !scheme.is_empty() => {
            Err(ProviderIdError::Foreign(text.to_owned()))
        }
        _ => Err(ProviderIdError::Malformed(text.to_owned())),
    }
}
// guide: end

/// Writes a provider ID.
#[must_use]
pub fn format(machine: &MachineId) -> String {
    format!("{PROVIDER_NAME}://{machine}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_cloud_is_told_from_a_damaged_text() {
        let machine = MachineId::from("4f");
        assert_eq!(parse(&format(&machine)), Ok(machine));
        for text in ["aws:///eu/i-1", "papers://4f"] {
            assert_eq!(parse(text), Err(ProviderIdError::Foreign(text.to_owned())));
        }
        for text in ["", "4f", "://4f", "paper://", "paper:///4f", "paper://4f/5"] {
            assert_eq!(parse(text), Err(ProviderIdError::Malformed(text.to_owned())));
        }
    }
}
