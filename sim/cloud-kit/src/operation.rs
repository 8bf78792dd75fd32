//! The calls of a cloud as a table.

/// The calls that a double answers, each with its name on the wire, in the journal and in fault rules.
///
/// ```ignore
/// bowline_cloud_kit::operations! {
///     /// A command of the API.
///     Operation {
///         ListZones "listZones",
///     }
/// }
/// ```
#[macro_export]
macro_rules! operations {
    ($(#[$about:meta])* $operation:ident { $($call:ident $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $operation {
            $(
                #[doc = concat!("`", $name, "`")]
                $call,
            )+
        }

        impl $operation {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$call),+];

            /// Its name on the wire, in the journal and in fault rules.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$call => $name,)+
                }
            }
        }
    };
}
