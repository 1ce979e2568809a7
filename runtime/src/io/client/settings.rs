//! Settings of a connection in text form: addresses, certificate authorities and headers.

use http::{HeaderName, HeaderValue, Uri, header, uri::Authority};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

/// Headers that this crate sets in every request. [`parse_header_block`] rejects them, because a user's value would
/// replace the value of this crate.
pub(super) const OWN_HEADERS: [HeaderName; 9] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
    header::USER_AGENT,
];

pub(crate) fn parse_server_url(text: &str) -> Result<Uri, String> {
    let text = text.trim();
    let url = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let with_user = || "it contains a user or a password, and the agent uses only the token file: remove it".to_owned();
    // The text of an address that is malformed may have a password before any @.
    let malformed = |why: String| if text.contains('@') { with_user() } else { why };
    let url: Uri = url.parse().map_err(|error| malformed(format!("{text:?}: {error}")))?;
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(with_user());
    }
    // http accepts any text as a port, and a client would then use the default port.
    let is_port = |authority: &Authority| authority.as_str() == authority.host() || authority.port().is_some();
    let is_address = |authority: &Authority| !authority.host().is_empty() && is_port(authority);
    match url.scheme_str() {
        Some("https" | "http") if url.authority().is_some_and(is_address) => Ok(url),
        _ => Err(malformed(format!("{text:?} is not of the form https://host:port"))),
    }
}

pub(crate) fn parse_authorities(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let certificates: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("it contains no PEM certificate".to_owned());
    }
    Ok(certificates)
}

/// Parses headers as in MIME: one `Name: value` on each line. Blank lines are ignored.
///
/// # Errors
/// If a line is not a header, or is a header that the agent sets itself. The error message has the number of the line
/// but never the value, which may be a secret.
pub fn parse_header_block(block: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let numbered = block.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty()).map(|(number, line)| parse_header(number, line)).collect()
}

fn parse_header(number: usize, line: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = line.split_once(':').ok_or_else(|| format!("line {number} is not of the form Name: value"))?;
    let name: HeaderName =
        name.trim().parse().map_err(|_| format!("line {number}: {:?} is not a header name", name.trim()))?;
    if OWN_HEADERS.contains(&name) {
        return Err(format!("line {number}: {name} is set by the agent itself"));
    }
    let mut value: HeaderValue =
        value.trim().parse().map_err(|_| format!("line {number}: the value of {name} has characters not allowed"))?;
    value.set_sensitive(true);
    Ok((name, value))
}
