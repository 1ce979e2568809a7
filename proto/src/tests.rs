//! Tests of the protocol: it never changes what older agents read, and a preview keeps all of a slice.

use crate::{DESCRIPTORS, v1};
use fleetnet_core::model::{Address, AddressType, Endpoint, EndpointPort, HubSliceSpec, Reference, SliceContent};
use fleetnet_types::{ObjectName, Text, Timestamp};
use property::for_any;
use proptest::option;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::BTreeSet;

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
    assert!(new.is_empty(), "add these lines to proto/released/v1.txt: {new:#?}");
}

fn text() -> impl Strategy<Value = Text> {
    prop_oneof![Just(""), Just("a"), Just("cart"), Just("zone-1")].prop_map(Text::from)
}

fn name() -> impl Strategy<Value = ObjectName> {
    (text(), text()).prop_map(|(namespace, name)| ObjectName { namespace, name })
}

fn an_endpoint() -> impl Strategy<Value = Endpoint> {
    let address = prop_oneof![Just("10.0.0.1"), Just("fd00::1"), Just("FD00::1"), Just("10.0.0.01"), Just("host")];
    let addresses = prop::collection::vec(address.prop_map(Address::from), 0..4);
    (addresses, option::of(text()), option::of(text())).prop_map(|(addresses, hostname, zone)| Endpoint {
        addresses,
        hostname: hostname.map(|name| (*name).into()),
        zone,
    })
}

fn a_port() -> impl Strategy<Value = EndpointPort> {
    (text(), text(), option::of(any::<i32>()), option::of(text())).prop_map(|(name, protocol, port, app_protocol)| {
        EndpointPort { name, protocol, port: port.map(Into::into), app_protocol }
    })
}

fn a_spec() -> impl Strategy<Value = HubSliceSpec> {
    let endpoints = || prop::collection::vec(an_endpoint(), 0..5);
    let content = (any::<bool>(), endpoints(), endpoints(), prop::collection::vec(a_port(), 0..3));
    let reference = (text(), name(), text(), text(), any::<i64>(), option::of(any::<i64>()));
    (name(), content, reference).prop_map(|(owner, (is_six, endpoints, draining, ports), reference)| {
        let address_type = if is_six { AddressType::IPv6 } else { AddressType::IPv4 };
        let (cluster, source, uid, resource_version, generation, since) = reference;
        HubSliceSpec {
            reference: Reference {
                cluster: (&*cluster).into(),
                source,
                uid: (&*uid).into(),
                resource_version,
                generation,
                exported_since: since.map(Timestamp),
            },
            owner,
            content: SliceContent { address_type, endpoints, draining, ports }.into(),
        }
    })
}

#[test]
fn a_preview_keeps_all_of_a_slice() {
    for_any(ProptestConfig::with_cases(500), 20, &a_spec(), |spec| {
        let preview = v1::Preview::new("slice-1", &spec).expect("an IP slice");
        let decoded = v1::Preview::decode(preview.encode_to_vec().as_slice()).expect("it was encoded");
        assert_eq!(decoded.into_model(), Ok(("slice-1".into(), spec.clone())));
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
