//! Order of names as people read them: `member-2` comes before `member-10`.

use std::cmp::Ordering;

/// Compares two names. Numbers in them count as numbers, and everything else by its characters.
#[must_use]
pub fn natural(one: &str, two: &str) -> Ordering {
    let (mut left, mut right) = (one, two);
    while !left.is_empty() && !right.is_empty() {
        let ((left_part, left_rest), (right_part, right_rest)) = (part(left), part(right));
        let order = match (number(left_part), number(right_part)) {
            (Some(left), Some(right)) => left.len().cmp(&right.len()).then_with(|| left.cmp(right)),
            _ => left_part.cmp(right_part),
        };
        if order.is_ne() {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
    left.len().cmp(&right.len()).then_with(|| one.cmp(two))
}

/// Sorts names in their natural order.
pub(crate) fn sorted(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut sorted: Vec<String> = names.into_iter().collect();
    sorted.sort_by(|one, two| natural(one, two));
    sorted
}

/// Sorts names in their natural order, each once.
#[must_use]
pub fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut names = sorted(names);
    names.dedup();
    names
}

/// Splits off the first part of a name, which has either digits only or no digit.
fn part(name: &str) -> (&str, &str) {
    let is_digit = |c: char| c.is_ascii_digit();
    let begins_with_digit = name.starts_with(is_digit);
    name.split_at(name.find(|c| is_digit(c) != begins_with_digit).unwrap_or(name.len()))
}

/// Returns the digits of a number without leading zeros; `None` for other text.
fn number(part: &str) -> Option<&str> {
    part.starts_with(|c: char| c.is_ascii_digit()).then(|| part.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once() {
        assert_eq!(distinct(["b10", "a", "b9", "a"].map(str::to_owned)), ["a", "b9", "b10"]);
    }

    #[test]
    fn numbers_count_as_numbers() {
        // Equal numbers are in the order of their characters.
        let expected = ["", "1", "2", "10", "a", "a1b2", "a1b10", "a02", "a2", "a10b", "b", "ä1"];
        assert_eq!(sorted(expected.iter().rev().map(|name| (*name).to_owned())), expected);
        for one in expected {
            for two in expected {
                assert_eq!(natural(one, two), natural(two, one).reverse(), "{one} and {two}");
            }
        }
    }
}
