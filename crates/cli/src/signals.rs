//! Ctrl-C and other signals that request an end. The first requests an orderly end, the second ends the process at
//! once: the supervisors then end the programs of its steps.

use crate::exit;
use crossbeam_channel::{Receiver, bounded};
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Listens from now on. The number of the first signal is sent to the channel.
pub fn listen() -> io::Result<Receiver<i32>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupts, mut terms) = runtime.block_on(async {
        Ok::<_, io::Error>((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    })?;
    let (heard, signals) = bounded(1);
    let listening = async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupts.recv() => SignalKind::interrupt().as_raw_value(),
                _ = terms.recv() => SignalKind::terminate().as_raw_value(),
            }
        };
        // A command that no longer listens is about to end.
        let _ = heard.send(next().await);
        std::process::exit(exit::of_signal(next().await).into());
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listening))?;
    Ok(signals)
}
