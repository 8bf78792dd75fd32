//! Suites that every provider with its simulator, and every API server arm, must pass.
