//! Invariants over random worlds.
