//! What there is to know of an annotation that a provider reads or writes.

use bowline_plan::Impact;

/// How an annotation's value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number: decimal digits, a sign if wanted, no blanks.
    Int,
    /// `true` or `false`.
    Bool,
    /// A list; its form is the provider's.
    List,
    /// Texts, separated by commas.
    CommaList,
    /// A JSON value. Object keys are read in any letter case, unknown ones are ignored.
    Json,
    /// The text as it is.
    Text,
}

/// Whether an annotation may change once the balancer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changeability {
    /// The provider writes it; people leave it alone.
    Written,
    /// It changes only what the Service's status shows.
    StatusOnly,
    /// It counts when the balancer is made; a later change has no effect.
    CreationOnly,
    /// Parts of the balancer are changed where they stand.
    InPlace,
    /// Parts of the balancer are made anew.
    Rebuild,
    /// It is refused: the Service would have to be created anew.
    Refused,
}

/// One annotation. The reference page and the messages about it are made from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnotationSpec {
    /// The whole key.
    pub key: &'static str,
    /// How its value is read.
    pub kind: ValueKind,
    /// What counts when the key is absent, as it would be written; an empty value that is there stays empty.
    pub default: &'static str,
    /// Whether it may change.
    pub change: Changeability,
    /// What a change does to present traffic, as announced to operators.
    pub impact: Impact,
    /// What it does.
    pub doc: &'static str,
}

/// Makes the table of a provider's annotations: a constant for each, and `TABLE` of all in this order. What the reference
/// page, the parser's messages and the `plan` command say about them comes from it.
///
/// An entry is its name, the end of its key, a [`ValueKind`], the default, a [`Changeability`], an
/// [`Impact`](bowline_plan::Impact), and what it does.
///
/// ```
/// bowline_cloud_provider::annotations! {
///     "example.com/";
///     FLAVOR = "flavor", Text, "small", Refused, None, "Flavor of the load balancer.";
/// }
///
/// assert_eq!(FLAVOR.key, "example.com/flavor");
/// assert_eq!(TABLE.len(), 1);
/// ```
#[macro_export]
macro_rules! annotations {
    ($prefix:literal; $($name:ident = $suffix:literal, $kind:ident, $default:literal, $change:ident, $impact:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub(crate) const $name: $crate::AnnotationSpec = $crate::AnnotationSpec {
                key: concat!($prefix, $suffix),
                kind: $crate::ValueKind::$kind,
                default: $default,
                change: $crate::Changeability::$change,
                impact: $crate::plan::Impact::$impact,
                doc: $doc,
            };
        )*

        static TABLE: &[$crate::AnnotationSpec] = &[$($name),*];
    };
}
