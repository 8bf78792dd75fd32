//! What the Go managers' configuration files are written in: sections of variables ([`parse`]), switches and numbers as
//! their parser reads them ([`switch`], [`integer`]), and durations as Go programs write them ([`duration`]), also on
//! their command lines.
//!
//! Which sections and variables there are, and whether unknown ones are let pass, is for each cloud to say. This crate is
//! pure, and its errors show no values: those may be secrets.

pub mod duration;
mod file;
mod values;

pub use file::{Entry, SyntaxError, Variable, cut_short, parse};
pub use values::{integer, switch};
