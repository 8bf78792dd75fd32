//! The URL under which an operator says that an API is found.

use url::Url;

/// A text is not the URL of an API. The text itself is not repeated: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an absolute URL of http or https: {reason}")]
pub struct BaseUrlError {
    reason: &'static str,
}

impl BaseUrlError {
    const fn because(reason: &'static str) -> Self {
        Self { reason }
    }
}

/// Reads the URL of an API: `http://` or `https://`, a host, and what follows it. White space around it is left out, as
/// files and variables often end in a newline; so are a user's name and password, which open no API and would show in
/// messages.
///
/// Stricter than the parser, which follows browsers and makes a URL of `https:x` and `http:///x`: what a person wrote
/// wrongly is told, and not taken for something else.
///
/// # Errors
///
/// The text is no such URL.
pub fn base_url(text: &str) -> Result<Url, BaseUrlError> {
    let text = text.trim_ascii();
    if !is_url_text(text) {
        return Err(BaseUrlError::because("a character in it belongs to no URL"));
    }
    let (scheme, rest) = text.split_once(':').ok_or(BaseUrlError::because(
        "it does not begin with http:// or https://",
    ))?;
    if !["http", "https"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        return Err(BaseUrlError::because("its scheme is neither http nor https"));
    }
    let rest = rest
        .strip_prefix("//")
        .ok_or(BaseUrlError::because("no // follows its scheme"))?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.is_empty() || host.starts_with(':') {
        return Err(BaseUrlError::because("it names no host"));
    }
    // The tables of the world's scripts would be a sixtieth of the binary (`idna_adapter` is held at 1.0 for it).
    if !host.is_ascii() {
        return Err(BaseUrlError::because(
            "its host is not written in ASCII (an internationalised name is written as xn--...)",
        ));
    }
    let mut url = Url::parse(text).map_err(|_| BaseUrlError::because("its host or port cannot be read"))?;
    // Both fail only for a URL without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(url)
}

/// Whether a text consists of what a URL consists of (RFC 3986, section 2): no white space, no control characters, none of
/// the characters that have to be encoded, and two digits after each percent sign. A parser that follows browsers encodes
/// them by itself, or leaves them out.
pub fn is_url_text(text: &str) -> bool {
    let is_plain =
        |letter: char| !letter.is_whitespace() && !letter.is_control() && !r#""<>\^`{|}"#.contains(letter);
    let is_encoded = |after: &str| {
        let mut digits = after.bytes();
        let mut digit = || digits.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        digit() && digit()
    };
    text.chars().all(is_plain) && text.split('%').skip(1).all(is_encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_url_is_read_without_the_credentials_in_it() {
        for (text, expected) in [
            ("https://api.example", "https://api.example/"),
            (
                " http://sim.test:8080/a/b?x=1#y\n",
                "http://sim.test:8080/a/b?x=1#y",
            ),
            (
                "HTTPS://[2001:db8::7]:8443/x%20y/",
                "https://[2001:db8::7]:8443/x%20y/",
            ),
            ("http://anna:hunter2@h/x", "http://h/x"),
            ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example/"),
        ] {
            assert_eq!(base_url(text).unwrap().as_str(), expected, "{text}");
        }
    }

    #[test]
    fn what_a_browser_would_repair_is_refused_and_not_repeated() {
        for text in [
            "",
            "hunter2",
            "hunter2.example/x",
            "/hunter2",
            "//hunter2",
            "ftp://anna:hunter2@h",
            "https:hunter2",
            "https:/hunter2",
            "http:///hunter2",
            "http:////hunter2",
            "http://?hunter2",
            "http://",
            "http://:80/hunter2",
            "http://anna:hunter2@/x",
            "http://hunter2:port/",
            "http://hunter2:99999/",
            "http://hun ter2/",
            "http://hun\tter2/",
            "http:\\\\hunter2",
            "http://h\\hunter2",
            "http://%zz/hunter2",
            "http://h/hunter2%2",
            "http://[::hunter2]/",
            "https://hünter.hunter2/",
            "https://hunter2%C3%BC/",
        ] {
            let error = base_url(text).unwrap_err().to_string();
            assert!(
                error.starts_with("not an absolute URL of http or https: "),
                "{text}: {error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
