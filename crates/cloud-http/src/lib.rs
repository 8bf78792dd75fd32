//! The one HTTP stack through which every cloud is called.
