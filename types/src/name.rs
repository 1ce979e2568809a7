//! Names and ids of objects.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Shared immutable text. The same names are in many indexes and keys, so cloning must not allocate.
pub type Text = Arc<str>;

/// Full name of an object: namespace and name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: Text,
    /// Name in the namespace.
    pub name: Text,
}

impl ObjectName {
    /// Returns the name of an object in a namespace.
    pub fn new(namespace: impl Into<Text>, name: impl Into<Text>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Returns the namespace as that of a member, without a check.
    pub fn member_namespace(&self) -> MemberNamespace {
        MemberNamespace(self.namespace.clone())
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Declares a type for one sort of id, so that the compiler rejects a mix-up of ids. An id converts from text and to
/// `&str`, but not to another id type.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Text);

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<Text> for $name {
            fn from(text: Text) -> Self {
                Self(text)
            }
        }

        impl From<$name> for Text {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<&$name> for Text {
            fn from(id: &$name) -> Self {
                id.0.clone()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// Id of a member in the fleet.
    ClusterId
}

id! {
    /// Namespace `fleet-member-<id>` of a member in the hub.
    ///
    /// A cluster id and a member namespace cannot be swapped:
    ///
    /// ```compile_fail
    /// use fleetnet_types::{ClusterId, MemberNamespace};
    /// fn may_import(_cluster: &ClusterId, _namespace: &MemberNamespace) {}
    /// let (cluster, namespace) = (ClusterId::from("west"), MemberNamespace::from("fleet-member-west"));
    /// may_import(&namespace, &cluster);
    /// ```
    ///
    /// The same call compiles with the arguments in the right order:
    ///
    /// ```
    /// use fleetnet_types::{ClusterId, MemberNamespace};
    /// fn may_import(_cluster: &ClusterId, _namespace: &MemberNamespace) {}
    /// let (cluster, namespace) = (ClusterId::from("west"), MemberNamespace::from("fleet-member-west"));
    /// may_import(&cluster, &namespace);
    /// ```
    MemberNamespace
}

impl MemberNamespace {
    /// Returns the namespace as text, for code that handles namespaces of any kind.
    pub fn as_text(&self) -> &Text {
        &self.0
    }
}

id! {
    /// UID of an object. An object that was deleted and created again under the same name has a new UID.
    Uid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_with_their_namespace_where_they_have_one() {
        assert_eq!(ObjectName::new("work", "app").to_string(), "work/app");
        assert_eq!(format!("{:?}", ObjectName::new("", "work")), "work");
    }
}
