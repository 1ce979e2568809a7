//! Fields of an Event and their types, in both forms.

use super::super::shape::{REFERENCE, Shape, Struct, TEXT, always, full, present};

pub(super) static CORE: Struct = Struct {
    name: "v1.Event",
    fields: &[
        always("involvedObject", Shape::Struct(&REFERENCE)),
        full("reason", TEXT),
        full("message", TEXT),
        always("source", Shape::Struct(&SOURCE)),
        always("firstTimestamp", Shape::Time),
        always("lastTimestamp", Shape::Time),
        full("count", Shape::Int32),
        full("type", TEXT),
        always("eventTime", Shape::MicroTime),
        present("series", Shape::Struct(&SERIES)),
        full("action", TEXT),
        present("related", Shape::Struct(&REFERENCE)),
        always("reportingComponent", TEXT),
        always("reportingInstance", TEXT),
    ],
};

pub(super) static GROUP: Struct = Struct {
    name: "v1.Event",
    fields: &[
        always("eventTime", Shape::MicroTime),
        present("series", Shape::Struct(&GROUP_SERIES)),
        full("reportingController", TEXT),
        full("reportingInstance", TEXT),
        full("action", TEXT),
        full("reason", TEXT),
        always("regarding", Shape::Struct(&REFERENCE)),
        present("related", Shape::Struct(&REFERENCE)),
        full("note", TEXT),
        full("type", TEXT),
        always("deprecatedSource", Shape::Struct(&SOURCE)),
        always("deprecatedFirstTimestamp", Shape::Time),
        always("deprecatedLastTimestamp", Shape::Time),
        full("deprecatedCount", Shape::Int32),
    ],
};

static SOURCE: Struct = Struct { name: "v1.EventSource", fields: &[full("component", TEXT), full("host", TEXT)] };

static SERIES: Struct = Struct {
    name: "v1.EventSeries",
    fields: &[full("count", Shape::Int32), always("lastObservedTime", Shape::MicroTime)],
};

static GROUP_SERIES: Struct = Struct {
    name: "v1.EventSeries",
    fields: &[always("count", Shape::Int32), always("lastObservedTime", Shape::MicroTime)],
};
