//! Words on the wire, for the clients of clouds.

/// Defines enums of the words that an API uses in one place. New words may come at any time, so every set is open: an
/// unknown one is kept as it is. The crate that uses it has to depend on `serde`.
///
/// ```
/// bowline_cloud_http::words!(
///     /// The state of an instance.
///     MachineState {
///         /// It runs.
///         Running = "running",
///         /// It is shut down.
///         Stopped = "stopped",
///     }
/// );
///
/// assert_eq!(MachineState::from("running"), MachineState::Running);
/// assert_eq!(MachineState::from("dreaming").as_str(), "dreaming");
/// ```
#[macro_export]
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$word_doc])* $variant,)*
            /// A word that this client does not know.
            Other(String),
        }

        impl $name {
            /// The word as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = ::std::convert::Infallible;

            fn from_str(word: &str) -> Result<Self, ::std::convert::Infallible> {
                Ok(Self::from(word))
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        /// No word.
        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }
    )*};
}
