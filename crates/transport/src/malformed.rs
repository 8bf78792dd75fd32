//! What is wrong with a file that may hold secrets, in words that hold none of it.

/// Why the contents of a file cannot be used.
///
/// It cannot hold any part of them: all of its words are the program's own. A key is one that the file is known to have,
/// never one that was read, because a secret that stands in the wrong place may be taken for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{what}{}",
    key.map_or(String::new(), |key| format!("`{key}`: ")),
    line.map_or(String::new(), |line| format!(" (line {line})"))
)]
pub struct Malformed {
    /// What is wrong, such as "no key client-secret".
    pub what: &'static str,
    /// Which of the file's keys it is about, if one is known.
    pub key: Option<&'static str>,
    /// Where, counted from 1, if there is one place.
    pub line: Option<usize>,
}

impl Malformed {
    /// Something is wrong with the file as a whole.
    pub const fn because(what: &'static str) -> Self {
        Self {
            what,
            key: None,
            line: None,
        }
    }

    /// Something is wrong with the value of this key.
    pub const fn at(key: &'static str, what: &'static str) -> Self {
        Self {
            what,
            key: Some(key),
            line: None,
        }
    }
}

/// The longest text that is shown as it is, in characters: no secret is so short, and no part of one tells much.
const SHORT: usize = 5;

/// What may be shown of a value that cannot be used: a short one or a [path](is_path) as it is, and of any other one its length. It may
/// be a secret that stands in the wrong place.
pub fn glimpse(value: &str) -> String {
    match value.chars().count() {
        _ if is_path(value) => format!("`{value}`"),
        ..=SHORT => format!("`{}`", value.escape_debug()),
        length => format!("(a text of {length} characters)"),
    }
}

/// Whether a value reads like the path of a file, and not like a secret: it begins as a path does, or ends as the name of a file does,
/// and none of its parts looks drawn at random.
pub fn is_path(value: &str) -> bool {
    let is_part = |part: &&str| !matches!(*part, "" | "." | "..");
    let parts: Vec<&str> = value.split('/').filter(is_part).collect();
    let begins = ["/", "./", "../"].iter().any(|begin| value.starts_with(begin));
    let ending = parts.last().and_then(|name| name.rsplit_once('.'));
    let ends = ending
        .is_some_and(|(name, ending)| is_word(ending) && (2..=5).contains(&ending.len()) && !name.is_empty());
    let reads = |part: &&str| is_word(part) || parts.len() > 1 && !is_random(part);
    (begins || ends) && !parts.is_empty() && parts.iter().all(reads)
}

/// Whether a part of a path may be a secret: it holds what names of files do not, or is long and mixes capitals, small letters and
/// digits, or letters and digits take turns.
fn is_random(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.bytes().any(|byte| is(&byte));
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
    let is_odd = |byte: u8| !byte.is_ascii_alphanumeric() && !b"-_.".contains(&byte);
    let is_turn = |pair: &&[u8]| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit();
    let turns = part.as_bytes().windows(2).filter(is_turn).count();
    part.len() > 64 || turns > 2 || part.len() > 8 && is_mixed || part.bytes().any(is_odd)
}

/// The longest name that is shown, in characters.
const LONGEST_NAME: usize = 20;

/// Whether a name of somebody else's choice may be shown: it reads like a word, as names of settings do and secrets do not.
pub fn is_word(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || b"-_.".contains(&byte))
}

/// A name of somebody else's choice as it may be shown: in quotes if it reads like a word, else by a [`glimpse`].
pub fn shown_name(name: &str) -> String {
    match is_word(name) {
        true => format!("{name:?}"),
        false => glimpse(name),
    }
}

/// The known key that this one is a misspelling of, if there is one.
pub fn meant<'a>(written: &str, keys: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_'], "");
    let written: String = plain(written).chars().take(64).collect();
    let distance = |key: &str| strsim::levenshtein(&plain(key), &written);
    let near = keys.iter().copied().filter(|key| distance(key) <= key.len() / 4);
    near.min_by_key(|key| distance(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_no_secret_is_shown() {
        assert_eq!(glimpse("maybe"), "`maybe`");
        assert_eq!(glimpse(""), "``");
        assert_eq!(glimpse("a\nb"), "`a\\nb`");
        assert_eq!(glimpse("hunter"), "(a text of 6 characters)");
        for (name, expected) in [
            ("retries", true),
            ("api-url", true),
            ("hunter2", false),
            ("a b", false),
        ] {
            assert_eq!(is_word(name), expected, "{name}");
        }
        assert!(!is_word(&"a".repeat(21)));
        assert_eq!(shown_name("api-url"), r#""api-url""#);
        assert_eq!(shown_name("hunter2"), "(a text of 7 characters)");
    }

    #[test]
    fn a_path_is_shown_and_what_may_be_a_secret_is_not() {
        for (value, is_path) in [
            ("/etc/kubernetes/pki/apiserver-kubelet-client.crt", true),
            ("/var/run/secrets/kubernetes.io/serviceaccount/token", true),
            ("/etc/x509/v2/ca-2024.pem", true),
            ("pki/ca1.crt", true),
            ("./ca", true),
            ("../tokens/2", true),
            ("ca.crt", true),
            ("/token", true),
            ("", false),
            ("/", false),
            ("token", false),
            ("hunter2.txt", false),
            ("/hunter2", false),
            ("aHVudGVy/bWh1bnRlcjI", false),
            ("/aHVudGVyMmh1bnRlcjI/x", false),
            ("/7f3a9c1e5b2d/a", false),
            ("/etc/a b", false),
            ("/etc/a=b", false),
            (
                "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl",
                false,
            ),
            ("https://anna:secret@proxy/x.pem", false),
        ] {
            assert_eq!(super::is_path(value), is_path, "{value}");
            assert_eq!(
                glimpse(value).contains(value),
                is_path || value.len() <= 5,
                "{value}"
            );
        }
    }

    #[test]
    fn a_misspelling_is_of_a_known_key_or_of_none() {
        let keys = ["leaderName", "controllerLeaders", "kind", "certificate-authority"];
        for (written, expected) in [
            ("leadername", Some("leaderName")),
            ("leader-name", Some("leaderName")),
            ("laederName", Some("leaderName")),
            ("certificate_authorty", Some("certificate-authority")),
            ("kin", Some("kind")),
            ("hunter2", None),
            ("", None),
            ("leader", None),
        ] {
            assert_eq!(meant(written, &keys), expected, "{written}");
        }
    }
}
