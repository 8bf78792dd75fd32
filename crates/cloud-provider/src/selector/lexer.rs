//! The words and signs of a selector.

use std::fmt;

/// A word or sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Not,
    Open,
    Close,
    Comma,
    Equals,
    NotEquals,
    Above,
    Below,
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word(word) => word,
            Self::Not => "!",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Equals => "==",
            Self::NotEquals => "!=",
            Self::Above => ">",
            Self::Below => "<",
            Self::End => "",
        })
    }
}

/// Cuts a text into tokens, one ahead.
pub(super) struct Lexer<'a> {
    rest: &'a str,
    ahead: Token<'a>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lexer = Self {
            rest: text,
            ahead: Token::End,
        };
        lexer.ahead = lexer.cut();
        lexer
    }

    pub(super) fn peek(&self) -> &Token<'a> {
        &self.ahead
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let next = self.cut();
        std::mem::replace(&mut self.ahead, next)
    }

    fn cut(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let signs = [
            ("!=", Token::NotEquals),
            ("!", Token::Not),
            ("==", Token::Equals),
            ("=", Token::Equals),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
            (">", Token::Above),
            ("<", Token::Below),
        ];
        for (sign, token) in signs {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return token;
            }
        }
        let is_end = |c: char| {
            matches!(
                c,
                ' ' | '\t' | '\r' | '\n' | '!' | '=' | '(' | ')' | ',' | '>' | '<'
            )
        };
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            Token::End
        } else {
            Token::Word(word)
        }
    }
}
