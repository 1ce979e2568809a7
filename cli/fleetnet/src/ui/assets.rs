//! Files of the page. They are part of the program, so the page loads nothing from elsewhere.

/// File of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asset {
    pub(super) content_type: &'static str,
    pub(super) bytes: &'static [u8],
}

/// Returns the file at a path below the token.
pub(super) fn asset(path: &str) -> Option<Asset> {
    let (content_type, bytes): (_, &[u8]) = match path {
        "" => ("text/html; charset=utf-8", include_bytes!("../../../ui/dist/index.html")),
        "app.js" => ("text/javascript; charset=utf-8", include_bytes!("../../../ui/dist/app.js")),
        "app.css" => ("text/css; charset=utf-8", include_bytes!("../../../ui/dist/app.css")),
        "favicon.svg" => ("image/svg+xml", include_bytes!("../../../ui/dist/favicon.svg")),
        _ => return None,
    };
    Some(Asset { content_type, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_that_the_page_names_is_there() {
        let page = std::str::from_utf8(asset("").unwrap().bytes).unwrap();
        let names = page.split('"').filter(|part| part.starts_with("app.") || part.starts_with("favicon."));
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["favicon.svg", "app.css", "app.js"]);
        assert!(names.iter().all(|name| asset(name).is_some_and(|asset| !asset.bytes.is_empty())), "{page}");
        assert_eq!(asset("index.html"), None);
        assert_eq!(asset("../Cargo.toml"), None);
    }
}
