//! Analysis of a rule: the members of `self` and `oldSelf` that the rule uses. Only these members are converted to CEL values.
//!
//! Without this analysis, the rule `self.metadata.name != "x"` would convert the whole object, for example a thousand
//! endpoints.

use kube::core::cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};
use std::collections::BTreeSet;

/// Members of `self` and `oldSelf` that a rule uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// The rule uses the value as a whole.
    All,
    /// The rule uses only these members. Names are escaped as in CEL.
    Some(BTreeSet<String>),
}

impl Members {
    pub(super) fn of(expression: &IdedExpr) -> Self {
        let mut found = Self::Some(BTreeSet::new());
        found.add_from(expression);
        found
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Some(mut own), Self::Some(other)) => {
                own.extend(other);
                Self::Some(own)
            }
            _ => Self::All,
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(names) => names.contains(name),
        }
    }

    fn add_from(&mut self, expression: &IdedExpr) {
        match &expression.expr {
            Expr::Ident(name) if is_self(name) => *self = Self::All,
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) if is_self(name) => self.add(&select.field),
                _ => self.add_from(&select.operand),
            },
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.add_from(target));
                call.args.iter().for_each(|argument| self.add_from(argument));
            }
            Expr::Comprehension(comprehension) => {
                let parts = [
                    &comprehension.iter_range,
                    &comprehension.accu_init,
                    &comprehension.loop_cond,
                    &comprehension.loop_step,
                    &comprehension.result,
                ];
                parts.into_iter().for_each(|part| self.add_from(part));
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.add_from(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.add_from_entry(&entry.expr)),
            Expr::Struct(literal) => literal.entries.iter().for_each(|entry| self.add_from_entry(&entry.expr)),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn add_from_entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.add_from(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.add_from(&entry.key);
                self.add_from(&entry.value);
            }
        }
    }

    fn add(&mut self, name: &str) {
        if let Self::Some(names) = self {
            names.insert(name.to_owned());
        }
    }
}

fn is_self(name: &str) -> bool {
    matches!(name, "self" | "oldSelf")
}

#[cfg(test)]
mod tests {
    use super::Members;
    use kube::core::cel::cel::Program;
    use std::collections::BTreeSet;

    fn of(rule: &str) -> Members {
        Members::of(Program::compile(rule).unwrap().expression())
    }

    fn some(names: &[&str]) -> Members {
        Members::Some(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>())
    }

    #[test]
    fn only_the_members_that_a_rule_speaks_of_are_found() {
        assert_eq!(of("size(self.metadata.name) < 64"), some(&["metadata"]));
        assert_eq!(of("!has(self.a) || self.b.all(x, x.c in oldSelf.d)"), some(&["a", "b", "d"]));
        assert_eq!(of("[self.a, {'k': self.b}].size() > 0 ? self.c : true"), some(&["a", "b", "c"]));
    }

    #[test]
    fn a_value_that_is_used_as_a_whole_is_needed_as_a_whole() {
        for rule in ["self == oldSelf", "self.all(x, x > 0)", "self['a'] == 1", "'a' in self", "size(self) > self.a"] {
            assert_eq!(of(rule), Members::All, "{rule}");
        }
    }
}
