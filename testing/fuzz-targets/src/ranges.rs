//! Target for lists of address ranges, and for addresses.

use crate::message::check_message;
use endpointslice::Text;
use endpointslice::address::{canonical, family};
use fleetnet_core::ranges::{contains, parse};
use member_agent::fuzzing::source_ranges;

/// Parses each line of the input as a value of `--source-ranges`, as a range and as an address of a pod.
///
/// The printed form of a range is the same range, and the range contains its first and last address. The form of an
/// address in a slice is its own form. A malformed value is named with the reason.
pub fn cidr_list(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let values: Vec<String> = text.lines().map(str::to_owned).collect();
    match source_ranges(&values) {
        Ok(ranges) => {
            let print = |(cluster, ranges): (_, &Vec<_>)| {
                let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
                format!("{cluster}={}", ranges.join(","))
            };
            let printed: Vec<String> = ranges.iter().map(print).collect();
            assert_eq!(source_ranges(&printed).as_ref(), Ok(&ranges), "{printed:?} is another list");
        }
        Err(why) => {
            assert!(why.starts_with("--source-ranges "), "{why}");
        }
    }
    for value in text.split(['\n', ',', '=']) {
        range(value.trim());
        address(value.trim());
    }
}

fn range(written: &str) {
    match parse(written) {
        Ok(range) => {
            assert_eq!(parse(&range.to_string()), Ok(range), "{range} is another range");
            for address in [range.network(), range.broadcast()] {
                // An IPv4-mapped address counts as IPv4, which no range of IPv6 contains.
                let is_mapped = address.to_canonical() != address;
                assert!(is_mapped || contains(&range, address), "{range} does not contain {address}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn address(written: &str) {
    let Ok((of, text)) = canonical(&Text::from(written)) else { return };
    assert_eq!(canonical(&text), Ok((of, text.clone())), "{written} has two forms");
    assert_eq!((family(written), family(&text)), (Some(of), Some(of)), "{written} has two families");
    check_message(&text);
}
