//! Guard of the page: which requests are answered, and the headers of every answer.
//!
//! Other users of this machine, and pages of other sites in the user's browser, can reach the address of the page:
//!
//! - Only users who know the random token reach anything.
//! - The header `Host` must be an address of the page. So a name that another site points to this machine (DNS
//!   rebinding) reaches nothing.
//! - The browser loads nothing from other addresses, and no other site can read or frame the page.

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Header of a browser with the relation between the page and the site that makes the request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Header of a browser with the use of what is requested.
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Port of an address without a port.
const HTTP_PORT: u16 = 80;

/// Headers of every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Reason why a request gets no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The header `Host` is missing, or names another address.
    Host,
    /// Another site makes the request.
    CrossSite,
    /// The path does not begin with the token.
    Token,
    /// The request does not only read.
    Method,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::CrossSite => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
        }
    }
}

/// Guard of one page.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    token: String,
    address: SocketAddr,
}

impl Guard {
    /// Returns the guard of a page at this address. The token is made of these random bytes.
    pub(super) fn new(address: SocketAddr, random: [u8; 16]) -> Self {
        Self { token: format!("{:032x}", u128::from_be_bytes(random)), address }
    }

    /// Returns the URL of the page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Returns the path of a request below the token.
    ///
    /// # Errors
    /// If the request may get no content.
    pub(super) fn check<'r, B>(&self, request: &'r Request<B>) -> Result<&'r str, Refusal> {
        if !self.is_for_this_page(request) {
            return Err(Refusal::Host);
        }
        if is_of_another_site(request.headers()) {
            return Err(Refusal::CrossSite);
        }
        let path = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/'));
        let (token, path) = path.ok_or(Refusal::Token)?;
        if !is_equal(token.as_bytes(), self.token.as_bytes()) {
            return Err(Refusal::Token);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Refusal::Method);
        }
        Ok(path)
    }

    /// True if a request has one header `Host` with an address of this page, and names no other address.
    fn is_for_this_page<B>(&self, request: &Request<B>) -> bool {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        host.to_str().is_ok_and(|host| self.is_address(host)) && authority.is_none_or(|it| self.is_address(it))
    }

    /// True if this is an address of the page. A page on all addresses of the machine accepts each address, but no
    /// name: only a name can lead to another machine later.
    fn is_address(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(HTTP_PORT)),
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let known = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into(), self.address.ip()];
        let is_known = match name.parse::<IpAddr>() {
            Ok(address) => known.contains(&address) || self.address.ip().is_unspecified(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        };
        is_known && port == Some(self.address.port())
    }
}

/// True if another site makes the request. A link on its page is no such request: the user opens this page then.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let has = |name, values: &[&str]| {
        let mut present = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        present.all(|value| values.iter().any(|one| value.eq_ignore_ascii_case(one.as_bytes())))
    };
    let opens_page = headers.contains_key(SEC_FETCH_DEST) && has(SEC_FETCH_DEST, &["document"]);
    !has(SEC_FETCH_SITE, &["same-origin", "none"]) && !opens_page
}

/// True if two texts are equal. The time depends on their lengths only, so that nobody can find the token byte by byte.
fn is_equal(one: &[u8], two: &[u8]) -> bool {
    let difference = one.iter().zip(two).fold(0, |difference, (one, two)| difference | (one ^ two));
    one.len() == two.len() && std::hint::black_box(difference) == 0
}

