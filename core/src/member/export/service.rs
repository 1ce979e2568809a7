//! Export of a Service: writes the InternalServiceExport of a Service in the hub, and writes the outcome of conflict
//! resolution to the ServiceExport.

use super::eligibility::{Eligibility, Problem, denial, eligibility};
use super::in_hub::{cannot_begin, exports_in_hub, free_name, has_earlier_export, live_exports};
use super::mcs::{self, Request};
use super::recorded::{self, is_being_withdrawn, shows_outcome};
use super::weight::weight;
use crate::annotations::EXPORT_HEADLESS;
use crate::conditions::{self, CONFLICT, ConditionValue, DesiredCondition, VALID};
use crate::feature_set::FeatureSet;
use crate::limits::PORTS_MAX;
use crate::member::disputed;
use crate::member::view::Key;
use crate::member::view::Reader;
use crate::model::{ExportedBy, InternalServiceExport, Kind, McsExport, Reference, Service, ServiceExport};
use crate::plan::{BlockingReason, Desired, ExportContent, Patch, Plan, Sample, Write};
use crate::reasons::Reason;
use fleetnet_types::{ConditionStatus, ObjectName, Text, Timestamp};
use std::borrow::Cow;
use std::sync::Arc;

/// Kinds of the member cluster that must be completely listed before a Service is exported or withdrawn.
const LOCAL: [Kind; 2] = [Kind::Service, Kind::ServiceExport];
const COMPONENT: &str = "serviceexport-controller";
const OUTCOME_COMPONENT: &str = "internalserviceexport-controller";

/// Plans the export of a Service by both APIs.
pub(crate) fn plan_service(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    if view.is_export_unknown(service) || !view.complete(&LOCAL) {
        return Plan::default();
    }
    let mut plan = plan_fleet_export(view, service, now);
    let writes_to_hub = plan.writes.iter().any(|write| write.kind() == Kind::InternalServiceExport);
    let rejection = view.rejection(&Key::Export(service.clone())).filter(|_| writes_to_hub);
    plan.join(mcs::plan_conditions(view, service, rejection, now));
    plan.plan_again_at(mcs::again(view, now));
    plan
}

fn plan_fleet_export(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    let Some(export) = view.exports().get(service) else { return withdraw_from_hub(view, service, now) };
    if export.meta.deleting {
        return withdraw(view, export, now);
    }
    match eligibility(view, export, now) {
        Eligibility::Undecided => Plan::default(), // the hub's features are not known yet
        Eligibility::Eligible(source) => start_export(view, export, source, now),
        // A withdrawal that has started is completed first, even if the Service is now invalid for another reason.
        Eligibility::Unchanged(..) if is_being_withdrawn(export) => withdraw(view, export, now),
        Eligibility::Unchanged(source, problem) => {
            unchanged(view, export, source, invalid(view, service, problem), now)
        }
        Eligibility::Withdrawn(problem) => {
            let is_zero = problem == Problem::WeightZero;
            let withdrawn = is_zero.then(|| recorded::withdrawn(export, COMPONENT)).flatten();
            let wanted = [invalid(view, service, problem)].into_iter().chain(withdrawn).collect();
            withdraw_with_conditions(view, export, wanted, now)
        }
    }
}

/// Returns the condition `Valid` of a Service with a problem. Its Event also has advice.
fn invalid(view: Reader<'_>, service: &ObjectName, problem: Problem) -> DesiredCondition {
    let (value, advice): (ConditionValue, Cow<'static, str>) = match problem {
        Problem::NotFound => {
            let advice = "create a Service of that name, or delete the ServiceExport";
            let advice = format!(" in cluster {}: {advice}", view.settings().cluster);
            (ConditionValue::service_not_found(service), advice.into())
        }
        Problem::ExternalName => {
            let advice = ": it is of type ExternalName and has no endpoints of its own";
            (ConditionValue::service_ineligible(service), advice.into())
        }
        Problem::Headless => {
            let advice = format!("set the annotation {EXPORT_HEADLESS} of the ServiceExport to \"true\" to export it");
            let advice = format!(": it is headless; {advice}");
            (ConditionValue::service_ineligible(service), advice.into())
        }
        Problem::HeadlessNotSupported => {
            let advice = ". Upgrade the hub agent, or apply the CRD of MemberAgent in the hub";
            (ConditionValue::headless_not_supported(service), advice.into())
        }
        Problem::Imported => (ConditionValue::imported_service(service), "".into()),
        Problem::WeightZero => {
            let advice = ": other clusters send it no traffic until its weight is above 0";
            (ConditionValue::weight_is_zero(service), advice.into())
        }
        Problem::TooManyPorts(number) => {
            let advice = ". The existing export stays as it was. Remove ports, or split them between several Services";
            (ConditionValue::too_many_ports(service, number), advice.into())
        }
        Problem::InvalidWeight(error) => {
            let advice = ". The existing export continues unchanged. Correct the annotation";
            (ConditionValue::invalid_weight(service, &error), advice.into())
        }
    };
    let text = format!("{}{advice}", value.message);
    valid_condition(value).with_event_message(text)
}

