//! Text that cannot control the terminal. Objects in a cluster contain texts of others, so every printer takes [`Safe`]
//! only.

use serde_json::Value;
use std::fmt::{self, Write as _};
use unicode_width::UnicodeWidthChar as _;

/// Text without characters that control a terminal or change the order of the shown text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Safe(String);

impl Safe {
    /// Returns a text of one line. Line ends and tabs are escaped too, so that a text cannot look like several rows.
    pub(crate) fn line(text: &str) -> Self {
        Self(escape(text, write_rust, is_harmful))
    }

    /// Returns a text of several lines, such as a manifest or a log.
    pub(crate) fn block(text: &str) -> Self {
        Self(escape(text, write_rust, |c| is_harmful(c) && c != '\n'))
    }

    /// Returns a text of this program itself that may contain tabs, such as a script.
    pub(crate) fn script(text: &str) -> Self {
        Self(escape(text, write_rust, |c| is_harmful(c) && !matches!(c, '\n' | '\t')))
    }

    /// Returns a value as JSON of several lines. Harmful characters occur in strings only, where JSON can escape them.
    pub(crate) fn json(value: &Value) -> Self {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        Self(escape(&text, write_json, |c| is_harmful(c) && c != '\n'))
    }

    /// Returns a value as YAML. JSON is YAML too, so a value with harmful characters is printed as JSON, which can
    /// escape them.
    pub(crate) fn yaml(value: &Value) -> Self {
        let mut options = serde_saphyr::SerializerOptions::default();
        options.prefer_block_scalars = false;
        let mut text = String::new();
        let is_written = serde_saphyr::to_fmt_writer_with_options(&mut text, value, options).is_ok();
        if is_written && !has_harmful_string(value) { Self(text) } else { Self::json(value) }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds a text that is already safe.
    pub(crate) fn push(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    /// Adds a text of the program itself, such as a separator or a colour.
    pub(crate) fn push_own(&mut self, own: &'static str) {
        self.0.push_str(own);
    }

    /// Adds blanks.
    pub(crate) fn pad(&mut self, columns: usize) {
        self.0.extend(std::iter::repeat_n(' ', columns));
    }

    /// Number of columns that the text takes on a terminal.
    pub(crate) fn width(&self) -> usize {
        self.0.chars().map(|c| c.width().unwrap_or(0)).sum()
    }

    /// Removes the blanks at the end of the text.
    pub(crate) fn trim_end(&mut self) {
        self.0.truncate(self.0.trim_end_matches(' ').len());
    }
}

impl fmt::Display for Safe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// True if a character may not reach a terminal: control characters, and characters without a shape of their own that
/// change the order, the width or the meaning of the text around them.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

fn has_harmful_string(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(is_harmful),
        Value::Array(items) => items.iter().any(has_harmful_string),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key.contains(is_harmful) || has_harmful_string(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn escape(text: &str, write: impl Fn(char) -> String, is_escaped: impl Fn(char) -> bool) -> String {
    if !text.contains(&is_escaped) {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) { safe.push_str(&write(c)) } else { safe.push(c) }
    }
    safe
}

/// Returns an escape as in Rust: `\n`, `\u{1b}`.
fn write_rust(c: char) -> String {
    match c {
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        _ => c.escape_unicode().to_string(),
    }
}

/// Returns an escape as in JSON, of one or two UTF-16 units.
fn write_json(c: char) -> String {
    let mut units = [0; 2];
    c.encode_utf16(&mut units).iter().fold(String::new(), |mut text, unit| {
        // Writing to a String does not fail.
        let _ = write!(text, "\\u{unit:04x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use property::{cases, for_any};
    use proptest::prelude::{Strategy as _, any, prop};
    use serde_json::json;

    #[test]
    fn control_characters_are_shown_as_escapes() {
        let table = [
            ("west", "west"),
            ("größe 東京", "größe 東京"),
            ("a\x1b[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{9b}31mb", "a\\u{9b}31mb"),
            ("one\ntwo\tthree\r", "one\\ntwo\\tthree\\r"),
            ("\u{202e}abc\u{2066}", "\\u{202e}abc\\u{2066}"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
        ];
        for (text, shown) in table {
            assert_eq!(Safe::line(text).as_str(), shown);
        }
        assert_eq!(Safe::block("one\n\x1btwo\n").as_str(), "one\n\\u{1b}two\n");
    }

    #[test]
    fn json_and_yaml_keep_the_value_and_escape_harmful_characters() {
        let value =
            json!({"a\u{9b}": "x\u{1b}]0;evil\u{7}", "b": ["\u{202e}", "\u{e0041}", "two\nlines", 1, true, null]});
        let json = Safe::json(&value);
        assert!(json.as_str().contains(r#""a\u009b""#) && json.as_str().contains(r"\udb40\udc41"), "{json}");
        assert_eq!(serde_json::from_str::<Value>(json.as_str()).unwrap(), value);
        let yaml = Safe::yaml(&value);
        assert_eq!(serde_saphyr::from_str::<Value>(yaml.as_str()).unwrap(), value);
        assert_eq!(Safe::yaml(&json!({"a": "yes", "b": [1]})).as_str(), "a: \"yes\"\nb:\n- 1\n");
    }

    /// Returns the harmful characters of a text.
    fn harmful(text: &str, but: &[char]) -> String {
        text.chars().filter(|c| is_harmful(*c) && !but.contains(c)).collect()
    }

    #[test]
    fn no_text_of_a_cluster_brings_a_control_character_to_the_terminal() {
        let character = proptest::prop_oneof![
            4 => any::<char>(),
            1 => (0_u32..0xa0).prop_map(|c| char::from_u32(c).unwrap_or(' ')),
            1 => (0x2000_u32..0x2070).prop_map(|c| char::from_u32(c).unwrap_or(' ')),
        ];
        let text = prop::collection::vec(character, 0..24).prop_map(String::from_iter);
        for_any(cases(2000), 100, &text, |text| {
            assert_eq!(harmful(Safe::line(&text).as_str(), &[]), "", "{text:?}");
            assert_eq!(harmful(Safe::block(&text).as_str(), &['\n']), "", "{text:?}");
            let value = json!({"kept": [text], text.clone(): 1});
            for shown in [Safe::json(&value), Safe::yaml(&value)] {
                assert_eq!(harmful(shown.as_str(), &['\n']), "", "{text:?}");
                assert_eq!(serde_saphyr::from_str::<Value>(shown.as_str()).unwrap(), value, "{shown}");
            }
            [
                (text.contains('\x1b') || text.contains('\u{9b}'), "begins an escape sequence"),
                (text.contains(is_harmful), "harmful"),
                (!text.contains(is_harmful), "harmless"),
                (text.contains('\n'), "several lines"),
            ]
        });
    }
}
