//! Properties that all slices of one Service share: [`SliceTemplate`].

use crate::config::Config;
use crate::model::{AddressType, EndpointSlice, Metadata, OwnerReference, Service};
use crate::names::{LABEL_HEADLESS, LABEL_MANAGED_BY, LABEL_SERVICE_NAME, is_reserved_label};
use crate::ports::PortList;
use crate::text::Text;
use crate::text_map::TextMap;

/// Properties that all slices of one Service share: labels, owner, and prefix of names.
#[derive(Clone, Debug)]
pub struct SliceTemplate<'a> {
    config: &'a Config,
    labels: TextMap,
    owner: OwnerReference,
    namespace: Text,
    generate_name: Text,
}

impl<'a> SliceTemplate<'a> {
    /// Returns the template for the slices of `service`.
    #[must_use]
    pub fn new(service: &Service, config: &'a Config) -> Self {
        let Metadata { name, namespace, uid, .. } = &service.metadata;
        let owner = OwnerReference {
            api_version: "v1".into(),
            kind: "Service".into(),
            name: name.clone(),
            uid: uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let generate_name = generate_name(name);
        Self { config, labels: labels(service, config), owner, namespace: namespace.clone(), generate_name }
    }

    /// Returns the labels of a new slice: labels copied from the Service, and the reserved labels, which only this
    /// library sets (name of the Service, managing controller, headless).
    #[must_use]
    pub const fn labels(&self) -> &TextMap {
        &self.labels
    }

    /// Returns the labels that an existing slice should have: the labels of a new slice, and the slice's labels in
    /// [`Config::foreign_labels`].
    #[must_use]
    pub fn labels_for(&self, slice: &EndpointSlice) -> TextMap {
        let mut labels = self.labels.clone();
        for key in &self.config.foreign_labels {
            if let Some(value) = slice.metadata.labels.get(key).filter(|_| !labels.contains_key(key)) {
                labels.insert(key.clone(), value.clone());
            }
        }
        labels
    }

    /// True if `slice` must be written because its labels are wrong. As in kube-controller-manager, a wrong headless
    /// label alone does not count.
    #[must_use]
    pub fn labels_differ(&self, slice: &EndpointSlice) -> bool {
        let own = |(key, _): &(&Text, &Text)| {
            let is_anothers = self.config.foreign_labels.contains(*key) && !self.labels.contains_key(key);
            !is_reserved_label(key) && !is_anothers
        };
        !slice.metadata.labels.iter().filter(own).eq(self.labels.iter().filter(own))
    }

    /// True if this controller manages `slice` for this Service, or for an earlier Service of the same name.
    #[must_use]
    pub fn manages(&self, slice: &EndpointSlice) -> bool {
        let same = |key| slice.metadata.labels.get(key) == self.labels.get(key);
        slice.metadata.namespace == self.namespace && same(LABEL_MANAGED_BY) && same(LABEL_SERVICE_NAME)
    }

    /// True if this Service owns `slice`. False if an earlier Service of the same name, which had another UID, owns the
    /// slice (kubernetes/kubernetes #94720).
    #[must_use]
    pub fn owns(&self, slice: &EndpointSlice) -> bool {
        let OwnerReference { api_version, kind, uid, .. } = &self.owner;
        let mut owners = slice.metadata.owner_references.iter();
        owners.any(|owner| owner.uid == *uid && owner.kind == *kind && owner.api_version == *api_version)
    }

    /// Returns a new slice without endpoints, with these ports.
    #[must_use]
    pub fn slice(&self, address_type: AddressType, ports: &PortList) -> EndpointSlice {
        let metadata = Metadata {
            generate_name: self.generate_name.clone(),
            namespace: self.namespace.clone(),
            labels: self.labels.clone(),
            owner_references: vec![self.owner.clone()],
            ..Metadata::default()
        };
        EndpointSlice { metadata, address_type, endpoints: Vec::new(), ports: ports.to_vec() }
    }

    /// True if `slice` equals the placeholder of a Service without endpoints. Name, annotations and owners do not
    /// matter.
    #[must_use]
    pub fn is_placeholder(&self, slice: &EndpointSlice) -> bool {
        slice.endpoints.is_empty()
            && slice.ports.is_empty()
            && slice.metadata.namespace == self.namespace
            && slice.metadata.labels == self.labels_for(slice)
    }
}

fn labels(service: &Service, config: &Config) -> TextMap {
    let copied = service.metadata.labels.iter().filter(|(key, _)| !is_reserved_label(key));
    let mut labels: TextMap = copied.map(|(key, value)| (key.clone(), value.clone())).collect();
    if service.spec.is_headless() {
        labels.insert(LABEL_HEADLESS, "");
    }
    labels.insert(LABEL_SERVICE_NAME, service.metadata.name.clone());
    labels.insert(LABEL_MANAGED_BY, config.controller_name().clone());
    labels
}

/// Returns the prefix of slice names: `<service>-`, or `<service>` if the former is not a valid prefix.
fn generate_name(service: &Text) -> Text {
    let begins_a_name = |prefix: &str| {
        prefix.len() <= 253
            && prefix.trim_end_matches('-').split('.').all(|label| {
                let ends = |letter: Option<&u8>| letter.is_some_and(u8::is_ascii_alphanumeric);
                let bytes = label.as_bytes();
                let inside = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
                bytes.iter().all(inside) && ends(bytes.first()) && ends(bytes.last())
            })
    };
    let prefix = format!("{service}-");
    if begins_a_name(&prefix) { prefix.into() } else { service.clone() }
}
