//! What every cloud simulator needs: seeded faults, virtual clock, request journal, data plane.
