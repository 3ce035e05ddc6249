//! Threads that wait for something else than a blocking call, and std's locks. The program is
//! `testprogs/src/bin/block_waits.rs`.

use crate::child::{Ended, run, start};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

/// The program behind `timeout`, once it computes. It does until `Ended::of`.
fn computing() -> (Child, i32) {
    let mut child = start("", "block_waits", &["compute"]);
    let mut line = [0; 6];
    let out = child.stdout.as_mut().expect("piped");
    out.read_exact(&mut line).expect("it says `ready`");
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let text = fs::read_to_string(path).unwrap_or_default();
    let pid = text.trim().parse().expect("the one child of `timeout`");
    (child, pid)
}

/// Processes that compute, until dropped.
struct Load(Vec<Child>);

impl Load {
    fn new() -> Load {
        let busy = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Load((0..6).map(busy).collect::<Result<_, _>>().expect("a shell starts"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A thread that waits for a CPU is not blocked, however long that takes.
#[test]
fn nothing_is_handed_on_under_load() {
    let _load = Load::new();
    let (child, pid) = computing();
    // SAFETY: no memory is passed.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as u32, 19) };
    sleep(Duration::from_millis(1500));
    nothing_was_handed_on(child);
}

/// No thread was taken for a blocked one, but for those that did block: while a page came from a disk.
#[track_caller]
fn nothing_was_handed_on(child: Child) {
    let ended = Ended::of(child);
    assert!(ended.number("undeclared") <= ended.number("pages_from_disk"));
}

/// The monitor was stopped as well: what it remembers means nothing.
#[test]
fn nothing_is_handed_on_after_a_stop() {
    let (child, pid) = computing();
    for _ in 0..4 {
        signal(pid, libc::SIGSTOP);
        sleep(Duration::from_millis(120));
        signal(pid, libc::SIGCONT);
        sleep(Duration::from_millis(60));
    }
    nothing_was_handed_on(child);
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

#[test]
fn nothing_is_handed_on_after_a_thaw() {
    let group = Path::new("/sys/fs/cgroup/freezer").join(format!("gosched-{}", std::process::id()));
    if !Path::new("/sys/fs/cgroup/freezer/cgroup.procs").exists() {
        return eprintln!("SKIPPED: there is no freezer of cgroup v1 here");
    }
    if let Err(error) = fs::create_dir(&group) {
        return eprintln!("SKIPPED: no freezer can be made here: {error}");
    }
    let (child, pid) = computing();
    let write = |file: &str, text: &str| fs::write(group.join(file), text).expect(file);
    write("cgroup.procs", &pid.to_string());
    for _ in 0..4 {
        write("freezer.state", "FROZEN");
        sleep(Duration::from_millis(120));
        write("freezer.state", "THAWED");
        sleep(Duration::from_millis(60));
    }
    nothing_was_handed_on(child);
    let _ = fs::remove_dir(&group);
}

/// A page that comes late holds up its goroutine, not the processor.
#[test]
fn a_page_fault_that_lasts_is_no_reason_to_wait() {
    let ended = run("", "block_waits", &["fault"]);
    if !ended.is_skipped() {
        // The page comes when the other goroutine has run.
        assert_eq!(ended.number("byte"), 7);
    }
}

#[test]
fn a_std_mutex_kept_across_a_yield_is_a_hiccup() {
    let ended = run("", "block_waits", &["mutex"]);
    assert_eq!(ended.number("count"), 100);
    assert_eq!(ended.number("futex_waits"), 1, "std's locks come by the interposed `syscall`");
}

#[test]
fn a_thousand_contend_for_a_std_mutex_on_a_few_threads() {
    let ended = run("", "block_waits", &["contend"]);
    assert_eq!(ended.number("count"), 20_000);
    assert!(ended.number("machines_max") < 100);
}

/// The clock alone says that a thread sleeps, and that late.
#[test]
fn blocking_calls_are_noticed_without_proc() {
    let ended = run("", "block_waits", &["blind"]);
    assert_eq!(ended.number("right"), 4);
    assert!(ended.number("undeclared") >= 1);
}

/// A tracer holds up what it stops, and the processor with it.
#[test]
fn nothing_is_handed_on_from_a_traced_thread() {
    let (child, pid) = computing();
    let mut stops = 0;
    while stops < 6 {
        for tid in computing_threads(pid) {
            match Stopped::stop(tid) {
                Ok(stopped) => {
                    sleep(Duration::from_millis(60));
                    drop(stopped);
                    stops += 1;
                }
                // It has ended meanwhile.
                Err(libc::ESRCH) => {}
                Err(errno) => {
                    let _ = Ended::of(child);
                    return eprintln!("SKIPPED: threads can't be traced here (errno {errno})");
                }
            }
        }
    }
    nothing_was_handed_on(child);
}

/// Threads of the process that are on a CPU or wait for one.
fn computing_threads(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the child computes still");
    let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let computes = |tid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
    };
    tids.filter(computes).collect()
}

/// A thread that this one traces and has stopped; it goes on when dropped.
struct Stopped {
    tid: i32,
    /// The signal whose delivery stopped it first; it gets it.
    signal: i32,
}

impl Stopped {
    fn stop(tid: i32) -> Result<Stopped, i32> {
        trace(libc::PTRACE_SEIZE, tid, 0)?;
        trace(libc::PTRACE_INTERRUPT, tid, 0)?;
        let mut status = 0;
        // SAFETY: writes one status, which is ours.
        if unsafe { libc::waitpid(tid, &mut status, libc::__WALL) } != tid {
            return Err(libc::ESRCH);
        }
        assert!(libc::WIFSTOPPED(status), "it runs until it is told to");
        let is_ours = status >> 16 == libc::PTRACE_EVENT_STOP;
        Ok(Stopped { tid, signal: if is_ours { 0 } else { libc::WSTOPSIG(status) } })
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        trace(libc::PTRACE_DETACH, self.tid, self.signal).expect("it is stopped");
    }
}

fn trace(request: libc::c_uint, tid: i32, data: i32) -> Result<(), i32> {
    let no_address = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: these requests take no memory.
    let done = unsafe { libc::ptrace(request, tid, no_address, i64::from(data)) };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

/// Nobody can tell who might wake a goroutine in a futex, so that is no deadlock; but it is said once.
#[test]
fn goroutines_left_in_futexes_are_named_after_a_while() {
    let mut child = start("", "block_waits", &["asleep"]);
    let mut err = BufReader::new(child.stderr.take().expect("piped"));
    let mut text = String::new();
    // The end of the list, whichever of them comes last.
    while !["\"holder\" [park]", "\"in-std\" [syscall, futex]", "\"in-libc\" [running]"]
        .iter()
        .all(|name| text.contains(name))
    {
        assert_ne!(err.read_line(&mut text).expect("text"), 0, "it ends with\n{text}");
    }
    assert!(text.starts_with("gosched: all goroutines have been asleep for 10 s, some of them in"));
    assert_eq!(text.matches(" waits in a futex in thread ").count(), 1, "{text}");
    signal(child.id() as i32, libc::SIGTERM);
    let _ = child.wait();
}

/// Neither the monitor nor the search for deadlocks goes round while nothing happens.
#[test]
fn an_idle_process_sleeps() {
    let ended = run("", "block_waits", &["idle"]);
    // The watcher's own sleep is one; the question whether it is a deadlock comes less and less
    // often.
    assert!(ended.number("switches_without_timer") <= 10);
    assert!(ended.number("switches_with_timer") <= 10);
}
