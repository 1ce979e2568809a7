//! Services whose names are like a name that nothing in the fleet has.

use crate::explain::member_of;
use crate::order::natural;
use crate::snapshot::Snapshot;
use fleetnet_types::ObjectName;
use kube::ResourceExt as _;
use std::collections::BTreeSet;
use strsim::levenshtein;

/// Maximum number of names to suggest.
const SUGGESTED: usize = 3;
/// Maximum number of characters that differ in a name that is like another.
const TYPING_ERRORS: usize = 2;

/// Returns names of exported and imported Services that the user may mean instead of a Service that nothing in the
/// fleet has. Returns none if the Service exists, or if it is not known.
#[must_use]
pub fn similar(snapshot: &Snapshot, service: &ObjectName) -> Vec<String> {
    let known = known(snapshot);
    let wanted = (service.namespace.to_string(), service.name.to_string());
    let has_objects = snapshot.members.iter().any(|member| {
        let services = member.services.objects().map(|it| (it.namespace(), it.name_any()));
        let imports = member.multi_cluster_services.objects().map(|it| (it.namespace(), it.name_any()));
        let exports = member.service_exports.objects().map(|it| (it.namespace(), it.name_any()));
        let mcs = member.mcs_exports.objects().map(|it| (it.namespace(), it.name_any()));
        let mut all = services.chain(imports).chain(exports).chain(mcs);
        all.any(|(namespace, name)| namespace.as_deref() == Some(&*wanted.0) && name == wanted.1)
    });
    if has_objects || known.contains(&wanted) {
        return Vec::new();
    }
    let is_like = |known: &&(String, String)| {
        let (namespace, name) = (levenshtein(&known.0, &wanted.0), levenshtein(&known.1, &wanted.1));
        name == 0 || namespace + name <= TYPING_ERRORS
    };
    let mut found: Vec<&(String, String)> = known.iter().filter(is_like).collect();
    if found.is_empty() {
        found = known.iter().filter(|(namespace, _)| *namespace == wanted.0).collect();
    }
    let mut names: Vec<String> = found.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    names.sort_by(|one, two| natural(one, two));
    names.truncate(SUGGESTED);
    names
}

/// Returns the namespaces and names of all Services that a member exports or imports.
fn known(snapshot: &Snapshot) -> BTreeSet<(String, String)> {
    let hub = &snapshot.hub;
    let exports = hub.internal_exports.objects().map(|export| &export.spec.service_reference);
    let exports = exports.map(|it| (it.namespace.clone(), it.name.clone()));
    let claims = hub.claims.objects().map(|claim| &claim.spec.service_import_reference);
    let claims = claims.map(|it| (it.namespace.clone(), it.name.clone()));
    let imports = hub.service_imports.objects().filter(|import| member_of(import.namespace()).is_none());
    let imports = imports.map(|import| (import.namespace().unwrap_or_default(), import.name_any()));
    exports.chain(claims).chain(imports).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{app, healthy};
    use crate::snapshot::Listing;

    #[test]
    fn a_name_that_nothing_has_is_like_others() {
        let found = |namespace: &str, name: &str| similar(&healthy(), &ObjectName::new(namespace, name));
        for (namespace, name) in
            [("shop", "ap"), ("shop", "apps"), ("shp", "app"), ("other", "app"), ("shop", "nothing")]
        {
            assert_eq!(found(namespace, name), ["shop/app"], "{namespace}/{name}");
        }
        assert!(found("other", "nothing").is_empty());
    }

    #[test]
    fn a_service_that_exists_needs_no_suggestion() {
        assert!(similar(&healthy(), &app()).is_empty());
        let mut snapshot = healthy();
        // The Service of a user that is not exported yet.
        snapshot.members[1].services.objects_mut().unwrap()[0].metadata.name = Some("apps".to_owned());
        assert!(similar(&snapshot, &ObjectName::new("shop", "apps")).is_empty());
        snapshot.hub.internal_exports = Listing::Unknown("late".to_owned());
        snapshot.hub.claims = Listing::Unknown("late".to_owned());
        snapshot.hub.service_imports = Listing::Unknown("late".to_owned());
        assert!(similar(&snapshot, &ObjectName::new("shop", "ap")).is_empty());
    }
}
