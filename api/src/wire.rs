//! Fields of objects: for each, one description of its JSON key, its decoding and its encoding.
//!
//! [`record!`] declares the fields of a JSON object that is a value of core's model. It generates the type of the
//! CustomResourceDefinition, the lenient decoder and the encoder. [`codec!`] does the same without the first, for
//! objects of Kubernetes and values in annotations.

use crate::lenient::{Few, Field, Filled, First, Shape, Short};
use crate::times;
use fleetnet_core::model::{Address, IpFamily, Operator, PortNumber, SilencePhase, TargetPort, Treatment};
use fleetnet_types::{ClusterId, ConditionStatus, Text, Timestamp, Uid};
use serde_json::Value;
use std::marker::PhantomData;

const TCP: &str = "TCP";

/// Form of a value in JSON.
pub(crate) trait Wire: Shape {
    /// Value in core's model.
    type Model;

    /// Converts what was decoded to core's model. Fails if the object is undecodable, or its element in a list is
    /// skipped.
    fn model(self) -> Result<Self::Model, &'static str>;

    /// Returns the JSON that the agents write for a value.
    fn json(value: &Self::Model) -> Value;
}

/// Meaning of a field that is absent or invalid, and form of its default. In a merge patch, null removes a field.
pub(crate) trait Rule {
    type Raw: Shape;
    type Model;

    /// Returns the value of the field in core's model, or the reason why the object is undecodable.
    fn read(raw: Field<Self::Raw>, not_a_list: &'static str) -> Result<Self::Model, &'static str>;

    fn write(value: &Self::Model) -> Value;
}

/// Field whose absent or invalid value counts as the default. The default is written.
pub(crate) struct Plain<W>(PhantomData<W>);
/// Field whose absent or invalid value counts as the default. The default is written as null.
pub(crate) struct Sparse<W>(PhantomData<W>);
/// Field whose absent or invalid value counts as `None`. `None` is written as null.
pub(crate) struct Maybe<W>(PhantomData<W>);
/// Field without which the object counts as absent.
pub(crate) struct Needed<W>(PhantomData<W>);
/// List whose absence would remove something, so an invalid value makes the object undecodable.
pub(crate) struct Strict<R>(PhantomData<R>);
/// IP protocol, TCP if the value is absent or invalid.
pub(crate) struct OrTcp<W>(PhantomData<W>);

impl<W: Wire + Default> Rule for Plain<W> {
    type Raw = W;
    type Model = W::Model;

    fn read(raw: Field<W>, _: &'static str) -> Result<W::Model, &'static str> {
        raw.or_default().model()
    }

    fn write(value: &W::Model) -> Value {
        W::json(value)
    }
}

impl<W: Wire<Model: Default + PartialEq> + Default> Rule for Sparse<W> {
    type Raw = W;
    type Model = W::Model;

    fn read(raw: Field<W>, not_a_list: &'static str) -> Result<W::Model, &'static str> {
        Plain::read(raw, not_a_list)
    }

    fn write(value: &W::Model) -> Value {
        if *value == W::Model::default() { Value::Null } else { W::json(value) }
    }
}

impl<W: Wire> Rule for Maybe<W> {
    type Raw = W;
    type Model = Option<W::Model>;

    fn read(raw: Field<W>, _: &'static str) -> Result<Option<W::Model>, &'static str> {
        Ok(raw.value().and_then(|raw| raw.model().ok()))
    }

    fn write(value: &Option<W::Model>) -> Value {
        value.as_ref().map_or(Value::Null, W::json)
    }
}

impl<W: Wire> Rule for Needed<W> {
    type Raw = W;
    type Model = W::Model;

    fn read(raw: Field<W>, _: &'static str) -> Result<W::Model, &'static str> {
        raw.value().ok_or("a field is absent or invalid")?.model()
    }

    fn write(value: &W::Model) -> Value {
        W::json(value)
    }
}

impl<R: Rule> Rule for Strict<R> {
    type Raw = R::Raw;
    type Model = R::Model;

    fn read(raw: Field<R::Raw>, not_a_list: &'static str) -> Result<R::Model, &'static str> {
        if matches!(raw, Field::Nonsense) { Err(not_a_list) } else { R::read(raw, not_a_list) }
    }

    fn write(value: &R::Model) -> Value {
        R::write(value)
    }
}

impl<W: Wire<Model = Text>> Rule for OrTcp<W> {
    type Raw = W;
    type Model = Text;