/// Adds the headers of every answer.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "000102030405060708090a0b0c0d0e0f";

    fn guard(address: &str) -> Guard {
        Guard::new(address.parse().unwrap(), std::array::from_fn(|index| u8::try_from(index).unwrap()))
    }

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let request = Request::builder().method(method).uri(path);
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap()
    }

    #[test]
    fn the_url_has_the_whole_token() {
        assert_eq!(guard("127.0.0.1:8001").url(), format!("http://127.0.0.1:8001/{TOKEN}/"));
        assert_eq!(guard("[::1]:8001").url(), format!("http://[::1]:8001/{TOKEN}/"));
    }

    #[test]
    fn only_addresses_of_the_page_are_a_host() {
        let table = [
            ("127.0.0.1:8001", "127.0.0.1:8001", true),
            ("127.0.0.1:8001", "localhost:8001", true),
            ("127.0.0.1:8001", "LocalHost:8001", true),
            ("127.0.0.1:8001", "[::1]:8001", true),
            ("127.0.0.1:80", "127.0.0.1", true),
            ("[::1]:80", "[::1]", true),
            ("10.0.0.7:8001", "10.0.0.7:8001", true),
            ("0.0.0.0:8001", "10.0.0.7:8001", true),
            ("0.0.0.0:8001", "evil.example:8001", false),
            ("127.0.0.1:8001", "10.0.0.7:8001", false),
            ("127.0.0.1:8001", "127.0.0.1", false),
            ("127.0.0.1:8001", "127.0.0.1:8002", false),
            ("127.0.0.1:8001", "evil.example:8001", false),
            ("127.0.0.1:8001", "localhost.evil.example:8001", false),
            ("127.0.0.1:8001", "127.0.0.1:8001.evil.example", false),
            ("127.0.0.1:8001", "user@127.0.0.1:8001", false),
            ("127.0.0.1:8001", "", false),
        ];
        for (address, host, is_answered) in table {
            let request = request("GET", &format!("/{TOKEN}/"), &[("host", host)]);
            let expected = if is_answered { Ok("") } else { Err(Refusal::Host) };
            assert_eq!(guard(address).check(&request), expected, "{host} at {address}");
        }
    }

    #[test]
    fn a_request_has_one_host_and_names_no_other() {
        let guard = guard("127.0.0.1:8001");
        let path = format!("/{TOKEN}/");
        let host = ("host", "127.0.0.1:8001");
        assert_eq!(guard.check(&request("GET", &path, &[])), Err(Refusal::Host));
        assert_eq!(guard.check(&request("GET", &path, &[host, host])), Err(Refusal::Host));
        let of_another = format!("http://evil.example:8001{path}");
        assert_eq!(guard.check(&request("GET", &of_another, &[host])), Err(Refusal::Host));
        assert_eq!(guard.check(&request("GET", &format!("http://127.0.0.1:8001{path}"), &[host])), Ok(""));
    }

    #[test]
    fn another_site_may_have_a_link_to_the_page_and_nothing_more() {
        for (used_as, is_answered) in [("document", true), ("iframe", false), ("empty", false), ("script", false)] {
            let headers = [("host", "localhost:8001"), ("sec-fetch-site", "cross-site"), ("sec-fetch-dest", used_as)];
            let request = request("GET", &format!("/{TOKEN}/"), &headers);
            let expected = if is_answered { Ok("") } else { Err(Refusal::CrossSite) };
            assert_eq!(guard("127.0.0.1:8001").check(&request), expected, "{used_as}");
        }
    }

    #[test]
    fn only_a_reader_with_the_token_on_the_page_itself_gets_content() {
        let longer = format!("/{TOKEN}0/");
        let other = format!("/1{}/", &TOKEN[1..]);
        let [page, events] = ["", "events"].map(|path| format!("/{TOKEN}/{path}"));
        let without_slash = format!("/{TOKEN}");
        let table = [
            ("GET", page.as_str(), None, Ok("")),
            ("HEAD", &events, None, Ok("events")),
            ("GET", &events, Some("same-origin"), Ok("events")),
            ("GET", &page, Some("none"), Ok("")),
            ("GET", &page, Some("cross-site"), Err(Refusal::CrossSite)),
            ("GET", &page, Some("Cross-Site"), Err(Refusal::CrossSite)),
            ("GET", &page, Some("same-site"), Err(Refusal::CrossSite)),
            ("GET", "/", None, Err(Refusal::Token)),
            ("GET", "//", None, Err(Refusal::Token)),
            ("GET", "/events", None, Err(Refusal::Token)),
            ("GET", &longer, None, Err(Refusal::Token)),
            ("GET", &other, None, Err(Refusal::Token)),
            ("GET", &without_slash, None, Err(Refusal::Token)),
            ("POST", &events, None, Err(Refusal::Method)),
            ("OPTIONS", &page, None, Err(Refusal::Method)),
        ];
        for (method, path, site, expected) in table {
            let mut headers = vec![("host", "localhost:8001")];
            headers.extend(site.map(|site| ("sec-fetch-site", site)));
            let request = request(method, path, &headers);
            assert_eq!(guard("127.0.0.1:8001").check(&request), expected, "{method} {path} {site:?}");
        }
    }

    #[test]
    fn no_header_gives_other_sites_access() {
        let mut headers = HeaderMap::new();
        protect(&mut headers);
        assert!(!headers.keys().any(|name| name.as_str().starts_with("access-control-")), "{headers:?}");
        assert!(!headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("unsafe"), "{headers:?}");
    }
}
