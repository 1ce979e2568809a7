//! Tests of decoding objects as Go does: types, unknown fields, zero values.

use super::{Findings, Object, Shape, Struct, TEXT, TEXTS, Undecodable, always, full, present, read};
use serde_json::{Value, json};

static KIND: Struct = Struct {
    name: "v1.Kind",
    fields: &[
        full("text", TEXT),
        full("texts", TEXTS),
        always("count", Shape::Int32),
        present("flag", Shape::Flag),
        always("inner", Shape::Struct(&INNER)),
        full("inners", Shape::List(&Shape::Struct(&INNER))),
        present("time", Shape::Time),
        present("micro", Shape::MicroTime),
        full("bytes", Shape::Map(&Shape::Bytes)),
    ],
};

static INNER: Struct = Struct { name: "v1.Inner", fields: &[always("items", TEXTS), present("port", Shape::Port)] };

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn read_back(value: Value) -> (Value, Vec<String>) {
    let mut object = object(value);
    let mut findings = Findings::default();
    read(&KIND, &mut object, &mut findings).unwrap();
    (Value::Object(object), findings.strict)
}

fn refusal(value: Value) -> String {
    let Err(Undecodable(why)) = read(&KIND, &mut object(value), &mut Findings::default()) else {
        panic!("it was read")
    };
    why
}

#[test]
fn members_are_written_as_go_writes_them() {
    let (read, _) = read_back(json!({"text": "", "texts": [], "flag": false, "metadata": {"name": "a"}}));
    let expected = json!({"count": 0, "flag": false, "inner": {"items": null}, "metadata": {"name": "a"}});
    assert_eq!(read, expected);
}

#[test]
fn null_is_what_was_never_set() {
    let (read, _) = read_back(json!({"text": null, "count": null, "inner": null, "inners": [null], "texts": [null]}));
    let expected = json!({"count": 0, "inner": {"items": null}, "inners": [{"items": null}], "texts": [""]});
    assert_eq!(read, expected);
}

#[test]
fn unknown_members_are_dropped_and_told_of_with_their_place() {
    let (read, told) = read_back(json!({"bogus": 1, "inners": [{}, {"x": 2}], "inner": {"items": ["a"], "y": 3}}));
    let expected = json!({"count": 0, "inner": {"items": ["a"]}, "inners": [{"items": null}, {"items": null}]});
    assert_eq!(read, expected);
    let expected = [r#"unknown field "bogus""#, r#"unknown field "inner.y""#, r#"unknown field "inners[1].x""#];
    assert_eq!(told, expected);
}

#[test]
fn wrong_types_are_refused_with_the_type_and_the_path_of_go() {
    let cases = [
        (json!({"text": 5}), "json: cannot unmarshal number into Go struct field Kind.text of type string"),
        (json!({"texts": "x"}), "json: cannot unmarshal string into Go struct field Kind.texts of type []string"),
        (json!({"texts": [1]}), "json: cannot unmarshal number into Go struct field Kind.texts of type string"),
        (json!({"count": 1.5}), "json: cannot unmarshal number 1.5 into Go struct field Kind.count of type int32"),
        (
            json!({"count": 3_000_000_000_i64}),
            "json: cannot unmarshal number 3000000000 into Go struct field Kind.count of type int32",
        ),
        (json!({"inner": []}), "json: cannot unmarshal array into Go struct field Kind.inner of type v1.Inner"),
        (
            json!({"inners": [{"port": true}]}),
            "json: cannot unmarshal bool into Go struct field Inner.inners.port of type int32",
        ),
        (json!({"bytes": {"a": "!"}}), "illegal base64 data at input byte 0"),
    ];
    for (sent, expected) in cases {
        assert_eq!(refusal(sent), expected);
    }
}

#[test]
fn times_are_brought_to_utc() {
    let sent = json!({"time": "2020-01-01T02:00:00.9+02:00", "micro": "2020-01-01T02:00:00.123456+02:00"});
    let (read, _) = read_back(sent);
    assert_eq!(read["time"], "2020-01-01T00:00:00Z");
    assert_eq!(read["micro"], "2020-01-01T00:00:00.123456Z");
}

#[test]
fn times_that_are_none_are_refused_in_the_words_of_go() {
    let cases = [
        ("time", "x", "2006-01-02T15:04:05Z07:00", "x", "2006"),
        ("time", "2020-01-01", "2006-01-02T15:04:05Z07:00", "", "T"),
        ("time", "2020-01-01 00:00:00Z", "2006-01-02T15:04:05Z07:00", " 00:00:00Z", "T"),
        ("micro", "2020-01-01T00:00:00Z", "2006-01-02T15:04:05.000000Z07:00", "Z", ".000000"),
        ("micro", "2020-01-01T00:00:00.5Z", "2006-01-02T15:04:05.000000Z07:00", ".5Z", ".000000"),
    ];
    for (member, text, layout, rest, wanted) in cases {
        let expected = format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}");
        assert_eq!(refusal(json!({member: text})), expected);
    }
}
