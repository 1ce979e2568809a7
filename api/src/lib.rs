//! Kubernetes API of fleetnet:
//!
//! - the kinds of the group `networking.fleet.azure.com`, and the CustomResourceDefinitions generated from them
//! - every name (label, annotation, finalizer) that the agents write on objects
//! - conversion between an object's JSON and core's model of the object ([`decode`], [`encode`])

pub mod crd;
pub mod crds;
pub mod decode;
pub mod encode;
mod lenient;
pub mod limits;
pub mod names;
pub mod resources;
mod selection;
mod selectors;
mod times;
mod wire;