/// Sets the condition `Valid` of a ServiceExport that is invalid for now. An existing export continues; no new export
/// is created.
fn unchanged(
    view: Reader<'_>,
    export: &ServiceExport,
    service: &Service,
    valid: DesiredCondition,
    now: Timestamp,
) -> Plan {
    if export.meta.finalizers.ours {
        return update_export(view, export, service, valid, now);
    }
    let set = set_conditions(view, export, &[valid], now);
    if live_exports(view, service).any(InternalServiceExport::is_of_fleet_api) {
        // The hub was restored, or somebody has removed the finalizer: the export is an existing one.
        return Plan::one(set.unwrap_or_else(|| Write::add_finalizer(Kind::ServiceExport, &export.meta)));
    }
    // The fleet's API exports nothing of this Service. An export of an earlier Service is in a hub that was restored.
    Plan::of(set).joined(withdraw_from_hub(view, &export.meta.name, now))
}

fn valid_condition(value: ConditionValue) -> DesiredCondition {
    DesiredCondition::new(VALID, value, COMPONENT)
}

/// Withdraws the export from the hub, then removes the finalizer of the ServiceExport.
fn withdraw(view: Reader<'_>, export: &ServiceExport, now: Timestamp) -> Plan {
    if !view.complete(&[Kind::InternalServiceExport]) {
        return Plan::default();
    }
    let mut plan = withdraw_from_hub(view, &export.meta.name, now);
    if plan.writes.is_empty() && export.meta.finalizers.ours {
        let name = &export.meta.name;
        let service = view.services().get(name).map(|service| &service.meta.uid);
        if let Some(undecodable) = view.undecodable_in_hub(Kind::InternalServiceExport, name, service) {
            return Plan::blocked_by_undecodable(Kind::ServiceExport, name, Kind::InternalServiceExport, &undecodable);
        }
        plan.push(Write::remove_finalizer(Kind::ServiceExport, &export.meta));
    }
    plan
}

/// Withdraws the export from the hub and sets the condition `Valid` to the reason. A withdrawn export has no conflict,
/// so the condition `Conflict` becomes Unknown.
fn withdraw_with_conditions(
    view: Reader<'_>,
    export: &ServiceExport,
    mut wanted: Vec<DesiredCondition>,
    now: Timestamp,
) -> Plan {
    if conditions::find(&export.conditions, CONFLICT).is_some_and(|it| it.status == ConditionStatus::True) {
        wanted.push(pending(&export.meta.name, COMPONENT));
    }
    let Some(status) = set_conditions(view, export, &wanted, now) else { return withdraw(view, export, now) };
    if shows_outcome(export) {
        // The conditions are written before the withdrawal. After the withdrawal, only these conditions show that the
        // outcome in the status is out of date (B9 in docs/contributors/behaviour.md).
        return Plan::one(status);
    }
    let mut plan = withdraw(view, export, now);
    // A plan writes each object at most once. If the withdrawal already writes the ServiceExport, the conditions wait
    // for the next plan.
    if plan.writes.iter().all(|write| write.kind() != Kind::ServiceExport) {
        plan.push(status);
    }
    plan
}

