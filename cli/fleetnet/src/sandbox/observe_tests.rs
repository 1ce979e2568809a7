//! Tests of the observed and the expected state of two members.

use super::*;

const GOOD: Export = Export { valid: Some(true), conflict: Some(false) };

fn slice(addresses: &[&str]) -> Option<Fact> {
    let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
    let description = describe::imported_slice_of("work-app", &addresses);
    Some(Fact::Slice(Slice { derived: "work-app".to_owned(), addresses, description, ..Slice::default() }))
}

/// Returns the expected state of two members: the first member exports two slices, and the second member imports these
/// slices. The observed state is empty.
fn fleet() -> (World, Expected) {
    let mut expected = Expected::default();
    expected.exports.insert((0, "app".to_owned()), GOOD);
    expected.imports.insert((1, "app".to_owned()));
    expected.ports.insert((0, "app".to_owned()), 80);
    expected.endpoints.insert((0, "app".to_owned(), "app-1".to_owned()), vec![address(0, 1)]);
    expected.endpoints.insert((0, "app".to_owned(), "app-2".to_owned()), vec![address(0, 2)]);
    // Add a slice that must not be exported: the second member does not export the Service of the slice.
    expected.endpoints.insert((1, "app".to_owned(), "app-1".to_owned()), vec![address(1, 1)]);
    (World::new(Api::Fleet, vec!["member-1".to_owned(), "member-2".to_owned()]), expected)
}

/// Returns the expected state of [`fleet`], and an observed state that equals the expected state.
fn settled() -> (World, Expected) {
    let (mut world, expected) = fleet();
    let now = Instant::now();
    world.learn(0, Kind::Export, "app", Some(Fact::Export(GOOD)), now);
    world.learn(1, Kind::Import, "app", Some(Fact::Import(true)), now);
    world.learn(1, Kind::Derived, "work-app", Some(derived(80)), now);
    world.learn(1, Kind::Slice, "member-1-work-app-1-aaaaa", slice(&["10.1.0.1"]), now);
    world.learn(1, Kind::Slice, "member-1-work-app-2-bbbbb", slice(&["10.1.0.2"]), now);
    (world, expected)
}

fn derived(port: u16) -> Fact {
    Fact::Derived(describe::derived_service_of("app", &describe::sandbox_port(port)))
}

fn differences(world: &World, expected: &Expected) -> Vec<String> {
    world.differences(expected).collect()
}

#[test]
fn what_is_missing_is_reported() {
    let (world, expected) = fleet();
    assert_eq!(
        differences(&world, &expected),
        [
            "export work/app of member-1 does not exist",
            "import work/app in member-2 is not valid",
            "fleet-system of member-2 has no EndpointSlice member-1-work-app-1",
            "fleet-system of member-2 has no EndpointSlice member-1-work-app-2",
            "fleet-system of member-2 has no Service work-app",
        ]
    );
    let (world, expected) = settled();
    assert_eq!(differences(&world, &expected), Vec::<String>::new());
}

#[test]
fn objects_left_over_or_with_other_content_are_reported() {
    let now = Instant::now();
    let check = |member, kind, name: &str, fact: Option<Fact>, expected_difference: &str| {
        let (mut world, expected) = settled();
        world.learn(member, kind, name, fact, now);
        let found = differences(&world, &expected);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected_difference), "{found:?}");
    };
    let conflict = Export { valid: Some(true), conflict: Some(true) };
    check(0, Kind::Export, "app", Some(Fact::Export(conflict.clone())), "app of member-1 is valid, in conflict");
    check(1, Kind::Export, "zzz", Some(Fact::Export(conflict)), "export work/zzz of member-2 should not be there");
    check(1, Kind::Import, "app", Some(Fact::Import(false)), "import work/app in member-2 is not valid");
    check(0, Kind::Import, "zzz", Some(Fact::Import(true)), "import work/zzz in member-1 should not be there");
    check(1, Kind::Derived, "work-app", None, "has no Service work-app");
    check(1, Kind::Derived, "work-app", Some(derived(81)), "says \"ClusterIP for work/app: http 81/TCP to 8080\", not");
    check(1, Kind::Derived, "other", Some(derived(80)), "has the Service other, which should not");
    check(1, Kind::Slice, "leftover", slice(&[]), "has the EndpointSlice leftover, which should not");
    check(
        0,
        Kind::Slice,
        "member-1-work-app-1-aaaaa",
        slice(&["10.1.0.1"]),
        "fleet-system of member-1 has the EndpointSlice",
    );
    check(1, Kind::Slice, "member-1-work-app-1-ccccc", slice(&["10.1.0.1"]), "app-1-ccccc, which should not be there");
    check(1, Kind::Slice, "member-1-work-app-1-aaaaa", slice(&["10.1.0.9"]), "at 10.1.0.9\", not");
    check(1, Kind::Slice, "member-1-work-app-2-bbbbb", None, "has no EndpointSlice member-1-work-app-2");
}

