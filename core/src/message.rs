//! Texts of messages to users. Messages quote texts of other members, which may be long, or may contain characters that
//! forge lines, control terminals or reorder text.

use crate::limits::{MESSAGE_CHARS_MAX, QUOTED_CHARS_MAX, SUBDOMAIN_CHARS_MAX};
use fleetnet_types::ObjectName;

/// Returns the text of a message that users see in an Event or a condition. It has at most [`MESSAGE_CHARS_MAX`]
/// characters, and all of them are visible.
pub(crate) fn text(message: impl Into<String>) -> String {
    shortened(&message.into(), MESSAGE_CHARS_MAX)
}

/// Returns a value of another member for a message, so that the text around it stays readable.
pub(crate) fn value(text: &str) -> String {
    shortened(text, QUOTED_CHARS_MAX)
}

/// Returns the name of an object of another member for a message.
pub(crate) fn name(name: &ObjectName) -> String {
    let part = |text: &str| shortened(text, SUBDOMAIN_CHARS_MAX);
    format!("{}/{}", part(&name.namespace), part(&name.name))
}

/// Returns a text with escapes for unsafe characters, and with at most `most` characters. An ellipsis replaces the end
/// of a longer text.
fn shortened(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let (mut length, mut whole) = (0, None); // bytes of the longest part that fits with an ellipsis
    for character in text.chars() {
        if is_unsafe(character) {
            let escaped = character.escape_unicode();
            length += escaped.len();
            shown.extend(escaped);
        } else {
            length += 1;
            shown.push(character);
        }
        if length < most {
            whole = Some(shown.len());
        }
        if length > most {
            shown.truncate(whole.unwrap_or_default());
            shown.push('…');
            break;
        }
    }
    shown
}

/// True for control characters, separators of lines, and characters that are invisible or reorder text.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::ConditionValue;
    use crate::model::Kind;
    use crate::plan::{BlockingReason, event_about};
    use crate::reasons::Reason;
    use property::{cases, for_any};
    use proptest::collection::vec;
    use proptest::prelude::any;

    /// Also rule T65.
    #[test]
    fn conditions_and_events_have_visible_and_short_messages() {
        let long = format!("a\nb{}", "c".repeat(2 * MESSAGE_CHARS_MAX));
        let reason = BlockingReason { reason: Reason::TooManyExports, message: long.clone() };
        let condition = ConditionValue::export_blocked(&reason).message;
        let object = (Kind::Service, ObjectName::new("work", "app"), "uid".into());
        let event = event_about(object, "test", Reason::TooManyExports, long.clone()).message;
        assert_eq!([condition, event], [text(long.clone()), text(long)]);
    }

    /// Also rule T65.
    #[test]
    fn any_text_is_visible_and_short_in_a_message() {
        let unsafe_or_not = proptest::prop_oneof![
            any::<char>(),
            proptest::char::range('\0', '\u{9f}'),
            proptest::char::range('\u{2000}', '\u{206f}')
        ];
        for_any(cases(256), 10, &vec(unsafe_or_not, 0..300), |characters| {
            let written: String = characters.into_iter().collect();
            let (whole, part) = (text(written.clone()), value(&written));
            for (shown, most) in [(&whole, MESSAGE_CHARS_MAX), (&part, QUOTED_CHARS_MAX)] {
                assert!(shown.chars().count() <= most, "{written:?}");
                assert!(
                    !shown.chars().any(|shown| shown.is_control() || ('\u{202a}'..='\u{202e}').contains(&shown)),
                    "{written:?}"
                );
            }
            [(whole != written, "escaped"), (part.ends_with('…'), "shortened")]
        });
    }

    /// Rule T65: A message has text of another member: an address, a port, the name of a slice or a cluster id
    /// Then: In Events and conditions, characters that are invisible, end a line or reorder text are escaped. A message
    /// has at most 4,096 characters, a quoted value at most 64, and a quoted name at most 253
    #[test]
    fn texts_of_other_members_are_escaped_and_shortened() {
        let table = [
            ("10.0.0.1", "10.0.0.1"),
            ("größe \"a\" – ✓", "größe \"a\" – ✓"),
            ("a\nb\r\tc", "a\\u{a}b\\u{d}\\u{9}c"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{202e}abc\u{2066}", "\\u{202e}abc\\u{2066}"),
            ("a\u{2028}\u{200b}\u{feff}b", "a\\u{2028}\\u{200b}\\u{feff}b"),
            ("\u{85}\u{7f}", "\\u{85}\\u{7f}"),
        ];
        for (written, expected) in table {
            assert_eq!((text(written), value(written)), (expected.to_owned(), expected.to_owned()), "{written:?}");
        }
        assert_eq!(value(&"a".repeat(65)), format!("{}…", "a".repeat(63)));
        assert_eq!(value(&"a".repeat(64)), "a".repeat(64));
        assert_eq!(text("ä".repeat(4_097)), format!("{}…", "ä".repeat(4_095)));
        assert_eq!(text("ä".repeat(4_096)), "ä".repeat(4_096));
        assert_eq!(value(&format!("{}\n", "a".repeat(63))), format!("{}…", "a".repeat(63)), "no half of an escape");
    }
}
