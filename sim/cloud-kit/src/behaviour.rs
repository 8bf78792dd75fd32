//! What a double does and how that is known: one table for each double, from which its documentation is written.
//!
//! The switches of a double are a type of its own; [`Behaves`] says which row of the table is about which of them. What is
//! assumed of the original has a switch, and a [`World`] turns all of these at once: every suite of a provider runs in both.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;

/// How it is known that the original does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Its makers or those who publish clients for it say so.
    Documented,
    /// Read in the server's own source.
    Source,
    /// Seen on the wire.
    Seen,
    /// It is not known.
    Assumed,
    /// Nobody says that it does, and it does when a test asks for it: what may befall any API.
    OnDemand,
}

impl Basis {
    fn words(self) -> &'static str {
        match self {
            Self::Documented => "documented",
            Self::Source => "read in the source",
            Self::Seen => "seen on the wire",
            Self::Assumed => "assumed",
            Self::OnDemand => "on demand",
        }
    }
}

/// Which of its possible originals a double is, where they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// The one that forgives most.
    Kind,
    /// The one that forgives least. A test that chooses none is in this one.
    #[default]
    Unkind,
}

impl World {
    /// One of two values.
    pub fn pick<T>(self, kind: T, unkind: T) -> T {
        match self {
            Self::Kind => kind,
            Self::Unkind => unkind,
        }
    }

    /// The switches of a double in this world, and without waiting.
    pub fn behaviour<B: Behaves>(self) -> B {
        let mut behaviour = B::default();
        for assumed in B::TABLE.iter().filter_map(|behaviour| behaviour.turn) {
            assumed(&mut behaviour, self);
        }
        behaviour
    }
}

/// A world of another name.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no world; there are `kind` and `unkind`")]
pub struct NoSuchWorld(String);

impl FromStr for World {
    type Err = NoSuchWorld;

    fn from_str(name: &str) -> Result<Self, NoSuchWorld> {
        match name {
            "kind" => Ok(Self::Kind),
            "unkind" => Ok(Self::Unkind),
            other => Err(NoSuchWorld(other.to_owned())),
        }
    }
}

/// One thing that a double does. `B` are its switches.
#[derive(Debug)]
pub struct Behaviour<B> {
    /// The switch as JSON names it (`quota.pools` for one within another), or words for what has none.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// How that is known.
    pub basis: Basis,
    /// Who says so; of what is assumed, why it is thought.
    pub source: &'static str,
    /// Turns the switch, of what is assumed.
    pub turn: Option<fn(&mut B, World)>,
}

impl<B> Behaviour<B> {
    /// One that is known.
    pub const fn known(basis: Basis, name: &'static str, does: &'static str, source: &'static str) -> Self {
        let turn = None;
        Self {
            name,
            does,
            basis,
            source,
            turn,
        }
    }

    /// One that is not known, and what each world makes of it.
    pub const fn assumed(
        name: &'static str,
        does: &'static str,
        source: &'static str,
        turn: fn(&mut B, World),
    ) -> Self {
        let (basis, turn) = (Basis::Assumed, Some(turn));
        Self {
            name,
            does,
            basis,
            source,
            turn,
        }
    }
}

/// The switches of a double, with the table of what it does.
pub trait Behaves: Default + Serialize + 'static {
    /// Each switch, and what else it does that a client may notice.
    const TABLE: &'static [Behaviour<Self>];
}

