//! Lists, of which one odd entry must not cost all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_cloud_http::Response;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ApiError;

/// A list as the API answered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The entries that can be read.
    pub entries: Vec<T>,
    /// Those that cannot, as they stand. Whatever is not among the entries may be one of these: a list that has any is no
    /// proof that something is absent.
    pub odd: Vec<Value>,
}

/// Reads lists, and warns of odd entries when their number changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reader {
    odd: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl Reader {
    /// Reads a list; `null` is an empty one.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        response: &Response,
    ) -> Result<Listed<T>, ApiError> {
        let whole: Result<Option<Vec<T>>, _> = response.json_or_parts();
        let mut listed = Listed {
            entries: Vec::new(),
            odd: Vec::new(),
        };
        let mut reason = None;
        match whole {
            Ok(entries) => listed.entries = entries.unwrap_or_default(),
            Err(error) => {
                let Ok(values) = response.json::<Vec<Value>>() else {
                    return Err(error.into());
                };
                for value in values {
                    match T::deserialize(&value) {
                        Ok(entry) => listed.entries.push(entry),
                        Err(_) => listed.odd.push(value),
                    }
                }
                reason = Some(error);
            }
        }
        let count = listed.odd.len();
        let mut odd = self.odd.lock().unwrap_or_else(PoisonError::into_inner);
        let before = odd.insert(operation, count).unwrap_or_default();
        if let Some(error) = reason.filter(|_| count != before) {
            tracing::warn!(operation, count, err = %ApiError::from(error), "Entries of a list cannot be read and are left out");
        }
        Ok(listed)
    }
}
