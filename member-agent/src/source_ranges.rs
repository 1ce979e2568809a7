//! Parser of `--source-ranges` and `--own-ranges`: the address ranges in which a member may export endpoints, and those
//! of the importing cluster itself, in which no other member may export endpoints.

use fleetnet_agent::flags::UsageError;
use fleetnet_core::member::OwnRanges;
use fleetnet_core::names;
use fleetnet_core::ranges::{self, IpNet};
use fleetnet_types::ClusterId;
use std::collections::BTreeMap;

/// Parses the values of the flag: `<cluster>=<CIDR>,…`. The ranges of several values for one cluster are combined.
///
/// # Errors
/// If a value is malformed. The message names the value and the reason.
pub(crate) fn parse(written: &[String]) -> Result<BTreeMap<ClusterId, Vec<IpNet>>, UsageError> {
    let mut all: BTreeMap<ClusterId, Vec<IpNet>> = BTreeMap::new();
    for written in written {
        let (cluster, ranges) = of_cluster(written)
            .map_err(|why| UsageError(format!("--source-ranges {written:?} is not ID=CIDR,CIDR: {why}")))?;
        all.entry(cluster.into()).or_default().extend(ranges);
    }
    Ok(all)
}

fn of_cluster(written: &str) -> Result<(&str, Vec<IpNet>), String> {
    let (cluster, ranges) = written.split_once('=').ok_or("it has no =")?;
    let cluster = cluster.trim();
    if !names::is_cluster_id(cluster) {
        return Err(format!("{cluster:?} is not a cluster id"));
    }
    Ok((cluster, list(ranges)?))
}

fn list(written: &str) -> Result<Vec<IpNet>, String> {
    written.split(',').map(|range| ranges::parse(range.trim()).map_err(|why| why.to_string())).collect()
}

/// Parses `--own-ranges`: `auto`, `off`, or `<CIDR>,…`.
///
/// # Errors
/// If a range is malformed. The message names the value and the reason.
pub(crate) fn own(written: &str) -> Result<OwnRanges, UsageError> {
    match written.trim() {
        "auto" => Ok(OwnRanges::default()),
        "off" => Ok(OwnRanges::Off),
        ranges => list(ranges)
            .map(OwnRanges::LeftOut)
            .map_err(|why| UsageError(format!("--own-ranges {written:?} is not auto, off or CIDR,CIDR: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(written: &[&str]) -> Result<Vec<(String, Vec<String>)>, String> {
        let written: Vec<String> = written.iter().map(|one| (*one).to_owned()).collect();
        let all = parse(&written).map_err(|error| error.to_string())?;
        let text = |ranges: Vec<IpNet>| ranges.iter().map(ToString::to_string).collect();
        Ok(all.into_iter().map(|(cluster, ranges)| (cluster.to_string(), text(ranges))).collect())
    }

    #[test]
    fn each_cluster_has_the_ranges_that_are_configured_for_it() {
        assert_eq!(parsed(&[]), Ok(Vec::new()));
        let all = parsed(&["member-1=10.1.0.0/16,fd00:1::/32", "member-2= 10.2.0.0/16", "member-1=10.9.0.0/16"]);
        let of = |cluster: &str, ranges: &[&str]| {
            (cluster.to_owned(), ranges.iter().map(|range| (*range).to_owned()).collect::<Vec<_>>())
        };
        let expected =
            vec![of("member-1", &["10.1.0.0/16", "fd00:1::/32", "10.9.0.0/16"]), of("member-2", &["10.2.0.0/16"])];
        assert_eq!(all, Ok(expected));
    }

    /// Also rule T62.
    #[test]
    fn own_ranges_are_detected_listed_or_off() {
        let range = |written| ranges::parse(written).expect("a range");
        let table = [
            ("auto", OwnRanges::LeftOut(Vec::new())),
            ("off", OwnRanges::Off),
            ("10.244.0.0/16, fd00:1::/48", OwnRanges::LeftOut(vec![range("10.244.0.0/16"), range("fd00:1::/48")])),
        ];
        for (written, expected) in table {
            assert_eq!(own(written).map_err(|error| error.to_string()), Ok(expected), "{written}");
        }
        for written in ["", "on", "10.244.0.1/16", "auto,10.244.0.0/16"] {
            let error = own(written).expect_err(written).to_string();
            assert!(error.starts_with(&format!("--own-ranges {written:?} is not auto, off or CIDR,CIDR: ")), "{error}");
        }
    }

    /// Also rule G1.
    #[test]
    fn what_is_malformed_is_named() {
        let table = [
            ("10.1.0.0/16", "it has no ="),
            ("=10.1.0.0/16", "\"\" is not a cluster id"),
            ("Member_1=10.1.0.0/16", "\"Member_1\" is not a cluster id"),
            ("member-1=", "\"\" does not end in the length of a range"),
            ("member-1=10.1.0.0/16,", "\"\" does not end in the length of a range"),
            ("member-1=10.1.0.0", "\"10.1.0.0\" does not end in the length of a range"),
            ("member-1=10.1.2.3/16", "use 10.1.0.0/16"),
        ];
        for (written, why) in table {
            let error = parsed(&[written]).expect_err(written);
            assert!(error.starts_with("--source-ranges") && error.contains(why), "{written}: {error}");
        }
    }
}
