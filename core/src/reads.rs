//! Reads: which plan read which values of the view. After a value changes, exactly the keys whose last plan read it are
//! planned again. So a rule contains nothing about requeues, and a new rule cannot forget one.
//!
//! ```text
//!  plan(key) ── reads values through a Reader ──► Reads ──► Readers: value -> keys
//!  event     ── changes values of the view    ──► Readers ──► keys to plan again
//! ```
//!
//! Time is the only other input of a plan. A plan names the time at which it must run again (`Plan::again`).

use crate::index::Table;
use crate::model::{Kind, Stored};
use crate::watches::Watches;
use fleetnet_types::{ObjectName, Timestamp, WatchState};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// Capacity for the values that one plan reads.
// no limit: the list grows if a plan reads more; most plans read fewer
const USUAL_READS: usize = 32;

/// Values that one plan reads. A value may occur several times.
#[derive(Debug)]
pub struct Reads<V>(RefCell<Vec<V>>);

impl<V> Default for Reads<V> {
    fn default() -> Self {
        Self(RefCell::new(Vec::with_capacity(USUAL_READS)))
    }
}

impl<V> Reads<V> {
    pub(crate) fn note(&self, value: V) {
        self.0.borrow_mut().push(value);
    }

    pub(crate) fn into_values(self) -> Vec<V> {
        self.0.into_inner()
    }
}

/// Value of a view that a plan can read.
pub trait ViewValue: Hash {
    /// Returns the value of an object, found by its kind and name.
    fn object(kind: Kind, name: ObjectName) -> Self;

    /// Returns the value of the state of all these kinds together: completely listed or not.
    fn complete(kinds: &'static [Kind]) -> Self;

    /// Returns the value of the state of a kind's watch.
    fn watch(kind: Kind) -> Self;

    /// Returns the kinds of [`ViewValue::complete`]; `None` for other values.
    fn required(&self) -> Option<&'static [Kind]>;
}

/// Implements [`ViewValue`] for the enum of a view's values, which has the variants that this trait returns.
macro_rules! view_value {
    ($value:ident) => {
        impl $crate::reads::ViewValue for $value {
            fn object(kind: Kind, name: ObjectName) -> Self {
                Self::Object(kind, name)
            }

            fn complete(kinds: &'static [Kind]) -> Self {
                Self::Complete(kinds)
            }

            fn watch(kind: Kind) -> Self {
                Self::Watch(kind)
            }

            fn required(&self) -> Option<&'static [Kind]> {
                if let Self::Complete(kinds) = self { Some(kinds) } else { None }
            }
        }
    };
}
pub(crate) use view_value;

/// Table as a plan sees it: each read is recorded, also that of a missing object.
pub(crate) struct Objects<'a, T, V> {
    table: &'a Table<T>,
    kind: Kind,
    reads: &'a Reads<V>,
}

impl<T, V> Clone for Objects<'_, T, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, V> Copy for Objects<'_, T, V> {}

impl<'a, T: Stored, V: ViewValue> Objects<'a, T, V> {
    pub(crate) fn new(table: &'a Table<T>, kind: Kind, reads: &'a Reads<V>) -> Self {
        Self { table, kind, reads }
    }

    pub(crate) fn get(self, name: &ObjectName) -> Option<&'a T> {
        self.reads.note(V::object(self.kind, name.clone()));
        self.table.get(name)
    }

    /// Returns the object with this name; `None` also if it is being deleted.
    pub(crate) fn live(self, name: &ObjectName) -> Option<&'a T> {
        self.get(name).filter(|object| !object.meta().deleting)
    }
}

/// Number of a value or of a reader, for compact lists.
type Number = u32;

/// Readers of one value. Most values have one reader, so one reader needs no list.
#[derive(Clone, Debug, Default)]
enum Value {
    #[default]
    Unread,
    One(Number),
    Many(Box<Many>),
}

/// Readers of a value that has had more than one.
#[derive(Clone, Debug)]
struct Many {
    /// Number of readers that read the value now.
    count: u32,
    /// Readers in the order in which they began to read. Some may have stopped since: [`Readers::reads`] decides.
    readers: Vec<Number>,
}

impl Value {
    fn readers(&self) -> &[Number] {
        match self {
            Self::Unread => &[],
            Self::One(reader) => std::slice::from_ref(reader),
            Self::Many(many) => &many.readers,
        }
    }

    fn is_read(&self) -> bool {
        !matches!(self, Self::Unread)
    }
}

