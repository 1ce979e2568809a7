//! The EndpointSlice controller of the member agent on a real kube-apiserver, beside a real kube-controller-manager: what
//! upstream's integration tests and the conformance suite ask of whoever makes EndpointSlices, and ours besides.

mod endpoints {
    pub(crate) mod auto;
    pub(crate) mod bad_input;
    pub(crate) mod conformance;
    pub(crate) mod integration;

    /// Serves whoever else does.
    const ON: (&str, &str) = ("--endpointslices", "on");
}
