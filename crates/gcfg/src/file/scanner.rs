//! Bytes to tokens.

use super::SyntaxError;

/// What a line is made of. Comments are blanks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The file ends.
    End,
    /// The line ends.
    NewLine,
    /// `[`.
    LeftBracket,
    /// `]`.
    RightBracket,
    /// `=`: a [value](Scanner::value) follows.
    Equals,
    /// The name of a section or a variable.
    Name(String),
    /// The name of a subsection, without its quotes.
    Quoted(String),
}

impl Token {
    pub(super) fn ends_line(&self) -> bool {
        matches!(self, Self::End | Self::NewLine)
    }
}

/// A token and where it begins.
pub(super) struct Scanned {
    pub(super) token: Token,
    pub(super) start: usize,
}

/// Reads a file character by character.
pub(super) struct Scanner<'a> {
    source: &'a [u8],
    /// The character at hand; `None` at the end.
    at: Option<char>,
    /// Where it is.
    offset: usize,
    /// Where the one after it is.
    after: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(source: &'a [u8]) -> Self {
        Self {
            source,
            at: Some(' '),
            offset: 0,
            after: 0,
        }
    }

    /// The next token.
    pub(super) fn scan(&mut self) -> Result<Scanned, SyntaxError> {
        if self.after == 0 {
            self.step()?;
        }
        self.skip_blanks()?;
        while self.is_at_comment() {
            while !matches!(self.at, None | Some('\n')) {
                self.step()?;
            }
        }
        let start = self.offset;
        let Some(letter) = self.at else {
            return Ok(Scanned {
                token: Token::End,
                start,
            });
        };
        if letter.is_alphabetic() {
            let token = Token::Name(self.name()?);
            return Ok(Scanned { token, start });
        }
        self.step()?;
        let token = match letter {
            '\n' => Token::NewLine,
            '[' => Token::LeftBracket,
            ']' => Token::RightBracket,
            '=' => Token::Equals,
            '"' => Token::Quoted(self.quoted(start)?),
            other => {
                return Err(SyntaxError {
                    letter: Some(other),
                    ..self.error(start, &illegal(other))
                });
            }
        };
        Ok(Scanned { token, start })
    }

    /// Whether a comment begins here.
    pub(super) fn is_at_comment(&self) -> bool {
        matches!(self.at, Some(';' | '#'))
    }

    /// The value after an equals sign: to the end of the line or to a comment, without the blanks around it.
    pub(super) fn value(&mut self) -> Result<String, SyntaxError> {
        self.skip_blanks()?;
        let start = self.offset;
        let mut value = String::new();
        // Of the value, how much is kept when it ends here: blanks outside of quotes only count if something follows.
        let mut kept = 0;
        let mut is_quoted = false;
        loop {
            let Some(letter) = self.at else {
                if is_quoted {
                    return Err(self.error(start, "string not terminated"));
                }
                break;
            };
            if !is_quoted && matches!(letter, '\n' | ';' | '#') {
                break;
            }
            self.step()?;
            match letter {
                '"' => is_quoted = !is_quoted,
                '\\' if is_quoted => value.push(self.escape()?),
                '\\' => {
                    if self.at == Some('\r') {
                        self.step()?;
                    }
                    match self.at {
                        // The next line goes on here.
                        Some('\n') => {}
                        Some('"') => value.push('"'),
                        _ => {
                            let rule = "unquoted '\\' must be followed by new line or double quote";
                            return Err(self.error(start, rule));
                        }
                    }
                    self.step()?;
                }
                '\n' => return Err(self.error(start, "string not terminated")),
                '\r' => {}
                other => value.push(other),
            }
            if is_quoted || !is_blank(letter) {
                kept = value.len();
            }
        }
        value.truncate(kept);
        Ok(value)
    }

    /// A position as a message has it.
    pub(super) fn error(&self, offset: usize, rule: &str) -> SyntaxError {
        let before = &self.source[..offset.min(self.source.len())];
        let begin = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        SyntaxError {
            line: self.line_of(offset),
            column: before.len() - begin + 1,
            rule: rule.to_owned(),
            letter: None,
        }
    }

    pub(super) fn line_of(&self, offset: usize) -> usize {
        let before = &self.source[..offset.min(self.source.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Goes to the next character. Those that no text has are errors wherever they stand.
    fn step(&mut self) -> Result<(), SyntaxError> {
        self.offset = self.after;
        let rest = &self.source[self.offset..];
        let Some(first) = rest.first() else {
            self.at = None;
            return Ok(());
        };
        if *first == 0 {
            return Err(self.error(self.offset, "illegal character NUL"));
        }
        // A character has four bytes at most; what is cut behind it does not matter.
        let head = &rest[..rest.len().min(4)];
        let valid = match std::str::from_utf8(head) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
        };
        let Some(letter) = valid.chars().next() else {
            return Err(self.error(self.offset, "illegal UTF-8 encoding"));
        };
        self.at = Some(letter);
        self.after = self.offset + letter.len_utf8();
        Ok(())
    }

    fn skip_blanks(&mut self) -> Result<(), SyntaxError> {
        while self.at.is_some_and(is_blank) {
            self.step()?;
        }
        Ok(())
    }

    fn name(&mut self) -> Result<String, SyntaxError> {
        let mut name = String::new();
        while let Some(letter) = self.at
            && (letter.is_alphabetic() || letter.is_numeric() || letter == '-')
        {
            name.push(letter);
            self.step()?;
        }
        Ok(name)
    }

    /// The name of a subsection, up to the closing quote.
    fn quoted(&mut self, start: usize) -> Result<String, SyntaxError> {
        let mut text = String::new();
        loop {
            let letter = match self.at {
                None | Some('\n') => return Err(self.error(start, "string not terminated")),
                Some(letter) => letter,
            };
            let place = self.offset;
            self.step()?;
            match letter {
                '"' => return Ok(text),
                '\\' => match self.at {
                    Some(escaped @ ('\\' | '"')) => {
                        text.push(escaped);
                        self.step()?;
                    }
                    _ => return Err(self.error(place + 1, "unknown escape sequence")),
                },
                other => text.push(other),
            }
        }
    }

    /// What a backslash inside of quotes stands for, with what follows it.
    fn escape(&mut self) -> Result<char, SyntaxError> {
        let letter = match self.at {
            Some(letter @ ('\\' | '"')) => letter,
            Some('n') => '\n',
            Some('t') => '\t',
            _ => return Err(self.error(self.offset, "unknown escape sequence")),
        };
        self.step()?;
        Ok(letter)
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r')
}

/// A character and, if it can be shown, what it looks like.
fn illegal(letter: char) -> String {
    let code = u32::from(letter);
    if letter.is_control() || letter == '\u{feff}' {
        format!("illegal character U+{code:04X}")
    } else {
        format!("illegal character U+{code:04X} '{letter}'")
    }
}
