//! Conversion of times from and to the formats of Kubernetes.

use crate::limits::{TIME_MICROS_MAX, TIME_MICROS_MIN};
use fleetnet_types::Timestamp;
use jiff::fmt::strtime;

/// Parses an RFC 3339 time with any offset and any fraction of a second, cut to microseconds. `None` if the text is
/// malformed.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp(time.as_microsecond()))
}

/// Formats a time as Kubernetes' `Time`: RFC 3339 in UTC, whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    written("%Y-%m-%dT%H:%M:%SZ", time)
}

/// Formats a time as Kubernetes' `MicroTime`: RFC 3339 in UTC, six decimals.
pub(crate) fn micros(time: Timestamp) -> String {
    written("%Y-%m-%dT%H:%M:%S%.6fZ", time)
}

fn written(format: &str, time: Timestamp) -> String {
    // RFC 3339 can express the years 1 to 9999. A time outside this range becomes the nearest time in the range.
    let micros = time.0.clamp(TIME_MICROS_MIN, TIME_MICROS_MAX);
    let time = jiff::Timestamp::from_microsecond(micros).expect("it was brought into range");
    strtime::format(format, time).expect("every timestamp has the parts that the format names")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Timestamp = Timestamp(1_767_225_600_250_001);

    #[test]
    fn times_are_written_in_utc_and_read_back() {
        assert_eq!(micros(TIME), "2026-01-01T00:00:00.250001Z");
        assert_eq!(seconds(TIME), "2026-01-01T00:00:00Z");
        assert_eq!(read("2026-01-01T00:00:00.250001Z"), Some(TIME));
        assert_eq!(micros(Timestamp(-1)), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn any_offset_and_fraction_is_read() {
        assert_eq!(read("2026-01-01T01:00:00.2500019+01:00"), Some(TIME));
        assert_eq!(read("2026-01-01T00:00:00Z"), Some(Timestamp(1_767_225_600_000_000)));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "0", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    /// Rule X9: An agent writes a time
    /// Then: The agent writes the times of exports, port sets and heartbeats in microseconds. If RFC 3339 cannot
    /// express a time, the agent writes the nearest time that RFC 3339 can express
    #[test]
    fn a_time_out_of_range_is_written_as_the_nearest() {
        assert_eq!(seconds(Timestamp(i64::MAX)), "9999-12-30T22:00:00Z");
        assert_eq!(seconds(Timestamp(i64::MIN)), "0001-01-01T00:00:00Z");
        assert_eq!(read("0001-01-01T00:00:00Z"), Some(Timestamp(TIME_MICROS_MIN)));
    }
}
