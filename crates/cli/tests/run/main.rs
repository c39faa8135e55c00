//! `windlass run`, `executions` and `admin` from outside: the real program on real folders.

mod admin;
mod binary;
mod care;
mod changes;
mod children;
mod ends;
mod interrupted;
mod large;
mod looking;
mod loops;
mod nodes;
mod reach;
mod retry;
mod second_process;
mod workflows;
