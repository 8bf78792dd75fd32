//! What stands behind an error.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

/// An error and its causes on one line, each text once: the useful words are often the last ones.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            let _ = write!(text, ": {words}"); // writing to a string cannot fail
        }
        cause = error.source();
    }
    text
}

/// The error of this type among an error and its causes.
pub fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // `source` of an I/O error skips the error that it wraps.
        next = match error.downcast_ref().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
