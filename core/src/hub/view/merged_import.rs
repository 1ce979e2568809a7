//! MergedServiceImports of all importers, in little memory. A fleet of 100 members with 1,000 Services has 100,000 of
//! them. All importers of a Service have objects with the same name, and mostly with the same import.

use crate::index::{Index, Taken};
use crate::model::{ClusterSelection, Finalizers, MergedImport, MergedServiceImport, Meta};
use crate::names;
use crate::work;
use fleetnet_types::{MemberNamespace, ObjectName, Text, Timestamp, Uid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// MergedServiceImports, by their names. An object that is read from here has no generation and no creationTimestamp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedImports {
    named: BTreeMap<Text, Named>,
    /// From each Service to its objects with another name than [`names::merged_import_name`].
    misnamed: Index<ObjectName>,
}

/// MergedServiceImports with one name.
#[derive(Clone, Debug, Default, PartialEq)]
struct Named {
    /// Service that has objects of this name. `None` while all of them are of other Services.
    service: Option<ObjectName>,
    /// Objects by the member namespaces of their importers.
    importers: BTreeMap<MemberNamespace, Kept>,
}

/// Part of a MergedServiceImport that its place does not say.
#[derive(Clone, Debug, PartialEq)]
struct Kept {
    uid: Uid,
    resource_version: u64,
    import: Arc<MergedImport>,
    deleting: bool,
    has_our_finalizer: bool,
    /// Values that few objects have.
    rare: Option<Box<Rare>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Rare {
    /// Service of an object that is not named after this Service.
    service: Option<ObjectName>,
    other_finalizers: Vec<Text>,
    selection: ClusterSelection,
}

impl Kept {
    /// True if the object shows that its member imports the Service that it is named after.
    fn is_used(&self) -> bool {
        self.has_our_finalizer && !self.deleting && !self.is_misnamed()
    }

    /// Returns the Service of an object that is not named after it.
    fn misnamed_service(&self) -> Option<&ObjectName> {
        self.rare.as_ref()?.service.as_ref()
    }

    fn is_misnamed(&self) -> bool {
        self.misnamed_service().is_some()
    }
}

impl Named {
    fn object(&self, name: &Text, importer: &MemberNamespace, kept: &Kept) -> Option<MergedServiceImport> {
        let rare = kept.rare.as_deref();
        let finalizers = Finalizers {
            ours: kept.has_our_finalizer,
            others: rare.map(|rare| rare.other_finalizers.clone()).unwrap_or_default(),
        };
        let meta = Meta {
            name: ObjectName::new(importer, name.clone()),
            uid: kept.uid.clone(),
            resource_version: kept.resource_version,
            generation: 0,
            created: Timestamp::default(),
            deleting: kept.deleting,
            finalizers,
        };
        let service = kept.misnamed_service().or(self.service.as_ref())?.clone();
        let selection = rare.map(|rare| rare.selection.clone()).unwrap_or_default();
        Some(MergedServiceImport { meta, service, import: Arc::clone(&kept.import), selection })
    }
}

impl MergedImports {
    pub fn get(&self, name: &ObjectName) -> Option<MergedServiceImport> {
        work::step();
        let (at, named) = self.named.get_key_value(&name.name)?;
        let (importer, kept) = named.importers.get_key_value(&*name.namespace)?;
        named.object(at, importer, kept)
    }

    /// Returns all objects. Those with one name follow each other.
    pub fn iter(&self) -> impl Iterator<Item = MergedServiceImport> + '_ {
        self.named.iter().flat_map(|(name, named)| {
            let objects = named.importers.iter();
            objects.filter_map(move |(importer, kept)| named.object(name, importer, kept)).inspect(|_| work::step())
        })
    }

    /// Returns the names of the objects of a Service in one member namespace.
    pub(super) fn names_of(
        &self,
        service: &ObjectName,
        importer: &MemberNamespace,
    ) -> impl Iterator<Item = ObjectName> + use<> {
        let own = ObjectName::new(importer, names::merged_import_name(service));
        let own = Some(own).filter(|own| self.kept(own).is_some_and(|kept| !kept.is_misnamed()));
        let others: Vec<ObjectName> = self.misnamed.get_in(service, importer.as_text()).cloned().collect();
        own.into_iter().chain(others)
    }

    /// True if a member imports a Service, by its member namespace.
    pub(super) fn is_used(&self, service: &ObjectName, importer: &MemberNamespace) -> bool {
        let at = ObjectName::new(importer, names::merged_import_name(service));
        self.kept(&at).is_some_and(Kept::is_used)
    }

