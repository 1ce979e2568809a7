//! Weight of a ServiceExport.

use crate::limits::WEIGHT_MAX;

/// Parses the weight annotation of a ServiceExport: a decimal integer from 0 to 1000; 1 without the annotation.
pub fn weight(annotation: Option<&str>) -> Result<i64, String> {
    let Some(written) = annotation else { return Ok(1) };
    match written.parse::<i64>() {
        Err(_) => Err(format!("it is not a valid integer: {written}")),
        Ok(weight) if !(0..=WEIGHT_MAX).contains(&weight) => {
            Err(format!("it is not in the range [0, {WEIGHT_MAX}]: {written}"))
        }
        Ok(weight) => Ok(weight),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule S6: The member agent reads the weight of a ServiceExport
    /// Then: A weight is valid if it is an integer from 0 to 1000. A ServiceExport without a weight has the weight 1
    #[test]
    fn weights_are_integers_from_0_to_1000() {
        let table = [
            (None, Ok(1)),
            (Some("0"), Ok(0)),
            (Some("1000"), Ok(1000)),
            (Some("+7"), Ok(7)),
            (Some("1001"), Err("it is not in the range [0, 1000]: 1001".to_owned())),
            (Some("-1"), Err("it is not in the range [0, 1000]: -1".to_owned())),
            (Some("1.5"), Err("it is not a valid integer: 1.5".to_owned())),
            (Some(""), Err("it is not a valid integer: ".to_owned())),
        ];
        for (written, expected) in table {
            assert_eq!(weight(written), expected, "{written:?}");
        }
    }
}
