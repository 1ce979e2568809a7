//! Tests of whole fleets on memkube, mostly on paused time: the real agents, with their engine, in one process. Each
//! file is about one part of their behaviour.

mod bad_answers_on_memkube;
mod definitions_on_memkube;
mod endpoints_on_memkube;
mod failover_on_memkube;
mod fan_out_on_memkube;
mod fleet_rules_on_memkube;
mod go_agents_on_memkube;
mod golden_objects_on_memkube;
mod identity_on_memkube;
mod least_privilege;
mod lost_definition_on_memkube;
mod make_before_break_on_memkube;
mod mcs_on_memkube;
mod membership_on_memkube;
mod metrics_on_memkube;
mod name_taken_on_memkube;
mod names_on_memkube;
mod old_definitions_on_memkube;
mod open_at_start_on_memkube;
mod paused_time;
mod properties_on_memkube;
#[path = "../support/random_faults.rs"]
mod random_faults;
mod reference_on_memkube;
mod restored_hub_on_memkube;
mod silence_on_memkube;
mod stream_requests_on_memkube;
mod streams_on_memkube;
#[path = "../support/mod.rs"]
mod support;
mod traces_on_memkube;
