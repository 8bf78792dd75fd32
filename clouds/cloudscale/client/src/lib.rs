//! A client of the cloudscale.ch API: wire types and calls.
