//! What the clusters of a fleet show, as far as it was seen, and how it differs from what should be. Pure.

use super::event::{Export, Import};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// The namespace that the sandbox's Services are in.
pub(crate) const NAMESPACE: &str = "work";

/// What an object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// A ServiceExport.
    Export(Export),
    /// A MultiClusterService: its condition `Valid`.
    Wish(bool),
    /// An imported slice.
    Slice(Slice),
}

/// The kinds that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// ServiceExports in [`NAMESPACE`].
    Export,
    /// MultiClusterServices in [`NAMESPACE`].
    Wish,
    /// EndpointSlices of derived Services.
    Slice,
}

/// An imported slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The derived Service that it belongs to.
    pub(crate) derived: String,
    /// The addresses of its endpoints.
    pub(crate) addresses: Vec<String>,
}

/// What the members show. Members are known by their index.
#[derive(Clone, Debug)]
pub(crate) struct World {
    names: Vec<String>,
    facts: Vec<BTreeMap<(Kind, String), Fact>>,
    awaited: BTreeMap<String, BTreeMap<usize, Instant>>,
}

/// What should be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// What each export should say, by member and Service.
    pub(crate) exports: BTreeMap<(usize, String), Export>,
    /// Who imports what.
    pub(crate) imports: BTreeSet<(usize, String)>,
    /// Endpoints, by member, Service and slice.
    pub(crate) endpoints: BTreeMap<(usize, String, String), Vec<String>>,
}

