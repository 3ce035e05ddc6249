//! `gosched serve`: the third seed's web server.

mod admission;
mod app;
mod stats;

use crate::args::ServeArgs;
use crate::outcome::{Failed, ended};
use app::App;
use gosched::net::TcpListener;
use gosched::signal::{self, Signal};
use gosched_http::{Handle, Server};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// What ends the server: Ctrl-C, and what service managers send.
const ENDING: [Signal; 2] = [Signal::INTERRUPT, Signal::TERMINATE];

pub(crate) fn run(args: ServeArgs) -> ExitCode {
    ended("serve", gosched::run(move || serve(&args)))
}

fn serve(args: &ServeArgs) -> Result<(), Failed> {
    let listener = TcpListener::bind(&args.addr)
        .map_err(|error| format!("can't listen at {}: {error}", args.addr))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let debug =
        args.debug.as_deref().map(|addr| bind_debug(addr, args.debug_exposed)).transpose()?;
    let app = App::new(args);
    let server = Server::new(move |req| app.answer(req));
    end_on_signals(server.handle(), args.grace());
    // Nobody may be there to read it, and that is no reason to fail.
    let _ = writeln!(io::stdout(), "listening on http://{address}");
    if let Some(debug) = debug {
        let _ = writeln!(io::stdout(), "debug pages at http://{}/debug/", debug.local_addr());
        note_waits();
        debug.spawn();
    }
    server.serve(listener).map_err(|error| format!("can't accept connections: {error}"))
}

/// For the profiles of blocks and mutexes: about one wait for each 10 us waited, one of ten contended
/// locks.
fn note_waits() {
    gosched::pprof::set_block_profile_rate(10_000);
    gosched::pprof::set_mutex_profile_fraction(10);
}

fn bind_debug(addr: &str, is_exposed: bool) -> Result<gosched_debug::Server, String> {
    let bound = match is_exposed {
        true => gosched_debug::Server::bind_exposed(addr),
        false => gosched_debug::Server::bind(addr),
    };
    bound.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput if !is_exposed => {
            format!("no debug pages at {addr}: {error}; --debug-exposed allows it")
        }
        _ => format!("no debug pages at {addr}: {error}"),
    })
}

/// The first signal drains; the next one does what it does anywhere.
fn end_on_signals(handle: Handle, grace: Duration) {
    let signals = signal::notify(&ENDING);
    gosched::go(move || {
        let Ok(signal) = signals.recv() else { return };
        signal::reset(&ENDING);
        let _ = writeln!(
            io::stderr(),
            "{signal}: answering what runs, for {} s at most",
            grace.as_secs()
        );
        handle.shutdown();
        if !handle.wait_timeout(grace) {
            handle.close();
        }
    });
}
