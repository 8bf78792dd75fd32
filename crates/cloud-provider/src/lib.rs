//! The contract between the controllers and a cloud.
