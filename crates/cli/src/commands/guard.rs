//! The process that ends what steps left running when their worker was killed. Started by the pool, not by people.

use std::process::ExitCode;

pub fn run() -> ExitCode {
    windlass_worker::guard::run(std::io::stdin().lock());
    ExitCode::SUCCESS
}
