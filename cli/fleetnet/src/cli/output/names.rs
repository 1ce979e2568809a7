//! Lists of names that stay short in a fleet of many members.

/// Maximum number of names that a line lists. Of more names, it has the first, the last and the number.
const LISTED: usize = 3;
/// Maximum width of a list of names in a cell of a table. Of a longer list, the cell has the number.
const CELL: usize = 20;

/// Returns names for a line: all of them, or the first and the last one.
pub(crate) fn ends(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > LISTED => format!("{first} … {last}"),
        names => names.join(", "),
    }
}

/// Returns names for a cell of a table: all of them, or their number.
pub(crate) fn cell(names: &[String]) -> String {
    let all = all(names);
    if all.chars().count() <= CELL { all } else { names.len().to_string() }
}

/// Returns all names for a cell of a table; a dash for none.
pub(crate) fn all(names: &[String]) -> String {
    if names.is_empty() { "–".to_owned() } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened() {
        let names = |count: usize| (1..=count).map(|number| format!("member-{number}")).collect::<Vec<_>>();
        let table = [
            (0, "", "–"),
            (1, "member-1", "member-1"),
            (2, "member-1, member-2", "member-1,member-2"),
            (3, "member-1, member-2, member-3", "3"),
            (20, "member-1 … member-20", "20"),
        ];
        for (count, line, short) in table {
            assert_eq!((ends(&names(count)).as_str(), cell(&names(count)).as_str()), (line, short));
        }
        assert_eq!(all(&names(3)), "member-1,member-2,member-3");
    }
}
