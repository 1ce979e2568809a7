//! Path of a value within an object. The path becomes text only for an error, because formatting costs time.

use std::fmt;

/// Path of the object as a whole in messages of kube-apiserver.
pub(super) const NOWHERE: &str = "<nil>";

#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
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
    /// Value of a map, shown as `[key]`.
    Key(&'a str),
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(super) fn member(&'a self, name: &'a str) -> Self {
        self.then(Step::Member(name))
    }

    pub(super) fn item(&'a self, index: usize) -> Self {
        self.then(Step::Item(index))
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        self.then(Step::Key(key))
    }

    fn then(&'a self, step: Step<'a>) -> Self {
        Self { parent: Some(self), step }
    }

    /// Returns the path in the form of an error's `field`.
    pub(super) fn field(&self) -> String {
        let text = self.to_string();
        if text.is_empty() { NOWHERE.to_owned() } else { text }
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(formatter, "{parent}")?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) if self.parent.is_some_and(Path::is_root) => formatter.write_str(name),
            Step::Member(name) => write!(formatter, ".{name}"),
            Step::Item(index) => write!(formatter, "[{index}]"),
            Step::Key(key) => write!(formatter, "[{key}]"),
        }
    }
}
