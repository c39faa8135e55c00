//! One file per noun of the command line.

pub mod sim;
