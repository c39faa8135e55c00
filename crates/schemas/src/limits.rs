//! Limits of schemas and of validation.

/// Maximum size of a schema as JSON. The largest schemas that are published for one document have about this size.
pub const BYTES_MAX: usize = 64 * 1024;

/// Maximum nesting of schemas in the text. Each level of the validator takes some stack.
pub const DEPTH_MAX: usize = 32;

/// Maximum number of schemas in a schema, including boolean ones. The memory of a compiled schema grows with it, to
/// some megabytes.
pub const SUBSCHEMAS_MAX: usize = 2_000;

/// Maximum number of schemas that one part of a value is checked against when every reference is followed. A union of
/// a hundred variants with ten parts each is below it.
pub(crate) const WEIGHT_MAX: u64 = 5_000;

/// Maximum number of successive references and applicators that apply to the same part of the value.
pub(crate) const IN_PLACE_MAX: usize = 64;

/// Maximum number of evaluations of subschemas for one value. Each takes some hundred nanoseconds to a microsecond,
/// so all take less than a second.
pub const STEPS_MAX: u64 = 200_000;

/// Maximum number of nested evaluations. Each takes up to 4 KiB of stack in an unoptimised build, and a thread has 2
/// MiB.
pub(crate) const NESTING_MAX: usize = 300;

/// Number of bytes of text that cost as much as an evaluation when a pattern, a format or a length reads them.
pub(crate) const BYTES_PER_STEP: u64 = 16;

/// Maximum memory of a compiled pattern. The time to match a byte of text grows with it.
pub(crate) const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of reasons reported for one value.
pub const ERRORS_MAX: usize = 20;

/// Maximum length of a reason in characters. The validator quotes the value, which may have megabytes.
pub(crate) const MESSAGE_MAX: usize = 300;

/// Maximum length of a pointer in a report, in characters.
pub(crate) const POINTER_MAX: usize = 200;

/// Stack of the thread that compiles a schema: [`SUBSCHEMAS_MAX`] levels of 16 KiB in an unoptimised build.
pub(crate) const STACK_BYTES: usize = 64 << 20;