impl World {
    /// Members of these names of which nothing is known yet.
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { facts: vec![BTreeMap::new(); names.len()], names, awaited: BTreeMap::new() }
    }

    /// Takes in what an object of a member says now; none where it is gone.
    pub(crate) fn learn(&mut self, member: usize, kind: Kind, name: &str, fact: Option<Fact>, at: Instant) {
        let Some(facts) = self.facts.get_mut(member) else { return };
        let Some(fact) = fact else {
            facts.remove(&(kind, name.to_owned()));
            return;
        };
        if let Fact::Slice(slice) = &fact {
            for address in &slice.addresses {
                if let Some(arrivals) = self.awaited.get_mut(address) {
                    arrivals.entry(member).or_insert(at);
                }
            }
        }
        facts.insert((kind, name.to_owned()), fact);
    }

    /// Forgets the objects of a kind that a new look at all of them did not show.
    pub(crate) fn keep_only(&mut self, member: usize, kind: Kind, names: &BTreeSet<String>) {
        if let Some(facts) = self.facts.get_mut(member) {
            facts.retain(|(of, name), _| *of != kind || names.contains(name));
        }
    }

    /// From now on notes when an endpoint arrives where.
    pub(crate) fn await_arrivals(&mut self, address: &str) {
        self.awaited.insert(address.to_owned(), BTreeMap::new());
    }

    /// In how many members an awaited endpoint has arrived.
    pub(crate) fn arrived(&self, address: &str) -> usize {
        self.awaited.get(address).map_or(0, BTreeMap::len)
    }

    /// When it arrived where; it is awaited no longer.
    pub(crate) fn take_arrivals(&mut self, address: &str) -> BTreeMap<usize, Instant> {
        self.awaited.remove(address).unwrap_or_default()
    }

    /// What a member's ServiceExport says.
    pub(crate) fn export(&self, member: usize, service: &str) -> Option<&Export> {
        match self.facts.get(member)?.get(&(Kind::Export, service.to_owned()))? {
            Fact::Export(export) => Some(export),
            _ => None,
        }
    }

    /// All exports, by the names of cluster and Service.
    pub(crate) fn exports(&self) -> BTreeMap<(String, String), Export> {
        let mut exports = BTreeMap::new();
        for (name, facts) in self.names.iter().zip(&self.facts) {
            for ((_, service), fact) in facts {
                if let Fact::Export(export) = fact {
                    exports.insert((name.clone(), full_name(service)), export.clone());
                }
            }
        }
        exports
    }

    /// All imports, by the names of cluster and Service.
    pub(crate) fn imports(&self) -> BTreeMap<(String, String), Import> {
        let mut imports = BTreeMap::new();
        for (index, name) in self.names.iter().enumerate() {
            for ((_, service), fact) in &self.facts[index] {
                if let Fact::Wish(valid) = fact {
                    imports.insert((name.clone(), full_name(service)), self.import(index, service, *valid));
                }
            }
        }
        imports
    }

    fn import(&self, member: usize, service: &str, valid: bool) -> Import {
        let mut import = Import { valid, ..Import::default() };
        for slice in self.slices(member, service) {
            import.slices += 1;
            import.endpoints += slice.addresses.len();
            let origins = slice.addresses.iter().filter_map(|address| self.names.get(origin_of(address)?));
            import.from.extend(origins.cloned());
        }
        import
    }

    fn slices(&self, member: usize, service: &str) -> impl Iterator<Item = &Slice> {
        let derived = derived_name(service);
        self.facts[member].values().filter_map(move |fact| match fact {
            Fact::Slice(slice) if slice.derived == derived => Some(slice),
            _ => None,
        })
    }

    /// How this differs from what should be, in sentences; empty where it does not.
    pub(crate) fn differences(&self, expected: &Expected) -> Vec<String> {
        let mut wrong = Vec::new();
        for ((member, service), export) in &expected.exports {
            if self.export(*member, service) != Some(export) {
                let says = self.export(*member, service).map_or_else(|| "is not there".to_owned(), told);
                wrong.push(format!("{} in {} {says}", full_name(service), self.names[*member]));
            }
        }
        for (member, service) in &expected.imports {
            wrong.extend(self.wrong_import(*member, service, expected));
        }
        wrong
    }

    fn wrong_import(&self, member: usize, service: &str, expected: &Expected) -> Option<String> {
        let says = |wrong: String| Some(format!("{} in {} {wrong}", full_name(service), self.names[member]));
        match self.facts[member].get(&(Kind::Wish, service.to_owned())) {
            Some(Fact::Wish(true)) => {}
            _ => return says("is not imported validly".to_owned()),
        }
        let mut found: Vec<&str> =
            self.slices(member, service).flat_map(|slice| slice.addresses.iter().map(String::as_str)).collect();
        found.sort_unstable();
        let wanted = expected.addresses(service);
        if found == wanted {
            return None;
        }
        let missing = wanted.iter().filter(|address| !found.contains(address));
        let odd = found.iter().filter(|address| !wanted.contains(address));
        let (missing, odd): (Vec<_>, Vec<_>) = (missing.collect(), odd.collect());
        says(format!(
            "has {} endpoints of {}: missing {}, outdated {}",
            found.len(),
            wanted.len(),
            some(&missing),
            some(&odd)
        ))
    }
}

impl Expected {
    /// The endpoints that importers of a Service should have, ordered: those of exports that are valid and without conflict.
    fn addresses(&self, service: &str) -> Vec<&str> {
        let offered = Export { valid: Some(true), conflict: Some(false) };
        let exported = |member: usize| self.exports.get(&(member, service.to_owned())) == Some(&offered);
        let of_service = self.endpoints.iter().filter(|((member, of, _), _)| of == service && exported(*member));
        let mut addresses: Vec<&str> =
            of_service.flat_map(|(_, addresses)| addresses.iter().map(String::as_str)).collect();
        addresses.sort_unstable();
        addresses
    }
}

/// An endpoint of a member: which of them can be read off it.
pub(crate) fn address(member: usize, number: u16) -> String {
    let [high, low] = number.to_be_bytes();
    format!("10.{}.{high}.{low}", member + 1)
}

fn origin_of(address: &str) -> Option<usize> {
    address.strip_prefix("10.")?.split('.').next()?.parse::<usize>().ok()?.checked_sub(1)
}

/// The derived Service that the agents make for an import of [`NAMESPACE`].
pub(crate) fn derived_name(service: &str) -> String {
    format!("{NAMESPACE}-{service}")
}

/// As events have it.
pub(crate) fn full_name(service: &str) -> String {
    format!("{NAMESPACE}/{service}")
}

