//! Bounds of schemas and of validating with them.

/// Bytes of a schema as JSON. The largest schemas that people publish for one document have about as much.
pub const BYTES_MAX: usize = 64 * 1024;

/// Schemas inside schemas, in text. Each level of the validator takes some stack.
pub const DEPTH_MAX: usize = 32;

/// Schemas in a schema, boolean ones included. Memory of a compiled schema grows with it, to some megabytes.
pub const SUBSCHEMAS_MAX: usize = 2_000;

/// Schemas that one place of a value is checked against when every reference is followed. A union of a hundred variants
/// with ten parts each stays below it.
pub(crate) const WEIGHT_MAX: u64 = 5_000;

/// References and applicators in a row that stay at one place of the value.
pub(crate) const IN_PLACE_MAX: usize = 64;

/// Evaluations of a subschema for one value, each some hundred nanoseconds to a microsecond: less than a second in all.
pub const STEPS_MAX: u64 = 200_000;

/// Evaluations inside evaluations: each takes up to 4 KiB of stack in an unoptimised build, of the 2 MiB of a thread.
pub(crate) const NESTING_MAX: usize = 300;

/// Bytes of text that cost as much as an evaluation where a pattern, a format or a length reads them.
pub(crate) const BYTES_PER_STEP: u64 = 16;

/// Memory of a compiled pattern. Matching takes time in proportion to it for every byte of text.
pub(crate) const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// Reasons reported for one value.
pub const ERRORS_MAX: usize = 20;

/// Characters of a reason: the validator quotes the value, which may have megabytes.
pub(crate) const MESSAGE_MAX: usize = 300;

/// Characters of a pointer in a report.
pub(crate) const POINTER_MAX: usize = 200;

/// Stack of the thread that compiles a schema: [`SUBSCHEMAS_MAX`] levels of 16 KiB in an unoptimised build.
pub(crate) const STACK_BYTES: usize = 64 << 20;
