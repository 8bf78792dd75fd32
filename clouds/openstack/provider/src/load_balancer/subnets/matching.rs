//! Names and tags that a subnet must have, as the options and annotations `floating-subnet` and `floating-subnet-tags` say.

use std::fmt;

use bowline_openstack_client::Subnet;
use regex_lite::Regex;

/// A pattern that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid subnet name pattern {pattern:?}: {reason}")]
pub(crate) struct PatternError {
    pattern: String,
    reason: String,
}

/// What a name must look like: a glob, or a regular expression after `~`; `!` in front of either negates.
///
/// The whole name has to match, also where a regular expression offers a shorter match first.
#[derive(Clone)]
pub(crate) struct NamePattern {
    text: String,
    is_negated: bool,
    whole_name: Regex,
}

impl NamePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// A regular expression that is none; a glob whose bracket or brace is not closed.
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        let fault = |reason: String| PatternError {
            pattern: text.to_owned(),
            reason,
        };
        let (is_negated, positive) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let expression = match positive.strip_prefix('~') {
            Some(expression) => expression.to_owned(),
            None => glob(positive).map_err(|reason| fault(reason.to_owned()))?,
        };
        // What is inside has to be an expression by itself, so that a bracket cannot close the group around it.
        Regex::new(&expression).map_err(|error| fault(error.to_string()))?;
        let whole_name =
            Regex::new(&format!("^(?:{expression})$")).map_err(|error| fault(error.to_string()))?;
        Ok(Self {
            text: text.to_owned(),
            is_negated,
            whole_name,
        })
    }

    /// Whether a name is as it must be.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.whole_name.is_match(name) != self.is_negated
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// The text decides: what it means follows from it.
impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

/// A glob as a regular expression: `*` is any characters but `/`, `?` one character, `[a-z]` one of these, `[!a-z]` one of
/// the others, `{a,b}` one of the alternatives, `\` takes the next character as it is.
fn glob(pattern: &str) -> Result<String, &'static str> {
    let mut expression = String::from("(?s)");
    let mut open_braces = 0_usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => expression.push_str("[^/]*"),
            '?' => expression.push('.'),
            '[' => class(&mut characters, &mut expression)?,
            '{' => {
                open_braces += 1;
                expression.push_str("(?:");
            }
            '}' if open_braces > 0 => {
                open_braces -= 1;
                expression.push(')');
            }
            ',' if open_braces > 0 => expression.push('|'),
            '\\' => literal(
                characters.next().ok_or("nothing follows the last `\\`")?,
                &mut expression,
            ),
            other => literal(other, &mut expression),
        }
    }
    if open_braces > 0 {
        return Err("a `{` is not closed");
    }
    Ok(expression)
}

/// The rest of a class, after its `[`.
fn class(characters: &mut std::str::Chars<'_>, expression: &mut String) -> Result<(), &'static str> {
    let mut content = String::new();
    let mut is_first = true;
    expression.push('[');
    loop {
        match characters.next().ok_or("a `[` is not closed")? {
            ']' if content.is_empty() => return Err("nothing stands between `[` and `]`"),
            ']' => break,
            '!' | '^' if is_first => expression.push('^'),
            '-' => content.push('-'),
            '\\' => literal(characters.next().ok_or("a `[` is not closed")?, &mut content),
            other => literal(other, &mut content),
        }
        is_first = false;
    }
    expression.push_str(&content);
    expression.push(']');
    Ok(())
}

fn literal(character: char, expression: &mut String) {
    expression.push_str(&regex_lite::escape(character.encode_utf8(&mut [0; 4])));
}

/// Which tags a subnet must have: separated by commas or blanks; `&` in front asks for all of them instead of one, `!` in front
/// of it all negates.
///
/// `!a,b` is none of the two and `!&a,b` not both. The Go manager confuses these two in its query; with a single tag they
/// are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tags {
    tags: Vec<String>,
    is_negated: bool,
    wants_all: bool,
}

impl Tags {
    /// Reads a condition; `None` if it names no tag.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let strip = |text: &mut &str, prefix: char| {
            let stripped = text.strip_prefix(prefix);
            *text = stripped.unwrap_or(text).trim_start();
            stripped.is_some()
        };
        let mut rest = text.trim();
        let is_negated = strip(&mut rest, '!');
        let wants_all = strip(&mut rest, '&');
        let tags = rest.split(|c: char| c == ',' || c.is_whitespace());
        let tags: Vec<String> = tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        (!tags.is_empty()).then_some(Self {
            tags,
            is_negated,
            wants_all,
        })
    }

    /// Whether an object with these tags fulfils the condition.
    pub(crate) fn holds(&self, present: &[String]) -> bool {
        let mut tags = self.tags.iter();
        let is_present = |tag: &String| present.contains(tag);
        let holds = if self.wants_all {
            tags.all(is_present)
        } else {
            tags.any(is_present)
        };
        holds != self.is_negated
    }
}

