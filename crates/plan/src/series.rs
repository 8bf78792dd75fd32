//! How series are declared.

/// Declares a set of series, each in one place: its field, what it begins with, its name and its help. Clones of the set
/// share the series. Behind `with` stand parts that register themselves. The crate that uses it has to depend on `prometheus-client`.
#[macro_export]
macro_rules! series {
    (
        $(#[$meta:meta])*
        $vis:vis struct $set:ident {
            $($(#[$doc:meta])* $field_vis:vis $field:ident: $kind:ty = $first:expr, $name:literal, $help:literal;)*
        }
        $(with { $($(#[$part_doc:meta])* $part_vis:vis $part:ident: $part_kind:ty;)* })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $set {
            $($(#[$doc])* $field_vis $field: $kind,)*
            $($($(#[$part_doc])* $part_vis $part: $part_kind,)*)?
        }

        impl Default for $set {
            fn default() -> Self {
                Self {
                    $($field: $first,)*
                    $($($part: Default::default(),)*)?
                }
            }
        }

        impl $set {
            /// Makes the series visible under their names. Call it once per registry.
            pub fn register(&self, registry: &mut ::prometheus_client::registry::Registry) {
                // The registry appends `_total` to counters and a full stop to texts.
                $(registry.register($name, $help, self.$field.clone());)*
                $($(self.$part.register(registry);)*)?
            }
        }
    };
}