/// Ends the export of a Service by the fleet's API. The InternalServiceExport stays, or is created, if the standard API
/// requests the export.
fn withdraw_from_hub(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    if !view.complete(&[Kind::InternalServiceExport]) {
        return Plan::default();
    }
    let request = mcs::request(view, service, now);
    if let (Request::Export(_, service), Some(hub)) = (request, view.hub_features(now)) {
        return ToHub { view, service, hub, exported_by: ExportedBy::McsApi, now }.plan();
    }
    let live = exports_in_hub(view, service).filter(|export| !export.meta.deleting);
    Plan::of(live.filter_map(|export| match &export.mcs {
        Some(part) if request == Request::Unknown => leave_to_mcs_api(export, part),
        _ => Some(Write::delete(Kind::InternalServiceExport, &export.meta)),
    }))
}

/// Returns the write after which only the standard API exports a Service; `None` if it does already.
fn leave_to_mcs_api(export: &InternalServiceExport, part: &McsExport) -> Option<Write> {
    if part.exported_by == ExportedBy::McsApi {
        return None;
    }
    let part = McsExport { exported_by: ExportedBy::McsApi, ..part.clone() };
    let content = ExportContent { mcs: Some(Arc::new(part)), ..content_in(export) };
    let patch = Patch::InternalServiceExport { reference: export.reference.clone(), content };
    Some(Write::patch(&export.meta, patch))
}

/// Exports the Service in several plans: first the conditions, then the finalizer, then the InternalServiceExport. The
/// finalizer exists before the InternalServiceExport, so a crash leaves no export without cleanup.
fn start_export(view: Reader<'_>, export: &ServiceExport, service: &Service, now: Timestamp) -> Plan {
    let name = &export.meta.name;
    let valid = valid_condition(ConditionValue::service_is_valid(name));
    if !export.meta.finalizers.ours {
        // Reset the condition `Conflict`: the outcome for an earlier export with this name does not apply to the new
        // export (B9 in docs/contributors/behaviour.md).
        let again = [valid, pending(name, COMPONENT)];
        let wanted: Vec<DesiredCondition> =
            again.into_iter().chain(recorded::not_withdrawn(export, COMPONENT)).collect();
        let write = set_conditions(view, export, &wanted, now)
            .unwrap_or_else(|| Write::add_finalizer(Kind::ServiceExport, &export.meta));
        return Plan::one(write);
    }
    update_export(view, export, service, valid, now)
}

/// Updates the InternalServiceExport in the hub, and sets the conditions of the ServiceExport, such as the outcome of
/// conflict resolution.
fn update_export(
    view: Reader<'_>,
    export: &ServiceExport,
    service: &Service,
    valid: DesiredCondition,
    now: Timestamp,
) -> Plan {
    let blocking = cannot_begin(view, service);
    let rejection = view.rejection(&Key::Export(service.meta.name.clone()));
    let mut to_hub = Plan::default();
    if view.complete(&[Kind::InternalServiceExport])
        && let Some(hub) = view.hub_features(now)
    {
        let export = ToHub { view, service, hub, exported_by: ExportedBy::Both, now };
        let is_fuller =
            |present: &&InternalServiceExport| present.headless || content_in(present) != export.content(Some(present));
        to_hub = export.plan();
        to_hub.plan_again_at(hub.again(exports_in_hub(view, &service.meta.name).find(is_fuller)));
    }
    let valid = unless_blocked(view, export, service, valid, blocking.as_ref());
    let rejection = rejection.filter(|_| !to_hub.writes.is_empty());
    let mut wanted: Vec<DesiredCondition> = unless_rejected(export, &to_hub, valid, rejection).into_iter().collect();
    wanted.extend(outcome_of_hub(view, export, service));
    wanted.extend(recorded::not_withdrawn(export, COMPONENT));
    let blocking_reason = |reason| move |message| BlockingReason { reason, message };
    let mut plan = Plan::default()
        .blocked_by(rejection.map(str::to_owned).map(blocking_reason(Reason::WriteRefused)))
        .blocked_by(blocking);
    if let Some(write) = set_conditions(view, export, &wanted, now) {
        plan.push(write);
        if has_earlier_export(view, service) {
            // The Service was created again. The condition is written before the old export is deleted: afterwards only
            // the condition shows that the outcome of the old export does not apply.
            return plan;
        }
    }
    plan.join(to_hub);
    plan
}

