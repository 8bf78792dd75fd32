//! Where an instance would look for what it is: checked, and otherwise without effect, because everything about Nodes comes
//! from Nova and Neutron.

use super::error::SearchOrderError;

/// The words that an order is made of.
const KNOWN: [&str; 2] = ["configDrive", "metadataService"];

/// What an empty option stands for.
pub(super) const DEFAULT: &str = "configDrive,metadataService";

/// Checks the words of an order, of which there are one or two, separated by commas.
pub(super) fn check(order: &str) -> Result<(), SearchOrderError> {
    if order.is_empty() {
        return Err(SearchOrderError::Empty);
    }
    let words: Vec<&str> = order.split(',').map(str::trim).collect();
    if words.len() > KNOWN.len() {
        return Err(SearchOrderError::TooMany);
    }
    match words.into_iter().find(|word| !KNOWN.contains(word)) {
        Some(word) => Err(SearchOrderError::Unknown(word.to_owned())),
        None => Ok(()),
    }
}
