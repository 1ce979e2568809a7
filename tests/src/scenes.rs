//! Scenarios for any fleet: actions and their expected results. A target that plays the scenarios calls the macro that lists
//! them, so that no scenario is played in one environment only by mistake.

pub mod actions;
pub mod announced;
pub mod carried;
pub mod conflicts;
pub mod definitions;
pub mod ending;
mod ledger;
pub mod main_job;
pub mod marker;
pub mod rich;
pub mod succession;
pub mod trusted;

/// Makes a test of each scenario of the main job. `$play` gets the scenario and the fleet that it needs.
#[macro_export]
macro_rules! play_the_main_job {
    // All of them in a row, as statements. `$play` also gets the given expression and the scenario's name.
    (in a row: $play:path, $with:expr) => {
        $crate::play_the_main_job! { @list [in a row: $play, $with] }
    };
    ($play:path) => {
        $crate::play_the_main_job! { @list [$play] }
    };
    (@list $how:tt) => {
        $crate::play_scenes! { $how of main_job;
            the_first_export_and_import_cost_what_the_ledger_says: (2);
            a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers: (3);
            a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing: (2);
            b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export: (2);
            b1_a_deleted_slice_is_withdrawn_by_its_event: (2);
            an_imported_slice_deleted_by_hand_is_made_anew_and_not_measured_anew: (2);
            an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace: (2).with_grace(std::time::Duration::from_millis(1));
            a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub: (2);
            a_service_deleted_and_made_again_is_exported_again: (2);
        }
    };
}

/// The same for each scenario about the rules of a fleet: announcements, features, conflicts and rights.
#[macro_export]
macro_rules! play_the_rules_of_the_fleet {
    ($play:path) => {
        $crate::play_scenes! { [$play] of announced;
            a_member_says_who_it_is_and_when_it_stops_and_the_hub_what_it_shares: (2);
            what_the_hub_announces_no_more_is_taken_back_and_comes_again_with_its_word: (2);
            what_an_importer_announces_no_more_is_taken_back_and_comes_again_with_its_word: (2);
            a_member_agent_that_somebody_deletes_is_made_anew_and_nothing_is_taken_back: (2);
        }
        $crate::play_scenes! { [$play] of carried;
            all_that_is_carried_arrives_and_each_change_of_it_costs_what_a_change_costs: (2);
            a_headless_service_arrives_headless_where_its_export_asks_for_it: (2);
        }
        $crate::play_scenes! { [$play] of conflicts;
            a_conflict_is_told_with_its_winner_and_clears_on_the_event_that_ends_it: (2);
        }
        $crate::play_scenes! { [$play] of ending;
            a_namespace_that_goes_in_the_exporting_member_is_gone_with_its_exports: (2).with_grace(std::time::Duration::from_millis(1));
            a_namespace_that_goes_in_the_importing_member_is_gone_with_its_imports: (2);
            a_namespace_that_goes_in_the_hub_takes_nothing_away: (2);
            an_exporting_members_namespace_that_goes_in_the_hub_is_gone_and_its_exports_with_it: (2).with_grace(std::time::Duration::from_millis(1));
            an_importing_members_namespace_that_goes_in_the_hub_is_gone: (2);
            a_multi_cluster_service_is_gone_however_its_deletion_propagates: (2);
            a_service_export_is_gone_however_its_deletion_propagates: (2);
            a_service_that_goes_takes_its_slices_with_it_and_their_exports: (2);
            a_service_import_whose_owner_is_not_there_is_collected_and_made_anew: (2);
        }
        $crate::play_scenes! { [$play] of trusted;
            an_exporter_that_is_not_named_gives_nothing_and_is_told_why: (2);
            an_importer_that_is_not_named_is_given_nothing_and_is_told_why: (2).with_grace(std::time::Duration::from_millis(1));
            what_lies_outside_of_the_declared_ranges_is_not_imported_and_that_is_told: (2).with_source_ranges("10.1.0.0/16,fd00:1::/32");
            addresses_that_are_no_other_clusters_are_not_imported_and_that_is_told: (2);
            what_a_member_forges_is_refused_and_told_and_changes_nothing: (2);
        }
    };
}

/// Makes the tests of a list of scenarios, each with its number of members and other needs.
#[doc(hidden)]
#[macro_export]
macro_rules! play_scenes {
    ([in a row: $play:path, $with:expr] of $module:ident; $($scene:ident: ($members:expr) $(.$more:ident($value:expr))*;)*) => {
        $(
            let cast = $crate::stage::Cast::of($members)$(.$more($value))*;
            $play($with, stringify!($scene), cast, $crate::scenes::$module::$scene)?;
        )*
    };
    ([$play:path] of $module:ident; $($scene:ident: ($members:expr) $(.$more:ident($value:expr))*;)*) => {
        $(
            #[test]
            fn $scene() -> anyhow::Result<()> {
                $play($crate::stage::Cast::of($members)$(.$more($value))*, $crate::scenes::$module::$scene)
            }
        )*
    };
}

/// Makes a test of each scenario about the CRDs. `$play` gets the scenario, which needs a client of a server after
/// [`definitions::upgrade`].
#[macro_export]
macro_rules! play_the_definitions {
    ($play:path) => {
        $crate::play_the_definitions! { @scenes $play;
            the_committed_definitions_are_one_for_each_kind_and_take_valid_objects;
            both_versions_of_service_export_are_served;
            a_bad_multi_cluster_service_is_refused;
            a_bad_service_export_is_refused;
            a_bad_service_import_is_refused;
            a_bad_endpoint_slice_export_is_refused;
            a_bad_endpoint_slice_import_is_refused;
            a_bad_internal_service_export_is_refused;
            a_bad_internal_service_import_is_refused;
            a_bad_member_agent_is_refused;
        }
    };
    (@scenes $play:path; $($scene:ident;)*) => {
        $(
            #[test]
            fn $scene() -> anyhow::Result<()> {
                $play($crate::scenes::definitions::$scene)
            }
        )*
    };
}