#[test]
fn the_first_sight_of_an_endpoint_is_its_arrival() {
    let (mut world, _) = fleet();
    let now = Instant::now();
    world.await_arrivals("10.1.0.7");
    world.learn(1, Kind::Slice, "a", slice(&["10.1.0.1"]), now);
    assert_eq!(world.arrived("10.1.0.7"), 0);
    let later = now + std::time::Duration::from_millis(5);
    world.learn(1, Kind::Slice, "a", slice(&["10.1.0.7"]), later);
    world.learn(1, Kind::Slice, "a", slice(&["10.1.0.7"]), later + std::time::Duration::from_millis(5));
    assert_eq!(world.take_arrivals("10.1.0.7"), BTreeMap::from([(1, later)]));
    assert_eq!(world.arrived("10.1.0.7"), 0);
}

#[test]
fn an_import_tells_where_its_endpoints_come_from() {
    let (mut world, _) = fleet();
    let now = Instant::now();
    world.learn(1, Kind::Import, "app", Some(Fact::Import(true)), now);
    world.learn(1, Kind::Slice, "a", slice(&["10.1.0.1", "10.1.255.2"]), now);
    world.learn(1, Kind::Slice, "b", slice(&["10.2.0.1", "10.77.0.1", "192.168.0.1"]), now);
    let imports = world.imports();
    let import = &imports[&("member-2".to_owned(), "work/app".to_owned())];
    assert_eq!((import.slices, import.endpoints), (2, 5));
    assert_eq!(import.from, BTreeSet::from(["member-1".to_owned(), "member-2".to_owned()]));
}

#[test]
fn a_new_look_forgets_what_is_gone() {
    let (mut world, _) = fleet();
    let now = Instant::now();
    world.learn(0, Kind::Export, "app", Some(Fact::Export(GOOD)), now);
    world.learn(0, Kind::Import, "app", Some(Fact::Import(true)), now);
    world.keep_only(0, Kind::Export, &BTreeSet::new());
    assert_eq!((world.exports().len(), world.imports().len()), (0, 1));
}

#[test]
fn addresses_use_all_of_a_number() {
    assert_eq!((address(0, 1), address(49, 65535)), ("10.1.0.1".to_owned(), "10.50.255.255".to_owned()));
    assert_eq!(origin_of("10.50.255.255"), Some(49));
    assert_eq!((origin_of("10.0.0.1"), origin_of("10.x"), origin_of("11.1.1.1")), (None, None, None));
}

#[test]
fn what_a_user_made_beside_is_no_difference_from_what_the_sandbox_made() {
    let (mut world, expected) = settled();
    let now = Instant::now();
    world.learn(0, Kind::Export, "web", Some(Fact::Export(GOOD)), now);
    world.learn(1, Kind::Slice, "member-1-work-web-1-ccccc", slice(&["10.244.1.1"]), now);
    assert_eq!(differences(&world, &expected).len(), 2);
    assert_eq!(world.own_differences(&expected).next(), None);
    world.learn(0, Kind::Export, "app", None, now);
    assert_eq!(world.own_differences(&expected).next().as_deref(), Some("export work/app of member-1 does not exist"));
}

#[test]
fn addresses_of_pods_tell_their_member() {
    for (address, member) in [("10.1.0.9", Some(0)), ("10.244.2.7", Some(1)), ("10.2.0.1", Some(1)), ("fd00::1", None)]
    {
        assert_eq!(origin_of(address), member, "{address}");
    }
}

#[test]
fn an_import_counts_its_draining_endpoints() {
    let (mut world, _) = settled();
    let drained = Slice {
        derived: "work-app".to_owned(),
        addresses: vec!["10.1.0.1".to_owned(), "10.1.0.7".to_owned()],
        draining: 1,
        unready: 1,
        description: String::new(),
    };
    world.learn(1, Kind::Slice, "member-1-work-app-1-aaaaa", Some(Fact::Slice(drained)), Instant::now());
    let import = world.imports().remove(&("member-2".to_owned(), "work/app".to_owned())).unwrap();
    assert_eq!((import.endpoints, import.draining, import.unready), (3, 1, 1));
}
