//! Names in CustomResourceDefinitions: conflicts between names, and the order of versions.

use super::super::Context;
use super::texts;
use crate::object::{Object, at, meta_text, text_at};
use crate::registry::ResourceId;
use std::cmp::Reverse;

/// Returns reason and message of the condition `NamesAccepted` if another definition of the group already has one of the names.
/// `None` if the names are free.
pub(super) fn conflict(context: &Context<'_>, object: &Object) -> Option<(String, String)> {
    let definitions = ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let own = meta_text(object, "name");
    let others = context.store.list(&definitions, "").filter(|stored| stored.key.name() != own);
    let group = text_at(object, "spec.group");
    let others: Vec<Object> = others.map(|stored| stored.decode()).collect();
    let others = others.iter().filter(|other| text_at(other, "spec.group") == group);
    let (mut resources, mut kinds) = (Vec::new(), Vec::new());
    for other in others {
        let accepted = |name: &str| text_at(other, &format!("status.acceptedNames.{name}")).to_owned();
        resources.extend([accepted("plural"), accepted("singular")]);
        resources.extend(texts(at(other, "status.acceptedNames.shortNames")));
        kinds.extend([accepted("kind"), accepted("listKind")]);
    }
    let name = |name: &str| text_at(object, &format!("spec.names.{name}")).to_owned();
    let short_names = texts(at(object, "spec.names.shortNames"));
    let wanted = [
        ("PluralConflict", vec![name("plural")], &resources),
        ("SingularConflict", vec![name("singular")], &resources),
        ("ShortNamesConflict", short_names, &resources),
        ("KindConflict", vec![name("kind")], &kinds),
        ("ListKindConflict", vec![name("listKind")], &kinds),
    ];
    let mut conflicts = wanted.into_iter().flat_map(|(reason, names, taken)| {
        let names = names.into_iter().filter(|name| !name.is_empty() && taken.contains(name));
        names.map(move |name| (reason.to_owned(), format!("{name:?} is already in use")))
    });
    // kube-apiserver reports only the last conflict.
    conflicts.by_ref().last()
}

/// Sort key of a version, in the order of discovery: `v2`, `v1`, `v1beta1`, `v1alpha1`, then all other names in alphabetical
/// order. Parts of the key: true for another name, the result of [`parsed`], and the other name.
pub(super) fn priority(version: &str) -> (bool, Reverse<(u8, u32, u32)>, String) {
    match parsed(version) {
        Some(known) => (false, Reverse(known), String::new()),
        None => (true, Reverse((0, 0, 0)), version.to_owned()),
    }
}

/// Parses a version into stage (2 for stable, 1 for beta, 0 for alpha), major version and minor version. `None` for a name of
/// another form, such as `foo`.
fn parsed(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(digits);
    let major = major.parse().ok()?;
    if stage.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
        (Some(minor), _) => (1, minor),
        (None, Some(minor)) => (0, minor),
        (None, None) => return None,
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn stable_versions_come_first_and_strange_ones_last() {
        let mut versions = ["foo", "v1alpha1", "v2", "v1beta2", "v10", "v1beta10", "v1", "bar", "v2alpha1"];
        versions.sort_by_key(|version| priority(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "bar", "foo"]);
    }
}
