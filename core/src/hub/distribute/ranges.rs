//! Source ranges: the operator of the hub declares on a member namespace which addresses the endpoints of this member
//! may have. Importers get no other address of the member, also importers that run Go agents.

use crate::admission;
use crate::hub::rights;
use crate::hub::view::reader::Reader;
use crate::limits::REPORTED_NAMES_MAX;
use crate::message;
use crate::model::{Address, Endpoint, HubSlice, HubSliceSpec, Kind, SliceContent};
use crate::names;
use crate::plan::{self, BlockingReason, Plan};
use crate::ranges::{IpNet, SourceRanges};
use crate::reasons::Reason;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

const COMPONENT: &str = "endpointsliceexport-controller";

/// Exported slice with the addresses that importers may get.
pub(super) struct Within<'a> {
    pub(super) spec: Cow<'a, HubSliceSpec>,
    left_out: BTreeSet<&'a Address>,
    allowed: Allowed<'a>,
}

/// Addresses that an importer may get.
#[derive(Clone, Copy)]
enum Allowed<'a> {
    All,
    Ranges(&'a [IpNet]),
    /// The addresses that the importer has now, because the ranges are malformed or not known yet.
    Present(Option<&'a HubSliceSpec>),
}

/// Returns an exported slice with the addresses that an importer may get. `distributed` is its distributed slice, if it
/// exists.
pub(super) fn within<'a>(view: Reader<'a>, export: &'a HubSlice, distributed: Option<&'a HubSlice>) -> Within<'a> {
    let present = distributed.map(|distributed| &distributed.spec);
    let allowed = match rights::source_ranges(view, &export.meta.name.member_namespace()) {
        // The list of namespaces begins or is denied. What was left out of this state of the source slice stays left
        // out.
        None => match present {
            Some(present)
                if present.reference.uid == export.spec.reference.uid
                    && present.reference.generation == export.spec.reference.generation =>
            {
                Allowed::Present(Some(present))
            }
            _ => Allowed::All,
        },
        Some(SourceRanges::Any) => Allowed::All,
        Some(SourceRanges::Within(ranges)) => Allowed::Ranges(ranges),
        Some(SourceRanges::Malformed(_)) => Allowed::Present(present),
    };
    let content = &export.spec.content;
    let left_out: BTreeSet<&Address> = match allowed {
        Allowed::All => BTreeSet::new(),
        Allowed::Ranges(ranges) => {
            addresses(content).filter(|address| !admission::is_within(ranges, address)).collect()
        }
        Allowed::Present(present) => {
            let known: BTreeSet<&Address> = present.into_iter().flat_map(|spec| addresses(&spec.content)).collect();
            addresses(content).filter(|address| !known.contains(address)).collect()
        }
    };
    if left_out.is_empty() {
        return Within { spec: Cow::Borrowed(&export.spec), left_out, allowed };
    }
    let kept = |endpoints: &[Endpoint]| endpoints.iter().filter_map(|endpoint| without(endpoint, &left_out)).collect();
    let (endpoints, draining) = (kept(&content.endpoints), kept(&content.draining));
    let content = Arc::new(SliceContent { endpoints, draining, ..(**content).clone() });
    Within { spec: Cow::Owned(HubSliceSpec { content, ..export.spec.clone() }), left_out, allowed }
}

fn addresses(content: &SliceContent) -> impl Iterator<Item = &Address> {
    content.endpoints.iter().chain(&content.draining).flat_map(|endpoint| &endpoint.addresses)
}

fn without(endpoint: &Endpoint, left_out: &BTreeSet<&Address>) -> Option<Endpoint> {
    let addresses: Vec<Address> =
        endpoint.addresses.iter().filter(|address| !left_out.contains(address)).cloned().collect();
    (!addresses.is_empty()).then(|| Endpoint { addresses, ..endpoint.clone() })
}

impl Within<'_> {
    /// True if the importer gets no new slice of this member, because the declared ranges are malformed.
    pub(super) fn allows_nothing_new(&self) -> bool {
        matches!(self.allowed, Allowed::Present(None))
    }

    /// Adds to a plan the Event and the blocking reason about the addresses that importers do not get. Each write of a
    /// distributed slice has the Event. The runtime emits an Event with the same text once.
    pub(super) fn report(&self, export: &HubSlice, plan: &mut Plan) {
        let Allowed::Ranges(_) = self.allowed else { return };
        if self.left_out.is_empty() {
            return;
        }
        let cluster = names::cluster_of(&export.meta.name.namespace).unwrap_or_default();
        let texts: Vec<String> =
            self.left_out.iter().take(REPORTED_NAMES_MAX).map(|address| message::value(&address.to_string())).collect();
        let more = self.left_out.len().saturating_sub(REPORTED_NAMES_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let message = format!(
            "EndpointSlice {} of cluster {cluster} has addresses outside of the source ranges of {} in the hub: {}{more}. \
             Importers do not get them. Correct the slice in cluster {cluster}, or the source ranges in the hub",
            message::name(&export.spec.reference.source),
            export.meta.name.namespace,
            texts.join(", ")
        );
        let event =
            plan::event(COMPONENT, Kind::EndpointSliceExport, &export.meta, Reason::AddressRefused, message.clone());
        plan.writes.iter_mut().for_each(|write| write.events.push(event.clone()));
        plan.blocking_reasons.push(BlockingReason { reason: Reason::AddressRefused, message });
    }
}