/// Reader with the values that it read last, in ascending order.
#[derive(Clone, Debug)]
struct Reader<R> {
    reader: R,
    values: Box<[Number]>,
}

/// Readers of all values. `R` is a key, or another result that is computed from the view.
///
/// Lists hold numbers of four bytes. A value is stored as its hash, so a read keeps at most 64 bytes on average. If two
/// values have the same hash, a change of one also requeues the readers of the other. These extra plans are empty.
#[derive(Clone, Debug)]
pub(crate) struct Readers<V, R> {
    hashes: DefaultHashBuilder,
    /// Number of each value, by the hash of the value.
    numbers: HashMap<u64, Number>,
    values: Vec<Value>,
    /// Numbers of `values` that are not used.
    free_values: Vec<Number>,
    /// Number of values in `numbers` without a reader.
    unread: usize,
    reader_numbers: HashMap<R, Number>,
    readers: Vec<Option<Reader<R>>>,
    free_readers: Vec<Number>,
    of: PhantomData<V>,
}

impl<V, R> Default for Readers<V, R> {
    fn default() -> Self {
        Self {
            hashes: DefaultHashBuilder::default(),
            numbers: HashMap::new(),
            values: Vec::new(),
            free_values: Vec::new(),
            unread: 0,
            reader_numbers: HashMap::new(),
            readers: Vec::new(),
            free_readers: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<V: Hash, R: Clone + Eq + Hash> Readers<V, R> {
    /// Stores the values that a reader read now. They replace those that it read before.
    pub(crate) fn record(&mut self, reader: &R, values: Vec<V>) {
        let mut after: Vec<Number> = values.iter().map(|value| self.number(value)).collect();
        after.sort_unstable();
        after.dedup();
        let number = self.reader_number(reader);
        let Some(stored) = &mut self.readers[number as usize] else { return };
        if *stored.values == *after {
            return;
        }
        let before = std::mem::replace(&mut stored.values, after.into_boxed_slice());
        let after = stored.values.clone();
        for value in after.iter().filter(|value| before.binary_search(value).is_err()) {
            self.begin(*value, number);
        }
        for value in before.iter().filter(|value| after.binary_search(value).is_err()) {
            self.end(*value);
        }
        self.sweep();
    }

    /// Removes a reader, because nothing is left that it could be computed for.
    pub(crate) fn forget(&mut self, reader: &R) {
        let Some(number) = self.reader_numbers.remove(reader) else { return };
        if let Some(stored) = self.readers[number as usize].take() {
            stored.values.iter().for_each(|value| self.end(*value));
        }
        self.free_readers.push(number);
        self.sweep();
    }

    /// Returns the readers of a value.
    pub(crate) fn of<'a>(&'a self, value: &V) -> impl Iterator<Item = &'a R> + use<'a, V, R> {
        let number = self.numbers.get(&self.hashes.hash_one(value)).copied();
        let readers = number.into_iter().flat_map(move |number| {
            let readers = self.values[number as usize].readers();
            readers.iter().filter(move |reader| self.reads(**reader, number))
        });
        readers.filter_map(|reader| Some(&self.readers[*reader as usize].as_ref()?.reader))
    }

    fn reads(&self, reader: Number, value: Number) -> bool {
        let stored = self.readers[reader as usize].as_ref();
        stored.is_some_and(|stored| stored.values.binary_search(&value).is_ok())
    }

    fn number(&mut self, value: &V) -> Number {
        let (values, free, unread) = (&mut self.values, &mut self.free_values, &mut self.unread);
        *self.numbers.entry(self.hashes.hash_one(value)).or_insert_with(|| {
            *unread += 1;
            free.pop().unwrap_or_else(|| added(values, Value::default()))
        })
    }

    fn reader_number(&mut self, reader: &R) -> Number {
        if let Some(number) = self.reader_numbers.get(reader) {
            return *number;
        }
        let stored = Some(Reader { reader: reader.clone(), values: Box::default() });
        let number = match self.free_readers.pop() {
            Some(number) => {
                self.readers[number as usize] = stored;
                number
            }
            None => added(&mut self.readers, stored),
        };
        self.reader_numbers.insert(reader.clone(), number);
        number
    }

    fn begin(&mut self, value: Number, reader: Number) {
        match &mut self.values[value as usize] {
            unread @ Value::Unread => {
                *unread = Value::One(reader);
                self.unread -= 1;
            }
            Value::One(other) => {
                let readers = vec![*other, reader];
                self.values[value as usize] = Value::Many(Box::new(Many { count: 2, readers }));
            }
            // Readers that stopped stay in the list until it would grow. So a value with very many readers costs each
            // of them the same.
            Value::Many(many) if many.readers.len() == many.readers.capacity() => {
                let mut readers = std::mem::take(&mut many.readers);
                readers.retain(|other| *other != reader && self.reads(*other, value));
                readers.push(reader);
                if let Value::Many(many) = &mut self.values[value as usize] {
                    many.count += 1;
                    many.readers = readers;
                }
            }
            Value::Many(many) => {
                many.count += 1;
                many.readers.push(reader);
            }
        }
    }

    /// Records that one of the readers of a value stopped. Its values are replaced already.
    fn end(&mut self, value: Number) {
        let stored = &mut self.values[value as usize];
        if let Value::Many(many) = stored {
            many.count -= 1;
            if many.count > 0 {
                return;
            }
        }
        *stored = Value::Unread;
        self.unread += 1;
    }

    /// Drops the values without readers, as soon as they are most of all.
    fn sweep(&mut self) {
        if self.unread <= 64 + self.numbers.len() / 2 {
            return;
        }
        let (values, free) = (&self.values, &mut self.free_values);
        self.numbers.retain(|_, number| {
            let is_read = values[*number as usize].is_read();
            if !is_read {
                free.push(*number);
            }
            is_read
        });
        self.unread = 0;
    }

    /// Returns the number of readers, of values that are read, and of reads.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let reads = self.readers.iter().flatten().map(|reader| reader.values.len()).sum();
        (self.reader_numbers.len(), self.numbers.len() - self.unread, reads)
    }
}

/// Readers of a view's values. `C` is what is computed from the view: a plan, or another result.
#[derive(Clone, Debug)]
pub(crate) struct Recorded<V, C> {
    readers: Readers<V, C>,
    /// Sets of kinds that were required to be completely listed.
    required: Vec<&'static [Kind]>,
}

impl<V, C> Default for Recorded<V, C> {
    fn default() -> Self {
        Self { readers: Readers::default(), required: Vec::new() }
    }
}

impl<V: ViewValue, C: Clone + Eq + Hash> Recorded<V, C> {
    /// Stores the values that `computed` was computed from. `None` stores nothing of it: no object exists that it could
    /// be computed for, and the next such object computes it.
    pub(crate) fn keep(&mut self, computed: &C, reads: Option<Reads<V>>) {
        let Some(reads) = reads else { return self.readers.forget(computed) };
        let values = reads.into_values();
        for kinds in values.iter().filter_map(V::required) {
            if !self.required.contains(&kinds) {
                self.required.push(kinds);
            }
        }
        self.readers.record(computed, values);
    }