    /// Returns the members that import a Service, by their member namespaces.
    pub(super) fn importers<'a>(&'a self, service: &ObjectName) -> impl Iterator<Item = &'a MemberNamespace> + use<'a> {
        let named = self.named.get(&names::merged_import_name(service));
        let importers = named.into_iter().flat_map(|named| &named.importers).inspect(|_| work::step());
        importers.filter(|(_, kept)| kept.is_used()).map(|(importer, _)| importer)
    }

    /// Returns the number of objects of a Service.
    pub(super) fn number_of(&self, service: &ObjectName) -> usize {
        let named = self.named.get(&names::merged_import_name(service));
        let importers = named.into_iter().flat_map(|named| named.importers.values()).inspect(|_| work::step());
        importers.filter(|kept| !kept.is_misnamed()).count() + self.misnamed.get(service).count()
    }

    /// Returns the import of another importer of the Service.
    pub(super) fn import_beside(&self, object: &MergedServiceImport) -> Option<&Arc<MergedImport>> {
        let named = self.named.get(&object.meta.name.name)?;
        let mut others = named.importers.iter().filter(|(importer, _)| ***importer != *object.meta.name.namespace);
        others.next().map(|(_, kept)| &kept.import)
    }

    /// Stores the newest state of an object, as [`crate::index::Table::take`].
    pub(super) fn take(&mut self, object: MergedServiceImport) -> Taken<MergedServiceImport> {
        let MergedServiceImport { meta, service, import, selection } = object;
        let before = self.get(&meta.name);
        let misnamed_before = self.kept(&meta.name).and_then(Kept::misnamed_service).cloned();
        let is_misnamed = !is_named_after(&meta.name, &service);
        let is_rare = is_misnamed || !meta.finalizers.others.is_empty() || selection != ClusterSelection::default();
        let rare = is_rare.then(|| {
            let service = is_misnamed.then(|| service.clone());
            Box::new(Rare { service, other_finalizers: meta.finalizers.others, selection })
        });
        let kept = Kept {
            uid: meta.uid,
            resource_version: meta.resource_version,
            import,
            deleting: meta.deleting,
            has_our_finalizer: meta.finalizers.ours,
            rare,
        };
        let (name, importer) = (&meta.name.name, meta.name.member_namespace());
        let named = self.named.entry(name.clone()).or_default();
        if let Some(present) = named.importers.get_mut(&importer) {
            present.resource_version = kept.resource_version;
            if *present == kept {
                return Taken::Same;
            }
            *present = kept;
        } else {
            named.importers.insert(importer, kept);
        }
        if !is_misnamed {
            named.service = Some(service.clone());
        }
        self.misnamed.shift(misnamed_before, is_misnamed.then_some(service), &meta.name);
        self.settle(name);
        Taken::Changed(before)
    }

    /// Removes and returns the object with this name and UID, as [`crate::index::Table::remove`].
    pub(super) fn remove(&mut self, name: &ObjectName, uid: &str) -> Option<MergedServiceImport> {
        let before = self.get(name).filter(|before| &*before.meta.uid == uid)?;
        self.named.get_mut(&name.name)?.importers.remove(&*name.namespace);
        self.misnamed.remove(&before.service, name);
        self.settle(&name.name);
        Some(before)
    }

    /// Keeps nothing about a name and a Service without objects.
    fn settle(&mut self, name: &Text) {
        let Some(named) = self.named.get_mut(name) else { return };
        if named.importers.values().all(Kept::is_misnamed) {
            named.service = None;
        }
        if named.importers.is_empty() {
            self.named.remove(name);
        }
    }

    fn kept(&self, name: &ObjectName) -> Option<&Kept> {
        work::step();
        self.named.get(&name.name)?.importers.get(&*name.namespace)
    }
}

