//! What every kind of object has in common, as far as it is read.

use std::sync::Arc;

use bowline_cloud_provider::Pairs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::KubeError;

pub(crate) fn read<'a, T: Deserialize<'a>>(answer: &'a [u8]) -> Result<T, KubeError> {
    serde_json::from_slice(answer).map_err(|error| KubeError::Decode(error.to_string()))
}

/// A resource version as a number, which may be compared within one kind of objects.
pub(crate) fn version_number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// An object as the API server shows it.
#[derive(Debug)]
pub(crate) struct Shown<T> {
    /// What could be understood of it: it is certain which object it is, and nothing is made up.
    pub(crate) object: Arc<T>,
    /// Why that is not all of it.
    pub(crate) trouble: Option<KubeError>,
}

impl<T> Shown<T> {
    pub(crate) fn whole(object: T) -> Self {
        let (object, trouble) = (Arc::new(object), None);
        Self { object, trouble }
    }

    pub(crate) fn part(object: T, trouble: KubeError) -> Self {
        let (object, trouble) = (Arc::new(object), Some(trouble));
        Self { object, trouble }
    }
}

/// All objects of a kind at one moment.
pub(crate) struct Listing<T> {
    pub(crate) objects: Vec<Shown<T>>,
    /// How many more there are that do not tell which objects they are.
    pub(crate) nameless: usize,
    pub(crate) resource_version: String,
}

/// Who bears a name.
#[derive(Debug)]
pub(crate) enum Bearer<T> {
    /// The API server says that there is none.
    Nobody,
    /// This object.
    Object(Shown<T>),
    /// An object that does not tell that it is this one.
    Nameless(KubeError),
}

/// What a question about one object by its name found.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) bearer: Bearer<T>,
    /// The version in which that is so.
    pub(crate) version: u64,
}

/// What tells which object it is, and what counts whatever else is in it. What is no text, or is not there, is empty.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Names {
    #[serde(deserialize_with = "lenient")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) resource_version: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) annotations: Option<Pairs<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(deserialize_with = "lenient")]
    metadata: Names,
}

/// The names of an object that may hold anything.
pub(crate) fn names(bytes: &[u8]) -> Names {
    read::<Named>(bytes).unwrap_or_default().metadata
}

/// Reads what counts as not there if it is null or of another form.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let text = <&RawValue>::deserialize(deserializer)?.get();
    Ok(serde_json::from_slice(text.as_bytes()).unwrap_or_default())
}
