//! Lists of scenarios: actions on a fleet and their expected results. The test programs of all backends call the same
//! macros, so that no backend misses a scenario.

/// Defines a test for each scenario of the main job (export, import and their removal). Each test calls `$run` with the
/// scenario and the settings of its fleet.
#[macro_export]
macro_rules! main_job_tests {
    // Runs all scenarios one after the other, as statements. `$run` also gets `$with` and the scenario's name.
    (in a row: $run:path, $with:expr) => {
        $crate::main_job_tests! { @list [in a row: $run, $with] }
    };
    ($run:path) => {
        $crate::main_job_tests! { @list [$run] }
    };
    (@list $how:tt) => {
        $crate::scenario_tests! { $how of main_job;
            the_first_export_and_import_cost_what_the_ledger_lists: (2);
            a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers: (3);
            a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing: (2);
            b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export: (2);
            b1_a_deleted_slice_is_withdrawn_by_its_event: (2);
            an_imported_slice_deleted_by_hand_is_created_again_and_not_measured_again: (2);
            an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace: (2).with_grace(std::time::Duration::from_millis(1));
            a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub: (2);
            a_service_deleted_and_created_again_is_exported_again: (2);
        }
    };
}

/// Defines a test for each scenario about the rules of a fleet: announcements, features, conflicts and rights.
#[macro_export]
macro_rules! fleet_rule_tests {
    ($run:path) => {
        $crate::scenario_tests! { [$run] of announced;
            a_member_announces_its_version_and_its_stop_and_the_hub_answers_with_counts: (2);
            fields_that_the_hub_no_longer_supports_are_withdrawn_and_return_with_its_announcement: (2);
            fields_that_an_importer_no_longer_supports_are_withdrawn_and_return_with_its_announcement: (2);
            a_deleted_member_agent_object_is_created_again_and_nothing_is_withdrawn: (2);
        }
        $crate::scenario_tests! { [$run] of carried;
            all_supported_fields_arrive_and_each_change_of_them_costs_the_usual_writes: (2);
            a_headless_service_arrives_headless_where_its_export_asks_for_it: (2);
        }
        $crate::scenario_tests! { [$run] of conflicts;
            a_conflict_is_reported_with_its_winner_and_clears_on_the_event_that_ends_it: (2);
        }
        $crate::scenario_tests! { [$run] of deletion;
            a_namespace_deleted_in_the_exporting_member_is_removed_with_its_exports: (2).with_grace(std::time::Duration::from_millis(1));
            a_namespace_deleted_in_the_importing_member_is_removed_with_its_imports: (2);
            a_namespace_deleted_in_the_hub_removes_nothing_in_the_members: (2);
            an_exporting_members_namespace_deleted_in_the_hub_is_removed_with_its_exports: (2).with_grace(std::time::Duration::from_millis(1));
            an_importing_members_namespace_deleted_in_the_hub_is_removed: (2);
            a_multi_cluster_service_is_removed_with_any_propagation_of_its_deletion: (2);
            a_service_export_is_removed_with_any_propagation_of_its_deletion: (2);
            a_deleted_service_is_removed_with_its_slices_and_their_exports: (2);
            a_service_import_without_its_owner_is_garbage_collected_and_created_again: (2);
        }
        $crate::scenario_tests! { [$run] of trust;
            an_exporter_that_is_not_allowed_exports_nothing_and_is_notified: (2);
            an_importer_that_is_not_allowed_imports_nothing_and_is_notified: (2).with_grace(std::time::Duration::from_millis(1));
            addresses_outside_the_declared_ranges_are_not_imported_and_are_reported: (2).with_source_ranges("10.1.0.0/16,fd00:1::/32");
            addresses_that_no_other_cluster_can_have_are_not_imported_and_are_reported: (2);
            objects_that_a_member_forges_are_rejected_and_reported_and_change_nothing: (2);
        }
    };
}

/// Defines the tests for a list of scenarios. Each entry has the number of members and other settings of the fleet.
#[doc(hidden)]
#[macro_export]
macro_rules! scenario_tests {
    ([in a row: $run:path, $with:expr] of $module:ident; $($scenario:ident: ($members:expr) $(.$more:ident($value:expr))*;)*) => {
        $(
            let spec = $crate::environment::FleetSpec::of($members)$(.$more($value))*;
            $run($with, stringify!($scenario), spec, $crate::$module::$scenario)?;
        )*
    };
    ([$run:path] of $module:ident; $($scenario:ident: ($members:expr) $(.$more:ident($value:expr))*;)*) => {
        $(
            #[test]
            fn $scenario() -> anyhow::Result<()> {
                $run($crate::environment::FleetSpec::of($members)$(.$more($value))*, $crate::$module::$scenario)
            }
        )*
    };
}

/// Defines a test for each scenario about the CRDs. Each test calls `$run` with the scenario. A scenario needs a client
/// of a server on which [`crate::definitions::upgrade`] was called.
#[macro_export]
macro_rules! definition_tests {
    ($run:path) => {
        $crate::definition_tests! { @scenarios $run;
            the_committed_definitions_are_one_for_each_kind_and_take_valid_objects;
            both_versions_of_service_export_are_served;
            a_bad_multi_cluster_service_is_rejected;
            a_bad_service_export_is_rejected;
            a_bad_service_import_is_rejected;
            a_bad_endpoint_slice_export_is_rejected;
            a_bad_endpoint_slice_import_is_rejected;
            a_bad_internal_service_export_is_rejected;
            a_bad_internal_service_import_is_rejected;
            a_bad_member_agent_is_rejected;
            a_bad_merged_service_import_is_rejected;
        }
    };
    (@scenarios $run:path; $($scenario:ident;)*) => {
        $(
            #[test]
            fn $scenario() -> anyhow::Result<()> {
                $run($crate::definitions::$scenario)
            }
        )*
    };
}
