//! Whole-process scenarios and command line snapshots.