/// True if an object with this name can be a MergedServiceImport of the Service.
fn is_named_after(name: &ObjectName, service: &ObjectName) -> bool {
    name.name == names::merged_import_name(service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Table;
    use crate::model::{ImportType, MergedCluster, SessionAffinity};
    use crate::support::build::{in_hub_of, mcs_part, merged_service_import, named};
    use property::{cases, for_any};
    use proptest::prelude::any;
    use std::collections::BTreeSet;

    const SERVICES: [&str; 3] = ["work/app", "work/web", "shop/app"];
    const MEMBERS: [&str; 2] = ["member-1", "member-2"];

    fn import(cluster: &str) -> Arc<MergedImport> {
        Arc::new(MergedImport {
            import_type: ImportType::ClusterSetIp,
            ports: Vec::new(),
            session_affinity: SessionAffinity::None,
            properties: mcs_part().properties,
            clusters: vec![MergedCluster { cluster: cluster.into(), ports: None }],
        })
    }

    fn assert_equal(compact: &MergedImports, plain: &Table<MergedServiceImport>) {
        let mut objects: Vec<MergedServiceImport> = compact.iter().collect();
        objects.sort_by(|one, other| one.meta.name.cmp(&other.meta.name));
        assert_eq!(objects.iter().collect::<Vec<_>>(), plain.iter().collect::<Vec<_>>());
        for MergedServiceImport { meta, service, selection, .. } in &objects {
            let is_selected = *selection != ClusterSelection::default();
            let is_rare = !is_named_after(&meta.name, service) || !meta.finalizers.others.is_empty() || is_selected;
            assert_eq!(compact.kept(&meta.name).map(|kept| kept.rare.is_some()), Some(is_rare), "it takes memory");
        }
        let mut rebuilt = MergedImports::default();
        objects.into_iter().for_each(|object| drop(rebuilt.take(object)));
        assert_eq!(*compact, rebuilt, "a store depends only on its objects");
        let is_used = |it: &&MergedServiceImport| it.meta.finalizers.ours && !it.meta.deleting;
        for service in SERVICES.map(named) {
            let own = names::merged_import_name(&service);
            let used = plain.iter().filter(|it| it.service == service && it.meta.name.name == own).filter(is_used);
            let used: BTreeSet<MemberNamespace> = used.map(|it| it.meta.name.member_namespace()).collect();
            assert_eq!(compact.importers(&service).cloned().collect::<BTreeSet<_>>(), used);
            assert_eq!(compact.number_of(&service), plain.iter().filter(|it| it.service == service).count());
            for importer in MEMBERS.map(names::member_namespace) {
                assert_eq!(compact.is_used(&service, &importer), used.contains(&importer));
                let of_service =
                    plain.iter().filter(|it| it.service == service && it.meta.name.member_namespace() == importer);
                let names: BTreeSet<ObjectName> = of_service.map(|it| it.meta.name.clone()).collect();
                assert_eq!(compact.names_of(&service, &importer).collect::<BTreeSet<_>>(), names);
                let at = ObjectName::new(importer, own.clone());
                assert_eq!(compact.get(&at).as_ref(), plain.get(&at));
            }
        }
    }

    /// Removes the resourceVersion of the previous state, which a store may have overwritten.
    fn without_version(mut taken: Taken<MergedServiceImport>) -> Taken<MergedServiceImport> {
        if let Taken::Changed(Some(before)) = &mut taken {
            before.meta.resource_version = 0;
        }
        taken
    }

    /// Also rule MC6.
    #[test]
    fn any_sequence_of_changes_gives_the_objects_of_a_plain_table() {
        let step = (0..3_usize, 0..2_usize, 0..3_usize, 0..2_u8, any::<[bool; 7]>());
        for_any(cases(200), 20, &proptest::collection::vec(step, 1..40), |steps| {
            let (mut compact, mut plain) = (MergedImports::default(), Table::default());
            let [mut removes, mut misnames, mut has_other_finalizers, mut is_selected] = [false; 4];
            for (version, (name, member, service, uid, flags)) in (1..).zip(steps) {
                let [is_removal, is_own, deleting, ours, other, import_of, selects] = flags;
                let service = if is_own { name } else { service };
                let mut object =
                    merged_service_import(MEMBERS[member], SERVICES[service], &import(MEMBERS[usize::from(import_of)]));
                object.meta.name = in_hub_of(MEMBERS[member], &names::merged_import_name(&named(SERVICES[name])));
                object.meta.uid = format!("uid-{uid}").as_str().into();
                (object.meta.generation, object.meta.created) = (0, Timestamp::default());
                (object.meta.resource_version, object.meta.deleting) = (version, deleting);
                let others = if other { vec!["other".into()] } else { Vec::new() };
                object.meta.finalizers = Finalizers { ours, others };
                if selects {
                    object.selection.results = vec![vec![MEMBERS[0].into()]];
                }
                let at = object.meta.name.clone();
                if is_removal {
                    let removed = plain.remove(&at, &object.meta.uid);
                    removes |= removed.is_some();
                    assert_eq!(compact.remove(&at, &object.meta.uid), removed);
                } else {
                    misnames |= name != service;
                    has_other_finalizers |= other;
                    is_selected |= selects;
                    assert_eq!(without_version(compact.take(object.clone())), without_version(plain.take(object)));
                }
                assert_equal(&compact, &plain);
            }
            let left: Vec<MergedServiceImport> = plain.iter().cloned().collect();
            for object in left {
                compact.remove(&object.meta.name, &object.meta.uid);
            }
            assert_eq!(compact, MergedImports::default());
            [
                (removes, "removes"),
                (misnames, "misnames"),
                (has_other_finalizers, "has other finalizers"),
                (is_selected, "selects"),
            ]
        });
    }

    #[test]
    fn an_object_can_share_the_import_of_another_importer() {
        let mut compact = MergedImports::default();
        let imports = MEMBERS.map(import);
        let object = |member: usize| merged_service_import(MEMBERS[member], "work/app", &imports[member]);
        (0..2).for_each(|member| drop(compact.take(object(member))));
        for (member, other) in [(0, 1), (1, 0)] {
            let beside = compact.import_beside(&object(member)).expect("another importer has the Service");
            assert!(Arc::ptr_eq(beside, &imports[other]), "{member}");
        }
    }
}
