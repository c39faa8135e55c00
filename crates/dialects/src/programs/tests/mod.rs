//! Tests of programs with values in them, run by real interpreters.

mod fuzz;
