//! Tests of the objects that the view caches. The controller's tests cover the Services that the view requeues.

use super::*;
use endpointslice::TextMap;

fn view() -> View {
    View::new(Arc::new(Config::default()))
}

fn metadata(name: &str) -> Metadata {
    let labels = TextMap::from([("foo", "bar")]);
    Metadata { name: name.into(), namespace: "testing".into(), labels, ..Metadata::default() }
}

fn service() -> Service {
    let mut service = Service { metadata: metadata("web"), ..Service::default() };
    service.spec.selector = TextMap::from([("foo", "bar")]);
    service
}

fn pod(node: &str) -> Pod {
    let mut pod = Pod { metadata: metadata("pod1"), ..Pod::default() };
    pod.spec.node_name = node.into();
    pod
}

fn slice() -> EndpointSlice {
    let mut slice = EndpointSlice { metadata: metadata("web-1"), ..EndpointSlice::default() };
    slice.metadata.labels.insert(LABEL_MANAGED_BY, "endpointslice-controller.k8s.io");
    slice.metadata.labels.insert("kubernetes.io/service-name", "web");
    slice
}

#[test]
fn a_namespace_of_which_nothing_is_left_takes_no_room() {
    let mut view = view();
    view.set_service(service());
    view.set_pod(pod("node-1"));
    view.set_slice(Arc::new(slice()));
    view.note_slice("testing", "undecodable");
    assert_eq!((view.namespaces.len(), view.pods_on.len()), (1, 1));
    view.remove_slice("testing", "undecodable");
    view.remove_service("testing", "web");
    view.remove_pod("testing", "pod1");
    assert_eq!(view.namespaces.len(), 1, "a slice is left");
    view.remove_slice("testing", "web-1");
    assert!(view.namespaces.is_empty() && view.pods_on.is_empty() && view.times.is_empty());
    view.remove_pod("testing", "pod1");
    view.remove_slice("testing", "web-1");
    view.remove_service("testing", "web");
    assert!(view.namespaces.is_empty(), "what is not there leaves no trace");
}

#[test]
fn pods_are_found_by_the_node_that_they_are_on() {
    let mut view = view();
    view.set_pod(pod(""));
    assert!(view.pods_on.is_empty(), "on none yet");
    view.set_pod(pod("node-1"));
    view.set_pod(pod("node-1"));
    assert_eq!(view.pods_on["node-1"].len(), 1);
    view.set_pod(pod("node-2"));
    assert_eq!(view.pods_on.keys().collect::<Vec<_>>(), ["node-2"]);
}

#[test]
fn a_service_holds_no_pods_that_it_does_not_select_any_more() {
    let mut view = view();
    view.set_service(service());
    view.set_pod(pod("node-1"));
    assert_eq!(view.service("testing", "web").map(|known| known.pods.len()), Some(1));
    let mut other = pod("node-1");
    other.metadata.labels = TextMap::new();
    view.set_pod(other);
    assert_eq!(view.service("testing", "web").map(|known| known.pods.len()), Some(0));
}

#[test]
fn only_the_names_of_foreign_slices_are_cached() {
    let mut view = view();
    let mut theirs = slice();
    theirs.metadata.labels.insert(LABEL_MANAGED_BY, "me");
    assert!(view.set_slice(Arc::new(theirs)).is_empty());
    assert_eq!(view.namespaces["testing"].slices["web-1"], None);
    assert!(view.has_slice("testing", "web-1"));
    assert!(view.remove_slice("testing", "web-1").is_empty());
}
