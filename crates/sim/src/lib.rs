//! The simulator: random definitions, random worlds, and an oracle that knows only what a user could see.

mod afterlife;
pub mod campaign;
pub mod generate;
pub mod invariants;
pub mod lower;
pub mod oracle;
pub mod rng;
pub mod sabotage;
pub mod saga;
pub mod scenario;
pub mod schedules;
pub mod seen;
pub mod system;
pub mod world;
