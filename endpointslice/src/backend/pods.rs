//! Conversion of pods to backends.

use super::Backend;
use crate::address::{self, BadAddress, Family};
use crate::model::{Addresses, Conditions, Pod, Service, TargetKind, TargetRef};
use crate::nodes::NodeZones;
use crate::ports::PortResolver;
use crate::text::Text;
use std::sync::Arc;

/// Pod, or one address of a pod, for which no endpoint is made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Skipped {
    /// Name of the pod, in the Service's namespace.
    pub pod: Text,
    /// Reason why no endpoint is made.
    pub reason: SkipReason,
}

/// Reason why no endpoint is made for a pod or one of its addresses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// The pod has succeeded or failed and will not run again. Such a pod is never published, even with
    /// `publishNotReadyAddresses` (kubernetes/kubernetes #110115).
    Ended,
    /// The pod has no address yet.
    NoAddress,
    /// The pod's Node, and so its zone, is not known. Plan the Service again when the Node with this name appears.
    NodeMissing(Text),
    /// This address of the pod is invalid, for this reason. Only this address is omitted, because the API would reject
    /// the whole slice.
    BadAddress(Text, BadAddress),
}

/// True if a pod can be an endpoint: the pod has not ended and has an address. A pod that is being deleted can be an
/// endpoint too, which is marked as terminating (KEP-1672).
#[must_use]
pub fn is_eligible(pod: &Pod) -> bool {
    why_not_eligible(pod).is_none()
}

fn why_not_eligible(pod: &Pod) -> Option<SkipReason> {
    if pod.status.phase.is_terminal() {
        Some(SkipReason::Ended)
    } else if pod.status.pod_ip.is_empty() && pod.status.pod_ips.is_empty() {
        Some(SkipReason::NoAddress)
    } else {
        None
    }
}

/// Converter from the pods of one Service to backends.
#[derive(Debug)]
pub struct PodBackends<'a> {
    service: &'a Service,
    nodes: &'a NodeZones,
    ports: PortResolver<'a>,
    skipped: Vec<Skipped>,
}

impl<'a> PodBackends<'a> {
    /// Returns a converter for the pods of `service`, which run on `nodes`.
    #[must_use]
    pub fn new(service: &'a Service, nodes: &'a NodeZones) -> Self {
        Self { service, nodes, ports: PortResolver::new(service), skipped: Vec::new() }
    }

    /// Returns the backend of a pod, or `None` if the pod cannot be a backend.
    ///
    /// The backend of a pod whose Node is not known has ports but no addresses. No endpoint is published then, but an
    /// existing empty slice with these ports is not deleted.
    pub fn convert(&mut self, pod: &Pod) -> Option<Backend> {
        if let Some(reason) = why_not_eligible(pod) {
            self.skip(pod, reason);
            return None;
        }
        let ports = self.ports.resolve(pod);
        let publish_always = self.service.spec.publish_not_ready_addresses;
        let node = self.nodes.find(&pod.spec.node_name);
        if node.is_none() && !publish_always {
            self.skip(pod, SkipReason::NodeMissing(pod.spec.node_name.clone()));
            return Some(Backend { ports, ..Backend::default() });
        }
        let (ipv4, ipv6) = self.addresses(pod);
        Some(Backend {
            ipv4,
            ipv6,
            conditions: conditions(pod, publish_always),
            hostname: hostname(pod, self.service).cloned(),
            target_ref: Some(Arc::new(target(pod))),
            node_name: pod.spec.node_name.non_empty().cloned(),
            zone: node.and_then(|node| node.zone).cloned(),
            ports,
        })
    }

    /// Returns the pods and addresses for which the converter made no endpoint.
    #[must_use]
    pub fn into_skipped(self) -> Vec<Skipped> {
        self.skipped
    }

    fn skip(&mut self, pod: &Pod, reason: SkipReason) {
        self.skipped.push(Skipped { pod: pod.metadata.name.clone(), reason });
    }

    fn addresses(&mut self, pod: &Pod) -> (Addresses, Addresses) {
        if let [only] = &pod.status.pod_ips[..]
            && let Ok((family, address)) = address::canonical(&only.ip)
        {
            return match family {
                Family::V4 => (Addresses::One(address), Addresses::None),
                Family::V6 => (Addresses::None, Addresses::One(address)),
            };
        }
        let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
        for pod_ip in &pod.status.pod_ips {
            match address::canonical(&pod_ip.ip) {
                Ok((Family::V4, address)) => ipv4.push(address),
                Ok((Family::V6, address)) => ipv6.push(address),
                Err(why) => self.skip(pod, SkipReason::BadAddress(pod_ip.ip.clone(), why)),
            }
        }
        // Sort the addresses as in kube-controller-manager, so that the order in which the kubelet lists addresses
        // makes no difference.
        ipv4.sort_unstable();
        ipv6.sort_unstable();
        (ipv4.into_iter().collect(), ipv6.into_iter().collect())
    }
}

fn conditions(pod: &Pod, publish_always: bool) -> Conditions {
    let (serving, terminating) = (pod.status.readiness.is_ready, pod.metadata.is_terminating());
    let ready = publish_always || (serving && !terminating);
    Conditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) }
}

fn target(pod: &Pod) -> TargetRef {
    let metadata = &pod.metadata;
    TargetRef {
        kind: TargetKind::Pod,
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        ..TargetRef::default()
    }
}

/// Returns the hostname that the endpoint of `pod` has in `service`. `None` unless `spec.subdomain` of the pod names
/// this Service.
fn hostname<'a>(pod: &'a Pod, service: &Service) -> Option<&'a Text> {
    let hostname = pod.spec.hostname.non_empty()?;
    let named = pod.spec.subdomain == service.metadata.name && pod.metadata.namespace == service.metadata.namespace;
    named.then_some(hostname)
}