/// Returns the condition `Valid`: False with the hub's message if the hub rejected the write of the export, otherwise
/// `valid`. `None` while a retry runs: the condition shows the last rejection, and must stay until the retry has a
/// result.
fn unless_rejected(
    export: &ServiceExport,
    to_hub: &Plan,
    valid: DesiredCondition,
    rejection: Option<&str>,
) -> Option<DesiredCondition> {
    if valid.value().status != ConditionStatus::True || to_hub.writes.is_empty() {
        return Some(valid);
    }
    match rejection {
        Some(message) => Some(valid_condition(ConditionValue::write_rejected(message.to_owned()))),
        None => (!conditions::shows_rejection(&export.conditions)).then_some(valid),
    }
}

/// Returns the condition `Valid`: False if this cluster has no right to export the Service, or if its export cannot
/// begin ([`cannot_begin`]). Otherwise returns `valid`.
fn unless_blocked(
    view: Reader<'_>,
    export: &ServiceExport,
    service: &Service,
    valid: DesiredCondition,
    blocking: Option<&BlockingReason>,
) -> DesiredCondition {
    if valid.value().status != ConditionStatus::True {
        return valid;
    }
    if let Some(denial) = denial(view, export, service) {
        return DesiredCondition::new(
            VALID,
            ConditionValue::exporter_not_allowed(denial.message.to_string()),
            OUTCOME_COMPONENT,
        );
    }
    blocking.map_or(valid, |blocking| valid_condition(ConditionValue::export_blocked(blocking)))
}

fn pending(service: &ObjectName, component: &'static str) -> DesiredCondition {
    DesiredCondition::new(CONFLICT, ConditionValue::pending_conflict_resolution(service), component)
}

/// Returns the outcome of conflict resolution as the condition `Conflict` of the ServiceExport. `None` if the hub has
/// no outcome for the present generation of the InternalServiceExport.
fn outcome_of_hub(view: Reader<'_>, export: &ServiceExport, service: &Service) -> Option<DesiredCondition> {
    let name = &export.meta.name;
    if has_earlier_export(view, service) {
        // The Service was created again: the outcome for the earlier Service does not apply (B9 in
        // docs/contributors/behaviour.md).
        return Some(pending(name, OUTCOME_COMPONENT));
    }
    let internal = exports_in_hub(view, name).find(|internal| !internal.meta.deleting);
    let outcome = internal.and_then(|internal| {
        conditions::find(&internal.conditions, CONFLICT)
            .filter(|condition| condition.observed_generation >= internal.meta.generation)
    });
    let condition = |value| DesiredCondition::new(CONFLICT, value, OUTCOME_COMPONENT);
    match outcome.map(|condition| condition.status) {
        Some(ConditionStatus::True) => {
            let internal = internal.map(|internal| internal.meta.name.to_string()).unwrap_or_default();
            let value = ConditionValue::conflict(name);
            let source = format!("The Events of InternalServiceExport {internal} in the hub");
            let text = format!("{}. {source} name the ports, the clusters and the winner", value.message);
            Some(condition(value).with_event_message(text))
        }
        Some(ConditionStatus::False) => Some(condition(ConditionValue::no_conflict(name))),
        _ if conditions::find(&export.conditions, CONFLICT).is_none() || !shows_outcome(export) => {
            Some(pending(name, OUTCOME_COMPONENT))
        }
        _ => None,
    }
}

/// Export of a Service to the hub.
struct ToHub<'a> {
    view: Reader<'a>,
    service: &'a Service,
    hub: FeatureSet,
    /// APIs that export the Service, if the standard API requests the export.
    exported_by: ExportedBy,
    now: Timestamp,
}

