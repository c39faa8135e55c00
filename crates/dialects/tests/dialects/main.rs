//! Definitions in, diagnostics or Nets out.

mod documents;
mod lowering;
mod random;
mod refused;
mod running;
mod told;
mod warned;
