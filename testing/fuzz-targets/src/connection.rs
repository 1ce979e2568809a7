//! Targets for what connects an agent to a cluster: tokens, kubeconfigs, addresses, certificates and headers.

use crate::message::check_message;
use crate::server::block_on;
use fleetnet_runtime::fuzzing;
use fleetnet_runtime::io::client::{kubeconfig_problem, parse_header_block};
use fleetnet_runtime::io::token::claims::Claims;
use http::Uri;
use kube::config::Kubeconfig;

/// Parses the content of a token file, and the claims of the token.
///
/// A token becomes the value of a header with one line. White space around a token does not change its claims, and the
/// life of a token is the time from issue to expiry.
pub fn token(bytes: &[u8]) {
    match fuzzing::token_file(bytes) {
        Ok(header) => {
            assert_eq!(header, [b"Bearer ", bytes.trim_ascii()].concat(), "the header has another token");
            assert!(!header.contains(&b'\n') && !header.contains(&b'\r'), "the header has two lines");
        }
        Err(why) => check_message(why),
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let claims = Claims::of(text);
    assert_eq!(Claims::of(&format!(" {text}\n")), claims, "white space changes the claims");
    let Some(claims) = claims else { return };
    if let Some(life) = claims.life() {
        let end = claims.issued_at.and_then(|issued| issued.checked_add_unsigned(life.as_secs()));
        assert_eq!(end, claims.expires_at, "{claims:?} has another life: {life:?}");
    }
    if let Some((namespace, name)) = claims.service_account() {
        let user = format!("system:serviceaccount:{namespace}:{name}");
        assert_eq!(Some(user), claims.subject, "the service account is another user");
    }
}

/// Start of a line with a token in a kubeconfig.
const SECRET: &str = "token: ";

/// Reads a kubeconfig. An accepted connection has TLS. The error of a malformed kubeconfig shows no line with a token,
/// because it goes to the log.
pub fn kubeconfig(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut kubeconfig = match Kubeconfig::from_yaml(text) {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => {
            let why = kubeconfig_problem(&error);
            let is_shown = |line: &str| line.len() > SECRET.len() && line.contains(SECRET) && why.contains(line);
            assert!(!text.lines().map(str::trim).any(is_shown), "the error shows a line of the file: {why}");
            return;
        }
    };
    leave_out_files_and_programs(&mut kubeconfig);
    match block_on(fuzzing::kubeconfig(kubeconfig)) {
        Ok(config) => assert_ne!(config.cluster_url.scheme_str(), Some("http"), "a connection without TLS"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Removes what would read a file of this machine or start a program.
fn leave_out_files_and_programs(kubeconfig: &mut Kubeconfig) {
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.certificate_authority = None;
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        (user.token_file, user.client_certificate, user.client_key) = (None, None, None);
        (user.exec, user.auth_provider) = (None, None);
    }
}

/// Parses the settings of a connection to the hub. The first line of the input is the address, the other lines are the
/// extra headers and the certificate authorities.
///
/// The printed form of an address is the same address. The error about an address shows no password, and the error
/// about headers does not depend on their values.
pub fn hub_connection(bytes: &[u8]) {
    if let Err(why) = fuzzing::authorities(bytes) {
        assert!(!why.is_empty());
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (address, headers) = text.split_once('\n').unwrap_or((text, ""));
    match fuzzing::server_url(address) {
        Ok(url) => {
            assert!(matches!(url.scheme_str(), Some("http" | "https")), "{url} has another scheme");
            let authority = url.authority().expect("an address has a host");
            assert!(!authority.as_str().contains('@'), "{url} has a user");
            let has_port = authority.as_str() != authority.host();
            assert!(!has_port || authority.port_u16().is_some(), "the port of {url} is ignored");
            same_url(&url);
        }
        // A user and a password end in an @.
        Err(why) => assert!(!why.is_empty() && !why.contains('@'), "an error shows a password: {why}"),
    }
    match parse_header_block(headers) {
        Ok(parsed) => assert!(parsed.iter().all(|(_, value)| value.is_sensitive()), "a header may be logged"),
        Err(why) => {
            let other = parse_header_block(&with_other_values(headers)).expect_err("the same headers are malformed");
            assert_eq!(why, other, "the value of a header is in a message");
        }
    }
}

/// Returns the headers with a `z` in place of each letter and digit of a value.
fn with_other_values(headers: &str) -> String {
    let other = |line: &str| match line.split_once(':') {
        Some((name, value)) => format!("{name}:{}", value.replace(|letter: char| letter.is_ascii_alphanumeric(), "z")),
        None => line.to_owned(),
    };
    headers.lines().map(other).collect::<Vec<_>>().join("\n")
}

fn same_url(url: &Uri) {
    assert_eq!(fuzzing::server_url(&url.to_string()).as_ref(), Ok(url), "{url} is another address");
}