    /// Returns what was computed from a value.
    pub(crate) fn of<'a>(&'a self, value: &V) -> impl Iterator<Item = &'a C> + use<'a, V, C> {
        self.readers.of(value)
    }

    #[cfg(test)]
    pub(crate) fn number_of_reads(&self) -> usize {
        self.readers.sizes().2
    }

    #[cfg(test)]
    pub(crate) fn number_of_readers(&self) -> usize {
        self.readers.sizes().0
    }

    /// Stores the new state of a watch. Returns the values that changed.
    pub(crate) fn watch_state(&self, watches: &mut Watches, kind: Kind, state: WatchState, at: Timestamp) -> Vec<V> {
        let before: Vec<bool> = self.required.iter().map(|kinds| watches.complete(kinds)).collect();
        if !watches.set(kind, state, at) {
            return Vec::new();
        }
        let turned = self.required.iter().zip(before).filter(|(kinds, was)| watches.complete(kinds) != *was);
        turned.map(|(kinds, _)| V::complete(kinds)).chain([V::watch(kind)]).collect()
    }
}

/// Appends to a list. Returns the position.
fn added<T>(list: &mut Vec<T>, item: T) -> Number {
    list.push(item);
    Number::try_from(list.len() - 1).expect("an agent keeps fewer than 2^32 values")
}

#[cfg(test)]
mod tests {
    use super::*;
    use property::for_any;
    use proptest::prelude::ProptestConfig;
    use std::collections::{BTreeMap, BTreeSet};

    fn of(readers: &Readers<u8, char>, value: u8) -> BTreeSet<char> {
        readers.of(&value).copied().collect()
    }

