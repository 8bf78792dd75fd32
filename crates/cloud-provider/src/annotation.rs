//! What there is to know of an annotation that a provider reads or writes.

use bowline_plan::Impact;

use crate::{Service, facts};

/// How an annotation's value is read. Blanks and line ends around it do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A whole number: decimal digits, a sign if wanted.
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

/// Which texts of its kind an annotation takes. Readers go by it where it is a choice of words, and the admission policies
/// that are made from the tables go by all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Every text that is of the kind.
    Any,
    /// A number not below the first and not above the second one: by the reader's rules, or by those of the cloud.
    Between(i64, i64),
    /// One of these words, in this spelling.
    Words(&'static [&'static str]),
    /// One of these words, in any letter case.
    WordsOfAnyCase(&'static [&'static str]),
    /// A text that is not blank.
    NotBlank,
    /// A UUID in any of its spellings, or nothing.
    Uuid,
    /// UUIDs in a list. Blanks around each do not count.
    Uuids,
    /// A DNS name, or nothing: the API server takes no other one in a status.
    Hostname,
    /// An IP address, or nothing.
    Address,
    /// Networks in CIDR notation, as a JSON list or between commas. Blanks around each do not count.
    Networks,
    /// Networks in CIDR notation or addresses alone.
    Addresses,
    /// A Kubernetes label selector.
    Selector,
    /// Labels as `key=value` or `key`, with commas. Blanks around each do not count.
    Labels,
    /// JSON objects in a list; `address` in one is an IP address, `subnet` a text.
    Vips,
    /// A JSON object; `expected_codes` is a list of texts, `method`, `url_path`, `version` and `host` are texts.
    HttpCheck,
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
    /// Which values of this kind are taken.
    pub accepts: Accepts,
    /// What counts when the key is absent, as it would be written. Whether an empty value is a value is for each provider to say.
    pub default: &'static str,
    /// Whether it may change.
    pub change: Changeability,
    /// What a change does to present traffic, as announced to operators.
    pub impact: Impact,
    /// What it does.
    pub doc: &'static str,
}

impl AnnotationSpec {
    /// The words that it takes; none if it takes other texts too.
    #[must_use]
    pub const fn words(&self) -> &'static [&'static str] {
        match self.accepts {
            Accepts::Words(words) | Accepts::WordsOfAnyCase(words) => words,
            _ => &[],
        }
    }

    /// Whether a Service bears what the manager writes under this key once it has made something in the cloud.
    #[must_use]
    pub fn is_written_on(&self, service: &Service) -> bool {
        self.change == Changeability::Written
            && facts::annotation(service, self.key).is_some_and(|value| !value.is_empty())
    }
}

/// Makes the table of a provider's annotations: a constant for each, and `TABLE` of all in this order. What the reference
/// page, the parser's messages and the `plan` command say about them comes from it.
///
/// An entry is its name, the end of its key, a [`ValueKind`] with what it [accepts](Accepts) if that is not everything, the
/// default, a [`Changeability`], an [`Impact`](bowline_plan::Impact), and what it does.
///
/// ```
/// bowline_cloud_provider::annotations! {
///     "example.com/";
///     FLAVOR = "flavor", Text, "small", Refused, None, "Flavor of the load balancer.";
///     MODE = "mode", Text(Words(&["fast", "safe"])), "safe", InPlace, None, "How it works.";
/// }
///
/// assert_eq!(FLAVOR.key, "example.com/flavor");
/// assert_eq!(MODE.words(), ["fast", "safe"]);
/// assert_eq!(TABLE.len(), 2);
/// ```
#[macro_export]
macro_rules! annotations {
    (@accepts) => {
        $crate::Accepts::Any
    };
    (@accepts $name:ident $(($($argument:expr),*))?) => {
        $crate::Accepts::$name $(($($argument),*))?
    };
    ($prefix:literal; $($name:ident = $suffix:literal, $kind:ident $(($($accepts:tt)*))?, $default:literal, $change:ident, $impact:ident, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub(crate) const $name: $crate::AnnotationSpec = $crate::AnnotationSpec {
                key: concat!($prefix, $suffix),
                kind: $crate::ValueKind::$kind,
                accepts: $crate::annotations!(@accepts $($($accepts)*)?),
                default: $default,
                change: $crate::Changeability::$change,
                impact: $crate::plan::Impact::$impact,
                doc: $doc,
            };
        )*

        static TABLE: &[$crate::AnnotationSpec] = &[$($name),*];
    };
}
