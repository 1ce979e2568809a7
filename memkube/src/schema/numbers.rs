//! Validation of numbers: minimum, maximum and `multipleOf`. As in kube-openapi, an integer is compared with the integer part of
//! these limits.

use super::Values;
use super::check::Place;
use crate::status::FieldError;
use serde_json::{Number, Value};

/// True if a number is an integer and fits in 64 bits.
pub(super) fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|float| float.fract() == 0.0 && fits(float) && !number.is_u64())
}

fn fits(float: f64) -> bool {
    // 2^53: above this limit, floats cannot represent every integer.
    float.abs() <= 9_007_199_254_740_992.0
}

pub(super) fn errors(values: &Values, number: &Number, place: Place<'_>) -> Vec<FieldError> {
    let bounds = values.multiple_of.or(values.minimum).or(values.maximum);
    let Some(float) = number.as_f64().filter(|_| bounds.is_some()) else { return Vec::new() };
    let whole = is_integer(number);
    let bound = |bound: f64| if whole { bound.trunc() } else { bound };
    let value = Value::Number(number.clone());
    let mut errors = Vec::new();
    if let Some(factor) = values.multiple_of.map(bound) {
        errors.extend(multiple_error(float, factor, &value, place));
    }
    if let Some(max) = values.maximum.map(bound) {
        let (broken, words) = match values.maximum_exclusive {
            true => (float >= max, "less than"),
            false => (float > max, "less than or equal to"),
        };
        errors.extend(broken.then(|| place.invalid(&value, &format!("should be {words} {max}"))));
    }
    if let Some(min) = values.minimum.map(bound) {
        let (broken, words) = match values.minimum_exclusive {
            true => (float <= min, "greater than"),
            false => (float < min, "greater than or equal to"),
        };
        errors.extend(broken.then(|| place.invalid(&value, &format!("should be {words} {min}"))));
    }
    errors
}

fn multiple_error(float: f64, factor: f64, value: &Value, place: Place<'_>) -> Option<FieldError> {
    if factor <= 0.0 {
        let shown = number(factor);
        let why = format!("factor MultipleOf declared for {} must be positive: {factor}", place.path);
        return Some(place.invalid_plain(&shown, &why));
    }
    let broken = (float / factor).fract() != 0.0;
    broken.then(|| place.invalid(value, &format!("should be a multiple of {factor}")))
}

fn number(float: f64) -> Value {
    if float.fract() == 0.0 && fits(float) {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
        return Value::from(float as i64);
    }
    Value::from(float)
}
