//! Checks and generators that people and CI call.

fn main() {}
