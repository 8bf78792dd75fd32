//! The cloud controller manager.
