//! Objects of one pair of exporter and importer, as the steps need them.

use super::evidence::{condition, created};
use super::installed::{elsewhere, is_elsewhere};
use super::lookup::{
    decodable, exporters, imports, in_namespace, is_imported, is_of_another_cluster, is_service, named, need,
};
use super::mcs::objects::{is_ours, lists};
use super::service_export::{Export, is_by, outcome};
use super::step_result::{Site, Stop};
use crate::report::Api;
use crate::snapshot::{Member, Reached, Snapshot};
use fleetnet_api::crd::{
    EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport, MultiClusterService,
    ServiceImport, ServiceImportType,
};
use fleetnet_api::names::labels;
use fleetnet_core::names::{mcs_derived, member_namespace};
use fleetnet_types::ObjectName;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Resource, ResourceExt as _};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Exporter and importer of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) api: Api,
    pub(crate) exporter: Option<Cow<'a, Member>>,
    pub(crate) importer: Option<Cow<'a, Member>>,
    /// True if the exporter must export: the caller named it, or nobody exports.
    pub(crate) exporter_is_wanted: bool,
    /// True if the importer must import: the caller named it.
    pub(crate) importer_is_wanted: bool,
}

/// One pair of a Service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) service: &'a ObjectName,
    pub(crate) api: Api,
    pub(crate) exporter: Option<&'a Member>,
    pub(crate) importer: Option<&'a Member>,
    pub(crate) ends: &'a Ends<'a>,
    /// True if the exporter exports no more, and only leftovers in the importer show it.
    pub(crate) is_leftover: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, service: &'a ObjectName, ends: &'a Ends<'a>) -> Self {
        let (exporter, importer) = (ends.exporter.as_deref(), ends.importer.as_deref());
        let walk = Self { snapshot, service, api: ends.api, exporter, importer, ends, is_leftover: false };
        Self { is_leftover: walk.has_only_leftovers(), ..walk }
    }

    /// Returns the members of the pair whose state matters.
    pub(crate) fn members(&self) -> impl Iterator<Item = &'a Member> + use<'a> {
        let exporter = self.exporter.filter(|_| !self.is_leftover);
        let importer = self.importer.filter(|importer| exporter.is_none_or(|exporter| exporter.id != importer.id));
        exporter.into_iter().chain(importer)
    }

    /// Returns the exporter. Steps about the exporter are skipped without one.
    pub(crate) fn exporter(&self) -> Result<&'a Member, Stop> {
        let exporter = self.exporter.ok_or_else(|| Stop::Skipped("nobody exports the Service".to_owned()))?;
        if self.is_leftover {
            return Err(Stop::Skipped(format!("{} exports no more", exporter.id)));
        }
        Ok(exporter)
    }

    /// Returns the importer. Steps about the importer are skipped without one.
    pub(crate) fn importer(&self) -> Result<&'a Member, Stop> {
        self.importer.ok_or_else(|| Stop::Skipped("nobody imports the Service".to_owned()))
    }

    pub(crate) fn hub(&self) -> Site<'a> {
        Site::Hub(&self.snapshot.hub)
    }

    /// Returns the exporter's ServiceExport.
    pub(crate) fn service_export(&self) -> Result<Export<'a>, Stop> {
        let exporter = self.exporter()?;
        self.export_in(exporter)?.ok_or_else(|| Stop::Skipped("there is no ServiceExport".to_owned()))
    }

    /// Returns the ServiceExport of a member.
    pub(crate) fn export_in(&self, member: &'a Member) -> Result<Option<Export<'a>>, Stop> {
        let site = Site::Member(member);
        Ok(match self.api {
            Api::Fleet => self.same_name(need(&member.service_exports, "ServiceExports", site)?).map(Export::Fleet),
            Api::Mcs => {
                let exports = need(&member.mcs_exports, "ServiceExports of multicluster.x-k8s.io", site)?;
                self.same_name(exports).map(Export::Mcs)
            }
        })
    }

    /// Returns the exporter's InternalServiceExport in the hub.
    pub(crate) fn internal_export(&self) -> Result<Option<&'a InternalServiceExport>, Stop> {
        let exporter = self.exporter()?;
        let listing = &self.snapshot.hub.internal_exports;
        let exports = need(listing, "InternalServiceExports", self.hub())?;
        let namespace = member_namespace(&exporter.id);
        let found = exports.iter().find(|export| {
            let reference = &export.spec.service_reference;
            in_namespace(*export, &namespace)
                && self.is_service(&reference.namespace, &reference.name)
                && is_by(export, self.api)
        });
        decodable(found, listing, &namespace)
    }

    /// Returns the InternalServiceExport if the hub agent accepted it. By the standard API, it accepts exports with
    /// conflicts too.
    pub(crate) fn accepted_export(&self) -> Result<&'a InternalServiceExport, Stop> {
        let not_accepted = || Stop::Skipped("the export is not accepted".to_owned());
        let export = self.internal_export()?.ok_or_else(not_accepted)?;
        let is_accepted = |conflict: &&Condition| match self.api {
            Api::Fleet => conflict.status == "False",
            Api::Mcs => conflict.status != "Unknown",
        };
        outcome(export, self.api).filter(is_accepted).map(|_| export).ok_or_else(not_accepted)
    }

    /// Returns the EndpointSlices of the Service in the exporter.
    pub(crate) fn source_slices(&self) -> Result<Vec<&'a EndpointSlice>, Stop> {
        Ok(self.labelled_slices()?.into_iter().filter(|slice| !is_of_another_cluster(slice)).collect())
    }

    /// Returns the EndpointSlices of the Service in the exporter that came from other clusters. They are not exported
    /// again.
    pub(crate) fn slices_of_other_clusters(&self) -> Result<Vec<&'a EndpointSlice>, Stop> {
        Ok(self.labelled_slices()?.into_iter().filter(|slice| is_of_another_cluster(slice)).collect())
    }

    fn labelled_slices(&self) -> Result<Vec<&'a EndpointSlice>, Stop> {
        let exporter = self.exporter()?;
        let slices = need(&exporter.slices, "EndpointSlices", Site::Member(exporter))?;
        let live = slices.iter().filter(|slice| slice.metadata.deletion_timestamp.is_none());
        Ok(live.filter(|slice| self.is_slice_of_service(slice)).collect())
    }

    /// True if an EndpointSlice belongs to the Service, in any member.
    pub(crate) fn is_slice_of_service(&self, slice: &EndpointSlice) -> bool {
        in_namespace(slice, &self.service.namespace)
            && slice.labels().get(labels::SERVICE_NAME).is_some_and(|name| **name == *self.service.name)
    }

    /// Returns the exporter's EndpointSliceExports of the Service.
    pub(crate) fn slice_exports(&self) -> Result<Vec<&'a EndpointSliceExport>, Stop> {
        let namespace = member_namespace(&self.exporter()?.id);
        Ok(self.slice_exports_of_all()?.filter(|export| in_namespace(*export, &namespace)).collect())
    }

    /// Returns the EndpointSliceExports of the Service from all exporters.
    pub(crate) fn slice_exports_of_all(&self) -> Result<impl Iterator<Item = &'a EndpointSliceExport>, Stop> {
        let exports = need(&self.snapshot.hub.slice_exports, "EndpointSliceExports", self.hub())?;
        Ok(exports.iter().filter(|export| {
            let owner = &export.spec.owner_service_reference;
            self.is_service(&owner.namespace, &owner.name) && export.metadata.deletion_timestamp.is_none()
        }))
    }

    /// Returns the importer's MultiClusterServices of the Service: first the one that has the import.
    pub(crate) fn multi_cluster_services(&self) -> Result<Vec<&'a MultiClusterService>, Stop> {
        let importer = self.importer()?;
        let all = need(&importer.multi_cluster_services, "MultiClusterServices", Site::Member(importer))?;
        let mut found: Vec<&MultiClusterService> =
            all.iter().filter(|request| imports(request, self.service)).collect();
        found.sort_by_key(|request| {
            let valid = self.valid(request).map(|valid| valid.status == "True");
            (valid != Some(true), created(*request), request.name_any())
        });
        Ok(found)
    }

    /// Returns the importer's MultiClusterService that has the import.
    pub(crate) fn multi_cluster_service(&self) -> Result<&'a MultiClusterService, Stop> {
        let first = self.multi_cluster_services()?.into_iter().next();
        first.ok_or_else(|| Stop::Skipped("there is no MultiClusterService".to_owned()))
    }

    /// Returns the condition `Valid` of a MultiClusterService.
    pub(crate) fn valid<'b>(&self, request: &'b MultiClusterService) -> Option<&'b Condition> {
        condition(request.status.as_ref().and_then(|status| status.conditions.as_ref()), "Valid")
    }

    /// Returns the importer's claim in the hub.
    pub(crate) fn claim(&self) -> Result<Option<&'a InternalServiceImport>, Stop> {
        let importer = self.importer()?;
        let listing = &self.snapshot.hub.claims;
        let claims = need(listing, "InternalServiceImports", self.hub())?;
        let namespace = member_namespace(&importer.id);
        let found = claims.iter().find(|claim| {
            let reference = &claim.spec.service_import_reference;
            in_namespace(*claim, &namespace) && self.is_service(&reference.namespace, &reference.name)
        });
        decodable(found, listing, &namespace)
    }

    /// Returns the ServiceImport of the Service in the hub.
    pub(crate) fn hub_import(&self) -> Result<Option<&'a ServiceImport>, Stop> {
        let listing = &self.snapshot.hub.service_imports;
        let imports = need(listing, "ServiceImports", self.hub())?;
        decodable(self.same_name(imports), listing, &self.service.namespace)
    }

    /// True if the hub lists this cluster as an exporter of what the importer gets.
    pub(crate) fn hub_lists(&self, cluster: &str) -> Result<bool, Stop> {
        Ok(match self.api {
            Api::Fleet => {
                self.hub_import()?.is_some_and(|import| exporters(import).any(|exporter| exporter == cluster))
            }
            Api::Mcs => self.merged_import()?.is_some_and(|merged| lists(merged, cluster)),
        })
    }

    /// Returns the EndpointSliceImports of the Service from the exporter to the importer.
    pub(crate) fn distributed_slices(&self) -> Result<Vec<&'a EndpointSliceImport>, Stop> {
        let importer = self.importer()?;
        let Some(exporter) = self.exporter else { return Ok(Vec::new()) };
        let all = need(&self.snapshot.hub.distributed_slices, "EndpointSliceImports", self.hub())?;
        let namespace = member_namespace(&importer.id);
        let of_pair = all.iter().filter(|distributed| {
            let slice = &distributed.spec.slice;
            let owner = &slice.owner_service_reference;
            in_namespace(*distributed, &namespace)
                && self.is_service(&owner.namespace, &owner.name)
                && slice.endpoint_slice_reference.cluster_id == exporter.id
                && distributed.metadata.deletion_timestamp.is_none()
        });
        Ok(of_pair.collect())
    }

    /// Returns the namespace of the importer with the derived Service and the imported slices.
    /// By the fleet's API, it is unknown if the agent is in another namespace.
    pub(crate) fn import_namespace(&self) -> Result<&'a str, Stop> {
        let importer = self.importer()?;
        match self.api {
            Api::Fleet if is_elsewhere(self.snapshot, importer) => Err(Stop::Unknown(elsewhere(importer))),
            Api::Fleet => Ok(&importer.agent.namespace),
            Api::Mcs => Ok(&self.service.namespace),
        }
    }

    /// Returns the name of the derived Service: from the label of the MultiClusterService, or by the rule of the
    /// standard API. A headless Service of the standard API has none.
    pub(crate) fn derived_name(&self) -> Result<Option<String>, Stop> {
        match self.api {
            Api::Fleet => Ok(self.multi_cluster_service()?.labels().get(labels::DERIVED_SERVICE).cloned()),
            Api::Mcs => {
                let is_headless =
                    self.merged_import()?.is_some_and(|merged| merged.spec.type_ == ServiceImportType::Headless);
                Ok((!is_headless).then(|| mcs_derived(self.service).name.to_string()))
            }
        }
    }

    /// Returns the derived Service of the importer. FN614 reports a Service of another writer with its name.
    pub(crate) fn derived_service(&self) -> Result<&'a Service, Stop> {
        let missing = || Stop::Skipped("there is no derived Service".to_owned());
        let name = self.derived_name()?.ok_or_else(missing)?;
        let is_derived = |service: &&Service| self.api == Api::Fleet || is_ours(*service);
        self.service_of_importer(&name)?.filter(is_derived).ok_or_else(missing)
    }

    /// Returns the Service with this name in the namespace of derived Services.
    pub(crate) fn service_of_importer(&self, name: &str) -> Result<Option<&'a Service>, Stop> {
        let importer = self.importer()?;
        let services = need(&importer.services, "Services", Site::Member(importer))?;
        Ok(named(services, self.import_namespace()?, name))
    }

    /// Returns the EndpointSlice with this name in the namespace of imported slices.
    pub(crate) fn imported_slice(&self, name: &str) -> Result<Option<&'a EndpointSlice>, Stop> {
        let importer = self.importer()?;
        let slices = need(&importer.slices, "EndpointSlices", Site::Member(importer))?;
        Ok(named(slices, self.import_namespace()?, name))
    }

    /// Returns the imported slices that came from the exporter, also those whose label `managed-by` somebody changed:
    /// kube-proxy uses them too.
    pub(crate) fn imported_slices(&self) -> Result<Vec<&'a EndpointSlice>, Stop> {
        let (importer, Some(exporter)) = (self.importer()?, self.exporter) else { return Ok(Vec::new()) };
        let slices = need(&importer.slices, "EndpointSlices", Site::Member(importer))?;
        let distributed: BTreeSet<String> = self.distributed_slices()?.iter().map(|slice| slice.name_any()).collect();
        let prefix = format!("{}-{}-", exporter.id, self.service.namespace);
        // The name of a slice begins with the id of its exporter. The id of another member can begin with this prefix.
        let longer = |member: &&Member| member.id.len() > exporter.id.len();
        let others = self.snapshot.members.iter().filter(longer);
        let others: Vec<String> = others.map(|it| format!("{}-{}-", it.id, self.service.namespace)).collect();
        let has_prefix =
            |name: &str| name.starts_with(&prefix) && !others.iter().any(|other| name.starts_with(other.as_str()));
        let is_of_exporter = |slice: &EndpointSlice| match self.api {
            Api::Fleet => distributed.contains(&slice.name_any()) || has_prefix(&slice.name_any()),
            // Other implementations set this label too.
            Api::Mcs => {
                slice.labels().get(labels::SOURCE_CLUSTER) == Some(&exporter.id)
                    && (is_imported(slice) || distributed.contains(&slice.name_any()))
            }
        };
        let namespace = self.import_namespace()?;
        let mut found: Vec<&EndpointSlice> =
            slices.iter().filter(|slice| in_namespace(*slice, namespace) && is_of_exporter(slice)).collect();
        found.retain(|slice| self.is_bound(slice));
        Ok(found)
    }

    /// True if an imported slice has the labels of the Service.
    pub(crate) fn is_bound(&self, slice: &EndpointSlice) -> bool {
        match self.api {
            Api::Fleet => {
                let bound_to = slice.labels().get(labels::SERVICE_NAME);
                bound_to.is_some() && self.derived_name().is_ok_and(|derived| derived.as_ref() == bound_to)
            }
            Api::Mcs => slice.labels().get(labels::MCS_SERVICE_NAME).is_some_and(|it| **it == *self.service.name),
        }
    }

    fn has_only_leftovers(&self) -> bool {
        let Some(exporter) = self.exporter else { return false };
        let has_export = match self.service_export() {
            Ok(_) => true,
            Err(Stop::Skipped(_)) => false,
            Err(_) => exporter.connection.reached == Reached::Yes,
        };
        !has_export
            && matches!(self.internal_export(), Ok(None))
            && self.hub_lists(&exporter.id) == Ok(false)
            && self.imported_slices().is_ok_and(|slices| !slices.is_empty())
    }

    pub(crate) fn same_name<K: Resource>(&self, objects: &'a [K]) -> Option<&'a K> {
        named(objects, &self.service.namespace, &self.service.name)
    }

    pub(crate) fn is_service(&self, namespace: &str, name: &str) -> bool {
        is_service(self.service, namespace, name)
    }
}

/// Returns the namespace of the Service in the hub.
pub(super) fn namespace<'a>(walk: &Walk<'a>) -> Result<Option<&'a Namespace>, Stop> {
    let namespaces = need(&walk.snapshot.hub.namespaces, "Namespaces", walk.hub())?;
    Ok(namespaces.iter().find(|namespace| *namespace.name_any() == *walk.service.namespace))
}

pub(super) fn service<'a>(walk: &Walk<'a>) -> Result<&'a Service, Stop> {
    let exporter = walk.exporter()?;
    walk.service_export()?;
    let services = need(&exporter.services, "Services", Site::Member(exporter))?;
    let missing = || Stop::Skipped("there is no Service".to_owned());
    named(services, &walk.service.namespace, &walk.service.name).ok_or_else(missing)
}
