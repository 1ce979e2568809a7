//! Texts of errors for messages.

use std::error::Error;

use crate::limits::ERROR_MESSAGE_BYTES;

/// Returns a message with a text that another program chose, cut to the limit of messages.
pub(crate) fn cut(mut message: String) -> String {
    if message.len() > ERROR_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(ERROR_MESSAGE_BYTES));
        message.push('…');
    }
    message
}

/// Returns an error and its causes, the outermost first.
pub(crate) fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns an error with its causes, without repetition.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in causes(error) {
        let cause = cause.to_string();
        // Skip a cause whose text is already in the message: many errors of the HTTP stack repeat the text of their
        // cause.
        if !text.contains(&cause) {
            text = if text.is_empty() { cause } else { format!("{text}: {cause}") };
        }
    }
    text
}