impl ToHub<'_> {
    /// Creates or updates the InternalServiceExport.
    fn plan(&self) -> Plan {
        let mut present = exports_in_hub(self.view, &self.service.meta.name).peekable();
        // An export that is being deleted still has its name.
        if present.peek().is_none() {
            return Plan::of(self.create());
        }
        Plan::of(present.filter(|present| !present.meta.deleting).filter_map(|present| self.update(present)))
    }

    fn create(&self) -> Option<Write> {
        let Self { view, service, .. } = *self;
        if !self.fits() || !view.may_export_more(Kind::InternalServiceExport, &service.meta.name.namespace) {
            return None;
        }
        let at = free_name(view, service)?;
        let desired = Desired::InternalServiceExport { reference: self.reference(), content: self.content(None) };
        Some(self.measured(Write::create(at, desired)))
    }

    fn update(&self, present: &InternalServiceExport) -> Option<Write> {
        let Self { view, service, .. } = *self;
        if present.reference.uid != service.meta.uid {
            // The Service was created again: a new UID needs a new export, so the old one is deleted (B16 in
            // docs/contributors/behaviour.md). First the outcome of the earlier Service is removed from the
            // ServiceExport, which may be all that is left.
            let is_shown = mcs::shows_outcome(view, &service.meta.name);
            return (!is_shown).then(|| Write::delete(Kind::InternalServiceExport, &present.meta));
        }
        if !self.fits() {
            return None;
        }
        let content = self.content(Some(present));
        if self.is_up_to_date(present, &content) && present.reference.cluster == view.settings().cluster {
            return None;
        }
        let patch = Patch::InternalServiceExport { reference: self.reference(), content };
        Some(self.measured(Write::patch(&present.meta, patch)))
    }

    fn fits(&self) -> bool {
        self.service.ports.len() <= PORTS_MAX
    }

    fn measured(&self, write: Write) -> Write {
        write.measured(Some(Sample::ServiceExported { service: self.service.meta.name.clone() }))
    }

    /// Returns the content of the Service, reduced to the hub's features. `present` is its InternalServiceExport.
    fn content(&self, present: Option<&InternalServiceExport>) -> ExportContent {
        let Self { view, service, hub, exported_by, now } = *self;
        ExportContent {
            ports: service.ports.clone(),
            headless: service.headless,
            session_affinity: hub.affinity(service.session_affinity),
            mcs: mcs::part(view, &service.meta.name, present, exported_by, now),
            weight: self.weight(present),
        }
    }

    /// Returns the weight of the ServiceExport. The present one stays while the annotation is malformed, and without
    /// cluster selection, because a Go agent may have written it for Traffic Manager.
    fn weight(&self, present: Option<&InternalServiceExport>) -> Option<i64> {
        let kept = present.and_then(|present| present.weight);
        if !mcs::sends_selection(self.view, self.now) {
            return kept;
        }
        let name = &self.service.meta.name;
        let written = match self.exported_by {
            ExportedBy::Both => self.view.exports().live(name).and_then(|export| export.weight.as_deref()),
            ExportedBy::McsApi => self.view.mcs_exports().live(name).and_then(|export| export.weight.as_deref()),
        };
        weight(written).map_or(kept, |weight| Some(weight).filter(|weight| *weight != 1 || kept.is_some()))
    }

    /// True if the InternalServiceExport `present` needs no update. While the agent only assumes that the hub supports
    /// just the Go form, an export may also have more than the Go form (`content`).
    fn is_up_to_date(&self, present: &InternalServiceExport, content: &ExportContent) -> bool {
        let Self { service, hub, .. } = *self;
        if !mcs::is_part(present.mcs.as_deref(), content.mcs.as_deref()) {
            return false;
        }
        let present = ExportContent { mcs: content.mcs.clone(), ..content_in(present) };
        let fuller = || ExportContent { session_affinity: service.session_affinity, ..content.clone() };
        present == *content || hub.is_assumed() && (service.headless || present == fuller())
    }

    fn reference(&self) -> Reference {
        let Self { view, service: Service { meta, .. }, .. } = *self;
        Reference {
            cluster: view.settings().cluster.clone(),
            source: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: Text::from(meta.resource_version.to_string()),
            generation: meta.generation,
            exported_since: Some(view.service_changed_at(&meta.name).unwrap_or(self.now)),
        }
    }
}

/// Returns the content of an InternalServiceExport.
fn content_in(present: &InternalServiceExport) -> ExportContent {
    ExportContent {
        ports: present.ports.clone(),
        headless: present.headless,
        session_affinity: present.session_affinity,
        mcs: present.mcs.clone(),
        weight: present.weight,
    }
}

/// Returns one status write that sets the desired conditions and emits their Events; `None` if the ServiceExport
/// already has all desired conditions.
fn set_conditions(
    view: Reader<'_>,
    export: &ServiceExport,
    wanted: &[DesiredCondition],
    now: Timestamp,
) -> Option<Write> {
    let wanted: Vec<DesiredCondition> =
        wanted.iter().cloned().chain(disputed::of_export(view, export, COMPONENT)).collect();
    let (list, events) = conditions::change(Kind::ServiceExport, &export.meta, &export.conditions, &wanted, now)?;
    Some(Write::patch(&export.meta, Patch::ServiceExportConditions(list)).with_events(events))
}
