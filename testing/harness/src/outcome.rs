//! Outcome of a call of a command-line tool.

/// Exit code and output of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}
