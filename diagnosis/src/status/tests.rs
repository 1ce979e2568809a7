//! Tests of status.
