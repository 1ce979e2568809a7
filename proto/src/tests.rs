//! Tests of the protocol: it never changes what older agents read, and a preview keeps all of a slice.

use crate::{DESCRIPTORS, v1};
use fleetnet_core::model::{AddressType, HubSliceSpec, Reference, SliceContent};
use fleetnet_types::ObjectName;
use property::for_any;
use proptest::prelude::{ProptestConfig, any, prop};
use prost::{Message as _, encoding};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, BTreeSet};

/// All fields, enum values and methods that a release had. Lines are only ever added.
const RELEASED: &str = include_str!("../released/v1.txt");

fn field(message: &str, field: &FieldDescriptorProto) -> String {
    let of_message = field.type_name().trim_start_matches('.');
    let kind = match field.r#type() {
        Type::Message | Type::Enum => of_message.to_owned(),
        other => other.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    };
    let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
    let optional = if field.proto3_optional() { "optional " } else { "" };
    format!("{message}.{} = {} {repeated}{optional}{kind}", field.name(), field.number())
}

fn of_message(message: &DescriptorProto) -> Vec<String> {
    message.field.iter().map(|it| field(message.name(), it)).collect()
}

fn of_enum(it: &EnumDescriptorProto) -> Vec<String> {
    it.value.iter().map(|value| format!("{}.{} = {}", it.name(), value.name(), value.number())).collect()
}

/// Returns a line for each field, enum value and method.
fn lines() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("the compiler wrote it");
    let mut lines = BTreeSet::new();
    for file in &set.file {
        assert_eq!(file.package(), "fleetnet.v1");
        lines.extend(file.message_type.iter().flat_map(of_message));
        lines.extend(file.enum_type.iter().flat_map(of_enum));
        for (service, method) in
            file.service.iter().flat_map(|service| service.method.iter().map(move |it| (service, it)))
        {
            let stream = |is_stream| if is_stream { "stream " } else { "" };
            lines.insert(format!(
                "{}.{} ({}{}) returns ({}{})",
                service.name(),
                method.name(),
                stream(method.client_streaming()),
                method.input_type().trim_start_matches('.'),
                stream(method.server_streaming()),
                method.output_type().trim_start_matches('.')
            ));
        }
    }
    lines
}

#[test]
fn no_field_number_or_type_ever_changes() {
    let (present, released) = (lines(), RELEASED.lines().map(str::to_owned).collect::<BTreeSet<_>>());
    let gone: Vec<_> = released.difference(&present).collect();
    assert!(gone.is_empty(), "agents of earlier versions need these lines of proto/released/v1.txt: {gone:#?}");
    let new: Vec<_> = present.difference(&released).collect();
    if std::env::var_os("UPDATE_RELEASED").is_some() {
        let text: String = present.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/released/v1.txt"), text).expect("the file is writable");
    }
    assert!(new.is_empty(), "proto/released/v1.txt lacks these lines (UPDATE_RELEASED=1 adds them): {new:#?}");
}

/// Encodes a message with random values in all of its fields. The numbers of `dice` decide.
fn random_message(messages: &BTreeMap<&str, &DescriptorProto>, name: &str, dice: &mut impl FnMut() -> u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in &messages[name.trim_start_matches(".fleetnet.v1.")].field {
        let tag = u32::try_from(field.number()).expect("it is positive");
        let count = match field.label() {
            Label::Repeated => dice() % 4,
            _ if field.proto3_optional() => dice() % 2,
            _ => 1,
        };
        for _ in 0..count {
            match field.r#type() {
                Type::String => {
                    let text = ["cart", "", "a", "zone-1", "10.0.0.1", "FD00::1"][usize::from(dice() % 6)];
                    encoding::string::encode(tag, &text.to_owned(), &mut bytes);
                }
                Type::Message => {
                    encoding::bytes::encode(tag, &random_message(messages, field.type_name(), dice), &mut bytes);
                }
                Type::Enum => encoding::int32::encode(tag, &i32::from(1 + dice() % 2), &mut bytes),
                _ => encoding::int64::encode(tag, &(i64::from(dice()) - 100), &mut bytes),
            }
        }
    }
    bytes
}

