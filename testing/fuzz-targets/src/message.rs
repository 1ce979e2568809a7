//! Check of messages about malformed inputs.

/// Maximum length of a message about a malformed input. Messages go to the log and to Events, and other programs choose
/// the input.
const MESSAGE_BYTES: usize = 2560;

/// Checks that a message about a malformed input says something and is not long.
pub(crate) fn check_message(message: &str) {
    assert!(!message.trim().is_empty(), "an error gives no reason");
    assert!(message.len() <= MESSAGE_BYTES, "a message has {} bytes: {message:.200}…", message.len());
}
