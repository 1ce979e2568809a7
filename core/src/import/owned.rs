//! The ServiceImports that a MultiClusterService owns.

use crate::ids::ObjectName;
use crate::member::View;
use crate::model::{MultiClusterService, ServiceImport};

/// Those that it controls.
pub(super) fn controlled_imports<'a>(
    view: &'a View,
    wish: &'a MultiClusterService,
) -> impl Iterator<Item = &'a ServiceImport> + 'a {
    view.imports_of.get(&wish.meta.uid).filter_map(|name| view.imports.live(name))
}

/// The ServiceImport that it remembers and that nobody controls any more: where its deletion is to orphan what it owns, the
/// garbage collector takes its name out before or after this agent sees it go. Another one that wants it takes it over.
pub(super) fn orphaned_import<'a>(view: &'a View, wish: &MultiClusterService) -> Option<&'a ServiceImport> {
    let name = ObjectName::new(wish.meta.name.namespace.clone(), wish.import_label.clone()?);
    let is_wanted = view.wanting.get(&name).any(|other| view.multi_cluster_services.live(other).is_some());
    view.imports.live(&name).filter(|import| import.controller().is_none() && !is_wanted)
}
