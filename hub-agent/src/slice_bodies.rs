//! Bodies of distributed slices. All importers with the same features get the same content, so it is serialized once
//! for them.

use crate::limits::SLICE_BODIES;
use fleetnet_agent::convert;
use fleetnet_api::encode::TraceChange;
use fleetnet_core::model::HubSliceSpec;
use fleetnet_core::plan::{Action, Desired, Patch, Write};
use fleetnet_runtime::{Verb, WriteBody};
use fleetnet_types::Text;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Bodies that were serialized last, newest first. The plans of one change run close to each other, so a few are
/// enough.
#[derive(Debug, Default)]
pub(crate) struct SliceBodies(RefCell<Recent>);

#[derive(Debug, Default)]
struct Recent {
    bodies: VecDeque<(Form, TraceChange, HubSliceSpec, WriteBody)>,
    serialized: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Whole object with this name. The server takes its namespace from the URL.
    Create(Text),
    Patch,
}

impl SliceBodies {
    /// Returns the verb of a write, with a body that other writes share.
    pub(crate) fn verb(&self, write: &Write, change: TraceChange) -> Verb {
        let (form, spec) = match &write.action {
            Action::Create(Desired::EndpointSliceImport(spec)) => (Form::Create(write.at.name.clone()), spec),
            Action::Patch { patch: Patch::EndpointSliceImport(spec), .. } => (Form::Patch, spec),
            _ => return convert::verb(write, change),
        };
        let mut recent = self.0.borrow_mut();
        let found = recent
            .bodies
            .iter()
            .find(|(other, other_change, of, _)| *other == form && *other_change == change && of == spec);
        let Some(body) = found.map(|(.., body)| body.clone()) else {
            let verb = convert::verb(write, change);
            if let Verb::Create { body } | Verb::Patch { body, .. } = &verb {
                recent.serialized += 1;
                recent.bodies.truncate(SLICE_BODIES - 1);
                recent.bodies.push_front((form, change, spec.clone(), body.clone()));
            }
            return verb;
        };
        match &write.action {
            Action::Patch { resource_version, .. } => {
                Verb::Patch { subresource: None, resource_version: *resource_version, body }
            }
            _ => Verb::Create { body },
        }
    }

    /// Returns the number of bodies that were serialized.
    #[cfg(test)]
    pub(crate) fn serialized(&self) -> u64 {
        self.0.borrow().serialized
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_core::model::{AddressType, Endpoint, Reference, SliceContent};
    use fleetnet_types::{ObjectName, Timestamp};
    use std::sync::Arc;

    /// Returns the spec of a slice with this address, in memory of its own, as plans for importers with reduced
    /// features have it.
    fn spec(address: &str) -> HubSliceSpec {
        let endpoints = vec![Endpoint { addresses: vec![address.into()], ..Endpoint::default() }];
        let (draining, ports) = (Vec::new(), Vec::new());
        HubSliceSpec {
            reference: Reference {
                cluster: "member-1".into(),
                source: ObjectName::new("work", "app-1"),
                uid: "uid-1".into(),
                resource_version: "7".into(),
                generation: 1,
                exported_since: Some(Timestamp(1)),
            },
            owner: ObjectName::new("work", "app"),
            content: Arc::new(SliceContent { address_type: AddressType::IPv4, endpoints, draining, ports }),
        }
    }

    fn write(importer: usize, action: Action) -> Write {
        let at = ObjectName::new(format!("fleet-member-{importer}"), "app-1");
        Write { at, action, events: Vec::new(), sample: None }
    }

    #[test]
    fn a_change_is_serialized_once_for_each_feature_set_of_its_importers() {
        let bodies = SliceBodies::default();
        for importer in 0..100 {
            let spec = || spec(if importer % 2 == 0 { "10.0.0.1" } else { "10.0.0.2" });
            let patch = Patch::EndpointSliceImport(spec());
            let patch = write(importer, Action::Patch { patch, resource_version: importer as u64 });
            assert_eq!(bodies.verb(&patch, TraceChange::Keep), convert::verb(&patch, TraceChange::Keep));
        }
        assert_eq!(bodies.serialized(), 2);
        for importer in 0..100 {
            let create = write(importer, Action::Create(Desired::EndpointSliceImport(spec("10.0.0.1"))));
            assert_eq!(bodies.verb(&create, TraceChange::Keep), convert::verb(&create, TraceChange::Keep));
        }
        assert_eq!(bodies.serialized(), 3);
    }

    #[test]
    fn old_bodies_are_dropped() {
        let bodies = SliceBodies::default();
        for number in 0..2 * SLICE_BODIES {
            let patch = Patch::EndpointSliceImport(spec(&format!("10.0.0.{number}")));
            bodies.verb(&write(0, Action::Patch { patch, resource_version: 1 }), TraceChange::Keep);
        }
        assert_eq!(bodies.0.borrow().bodies.len(), SLICE_BODIES);
    }
}