/// Which subnets of a network are meant. Both conditions must hold; at least one is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubnetMatch {
    name: Option<NamePattern>,
    tags: Option<Tags>,
}

impl SubnetMatch {
    /// Reads a name pattern and a condition for tags, either of which may be empty; `None` if both say nothing.
    ///
    /// # Errors
    ///
    /// A name pattern that cannot be understood.
    pub(crate) fn parse(name: &str, tags: &str) -> Result<Option<Self>, PatternError> {
        let name = (!name.is_empty()).then(|| NamePattern::parse(name)).transpose()?;
        let tags = Tags::parse(tags);
        Ok((name.is_some() || tags.is_some()).then_some(Self { name, tags }))
    }

    /// Whether a subnet is meant, wherever it was listed.
    pub(crate) fn holds(&self, subnet: &Subnet) -> bool {
        self.name.as_ref().is_none_or(|name| name.matches(&subnet.name)) && self.has_tags(subnet)
    }

    /// Whether the condition for tags holds, as every subnet meets one that says nothing.
    pub(crate) fn has_tags(&self, subnet: &Subnet) -> bool {
        self.tags.as_ref().is_none_or(|tags| tags.holds(&subnet.tags))
    }
}

/// For messages: the conditions as they were written, but for blanks.
impl fmt::Display for SubnetMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "name {:?}", name.text)?;
        }
        if let Some(condition) = &self.tags {
            let and = if self.name.is_some() { " and " } else { "" };
            let not = if condition.is_negated { "!" } else { "" };
            let all = if condition.wants_all { "&" } else { "" };
            write!(f, "{and}tags \"{not}{all}{}\"", condition.tags.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_from_end_to_end() {
        for (pattern, matching, other) in [
            ("public", "public", "public-2"),
            ("pub-*", "pub-a", "my-pub-a"),
            ("pub-*", "pub-", "pub-a/b"),
            ("pub-?", "pub-a", "pub-ab"),
            ("pub-[a-c]", "pub-b", "pub-d"),
            ("pub-[!a-c]", "pub-d", "pub-b"),
            ("pub-[.]", "pub-.", "pub-x"),
            ("{pub,ext}-{a,b}", "ext-b", "ext-c"),
            ("a.b+c", "a.b+c", "axb+c"),
            (r"pub-\*", "pub-*", "pub-a"),
            ("a,b}", "a,b}", "a"),
            ("!pub-*", "private", "pub-a"),
            ("~pub-[0-9]+", "pub-12", "pub-12a"),
            // A regular expression that finds a shorter match first still has to reach the end.
            ("~a|ab", "ab", "abc"),
            ("!~pub|ext", "private", "ext"),
        ] {
            let parsed = NamePattern::parse(pattern).unwrap();
            assert!(parsed.matches(matching), "{pattern} and {matching}");
            assert!(!parsed.matches(other), "{pattern} and {other}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_understood_is_an_error_that_shows_it() {
        for pattern in ["~(", "~a)(b", "pub-[a", "pub-{a,b", "pub-[]", r"pub\"] {
            let error = NamePattern::parse(pattern).unwrap_err().to_string();
            assert!(error.contains(&format!("{pattern:?}")), "{error}");
        }
    }

    #[test]
    fn a_negated_condition_is_the_opposite_of_the_plain_one() {
        let a_or_b: &[&[&str]] = &[&["a"], &["a", "b"]];
        let both: &[&[&str]] = &[&["a", "b"]];
        let neither: &[&[&str]] = &[&[]];
        let not_both: &[&[&str]] = &[&["a"], &[]];
        for (text, expected) in [
            ("a,b", a_or_b),
            ("a b", a_or_b),
            ("&a, b", both),
            ("!a,b", neither),
            ("! & a,b", not_both),
        ] {
            let wanted = SubnetMatch::parse("", text).unwrap().unwrap();
            let present: [&[&str]; 3] = [&["a"], &["a", "b"], &[]];
            let holding: Vec<&[&str]> = present
                .into_iter()
                .filter(|tags| wanted.holds(&subnet("s", tags)))
                .collect();
            assert_eq!(holding, expected, "{text}");
        }
    }

    #[test]
    fn name_and_tags_must_both_hold() {
        let wanted = SubnetMatch::parse("pub-*", "blue").unwrap().unwrap();
        assert!(wanted.holds(&subnet("pub-a", &["blue"])));
        assert!(!wanted.holds(&subnet("pub-a", &[])));
        assert!(!wanted.holds(&subnet("ext", &["blue"])));
        assert_eq!(wanted.to_string(), r#"name "pub-*" and tags "blue""#);
        for nothing in ["", " ", "!", "!&", ", "] {
            assert_eq!(SubnetMatch::parse("", nothing).unwrap(), None, "{nothing:?}");
        }
    }

    fn subnet(name: &str, tags: &[&str]) -> Subnet {
        Subnet {
            id: "s".into(),
            name: name.to_owned(),
            network_id: "n".into(),
            ip_version: 4,
            cidr: "203.0.113.0/24".to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        }
    }
}
