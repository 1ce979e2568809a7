//! Kinds, and objects of any kind.

use super::{
    ClusterProperty, EndpointSlice, HubSlice, InternalMemberCluster, InternalServiceExport, InternalServiceImport,
    McsServiceExport, McsServiceImport, MemberAgent, MemberCluster, MergedServiceImport, Meta, MultiClusterService,
    Namespace, Node, Service, ServiceExport, ServiceImport,
};

/// Object that a [`crate::index::Table`] can store.
pub trait Stored: Clone + PartialEq {
    fn meta(&self) -> &Meta;
    fn meta_mut(&mut self) -> &mut Meta;
}

macro_rules! stored {
    ($($object:ty),* $(,)?) => {$(
        impl Stored for $object {
            fn meta(&self) -> &Meta { &self.meta }
            fn meta_mut(&mut self) -> &mut Meta { &mut self.meta }
        }
    )*};
}

impl Stored for Meta {
    fn meta(&self) -> &Meta {
        self
    }

    fn meta_mut(&mut self) -> &mut Meta {
        self
    }
}

/// Declares [`Kind`] and [`Object`] with the same variants.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($object:ty),)*) => {
        /// Kinds that the agents watch and write. Each agent watches a kind in one cluster only (hub or member).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];
        }

        /// Object of any watched kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Object {
            $($kind($object),)*
        }

        impl Object {
            pub fn meta(&self) -> &Meta {
                match self { $(Self::$kind(object) => object.meta(),)* }
            }

            pub fn meta_mut(&mut self) -> &mut Meta {
                match self { $(Self::$kind(object) => object.meta_mut(),)* }
            }

            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind,)* }
            }
        }
    };
}

kinds! {
    Service(Service),
    EndpointSlice(EndpointSlice),
    ServiceExport(ServiceExport),
    ServiceImport(ServiceImport),
    MultiClusterService(MultiClusterService),
    InternalServiceExport(InternalServiceExport),
    InternalServiceImport(InternalServiceImport),
    EndpointSliceExport(HubSlice),
    EndpointSliceImport(HubSlice),
    Namespace(Namespace),
    /// Namespace `kube-system` of this cluster, whose UID identifies the cluster. This kind has a watch of its own, so
    /// the right to list other namespaces does not matter for it.
    SystemNamespace(Meta),
    MemberAgent(MemberAgent),
    MergedServiceImport(MergedServiceImport),
    /// ServiceExport of the standard API.
    McsServiceExport(McsServiceExport),
    /// ServiceImport of the standard API.
    McsServiceImport(McsServiceImport),
    InternalMemberCluster(InternalMemberCluster),
    MemberCluster(MemberCluster),
    ClusterProperty(ClusterProperty),
    Node(Node),
}

stored!(
    ClusterProperty,
    Node,
    EndpointSlice,
    HubSlice,
    InternalMemberCluster,
    InternalServiceExport,
    InternalServiceImport,
    MemberAgent,
    MemberCluster,
    MergedServiceImport,
    MultiClusterService,
    Namespace,
    Service,
    ServiceExport,
    ServiceImport,
    McsServiceExport,
    McsServiceImport
);
