//! Tokens that an agent requests: renewals of its token, and tokens for another audience.

pub mod audience;
pub mod renewal;
