//! Previews: which importers hold a slice stream, and which distributed slices they have newer content of than the
//! objects.

use super::View;
use super::value::Value;
use crate::limits::PREVIEW_PAUSE_MICROS;
use crate::model::{HubSlice, HubSliceSpec};
use crate::plan::Preview;
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// State of the slice streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Previews {
    /// Member namespaces of the importers that hold a stream.
    importers: BTreeSet<Text>,
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

impl View {
    /// Records that an importer holds a stream. An earlier stream of this importer must have ended before. Returns the
    /// value that changed.
    pub(in crate::hub) fn stream_began(&mut self, importer: &Text) -> Option<Value> {
        self.previews.importers.insert(importer.clone()).then(|| Value::Stream(importer.clone()))
    }

    /// Records that the stream of an importer ended. Its previews do not count any more. Returns the values that
    /// changed.
    pub(in crate::hub) fn stream_ended(&mut self, importer: &Text, heard: Timestamp) -> Vec<Value> {
        if !self.previews.importers.remove(importer) {
            return Vec::new();
        }
        self.stream_heard(importer, heard);
        let mut values = vec![Value::Stream(importer.clone())];
        let first = ObjectName::new(importer.clone(), "");
        let of_importer = self.previews.lagging.range_mut(first..).take_while(|(at, _)| at.namespace == *importer);
        for (at, lagging) in of_importer {
            if lagging.sent.take().is_some() {
                values.push(Value::Lagging(at.clone()));
            }
        }
        values
    }

    /// Records that a message about a distributed slice was put into the stream of its importer.
    pub(in crate::hub) fn sent(&mut self, at: &ObjectName, preview: Preview, now: Timestamp) {
        let lagging = &mut self.previews.lagging;
        match preview {
            Preview::Show(spec) => {
                let lagging = lagging.entry(at.clone()).or_insert(Lagging { since: now, sent: None });
                let earlier = lagging.sent.as_ref().and_then(|sent| sent.unacknowledged_since);
                lagging.sent = Some(Sent { spec, unacknowledged_since: Some(earlier.unwrap_or(now)) });
            }
            Preview::EndStream => {
                let sent = lagging.remove(at).and_then(|lagging| lagging.sent);
                self.previews.paused.retain(|_, until| now < *until);
                if let Some(sent) = sent {
                    self.previews.paused.insert(sent.spec.reference.cluster, now.plus_micros(PREVIEW_PAUSE_MICROS));
                }
            }
        }
    }

    /// Records that an importer has imported a preview with this generation of the source slice. Returns the value that
    /// changed.
    pub(in crate::hub) fn acknowledged(&mut self, at: &ObjectName, generation: i64, now: Timestamp) -> Option<Value> {
        let sent = self.previews.lagging.get_mut(at)?.sent.as_mut()?;
        sent.unacknowledged_since?;
        // An acknowledgement of an earlier preview shows that the stream works. The next one has its full time.
        sent.unacknowledged_since = (generation < sent.spec.reference.generation).then_some(now);
        sent.unacknowledged_since.is_none().then(|| Value::Lagging(at.clone()))
    }

    /// The object of a distributed slice changed. It lags behind a newer preview from now on, if there is one.
    pub(super) fn object_changed(&mut self, object: &HubSlice, at: Timestamp) {
        let Some(lagging) = self.previews.lagging.get_mut(&object.meta.name) else { return };
        if self.distributed_slices.get(&object.meta.name).is_some_and(|before| before.spec == object.spec) {
            return; // only its metadata changed
        }
        if lagging.generation() > Some(object.spec.reference.generation) {
            lagging.since = at;
        } else {
            self.previews.lagging.remove(&object.meta.name);
        }
    }

    /// The object of a distributed slice is gone.
    pub(super) fn object_gone(&mut self, at: &ObjectName) {
        self.previews.lagging.remove(at);
    }

    pub(super) fn previews_clock_set(&mut self, micros: i64) {
        self.previews.paused.values_mut().for_each(|until| *until = until.plus_micros(micros));
        for lagging in self.previews.lagging.values_mut() {
            lagging.since = lagging.since.plus_micros(micros);
            if let Some(since) = lagging.sent.as_mut().and_then(|sent| sent.unacknowledged_since.as_mut()) {
                *since = since.plus_micros(micros);
            }
        }
    }

    pub(super) fn has_stream(&self, importer: &Text) -> bool {
        self.previews.importers.contains(importer)
    }

    /// True while there are no new previews from an exporting member.
    pub(super) fn is_paused(&self, exporter: &ClusterId, now: Timestamp) -> bool {
        self.previews.paused.get(exporter).is_some_and(|until| now < *until)
    }

    pub(super) fn lagging(&self, at: &ObjectName) -> Option<&Lagging> {
        self.previews.lagging.get(at)
    }
}
