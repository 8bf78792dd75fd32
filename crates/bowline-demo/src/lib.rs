//! The demo: manager, simulated cloud and embedded API server in one process.
