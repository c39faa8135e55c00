//! Definitions in, diagnostics or Nets out.

mod actions;
mod compiled;
mod diagnostics;
mod documented;
mod documents;
mod graph;
mod keychain;
mod language;
mod lowering;
mod plans;
mod programs;
mod random;
mod refused;
mod running;
mod schema;
mod stream;
mod view;
mod warned;
mod workflow;
