//! The Kubernetes face of fleetnet: the kinds of the group `networking.fleet.azure.com`, the CustomResourceDefinitions
//! made from them, every name (label, annotation, finalizer) that is written on an object, and the way between an object's
//! JSON and core's model of it ([`decode`], [`encode`]).

pub mod crd;
pub mod crds;
pub mod decode;
pub mod encode;
pub mod limits;
pub mod names;
pub mod resources;
mod times;
