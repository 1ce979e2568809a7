//! Content negotiation: the form of objects in the response.

use crate::status::{Details, Status};

/// Form of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    Whole,
    /// Only the metadata of objects.
    MetadataOnly(MetadataForm),
}

/// Form of metadata in the response, from the `Accept` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetadataForm {
    /// True for `PartialObjectMetadataList`: the response must be a list. False for `PartialObjectMetadata`: the response must
    /// be a single object.
    pub(crate) list: bool,
    /// Version of the form. The metadata is the same in `v1` and `v1beta1`.
    pub(crate) version: MetadataVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetadataVersion {
    V1,
    V1beta1,
}

impl Form {
    /// Returns the first supported form in an `Accept` header. Tables are not supported, so clients that prefer tables
    /// (kubectl) get whole objects.
    pub(super) fn negotiate(accept: Option<&str>) -> Result<Self, Status> {
        let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
            return Ok(Self::Whole);
        };
        let mut json_was_possible = false;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            json_was_possible = true;
            let parameters: Vec<&str> = parts.collect();
            if !parameters.iter().any(|parameter| parameter.starts_with("as=")) {
                return Ok(Self::Whole);
            }
            if let Some(form) = MetadataForm::of(&parameters) {
                return Ok(Self::MetadataOnly(form));
            }
        }
        Err(if json_was_possible {
            let message = "only the following media types are accepted: application/json";
            Status::plain(406, "NotAcceptable", message)
        } else {
            let message = "406: Not Acceptable\n\nAvailable representations: application/json";
            Status::plain(406, "NotAcceptable", message).with_details(Details::default())
        })
    }
}

impl MetadataForm {
    /// Returns the metadata form in the parameters of a media type; `None` if the form is not supported.
    fn of(parameters: &[&str]) -> Option<Self> {
        let parameter = |name| parameters.iter().find_map(|parameter| parameter.strip_prefix(name));
        let list = match parameter("as=")? {
            "PartialObjectMetadata" => false,
            "PartialObjectMetadataList" => true,
            _ => return None,
        };
        let version = match (parameter("g=")?, parameter("v=")?) {
            ("meta.k8s.io", "v1") => MetadataVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetadataVersion::V1beta1,
            _ => return None,
        };
        Some(Self { list, version })
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, MetadataForm, MetadataVersion};

    #[test]
    fn tables_fall_back_to_the_objects() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        assert_eq!(Form::negotiate(Some(kubectl)), Ok(Form::Whole));
    }

    #[test]
    fn metadata_alone_can_be_asked_for() {
        let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let form = MetadataForm { list: true, version: MetadataVersion::V1 };
        assert_eq!(Form::negotiate(Some(accept)), Ok(Form::MetadataOnly(form)));
    }

    #[test]
    fn what_is_not_offered_is_refused_with_406() {
        assert_eq!(Form::negotiate(Some("text/plain")).unwrap_err().code, 406);
        assert_eq!(Form::negotiate(Some("application/json;as=Table;v=v1;g=meta.k8s.io")).unwrap_err().code, 406);
    }
}
