//! Path of a value within an object. The path becomes text only for an error, because formatting costs time.

use std::fmt;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    /// Member of an object, shown as `.name`.
    Member(&'a str),
    /// Item of a list, shown as `[0]`.
    Item(usize),
}

impl<'a> Path<'a> {
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(crate) fn member(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Member(name) }
    }

    pub(crate) fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Item(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(formatter, "{parent}")?;
        }
        let at_root = self.parent.is_some_and(|parent| matches!(parent.step, Step::Root));
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) if at_root => formatter.write_str(name),
            Step::Member(name) => write!(formatter, ".{name}"),
            Step::Item(index) => write!(formatter, "[{index}]"),
        }
    }
}
