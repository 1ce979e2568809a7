//! End-to-end tests, in one program, so that they share their control planes.

mod bad_answers;
mod bench_smoke;
mod charts;
mod conformance;
mod conformance_random;
mod control_plane;
mod crashes;
mod definitions;
mod disputes;
mod endpoints;
mod exported_endpoints;
mod fleet;
mod fleet_rules;
mod identity;
mod in_memory;
mod install;
mod kubectl;
mod main_job;
mod make_before_break;
mod metrics_secure;
mod old_definitions;
mod process;
mod races;
mod sandbox_real;
mod settings;
mod tokens;
