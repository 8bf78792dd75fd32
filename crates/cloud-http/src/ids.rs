//! Ids on the wire, for the clients of clouds.

/// Defines ids, one type per kind of object, so that none is taken for another. An old API may count its objects: a number is an id too. The
/// crate that uses it has to depend on `serde`.
///
/// ```
/// bowline_cloud_http::ids!(
///     /// The id of an instance.
///     MachineId
/// );
///
/// let id: MachineId = serde_json::from_str("4711").unwrap();
/// assert_eq!(id, "4711".into());
/// ```
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// Opaque; most services make UUIDs. A clone shares the text.
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(#[serde(deserialize_with = "bowline_cloud_http::lenient::id")] ::std::sync::Arc<str>);

        impl $name {
            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether it is that of nothing: the default, where an answer names none.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        /// So that texts find it in maps, and a list of them is joined as texts are.
        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
