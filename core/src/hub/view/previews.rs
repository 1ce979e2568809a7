//! Previews: which importers hold a slice stream, and which distributed slices they have newer content of than the
//! objects.

use super::value::Value;
use crate::limits::PREVIEW_PAUSE_MICROS;
use crate::model::{HubSlice, HubSliceSpec};
use crate::plan::Preview;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// State of the slice streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::hub) struct Previews {
    /// Member namespaces of the importers that hold a stream.
    importers: BTreeSet<MemberNamespace>,
    /// Distributed slices whose object has older content than a preview.
    lagging: BTreeMap<ObjectName, Lagging>,
    /// Exporting members whose source slices went back lately, with the time until which there are no new previews of
    /// their slices.
    paused: BTreeMap<ClusterId, Timestamp>,
}

/// Distributed slice whose object lags behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lagging {
    /// Time since which the object lags behind.
    pub(crate) since: Timestamp,
    /// Last preview; `None` if the stream that had it has ended.
    pub(crate) sent: Option<Sent>,
}

/// Preview that the importer got or will get.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) spec: HubSliceSpec,
    /// Time of the first preview without an acknowledgement of it or of a later one; `None` if the importer has
    /// imported `spec`.
    pub(crate) unacknowledged_since: Option<Timestamp>,
}

impl Lagging {
    /// Generation of the source slice in the last preview.
    pub(crate) fn generation(&self) -> Option<i64> {
        Some(self.sent.as_ref()?.spec.reference.generation)
    }
}

impl Previews {
    /// Records that an importer holds a stream. An earlier stream of this importer must have ended before. Returns the
    /// value that changed.
    pub(in crate::hub) fn stream_began(&mut self, importer: &MemberNamespace) -> Option<Value> {
        self.importers.insert(importer.clone()).then(|| Value::Stream(importer.clone()))
    }

    /// Records that the stream of an importer ended. Its previews do not count any more. Returns the values that
    /// changed; none if the importer held no stream.
    pub(in crate::hub) fn stream_ended(&mut self, importer: &MemberNamespace) -> Vec<Value> {
        if !self.importers.remove(importer) {
            return Vec::new();
        }
        let mut values = vec![Value::Stream(importer.clone())];
        let first = ObjectName::new(importer, "");
        let of_importer = self.lagging.range_mut(first..).take_while(|(at, _)| at.namespace == *importer.as_text());
        for (at, lagging) in of_importer {
            if lagging.sent.take().is_some() {
                values.push(Value::Lagging(at.clone()));
            }
        }
        values
    }

    /// Records that a message about a distributed slice was put into the stream of its importer.
    pub(in crate::hub) fn sent(&mut self, at: &ObjectName, preview: Preview, now: Timestamp) {
        let lagging = &mut self.lagging;
        match preview {
            Preview::Show(spec) => {
                let lagging = lagging.entry(at.clone()).or_insert(Lagging { since: now, sent: None });
                let earlier = lagging.sent.as_ref().and_then(|sent| sent.unacknowledged_since);
                lagging.sent = Some(Sent { spec, unacknowledged_since: Some(earlier.unwrap_or(now)) });
            }
            Preview::EndStream => {
                let sent = lagging.remove(at).and_then(|lagging| lagging.sent);
                self.paused.retain(|_, until| now < *until);
                if let Some(sent) = sent {
                    self.paused.insert(sent.spec.reference.cluster, now.plus_micros(PREVIEW_PAUSE_MICROS));
                }
            }
        }
    }

    /// Records that an importer has imported a preview with this generation of the source slice. Returns the value that
    /// changed.
    pub(in crate::hub) fn acknowledged(&mut self, at: &ObjectName, generation: i64, now: Timestamp) -> Option<Value> {
        let sent = self.lagging.get_mut(at)?.sent.as_mut()?;
        sent.unacknowledged_since?;
        // An acknowledgement of an earlier preview shows that the stream works. The next one has its full time.
        sent.unacknowledged_since = (generation < sent.spec.reference.generation).then_some(now);
        sent.unacknowledged_since.is_none().then(|| Value::Lagging(at.clone()))
    }

    /// The object of a distributed slice changed, and was `before`. From now on it lags behind a newer preview, if any.
    pub(super) fn object_changed(&mut self, before: Option<&HubSlice>, object: &HubSlice, at: Timestamp) {
        let Some(lagging) = self.lagging.get_mut(&object.meta.name) else { return };
        if before.is_some_and(|before| before.spec == object.spec) {
            return; // only its metadata changed
        }
        if lagging.generation() > Some(object.spec.reference.generation) {
            lagging.since = at;
        } else {
            self.lagging.remove(&object.meta.name);
        }
    }