/// The switches of a double and its table, each switch in one place: what it is (for readers of the code), its name in JSON
/// where that is another one, its type, what it is by default, how it is known that the original does so (from whom; of
/// what is assumed, before that, what each world makes of it), and what the double does. Behind `and`: what has no switch.
///
/// ```ignore
/// bowline_cloud_kit::switches! {
///     /// Switches that may be changed while the simulator runs.
///     Behaviour {
///         /// How long a token is good.
///         token_life as "token_life_ms" with "millis": Duration = HOUR,
///             documented(API) "A token is good for this time.";
///         /// Whether lists begin with the newest object.
///         newest_first: bool = false,
///             assumed(false => true, NOBODY) "Lists begin with the oldest or the newest object.";
///     } and {
///         "the order of tags": seen("The wire.") "It is kept.";
///     }
/// }
/// ```
#[macro_export]
macro_rules! switches {
    (
        $(#[$about:meta])*
        $behaviour:ident {
            $(
                $(#[$doc:meta])*
                $field:ident $(as $name:literal $(with $with:literal)?)? : $type:ty = $default:expr,
                    $basis:ident($($how:tt)*) $does:literal;
            )*
        } and {
            $($fact:literal: $known:ident($($from:tt)*) $is:literal;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $behaviour {
            $(
                $(#[$doc])*
                $(#[serde(rename = $name $(, with = $with)?)])?
                pub $field: $type,
            )*
        }

        impl Default for $behaviour {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::Behaves for $behaviour {
            const TABLE: &'static [$crate::behaviour::Behaviour<Self>] = &[
                $($crate::switches!(@$basis [$($how)*] [$($name,)? stringify!($field)] $does, $field),)*
                $($crate::switches!(@$known [$($from)*] [$fact] $is, none),)*
            ];
        }
    };
    (@documented [$source:expr] $name:tt $does:literal, $field:ident) => {
        $crate::switches!(@known Documented, $source, $name $does)
    };
    (@read [$source:expr] $name:tt $does:literal, $field:ident) => {
        $crate::switches!(@known Source, $source, $name $does)
    };
    (@seen [$source:expr] $name:tt $does:literal, $field:ident) => {
        $crate::switches!(@known Seen, $source, $name $does)
    };
    (@on_demand [] $name:tt $does:literal, $field:ident) => {
        $crate::switches!(@known OnDemand, "Any API may.", $name $does)
    };
    (@assumed [$kind:expr => $unkind:expr, $source:expr] [$name:expr $(, $_field:expr)?] $does:literal, $field:ident) => {
        $crate::behaviour::Behaviour::assumed($name, $does, $source, |it, world| it.$field = world.pick($kind, $unkind))
    };
    (@known $basis:ident, $source:expr, [$name:expr $(, $_field:expr)?] $does:literal) => {
        $crate::behaviour::Behaviour::known($crate::Basis::$basis, $name, $does, $source)
    };
}

/// The value of a switch.
fn value<'a>(switches: &'a Value, name: &str) -> Option<&'a Value> {
    name.split('.').try_fold(switches, |value, part| value.get(part))
}

/// Both worlds as JSON.
fn worlds<B: Behaves>() -> [Value; 2] {
    [World::Kind, World::Unkind].map(|world| serde_json::json!(world.behaviour::<B>()))
}

/// The table as Markdown.
pub fn table<B: Behaves>() -> String {
    let [kind, unkind] = worlds::<B>();
    let mut page = "| behaviour | what the double does | known | from | kind | unkind |\n| --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for Behaviour {
        name,
        does,
        basis,
        source,
        turn,
    } in B::TABLE
    {
        let shown = |switches| match (turn, value(switches, name)) {
            (Some(_), Some(value)) => format!("`{value}`"),
            _ => String::new(),
        };
        let name = value(&kind, name).map_or((*name).to_owned(), |_| format!("`{name}`"));
        let (kind, unkind, basis) = (shown(&kind), shown(&unkind), basis.words());
        let _ = writeln!(
            page,
            "| {name} | {does} | {basis} | {source} | {kind} | {unkind} |"
        );
    }
    page
}

/// What is wrong with the table, in words; empty if nothing is.
pub fn mistakes<B: Behaves>() -> Vec<String> {
    let [kind, unkind] = worlds::<B>();
    let mut mistakes = Vec::new();
    let mut names = BTreeSet::new();
    for Behaviour {
        name,
        does,
        basis,
        source,
        turn,
    } in B::TABLE
    {
        let mut wrong = |what: &str| mistakes.push(format!("{name}: {what}"));
        if !names.insert(*name) {
            wrong("stands there twice");
        }
        if does.is_empty() || source.is_empty() || does.contains('|') || source.contains('|') {
            wrong("says not what it does or who says so, or breaks the table");
        }
        if (*basis == Basis::Assumed) != turn.is_some() {
            wrong("what is assumed, and only that, is turned by a world");
        }
        if turn.is_some() && value(&kind, name) == value(&unkind, name) {
            wrong("is the same in both worlds");
        }
    }
    let switches = kind.as_object().into_iter().flat_map(|switches| switches.keys());
    let inner = |switch: &str| names.iter().any(|name| name.split('.').next() == Some(switch));
    let missing = switches.filter(|switch| !inner(switch));
    mistakes.extend(missing.map(|switch| format!("{switch}: is a switch and not in the table")));
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, Serialize)]
    struct Switches {
        strict: bool,
        forgotten: u32,
    }

    impl Behaves for Switches {
        const TABLE: &'static [Behaviour<Self>] = &[
            Behaviour::assumed("strict", "It refuses.", "A guess.", |it, world| {
                it.strict = world.pick(false, true);
            }),
            Behaviour::assumed("nothing", "It hides.", "A guess.", |_, _| {}),
            Behaviour::known(Basis::Seen, "an answer", "It answers.", ""),
        ];
    }

    #[test]
    fn a_world_turns_what_is_assumed() {
        assert!(!World::Kind.behaviour::<Switches>().strict);
        assert!(World::default().behaviour::<Switches>().strict);
    }

    #[test]
    fn a_switch_that_is_not_in_the_table_and_a_row_without_a_source_are_told() {
        assert_eq!(
            mistakes::<Switches>(),
            [
                "nothing: is the same in both worlds",
                "an answer: says not what it does or who says so, or breaks the table",
                "forgotten: is a switch and not in the table",
            ]
        );
    }

    #[test]
    fn the_page_shows_both_worlds() {
        let table = table::<Switches>();
        let row = "| `strict` | It refuses. | assumed | A guess. | `false` | `true` |";
        assert!(table.lines().any(|line| line == row), "{table}");
    }
}
