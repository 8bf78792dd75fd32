//! The file's language: sections of variables, by the rules of git's configuration files as the Go managers' parser reads
//! them (package `gcfg`, version 1).

mod scanner;

use std::fmt;

use self::scanner::{Scanner, Token};

/// What stands on one line: a section, or a variable of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The section, as written.
    pub section: String,
    /// The subsection, as in `[section "subsection"]`.
    pub subsection: Option<String>,
    /// The variable and its value; `None` for the section's own line.
    pub variable: Option<Variable>,
    /// The line, from 1.
    pub line: usize,
}

/// A variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name, as written. Letter case does not count.
    pub name: String,
    /// The value; `None` if there is no equals sign.
    pub value: Option<String>,
    /// Whether a comment follows it on its line: to whoever wrote `a#b`, that may be part of the value.
    pub is_before_comment: bool,
}

impl Variable {
    /// Whether there is nothing behind the equals sign: then the variable counts as not set, as its default has it.
    pub fn is_empty(&self) -> bool {
        self.value.as_deref() == Some("")
    }
}

/// What may be wrong with values that a comment follows, such as `` `password` ``, where the cloud does not take them; empty without any.
pub fn cut_short(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "the value of {} ends where a `#` or `;` begins a comment: a value with such a character in it stands in double quotes",
        names.join(" and of ")
    )
}

impl fmt::Debug for Variable {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({})", self.name)
    }
}

/// The file breaks a rule of the language. The text is `LINE:COLUMN: rule`, columns in bytes from 1, and shows no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {rule}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub rule: String,
    /// The character, if it is one that cannot stand where it stands.
    pub letter: Option<char>,
}

impl SyntaxError {
    /// The rule, its line, the variable of that line, and what may help. `known` tells the variable that a name is, or is a
    /// slip of the pen for; nothing else of the file is shown.
    pub fn explained(&self, contents: &[u8], known: impl Fn(&str) -> Option<&'static str>) -> String {
        let line = contents.split(|byte| *byte == b'\n').nth(self.line - 1);
        let line = String::from_utf8_lossy(line.unwrap_or_default());
        let written = line.trim_start_matches(is_aside).split(is_aside).next();
        let written = written.unwrap_or_default();
        let place = match known(written) {
            Some(name) if name.eq_ignore_ascii_case(written) => format!("at `{name}`"),
            Some(name) => format!("at what may be meant for `{name}`"),
            None => String::new(),
        };
        let separator = if place.is_empty() { "" } else { ", " };
        let remedy = self.letter.and_then(remedy).map(|remedy| format!(": {remedy}"));
        format!(
            "{self} (line {}{separator}{place}){}",
            self.line,
            remedy.unwrap_or_default()
        )
    }
}

/// Whether a character divides the name of a variable from what is around it, also in other languages than this one.
fn is_aside(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '=' | ':' | '"' | '\'' | '{' | ',' | '\u{feff}')
}

/// What to do about a character that cannot stand where it stands.
fn remedy(letter: char) -> Option<&'static str> {
    match letter {
        ':' => Some("write `=` between a name and its value"),
        '_' => Some("names have hyphens where other files have underscores"),
        '{' | '}' => Some("the file is not JSON: it has lines such as `name = value`"),
        '\u{feff}' => Some("the file begins with a byte order mark: save it as UTF-8 without one"),
        _ => None,
    }
}

/// Reads a file.
///
/// # Errors
///
/// The first rule that is broken.
pub fn parse(contents: &[u8]) -> Result<Vec<Entry>, SyntaxError> {
    let mut scanner = Scanner::new(contents);
    let mut entries = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    let mut next = scanner.scan()?;
    loop {
        match next.token {
            Token::End => return Ok(entries),
            Token::NewLine => next = scanner.scan()?,
            Token::LeftBracket => {
                let line = scanner.line_of(next.start);
                let (name, subsection) = header(&mut scanner)?;
                entries.push(Entry {
                    section: name.clone(),
                    subsection: subsection.clone(),
                    variable: None,
                    line,
                });
                section = Some((name, subsection));
                next = scanner.scan()?;
                if !next.token.ends_line() {
                    return Err(scanner.error(next.start, "expected EOL, EOF, or comment"));
                }
            }
            Token::Name(ref name) => {
                let Some((section, subsection)) = &section else {
                    return Err(scanner.error(next.start, "expected section header"));
                };
                let mut entry = Entry {
                    section: section.clone(),
                    subsection: subsection.clone(),
                    variable: None,
                    line: scanner.line_of(next.start),
                };
                let name = name.clone();
                let (mut value, mut is_before_comment) = (None, false);
                next = scanner.scan()?;
                if next.token == Token::Equals {
                    value = Some(scanner.value()?);
                    is_before_comment = scanner.is_at_comment();
                    next = scanner.scan()?;
                } else if !next.token.ends_line() {
                    return Err(scanner.error(next.start, "expected '='"));
                }
                if !next.token.ends_line() {
                    return Err(scanner.error(next.start, "expected EOL, EOF, or comment"));
                }
                entry.variable = Some(Variable {
                    name,
                    value,
                    is_before_comment,
                });
                entries.push(entry);
            }
            Token::RightBracket | Token::Equals | Token::Quoted(_) => {
                let rule = match section {
                    None => "expected section header",
                    Some(_) => "expected section header or variable declaration",
                };
                return Err(scanner.error(next.start, rule));
            }
        }
    }
}

/// The rest of a section's line after the bracket, up to the other bracket.
fn header(scanner: &mut Scanner<'_>) -> Result<(String, Option<String>), SyntaxError> {
    let name = scanner.scan()?;
    let Token::Name(section) = name.token else {
        return Err(scanner.error(name.start, "expected section name"));
    };
    let mut next = scanner.scan()?;
    let mut subsection = None;
    if let Token::Quoted(text) = next.token {
        if text.is_empty() {
            return Err(scanner.error(next.start, "empty subsection name"));
        }
        subsection = Some(text);
        next = scanner.scan()?;
    }
    match (next.token, &subsection) {
        (Token::RightBracket, _) => Ok((section, subsection)),
        (_, None) => Err(scanner.error(next.start, "expected subsection name or right bracket")),
        (_, Some(_)) => Err(scanner.error(next.start, "expected right bracket")),
    }
}

#[cfg(test)]
mod tests;
