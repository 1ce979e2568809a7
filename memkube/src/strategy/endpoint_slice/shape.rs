//! Fields of an EndpointSlice and their types.

use super::super::shape::{REFERENCE, Shape, Struct, TEXT, TEXT_MAP, TEXTS, always, full, present};

pub(super) static ENDPOINT_SLICE: Struct = Struct {
    name: "v1.EndpointSlice",
    fields: &[
        always("addressType", Shape::Text("v1.AddressType")),
        always("endpoints", Shape::List(&Shape::Struct(&ENDPOINT))),
        always("ports", Shape::List(&Shape::Struct(&PORT))),
    ],
};

static ENDPOINT: Struct = Struct {
    name: "v1.Endpoint",
    fields: &[
        always("addresses", TEXTS),
        always("conditions", Shape::Struct(&CONDITIONS)),
        present("hostname", TEXT),
        present("targetRef", Shape::Struct(&REFERENCE)),
        full("deprecatedTopology", TEXT_MAP),
        present("nodeName", TEXT),
        present("zone", TEXT),
        present("hints", Shape::Struct(&HINTS)),
    ],
};

static CONDITIONS: Struct = Struct {
    name: "v1.EndpointConditions",
    fields: &[present("ready", Shape::Flag), present("serving", Shape::Flag), present("terminating", Shape::Flag)],
};

static HINTS: Struct = Struct {
    name: "v1.EndpointHints",
    fields: &[
        full("forZones", Shape::List(&Shape::Struct(&FOR_ZONE))),
        full("forNodes", Shape::List(&Shape::Struct(&FOR_NODE))),
    ],
};

static FOR_ZONE: Struct = Struct { name: "v1.ForZone", fields: &[always("name", TEXT)] };

static FOR_NODE: Struct = Struct { name: "v1.ForNode", fields: &[always("name", TEXT)] };

static PORT: Struct = Struct {
    name: "v1.EndpointPort",
    fields: &[
        present("name", TEXT),
        present("protocol", Shape::Text("v1.Protocol")),
        present("port", Shape::Int32),
        present("appProtocol", TEXT),
    ],
};
