//! The cloudscale.ch provider.
