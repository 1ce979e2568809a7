//! bugs