/// What an export says, in words.
pub(crate) fn told(export: &Export) -> String {
    match (export.valid, export.conflict) {
        (Some(true), Some(false)) => "is valid, without conflict".to_owned(),
        (Some(true), Some(true)) => "is valid, in conflict with another export".to_owned(),
        (Some(true), None) => "is valid, not yet judged by the hub".to_owned(),
        (Some(false), _) => "is invalid".to_owned(),
        (None, _) => "does not say yet whether it is valid".to_owned(),
    }
}

fn some(addresses: &[&&str]) -> String {
    let Some(first) = addresses.first() else { return "none".to_owned() };
    match addresses.len() {
        1 => (**first).to_owned(),
        count => format!("{first} and {} more", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Export = Export { valid: Some(true), conflict: Some(false) };

    fn slice(addresses: &[&str]) -> Option<Fact> {
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        Some(Fact::Slice(Slice { derived: "work-app".to_owned(), addresses }))
    }

    /// Two members; the first exports two slices, the second imports.
    fn fleet() -> (World, Expected) {
        let mut expected = Expected::default();
        expected.exports.insert((0, "app".to_owned()), GOOD);
        expected.imports.insert((1, "app".to_owned()));
        expected.endpoints.insert((0, "app".to_owned(), "app-1".to_owned()), vec![address(0, 1)]);
        expected.endpoints.insert((0, "app".to_owned(), "app-2".to_owned()), vec![address(0, 2)]);
        // Of a Service that the second member does not export.
        expected.endpoints.insert((1, "app".to_owned(), "app-1".to_owned()), vec![address(1, 1)]);
        (World::new(vec!["member-1".to_owned(), "member-2".to_owned()]), expected)
    }

    #[test]
    fn what_is_missing_is_told_in_the_order_of_its_way() {
        let (mut world, expected) = fleet();
        let now = Instant::now();
        assert_eq!(
            world.differences(&expected),
            ["work/app in member-1 is not there", "work/app in member-2 is not imported validly"]
        );
        world.learn(0, Kind::Export, "app", Some(Fact::Export(Export { valid: Some(true), conflict: None })), now);
        world.learn(1, Kind::Wish, "app", Some(Fact::Wish(true)), now);
        world.learn(1, Kind::Slice, "a", slice(&["10.1.0.1", "10.1.0.9", "10.1.0.8"]), now);
        assert_eq!(
            world.differences(&expected),
            [
                "work/app in member-1 is valid, not yet judged by the hub",
                "work/app in member-2 has 3 endpoints of 2: missing 10.1.0.2, outdated 10.1.0.8 and 1 more",
            ]
        );
        world.learn(0, Kind::Export, "app", Some(Fact::Export(GOOD)), now);
        world.learn(1, Kind::Slice, "a", slice(&["10.1.0.1"]), now);
        world.learn(1, Kind::Slice, "b", slice(&["10.1.0.2"]), now);
        assert_eq!(world.differences(&expected), Vec::<String>::new());
        world.learn(1, Kind::Slice, "c", slice(&["10.1.0.2"]), now);
        assert_eq!(world.differences(&expected).len(), 1, "an endpoint that is there twice is wrong");
        world.learn(1, Kind::Slice, "c", None, now);
        assert_eq!(world.differences(&expected), Vec::<String>::new());
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
        world.learn(1, Kind::Wish, "app", Some(Fact::Wish(true)), now);
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
        world.learn(0, Kind::Wish, "app", Some(Fact::Wish(true)), now);
        world.keep_only(0, Kind::Export, &BTreeSet::new());
        assert_eq!((world.exports().len(), world.imports().len()), (0, 1));
    }

    #[test]
    fn addresses_use_all_of_a_number() {
        assert_eq!((address(0, 1), address(49, 65535)), ("10.1.0.1".to_owned(), "10.50.255.255".to_owned()));
        assert_eq!(origin_of("10.50.255.255"), Some(49));
        assert_eq!((origin_of("10.0.0.1"), origin_of("10.x"), origin_of("11.1.1.1")), (None, None, None));
    }
}