    #[test]
    fn the_readers_of_a_value_are_those_whose_last_reads_have_it() {
        let mut readers = Readers::default();
        readers.record(&'a', vec![1, 2, 1]);
        readers.record(&'b', vec![2, 3]);
        assert_eq!(of(&readers, 2), BTreeSet::from(['a', 'b']));
        assert_eq!(readers.of(&1).count(), 1, "read twice, requeued once");
        readers.record(&'a', vec![3]);
        assert_eq!((of(&readers, 1), of(&readers, 2), of(&readers, 3)), ([].into(), ['b'].into(), ['a', 'b'].into()));
        readers.forget(&'b');
        assert_eq!((of(&readers, 2), of(&readers, 3)), ([].into(), ['a'].into()));
        assert_eq!(readers.sizes(), (1, 1, 1));
    }

    #[test]
    fn any_sequence_of_reads_gives_the_readers_of_a_plain_map() {
        let step = (0..12_u8, proptest::option::of(proptest::collection::vec(0..30_u8, 0..10)));
        for_any(ProptestConfig::with_cases(200), 0, &proptest::collection::vec(step, 1..200), |steps| {
            let mut readers: Readers<u8, u8> = Readers::default();
            let mut expected: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
            for (reader, values) in steps {
                match values {
                    Some(values) => {
                        expected.insert(reader, values.iter().copied().collect());
                        readers.record(&reader, values);
                    }
                    None => {
                        expected.remove(&reader);
                        readers.forget(&reader);
                    }
                }
                for value in 0..30 {
                    let found: BTreeSet<u8> = readers.of(&value).copied().collect();
                    let wanted = expected.iter().filter(|(_, values)| values.contains(&value));
                    assert_eq!(found, wanted.map(|(reader, _)| *reader).collect());
                }
                let reads = expected.values().map(BTreeSet::len).sum();
                assert_eq!((readers.sizes().0, readers.sizes().2), (expected.len(), reads));
            }
            []
        });
    }

    #[test]
    fn nothing_is_left_of_readers_that_are_gone() {
        let (mut readers, stays) = (Readers::default(), u32::MAX);
        readers.record(&stays, vec![stays]);
        for number in 0..10_000_u32 {
            readers.record(&number, vec![number, stays]);
            assert_eq!(readers.of(&number).collect::<Vec<_>>(), [&number]);
            readers.forget(&number);
        }
        assert_eq!(readers.sizes(), (1, 1, 1));
        assert_eq!(readers.of(&stays).collect::<Vec<_>>(), [&stays]);
        assert!(readers.values.len() < 300 && readers.readers.len() < 300, "numbers are used again");
        assert!(readers.numbers.len() < 300, "{} values are kept", readers.numbers.len());
    }

    #[test]
    fn a_reader_keeps_only_the_values_that_it_read_last() {
        let mut readers = Readers::default();
        for number in 0..10_000_u32 {
            readers.record(&'a', vec![number]);
            assert_eq!(readers.of(&number).count(), 1);
        }
        assert_eq!(readers.sizes(), (1, 1, 1));
        assert!(readers.numbers.len() < 300, "{} values are kept", readers.numbers.len());
        assert!(readers.values.len() < 300, "numbers are used again");
    }

    /// So the search of all values costs each change the same.
    #[test]
    fn values_without_a_reader_are_dropped_as_soon_as_they_are_most_of_all() {
        for (number, kept) in [(128_u32, 128), (129, 0)] {
            let mut readers = Readers::default();
            readers.record(&'a', (0..number).collect());
            readers.forget(&'a');
            assert_eq!(readers.numbers.len(), kept);
        }
    }

    #[test]
    fn a_value_keeps_few_entries_however_many_readers_come_and_go() {
        let (mut readers, stays) = (Readers::default(), 0_u32);
        readers.record(&stays, vec!['v']);
        // Many readers come and go, and then one reader again and again.
        for reader in (1..2_000).map(|number: u32| number.min(1_000)) {
            readers.record(&reader, vec!['v']);
            assert_eq!(readers.of(&'v').collect::<Vec<_>>(), [&stays, &reader]);
            readers.record(&reader, Vec::new());
        }
        let length = readers.values.iter().map(|value| value.readers().len()).max();
        assert!(length <= Some(8), "{length:?}");
    }

    #[test]
    fn a_value_that_is_read_again_and_again_keeps_one_entry_for_each_reader() {
        let mut readers = Readers::default();
        for round in 0..1_000_u32 {
            for reader in 0..4_u8 {
                readers.record(&reader, if round % 2 == 0 { vec![1, 2] } else { vec![2] });
            }
        }
        let lengths: Vec<usize> = readers.values.iter().map(|value| value.readers().len()).collect();
        assert!(lengths.iter().all(|length| *length <= 8), "{lengths:?}");
    }
}
