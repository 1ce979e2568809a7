//! Fields of a Service and their types.

use super::super::shape::{Shape, Struct, TEXT, TEXT_MAP, TEXTS, always, full, present};

pub(super) static SERVICE: Struct = Struct {
    name: "v1.Service",
    fields: &[always("spec", Shape::Struct(&SPEC)), always("status", Shape::Struct(&STATUS))],
};

static SPEC: Struct = Struct {
    name: "v1.ServiceSpec",
    fields: &[
        full("ports", Shape::List(&Shape::Struct(&PORT))),
        full("selector", TEXT_MAP),
        full("clusterIP", TEXT),
        full("clusterIPs", TEXTS),
        full("type", Shape::Text("v1.ServiceType")),
        full("externalIPs", TEXTS),
        full("sessionAffinity", Shape::Text("v1.ServiceAffinity")),
        full("loadBalancerIP", TEXT),
        full("loadBalancerSourceRanges", TEXTS),
        full("externalName", TEXT),
        full("externalTrafficPolicy", Shape::Text("v1.ServiceExternalTrafficPolicy")),
        full("healthCheckNodePort", Shape::Int32),
        full("publishNotReadyAddresses", Shape::Flag),
        present("sessionAffinityConfig", Shape::Struct(&AFFINITY)),
        full("ipFamilies", Shape::List(&Shape::Text("v1.IPFamily"))),
        present("ipFamilyPolicy", Shape::Text("v1.IPFamilyPolicy")),
        present("allocateLoadBalancerNodePorts", Shape::Flag),
        present("loadBalancerClass", TEXT),
        present("internalTrafficPolicy", Shape::Text("v1.ServiceInternalTrafficPolicy")),
        present("trafficDistribution", TEXT),
    ],
};

static PORT: Struct = Struct {
    name: "v1.ServicePort",
    fields: &[
        full("name", TEXT),
        full("protocol", Shape::Text("v1.Protocol")),
        present("appProtocol", TEXT),
        always("port", Shape::Int32),
        always("targetPort", Shape::Port),
        full("nodePort", Shape::Int32),
    ],
};

static AFFINITY: Struct =
    Struct { name: "v1.SessionAffinityConfig", fields: &[present("clientIP", Shape::Struct(&CLIENT_IP))] };

static CLIENT_IP: Struct = Struct { name: "v1.ClientIPConfig", fields: &[present("timeoutSeconds", Shape::Int32)] };

static STATUS: Struct = Struct {
    name: "v1.ServiceStatus",
    fields: &[
        always("loadBalancer", Shape::Struct(&LOAD_BALANCER)),
        full("conditions", Shape::List(&Shape::Struct(&CONDITION))),
    ],
};

static LOAD_BALANCER: Struct =
    Struct { name: "v1.LoadBalancerStatus", fields: &[full("ingress", Shape::List(&Shape::Struct(&INGRESS)))] };

static INGRESS: Struct = Struct {
    name: "v1.LoadBalancerIngress",
    fields: &[
        full("ip", TEXT),
        full("hostname", TEXT),
        present("ipMode", Shape::Text("v1.LoadBalancerIPMode")),
        full("ports", Shape::List(&Shape::Struct(&PORT_STATUS))),
    ],
};

static PORT_STATUS: Struct = Struct {
    name: "v1.PortStatus",
    fields: &[always("port", Shape::Int32), always("protocol", Shape::Text("v1.Protocol")), present("error", TEXT)],
};

/// Go struct `metav1.Condition`.
static CONDITION: Struct = Struct {
    name: "v1.Condition",
    fields: &[
        always("type", TEXT),
        always("status", Shape::Text("v1.ConditionStatus")),
        full("observedGeneration", Shape::Int64),
        always("lastTransitionTime", Shape::Time),
        always("reason", TEXT),
        always("message", TEXT),
    ],
};
