//! Links to the sections of codes.

use diagnosis::codes::Code;

/// Page of the fault codes, in [`super::FOLDER`].
pub(super) const CODES: &str = "codes.md";

/// Returns links to the sections of codes. `folder` is the path from the page to the runbook's folder.
pub(super) fn links(folder: &str, codes: impl IntoIterator<Item = Code>) -> String {
    let links = codes.into_iter().map(|code| format!("[{code}]({folder}{CODES}#{})", code.id().to_lowercase()));
    let links: Vec<String> = links.collect();
    if links.is_empty() { "–".to_owned() } else { links.join(", ") }
}
