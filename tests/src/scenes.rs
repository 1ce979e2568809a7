//! What is played on a fleet and must come of it, wherever that stands. A target that plays the scenes lists none of them:
//! it calls the macro that does, so that no scene is played on one ground only by mistake.

pub mod actions;
pub mod definitions;
pub mod main_job;
pub mod marker;
pub mod succession;

/// Makes a test of each scene of the main job: `$play` is given what the scene asks for, and the scene.
#[macro_export]
macro_rules! play_the_main_job {
    // All of them in a row, as statements; `$play` is also given that and the scene's name.
    (in a row: $play:path, $with:expr) => {
        $crate::play_the_main_job! { @list row $play, $with }
    };
    ($play:path) => {
        $crate::play_the_main_job! { @list tests $play }
    };
    (@list $how:ident $play:path $(, $with:expr)?) => {
        $crate::play_the_main_job! { @$how $play $(, $with)?;
            the_first_export_and_import_cost_what_the_ledger_says: 2, None;
            a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers: 3, None;
            a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing: 2, None;
            b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export: 2, None;
            b1_a_deleted_slice_is_withdrawn_by_its_event: 2, None;
            an_imported_slice_deleted_by_hand_is_made_anew_and_not_measured_anew: 2, None;
            an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace: 2, Some(std::time::Duration::from_millis(1));
            a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub: 2, None;
            a_service_deleted_and_made_again_is_exported_again: 2, None;
        }
    };
    (@row $play:path, $with:expr; $($scene:ident: $members:expr, $grace:expr;)*) => {
        $(
            let cast = $crate::stage::Cast { members: $members, derived_service_grace: $grace };
            $play($with, stringify!($scene), cast, $crate::scenes::main_job::$scene)?;
        )*
    };
    (@tests $play:path; $($scene:ident: $members:expr, $grace:expr;)*) => {
        $(
            #[test]
            fn $scene() -> anyhow::Result<()> {
                let cast = $crate::stage::Cast { members: $members, derived_service_grace: $grace };
                $play(cast, $crate::scenes::main_job::$scene)
            }
        )*
    };
}

/// Makes a test of each scene about the definitions: `$play` is given the scene, which wants a client of a server that
/// [`definitions::upgrade`] was called for.
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
