//! Codes of failures: the class and the meaning of each. docs/failures.md has the same rows in the same order; a test
//! compares them.

use crate::ErrorClass;

/// Code of a failure that the engine, a worker or a tool reports. Programs and definitions may choose codes of their
/// own, which are only texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCode {
    name: &'static str,
    class: ErrorClass,
    meaning: &'static str,
}

impl FailureCode {
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    #[must_use]
    pub const fn class(self) -> ErrorClass {
        self.class
    }

    /// Describes what happened and what the user can do, for the documentation.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.meaning
    }

    /// Returns all codes in the order of the documentation.
    pub fn all() -> impl Iterator<Item = FailureCode> {
        RESERVED.iter().chain(OTHERS).copied()
    }

    /// Returns the reserved code of this name.
    #[must_use]
    pub fn find_reserved(name: &str) -> Option<FailureCode> {
        RESERVED.iter().find(|code| code.name == name).copied()
    }
}

/// Defines a list of codes: their constants, classes and rows in docs/failures.md.
macro_rules! failure_codes {
    ($(#[$about:meta])* $list:ident: $($code:ident $class:ident $meaning:literal,)*) => {
        $(
            #[doc = $meaning]
            pub const $code: FailureCode =
                FailureCode { name: stringify!($code), class: ErrorClass::$class, meaning: $meaning };
        )*

        $(#[$about])*
        pub const $list: &[FailureCode] = &[$($code,)*];
    };
}

failure_codes! {
    /// Codes that have their class no matter whether the engine, a tool or the program of a step reports them.
    RESERVED:
    AI_MODEL_BUSY Transient5xx "the provider of the model is overloaded (503, 529); retry later, or use another model",
    AUTHENTICATION_FAILED Auth "the other side refused the credentials (401), or they have expired; renew the secret that has them",
    CONNECTION_REFUSED Transport "nothing listens at the address; check the address, and whether the program there runs",
    CONNECTION_RESET Transport "the connection broke, or the other side does not speak the protocol; retry",
    DNS_FAILED Transport "the name of the host has no address, or cannot be resolved; check the name",
    INVALID_CONFIGURATION Validation "the step cannot work as it is configured, or the worker lacks a program; the message says what to change",
    NETWORK_TIMEOUT Timeout "a call or an attempt took longer than its timeout; retry, or allow more time",
    PERMISSION_DENIED Policy "the other side (403), or a right of the tenant or the caller, does not allow this; request the right",
    PROVIDER_ERROR Transient5xx "the provider of the model failed (other 5xx), or its answer cannot be parsed; retry later",
    RATE_LIMIT_EXCEEDED RateLimit "the other side received too many requests (429); retry later, or send fewer",
    RESOURCE_NOT_FOUND Validation "a definition, a secret or a resource of the other side (404, 410) does not exist; check its name, or create it",
    SERVICE_UNAVAILABLE Transient5xx "the other side failed to answer the request (5xx); retry later",
    VALIDATION_ERROR Validation "a value does not fit its schema, or the other side refused the request (other 4xx); correct what is sent",
    WORKER_LOST Transport "the worker ended or became silent while it ran the step; read its log, then retry",
}

failure_codes! {
    /// Codes that have their class only if the engine, a worker or a tool reports them. The same text from a program
    /// is of the class unknown.
    OTHERS:
    AGENT_FAILED Unknown "an agent decided that the execution fails, without a code of its own; the message has its reason",
    ARTIFACT_NOT_KEPT Transport "a large value arrived damaged or could not be stored; free the disk if it is full, then retry",
    ARTIFACT_NOT_READ Transport "a large value could not be read from the disk or the bucket; the message has the reason; then retry",
    BAD_REDIRECT Validation "a response redirects to something that is no http address; correct `url`, or do not follow redirects",
    CANCELLED Policy "a person or a parent cancelled the step or the execution; start it again if it is still needed",
    CHILD_FAILED Unknown "the sub-execution failed without an error of its own; look at its steps",
    CODE_EXCEPTION Unknown "the code of a node raised an exception; correct the line that the error names",
    CODE_EXIT Unknown "the interpreter of a node ended before it had a result; the details have its last output",
    CODE_NOT_STARTED Unknown "the interpreter of a node could not be started, or its folder of packages not be used; repair the worker",
    CODE_SIGNAL Unknown "a signal killed the interpreter of a node; 9 often means that the machine had no memory left",
    CODE_SYNTAX Validation "the code of a node has a syntax error; correct the line that the error names",
    CONFLICT Conflict "the state of the resource at the other side does not allow the request (409, 412); read the resource, then decide",
    CONTAINER_ENGINE_FAILED Unknown "docker or podman could not run the container (exit code 125); the message has its reason",
    CONTAINER_ENGINE_MISSING Validation "the worker has neither podman nor docker; install one of them",
    CONTAINER_NOT_STARTED Unknown "the container engine could not be started; repair the worker, then retry",
    CONTEXT_CONFLICT Conflict "two iterations of a loop set one key of the context to different values; use a key for each, or a sequential loop",
    CONTEXT_TOO_LARGE Validation "the context would be larger than 1 MiB; set fewer or smaller values, and return large ones as results",
    DB_CONNECTION Transport "the connection to the database could not be made, or broke; check the server, then retry",
    DB_CONSTRAINT Validation "the statement violates a constraint of the database; correct its values",
    DB_DEADLOCK Transient5xx "the database ended the transaction because of another one; retry",
    DB_ERROR Unknown "the database reported another error; its message has the reason",
    DB_NOT_OPENED Unknown "the file or the folder of a SQLite database cannot be used; check the disk of the server",
    DB_NOT_STARTED Unknown "TLS for the connection to the database cannot be set up; check the certificates of the worker",
    DB_STATEMENT Validation "the database refused the statement; correct its names, types and values",
    DB_SYNTAX Validation "the statement has a syntax error; correct it",
    DB_TIMEOUT Timeout "the statement took too long or waited too long for a lock; retry, or allow more time",
    DB_UNAVAILABLE Transient5xx "the database has no resources left, or an error of its system; retry later",
    DEPENDENCIES_NOT_INSTALLED Unknown "pip could not install `pipDependencies`; check their names, and whether the worker reaches the index",
    DISK_FULL Transport "the disk of the server has only its reserve left; free space, then retry",
    EGRESS_REFUSED Policy "the address is not one that definitions may reach; an operator can allow it with `egress-allow`",
    ENGINE_UNAVAILABLE Transport "the worker could not read or store a value because the engine did not answer; retry",
    EXECUTION_LIMIT_EXCEEDED Unknown "the tenant has as many open executions as it may have; retry when others have ended",
    EXECUTION_QUARANTINED Unknown "the start of the sub-execution crashed the server repeatedly and is refused; the log of the server has the crashes",
    EXECUTION_TIMEOUT Timeout "the execution took longer than its timeout; allow more time, or do less in one execution",
    EXPRESSION_ERROR Validation "an expression or a template cannot be evaluated; correct the text that the message quotes",
    FILE_UNREADABLE Transport "the worker could not read or write a file of an artifact; check its disk, then retry",
    GATE_TIMEOUT Timeout "the gate of the step did not open in time; patch the context earlier, or allow more time",
    HTTP_NOT_STARTED Unknown "the client for requests cannot be set up; check the certificates of the worker",
    INPUT_UNBOUND Validation "a required input of a plan's step has no value; bind it, or check the output that it refers to",
    INVALID_CURSOR Validation "the worker cannot read the checkpoint of an earlier one; run workers of one release, then retry",
    ITERATION_FAILED Unknown "iterations of a loop failed; the errors of the iterations have the reasons",
    KEYCHAIN_UNRESOLVED Auth "an entry of the keychain could not be resolved, so no step runs; repair the entry that the message names",
    LIMIT_EXCEEDED Validation "a limit on steps, loops, depth, calls, memory, time or size was reached; the message names it: do less at a time",
    MANUAL_TIMEOUT Timeout "the step was not completed or approved in time; allow more time, or answer earlier",
    MEMORY_UNAVAILABLE Unknown "memories of the workflow cannot be read or stored; the message has the reason",
    NODE_FAILED Unknown "the program of a node reported a failure without a code; its message has the reason",
    NODE_NOT_STARTED Unknown "the work folder of a node cannot be used; check the disk of the worker, then retry",
    NO_NEXT Validation "a branch ended because no arc of its step matched; add an arc without a guard, or correct the guards",
    NO_WORK_DIR Transport "the work dir of a plan's step or execution cannot be used; check the disk of the worker, then retry",
    OUTPUT_INVALID Validation "an output of a plan's step is required and was not written, or is declared as JSON and cannot be parsed; correct what the step writes",
    OUT_OF_MEMORY Unknown "the program of a node used more memory than `memoryLimit`; allow more, or process less at a time",
    POLICY_VIOLATION Policy "a separation-of-duties constraint refused the answer of a person; another person has to answer",
    PROTOCOL_MISMATCH Validation "the worker and the server are of different releases; run the same release of both",
    PYTHON_EXCEPTION Unknown "the code of a python task raised an exception; correct the line that the error names",
    PYTHON_EXIT Unknown "python ended without a result, or with an exit code other than 0; the details have its last output",
    PYTHON_NOT_STARTED Unknown "python could not be started; repair the worker, then retry",
    PYTHON_SIGNAL Unknown "a signal killed python; 9 often means that the machine had no memory left",
    PYTHON_SYNTAX Validation "the code of a python task has a syntax error; correct the line that the error names",
    QUOTA_EXCEEDED Policy "the tenant uses all of its storage; delete executions, or ask the operator for more",
    REFERENCE_NOT_AVAILABLE Validation "a stored value that is read is missing, damaged or has no such part; run the step that made it again",
    REJECTED Policy "a person rejected the step; the message names who",
    RESPONSE_NOT_JSON Validation "a response is declared as JSON and cannot be parsed; the details have its beginning",
    RESPONSE_TOO_LARGE Validation "a response is larger or deeper than allowed; request less, or raise `max_response_bytes`",
    RESULT_NOT_JSON Validation "the result of a program cannot be written as JSON; return texts, numbers, lists and objects",
    RESULT_TOO_LARGE Validation "the result is larger than allowed; select less, or write it to a file and return its path",
    RESULT_UNKNOWN Unknown "a program ran, and its end was not seen; look at its effects before you retry",
    RETRIES_EXHAUSTED Unknown "a rule retried a task that succeeds until no attempts were left; correct the condition of the rule",
    ROUTING_TIMEOUT Timeout "the sandbox or route group of the step did not become ready in time; make it ready, then retry",
    SANDBOX_NOT_STARTED Unknown "the process for a computation could not be started; check the limits of the worker's system, then retry",
    SCRIPT_NOT_STARTED Unknown "the interpreter of a script could not be started; repair the worker, then retry",
    SECRET_LIMIT Validation "the step is given more secrets than can be redacted; give it fewer or smaller ones, or split it",
    SECRET_UNUSABLE Auth "a stored secret cannot be decrypted; check the master key, or store the secret again",
    SHELL_EXIT Unknown "a command ended with an exit code other than 0; the message and the log have its last lines",
    SHELL_NOT_STARTED Unknown "the shell could not be started; repair the worker, then retry",
    SHELL_SIGNAL Unknown "a signal killed a command; 9 often means that the machine had no memory left",
    STEP_NOT_STARTED Unknown "the program of a plan's step could not be started; repair the worker, then retry",
    STOPPED Unknown "the step was stopped while it ran, because it was cancelled or given to another worker; its result is not used",
    STORE_DAMAGED Unknown "stored rows of the sub-execution cannot be read; `windlass admin check` finds the damage",
    TARGET_NOT_READ Transport "the sandbox or route group of the step could not be read from the store; retry",
    TASK_ERROR Unknown "a task returned a result with the status `error` and without a code; the result has the reason",
    TASK_REJECTED Unknown "a task succeeded, and a rule of its policy fails the step all the same; correct the rule if that is not intended",
    TOO_MANY_REDIRECTS Validation "a request was redirected too often; use the last address as `url`",
    UPLOAD_FAILED Transport "a large value could not be uploaded to the bucket in all attempts; check the bucket, then retry",
    VALUE_TOO_DEEP Validation "a value is nested more than 100 deep; return a flatter one",
    VALUE_TOO_LARGE Validation "a value is too large to be read whole; pass the whole value on as a file, or make it smaller",
    WORKER_DEFECT Unknown "a defect of the worker; its log has the details; report it",
    WORKER_ERROR Unknown "a worker in another language reported an error without a code; its message has the reason",
    WORKER_REFUSED Validation "the server refused what the worker sent; run the same release of both",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_sorted_and_has_a_code_once() {
        for list in [RESERVED, OTHERS] {
            assert!(list.is_sorted_by(|one, next| one.name < next.name), "{list:?}");
        }
        let twice = OTHERS.iter().find(|code| FailureCode::find_reserved(code.name).is_some());
        assert_eq!(twice, None);
    }

    #[test]
    fn codes_fit_into_the_column_of_stores() {
        let long = FailureCode::all().find(|code| code.name.len() > 50);
        assert_eq!(long, None);
    }

    #[test]
    fn wfl_24_only_reserved_codes_have_a_class_if_a_program_chooses_them() {
        assert_eq!(ErrorClass::of_code("NETWORK_TIMEOUT"), ErrorClass::Timeout);
        assert_eq!(ErrorClass::of_code("PERMISSION_DENIED"), ErrorClass::Policy);
        for code in OTHERS {
            assert_eq!(ErrorClass::of_code(code.name), ErrorClass::Unknown, "{}", code.name);
        }
    }
}