    fn read(raw: Field<W>, _: &'static str) -> Result<Text, &'static str> {
        raw.value().map_or_else(|| Ok(TCP.into()), W::model)
    }

    fn write(value: &Text) -> Value {
        (**value).into()
    }
}

/// Implements [`Wire`] for types of core's model, with the function that returns their JSON.
macro_rules! values {
    ($($type:ty: $json:expr),+ $(,)?) => {
        $(
            impl Wire for $type {
                type Model = Self;

                fn model(self) -> Result<Self, &'static str> {
                    Ok(self)
                }

                fn json(value: &Self) -> Value {
                    let json: fn(&Self) -> Value = $json;
                    json(value)
                }
            }
        )+
    };
}

values! {
    bool: |value| (*value).into(),
    i64: |number| (*number).into(),
    u32: |number| (*number).into(),
    PortNumber: |number| number.as_written().into(),
    Text: |text| (**text).into(),
    Box<str>: |text| (**text).into(),
    ClusterId: |id| (**id).into(),
    Uid: |uid| (**uid).into(),
    Address: |address| address.to_string().into(),
    ConditionStatus: |status| status.as_str().into(),
    Operator: |operator| operator.as_str().into(),
    SilencePhase: |phase| phase.name().into(),
    Treatment: |treatment| treatment.name().into(),
    IpFamily: |family| match family {
        IpFamily::IPv4 => "IPv4".into(),
        IpFamily::IPv6 => "IPv6".into(),
    },
    TargetPort: |target| match target {
        TargetPort::Number(number) => number.as_written().into(),
        TargetPort::Name(name) => (**name).into(),
    },
}

/// Time that is written as Kubernetes' `MicroTime`.
#[derive(Default)]
pub(crate) struct Micros(Timestamp);
/// Time that is written as Kubernetes' `Time`, in whole seconds.
#[derive(Default)]
pub(crate) struct Seconds(Timestamp);

macro_rules! times {
    ($($type:ident: $written:path),+) => {
        $(
            impl Shape for $type {
                fn text(text: &str) -> Option<Self> {
                    times::read(text).map(Self)
                }
            }

            impl Wire for $type {
                type Model = Timestamp;

                fn model(self) -> Result<Timestamp, &'static str> {
                    Ok(self.0)
                }

                fn json(time: &Timestamp) -> Value {
                    $written(*time).into()
                }
            }
        )+
    };
}

times!(Micros: times::micros, Seconds: times::seconds);

impl<W: Wire, const LONGEST: usize> Wire for Short<W, LONGEST> {
    type Model = W::Model;

    fn model(self) -> Result<W::Model, &'static str> {
        self.into_text().model()
    }

    fn json(value: &W::Model) -> Value {
        W::json(value)
    }
}

impl<W: Wire> Wire for Filled<W> {
    type Model = W::Model;

    fn model(self) -> Result<W::Model, &'static str> {
        self.0.model()
    }

