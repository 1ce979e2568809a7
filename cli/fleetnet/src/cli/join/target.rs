//! Check that the context of the member does not lead to the hub. Without `--hub-context`, the current context is the
//! hub, and it is easily that of the member.

use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::members::uid;
use crate::cli::exit::Stop;
use http::Uri;

/// Checks that hub and member are two clusters.
///
/// # Errors
/// If they are one cluster.
pub(super) async fn is_not_the_hub(hub: &Cluster, member: &Cluster) -> Result<(), Stop> {
    // Who may join a member may perhaps not read kube-system. Then the URLs decide.
    let (of_hub, of_member) = tokio::join!(uid(hub), uid(member));
    match shared(of_hub.ok().as_deref(), of_member.ok().as_deref(), hub.url(), member.url()) {
        Some(why) => Err(Stop::usage(format!(
            "context {} of the hub and context {} of the member lead to one cluster ({why}): name the right --hub-context or \
             --context, or use --hub-is-member if the hub is also a member",
            hub.context, member.context
        ))),
        None => Ok(()),
    }
}

/// Returns what two clusters share if they are one. The UIDs decide, because one API server may have several URLs, and
/// a proxy may serve several API servers at one URL. Without both UIDs, the URLs decide.
fn shared(hub_uid: Option<&str>, member_uid: Option<&str>, hub_url: &Uri, member_url: &Uri) -> Option<String> {
    match (hub_uid, member_uid) {
        (Some(hub), Some(member)) => (hub == member).then(|| format!("its UID is {hub}")),
        _ => is_same_server(hub_url, member_url).then(|| format!("its URL is {hub_url}")),
    }
}

fn is_same_server(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    let host = |uri: &Uri| uri.host().unwrap_or_default().to_ascii_lowercase();
    let path = |uri: &Uri| uri.path().trim_end_matches('/').to_owned();
    (host(one), port(one), path(one)) == (host(other), port(other), path(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_one_if_their_uids_are_equal_or_without_uids_their_urls() {
        let (hub, west) = ("https://hub.test", "https://west.test");
        for (uids, urls, expected) in [
            ((Some("a"), Some("a")), (hub, west), true),
            ((Some("a"), Some("b")), (hub, hub), false),
            ((None, Some("a")), (hub, "https://HUB.test:443/"), true),
            ((Some("a"), None), (hub, west), false),
            ((None, None), (hub, "https://hub.test:6443"), false),
            ((None, None), ("https://proxy.test/hub", "https://proxy.test/west"), false),
            ((None, None), ("https://proxy.test/hub", "https://proxy.test/hub/"), true),
        ] {
            let (one, other): (Uri, Uri) = (urls.0.parse().unwrap(), urls.1.parse().unwrap());
            assert_eq!(shared(uids.0, uids.1, &one, &other).is_some(), expected, "{uids:?} {urls:?}");
        }
    }
}
