//! Validation of strings: length, pattern and format.

use super::Node;
use super::check::Place;
use crate::status::FieldError;
use serde_json::Value;

/// Returns the errors of a string: the first error of length and pattern, and the error of the format.
pub(super) fn errors(node: &Node, text: &str, place: Place<'_>) -> Vec<FieldError> {
    let values = &node.values;
    let mut errors: Vec<FieldError> = value_error(node, text, place).into_iter().collect();
    if let Some(format) = values.format.as_ref().filter(|format| !format.fits(text)) {
        errors.push(place.wrong_type(format.name(), text));
    }
    errors
}

fn value_error(node: &Node, text: &str, place: Place<'_>) -> Option<FieldError> {
    let values = &node.values;
    if values.length_max.or(values.length_min).is_some() {
        let length = text.chars().count() as u64;
        if let Some(max) = values.length_max.filter(|max| length > *max) {
            return Some(place.too_long(max));
        }
        if let Some(min) = values.length_min.filter(|min| length < *min) {
            return Some(place.invalid(&Value::from(text), &format!("should be at least {min} chars long")));
        }
    }
    let (source, pattern) = values.pattern.as_ref()?;
    let broken = !pattern.is_match(text);
    broken.then(|| place.invalid(&Value::from(text), &format!("should match '{source}'")))
}
