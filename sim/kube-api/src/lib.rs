//! An embedded API server for the kinds that a cloud controller manager touches.
