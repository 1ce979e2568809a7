//! ServiceImports that belong to a MultiClusterService.

use crate::member::view::Reader;
use crate::model::{MultiClusterService, ServiceImport};
use fleetnet_types::ObjectName;

/// Returns the ServiceImports whose controller is this MultiClusterService.
pub(super) fn controlled_imports<'a>(
    view: Reader<'a>,
    request: &'a MultiClusterService,
) -> impl Iterator<Item = &'a ServiceImport> + 'a {
    view.imports_of(&request.meta.uid).filter_map(move |name| view.imports().live(name))
}

/// Returns the ServiceImport of a MultiClusterService that is being deleted, if the ServiceImport no longer has a
/// controller. With the deletion policy `Orphan`, the garbage collector may remove the owner reference before this
/// agent sees the deletion. `None` if another MultiClusterService requests the ServiceImport, because that
/// MultiClusterService becomes the controller.
pub(super) fn orphaned_import<'a>(view: Reader<'a>, request: &MultiClusterService) -> Option<&'a ServiceImport> {
    let name = ObjectName::new(request.meta.name.namespace.clone(), request.import_label.clone()?);
    let is_wanted = view.requests_of_import(&name).any(|other| view.multi_cluster_services().live(other).is_some());
    view.imports().live(&name).filter(|import| import.controller().is_none() && !is_wanted)
}