    /// The object of a distributed slice is gone.
    pub(super) fn object_gone(&mut self, at: &ObjectName) {
        self.lagging.remove(at);
    }

    pub(super) fn clock_set(&mut self, micros: i64) {
        self.paused.values_mut().for_each(|until| *until = until.plus_micros(micros));
        for lagging in self.lagging.values_mut() {
            lagging.since = lagging.since.plus_micros(micros);
            if let Some(since) = lagging.sent.as_mut().and_then(|sent| sent.unacknowledged_since.as_mut()) {
                *since = since.plus_micros(micros);
            }
        }
    }

    pub(super) fn has_stream(&self, importer: &MemberNamespace) -> bool {
        self.importers.contains(importer)
    }

    /// True while there are no new previews from an exporting member.
    pub(super) fn is_paused(&self, exporter: &ClusterId, now: Timestamp) -> bool {
        self.paused.get(exporter).is_some_and(|until| now < *until)
    }

    pub(super) fn of(&self, at: &ObjectName) -> Option<&Lagging> {
        self.lagging.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::view::View;
    use crate::model::{Kind, Object};
    use crate::names::member_namespace;
    use crate::support::build::{BuildHubSlice, distributed_slice, seconds, slice, slice_export};
    use fleetnet_types::{Change, Removal};

    fn export(exporter: &str, generation: i64) -> HubSlice {
        slice_export(exporter, &slice("work/app-1")).with_addresses(&["10.0.0.9"], generation)
    }

    /// Sends a preview of an export to an importer. Returns the name of the distributed slice.
    fn show(view: &mut View, importer: &str, export: &HubSlice, now: Timestamp) -> ObjectName {
        let at = distributed_slice(importer, export).meta.name;
        view.previews.sent(&at, Preview::Show(export.spec.clone()), now);
        at
    }

    #[test]
    fn the_end_of_a_stream_drops_the_previews_of_its_importer_only() {
        let (mut view, export) = (View::default(), export("member-9", 5));
        let slices = ["member-1", "member-2", "member-3"].map(|importer| {
            view.previews.stream_began(&member_namespace(importer));
            show(&mut view, importer, &export, seconds(20))
        });
        let values = view.previews.stream_ended(&slices[1].member_namespace());
        assert_eq!(values, [Value::Stream(slices[1].member_namespace()), Value::Lagging(slices[1].clone())]);
        let is_shown = slices.map(|at| view.previews.of(&at).is_some_and(|lagging| lagging.sent.is_some()));
        assert_eq!(is_shown, [true, false, true]);
    }

    #[test]
    fn a_pause_is_forgotten_when_it_is_over() {
        for (micros, paused) in [(PREVIEW_PAUSE_MICROS - 1, 2), (PREVIEW_PAUSE_MICROS, 1)] {
            let mut view = View::default();
            for (exporter, now) in [("member-1", seconds(20)), ("member-3", seconds(20).plus_micros(micros))] {
                let at = show(&mut view, "member-2", &export(exporter, 5), now);
                view.previews.sent(&at, Preview::EndStream, now);
            }
            assert_eq!(view.previews.paused.len(), paused, "{micros}");
            assert!(view.previews.is_paused(&"member-3".into(), seconds(20).plus_micros(micros)));
        }
    }

    #[test]
    fn only_the_acknowledgement_of_the_last_preview_plans_its_object_again() {
        let mut view = View::default();
        show(&mut view, "member-2", &export("member-1", 5), seconds(20));
        let at = show(&mut view, "member-2", &export("member-1", 6), seconds(20));
        assert_eq!(view.previews.acknowledged(&at, 5, seconds(21)), None);
        assert_eq!(view.previews.acknowledged(&at, 6, seconds(21)), Some(Value::Lagging(at.clone())));
        assert_eq!(view.previews.acknowledged(&at, 6, seconds(22)), None, "once");
    }

    #[test]
    fn nothing_is_remembered_of_a_preview_whose_object_is_gone() {
        let (mut view, export) = (View::default(), export("member-1", 5));
        let distributed = distributed_slice("member-2", &export).with_addresses(&["10.0.0.1"], 4);
        let (name, uid) = (distributed.meta.name.clone(), distributed.meta.uid.clone());
        view.apply(Kind::EndpointSliceImport, Change::Applied(Object::EndpointSliceImport(distributed)), seconds(1));
        show(&mut view, "member-2", &export, seconds(20));
        let change = Change::Removed { name, uid, how: Removal::Deleted };
        view.apply(Kind::EndpointSliceImport, change, seconds(21));
        assert!(view.previews.lagging.is_empty());
    }
}
