//! `gosched top`: the scheduler of a running process, as a table that is drawn anew each second.
//!
//! It reads `/debug/sched.json`, which [`gosched_debug`] serves.

mod look;
mod screen;
mod table;

use crate::args::TopArgs;
use crate::outcome::{Failed, ended, print};
use gosched_http::client;
use look::Look;
use serde_json::Value;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Where debug pages are unless somebody says otherwise. Go's customary port.
pub(crate) const ADDRESS: &str = "127.0.0.1:6060";

pub(crate) fn run(args: &TopArgs) -> ExitCode {
    let args = args.clone();
    ended("top", gosched::run(move || watch(&args)))
}

fn watch(args: &TopArgs) -> Result<(), Failed> {
    let pause = Duration::from_millis(args.interval);
    let mut screen = screen::Screen::new(!args.once && !args.json);
    let mut before = fetch(&args.addr)?;
    if args.json && args.once {
        return print(format!("{before}\n"));
    }
    loop {
        gosched::time::sleep(pause);
        let now = fetch(&args.addr)?;
        if args.json {
            print(format!("{now}\n"))?;
        } else {
            let (from, to) = (Look::new(&before)?, Look::new(&now)?);
            let text = table::text(&args.addr, &from, &to);
            screen.show(&text).map_err(|error| format!("can't print: {error}"))?;
        }
        if args.once {
            return Ok(());
        }
        before = now;
    }
}

fn fetch(addr: &str) -> Result<Value, Failed> {
    let url = format!("http://{addr}/debug/sched.json");
    let answer = client::get(&url).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "nothing listens at {addr}; a process serves debug pages with the crate \
             gosched-debug, or `gosched serve --debug`"
        ),
        _ => format!("can't ask {addr}: {error}"),
    })?;
    let not_ours = || format!("what listens at {addr} serves no debug pages of gosched");
    if answer.status != 200 {
        return Err(format!("{} (it answers {})", not_ours(), answer.status));
    }
    serde_json::from_slice(&answer.body).map_err(|_| not_ours())
}