#[test]
fn a_preview_keeps_all_of_a_slice() {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("the compiler wrote it");
    let messages = set.file.iter().flat_map(|file| &file.message_type).map(|it| (it.name(), it)).collect();
    let numbers = prop::collection::vec(any::<u8>(), 100);
    for_any(ProptestConfig::with_cases(500), 20, &numbers, |numbers| {
        let mut numbers = numbers.iter().copied().cycle();
        let bytes = random_message(&messages, "Preview", &mut || numbers.next().expect("it has no end"));
        let sent = v1::Preview::decode(bytes.as_slice()).expect("it was encoded");
        // These two are not of the slice. A slice has a name.
        let sent = v1::Preview { slice: "slice-1".into(), exporter_clock: None, traceparent: String::new(), ..sent };
        let (name, spec) = sent.clone().into_model().expect("valid");
        assert_eq!(v1::Preview::new(&name, &spec), Some(sent));
        let content = &spec.content;
        [
            (!content.draining.is_empty(), "draining endpoints"),
            (content.ports.iter().any(|port| port.port.is_none()), "a port for all ports"),
            (spec.reference.exported_since.is_none(), "no time"),
            (content.endpoints.iter().any(|endpoint| endpoint.zone.is_some()), "zones"),
        ]
    });
    let spec = HubSliceSpec {
        content: SliceContent {
            address_type: AddressType::Other("FQDN".into()),
            endpoints: Vec::new(),
            draining: Vec::new(),
            ports: Vec::new(),
        }
        .into(),
        reference: Reference {
            cluster: "a".into(),
            source: ObjectName::new("work", "app-1"),
            uid: "uid".into(),
            resource_version: "1".into(),
            generation: 1,
            exported_since: None,
        },
        owner: ObjectName::new("work", "app"),
    };
    assert_eq!(v1::Preview::new("slice-1", &spec), None, "it is never distributed");
}

#[test]
fn endpoints_of_a_zone_share_its_text() {
    let endpoint = || v1::Endpoint { zone: Some("zone-1".to_owned()), ..v1::Endpoint::default() };
    let preview = v1::Preview { endpoints: vec![endpoint()], draining: vec![endpoint()], ..valid() };
    let (_, spec) = preview.into_model().expect("valid");
    let zones: Vec<_> = spec.content.endpoints.iter().chain(&spec.content.draining).flat_map(|it| &it.zone).collect();
    assert!(std::ptr::eq(zones[0].as_ptr(), zones[1].as_ptr()));
}

fn valid() -> v1::Preview {
    let name = v1::NamespacedName { namespace: "work".to_owned(), name: "app".to_owned() };
    v1::Preview {
        slice: "slice-1".to_owned(),
        owner: Some(name.clone()),
        source: Some(v1::Source { slice: Some(name), ..v1::Source::default() }),
        address_type: v1::AddressType::Ipv4.into(),
        ..v1::Preview::default()
    }
}

#[test]
fn a_preview_without_a_field_that_every_agent_writes_is_malformed() {
    type Break = fn(&mut v1::Preview);
    let table: [(&str, Break); 6] = [
        ("no name", |preview| preview.slice.clear()),
        ("no owner", |preview| preview.owner = None),
        ("no source", |preview| preview.source = None),
        ("no name of the source slice", |preview| preview.source.as_mut().expect("it has one").slice = None),
        ("an unknown address type", |preview| preview.address_type = 0),
        ("an unknown address type", |preview| preview.address_type = 3),
    ];
    assert!(valid().into_model().is_ok());
    for (fault, make) in table {
        let mut preview = valid();
        make(&mut preview);
        let slice = preview.slice.clone();
        let error = preview.into_model().expect_err(fault).to_string();
        assert_eq!(error, format!("Preview of slice {slice:?} has {fault}"));
    }
}