    fn json(value: &W::Model) -> Value {
        W::json(value)
    }
}

/// Implements [`Wire`] for kinds of lists, with the function that returns the elements.
macro_rules! lists {
    ($([$($limit:tt)*] $type:ty: $elements:expr),+ $(,)?) => {
        $(
            impl<W: Wire, $($limit)*> Wire for $type {
                type Model = Vec<W::Model>;

                fn model(self) -> Result<Vec<W::Model>, &'static str> {
                    let elements: fn(Self) -> Vec<W> = $elements;
                    Ok(models(elements(self)))
                }

                fn json(list: &Vec<W::Model>) -> Value {
                    elements::<W>(list).into()
                }
            }
        )+
    };
}

lists! {
    [] Vec<W>: |list| list,
    [const MOST: usize] Few<W, MOST>: |few| few.elements,
    [const MOST: usize] First<W, MOST>: |first| first.elements,
}

/// Returns the elements that are valid. `collect` would keep the larger memory of `raw`.
fn models<W: Wire>(raw: Vec<W>) -> Vec<W::Model> {
    let mut models = Vec::with_capacity(raw.len());
    models.extend(raw.into_iter().filter_map(|raw| raw.model().ok()));
    models.shrink_to_fit();
    models
}

/// Returns the JSON of the elements of a list. They have no nulls, because a patch replaces a list as a whole.
pub(crate) fn elements<W: Wire>(list: &[W::Model]) -> Vec<Value> {
    let element = |value| {
        let mut element = W::json(value);
        if let Value::Object(fields) = &mut element {
            fields.retain(|_, value| !value.is_null());
        }
        element
    };
    list.iter().map(element).collect()
}

/// Declares the fields of a JSON object once.
///
/// - `NAME: TYPE = FIELD "KEY" as RULE` is a field: its name and type in the CustomResourceDefinition, its field in
///   core's model, its key in JSON, and its [`Rule`].
/// - `NAME(default)` is a field that may be absent.
/// - `.FIELD: TYPE { … }` has the fields of a nested value of the model.
/// - `definition { … }` has the fields that only the definition has.
/// - `raw { … }` has the fields that are read, but are not in the model.
macro_rules! record {
    (
        $(#[$meta:meta])*
        struct $strict:ident: $raw:ident => $model:path {
            $(
                $(#[$attribute:meta])*
                $name:ident $(($default:ident))?: $type:ty = $field:ident $key:literal as $rule:ty,
            )*
            $(
                .$part:ident: $of:path {
                    $(
                        $(#[$part_attribute:meta])*
                        $part_name:ident $(($part_default:ident))?: $part_type:ty
                            = $part_field:ident $part_key:literal as $part_rule:ty,
                    )*
                }
            )*
        }
        $(definition { $($(#[$only_attribute:meta])* $only:ident $(($only_default:ident))?: $only_type:ty,)* })?
        $(raw $further:tt)?
    ) => {
        $(#[$meta])*
        pub struct $strict {
            $(
                $(#[$attribute])*
                $(#[serde($default, skip_serializing_if = "Option::is_none")])?
                #[serde(rename = $key)]
                pub $name: $type,
            )*
            $(
                $(
                    $(#[$part_attribute])*
                    $(#[serde($part_default, skip_serializing_if = "Option::is_none")])?
                    #[serde(rename = $part_key)]
                    pub $part_name: $part_type,
                )*
            )*
            $(
                $(
                    $(#[$only_attribute])*
                    $(#[serde($only_default, skip_serializing_if = "Option::is_none")])?
                    pub $only: $only_type,
                )*
            )?
        }

        $crate::wire::codec! {
            $raw => $model {
                $($field = $key as $rule,)*
                $(.$part: $of { $($part_field = $part_key as $part_rule,)* })*
            }
            $(raw $further)?
        }
    };
}

/// Declares the decoder and the encoder of a JSON object, as [`record!`] does.
macro_rules! codec {
    (
        $raw:ident => $model:path {
            $($field:ident = $key:literal as $rule:ty,)*
            $(.$part:ident: $of:path { $($part_field:ident = $part_key:literal as $part_rule:ty,)* })*
        }
        $(raw { $($further:ident: $shape:ty = $further_key:literal $(=> $write:expr)?,)* })?
    ) => {
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        pub(crate) struct $raw {
            $(
                #[serde(rename = $key)]
                pub(crate) $field: $crate::lenient::Field<<$rule as $crate::wire::Rule>::Raw>,
            )*
            $(
                $(
                    #[serde(rename = $part_key)]
                    pub(crate) $part_field: $crate::lenient::Field<<$part_rule as $crate::wire::Rule>::Raw>,
                )*
            )*
            $(
                $(
                    #[serde(rename = $further_key)]
                    pub(crate) $further: $crate::lenient::Field<$shape>,
                )*
            )?
        }

        $crate::lenient::records!($raw);

        impl $crate::wire::Wire for $raw {
            type Model = $model;

            fn model(self) -> Result<$model, &'static str> {
                use $crate::wire::Rule;
                type Model = $model;
                $(
                    let $part = {
                        type Part = $of;
                        Part { $($part_field: <$part_rule>::read(self.$part_field, concat!($part_key, " is not a list"))?,)* }
                    };
                )*
                Ok(Model {
                    $($field: <$rule>::read(self.$field, concat!($key, " is not a list"))?,)*
                    $($part: $part.into(),)*
                })
            }

            fn json(value: &$model) -> serde_json::Value {
                use $crate::wire::Rule;
                let mut fields = serde_json::Map::new();
                $(fields.insert($key.to_owned(), <$rule>::write(&value.$field));)*
                $($(fields.insert($part_key.to_owned(), <$part_rule>::write(&value.$part.$part_field));)*)*
                $(
                    $(
                        $(
                            let write: fn(&$model) -> serde_json::Value = $write;
                            fields.insert($further_key.to_owned(), write(value));
                        )?
                    )*
                )?
                serde_json::Value::Object(fields)
            }
        }
    };
}

pub(crate) use {codec, record};
