use super::*;
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock};

unsafe extern "C" {
    fn pthread_attr_getdetachstate(
        attributes: *const libc::pthread_attr_t,
        state: *mut c_int,
    ) -> c_int;
}

/// What a thread says of itself.
struct Asked {
    stack_bytes: Option<usize>,
    answer: OnceLock<Answer>,
}

#[derive(Debug)]
struct Answer {
    name: String,
    std_name: Option<String>,
    is_detached: bool,
    stack_bytes: usize,
    has_signal_stack: bool,
}

impl Body for Asked {
    fn run(&'static self) {
        set_name(c"asked");
        let mut raw = MaybeUninit::uninit();
        // SAFETY: no arguments.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: fills memory of ours with what the calling thread has.
        assert_eq!(unsafe { libc::pthread_getattr_np(this, raw.as_mut_ptr()) }, 0);
        // SAFETY: initialised by the call above.
        let attributes = Attributes(unsafe { raw.assume_init() });
        let (mut detached, mut stack_bytes) = (0, 0);
        // SAFETY: initialised; written to memory of ours.
        unsafe { pthread_attr_getdetachstate(&attributes.0, &mut detached) };
        // SAFETY: as above.
        unsafe { libc::pthread_attr_getstacksize(&attributes.0, &mut stack_bytes) };
        // SAFETY: all zeroes is a value of this type.
        let mut signals: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: only asks; written to memory of ours.
        unsafe { libc::sigaltstack(ptr::null(), &mut signals) };
        let answer = Answer {
            name: std::fs::read_to_string("/proc/thread-self/comm").unwrap(),
            std_name: std::thread::current().name().map(str::to_owned),
            is_detached: detached == libc::PTHREAD_CREATE_DETACHED,
            stack_bytes,
            has_signal_stack: signals.ss_flags & libc::SS_DISABLE == 0,
        };
        self.answer.set(answer).unwrap();
    }
}

fn ask(stack_bytes: Option<usize>) -> &'static Answer {
    let asked: &'static Asked = Box::leak(Box::new(Asked { stack_bytes, answer: OnceLock::new() }));
    start(asked, asked.stack_bytes).unwrap();
    asked.answer.wait()
}

#[test]
fn a_thread_has_what_was_asked_for_and_no_more() {
    let answer = ask(Some(256 << 10));
    assert_eq!(answer.name, "asked\n");
    assert_eq!(answer.std_name, None);
    assert!(answer.is_detached);
    assert!((256 << 10..512 << 10).contains(&answer.stack_bytes), "{answer:?}");
    assert!(!answer.has_signal_stack, "that is std's");
}

/// A size that libc can't do with is no refusal.
#[test]
fn too_small_a_stack_is_made_large_enough() {
    let answer = ask(Some(1));
    assert!(answer.stack_bytes >= libc::PTHREAD_STACK_MIN, "{answer:?}");
}

#[test]
fn a_refusal_is_an_error() {
    let error = start(&((|| ()) as fn()), Some(1 << 50)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
}

#[test]
fn a_function_runs_as_it_is() {
    static SENDER: Mutex<Option<mpsc::Sender<u32>>> = Mutex::new(None);
    static BODY: fn() = || SENDER.lock().unwrap().take().unwrap().send(7).unwrap();
    let (sender, receiver) = mpsc::channel();
    *SENDER.lock().unwrap() = Some(sender);
    start(&BODY, None).unwrap();
    assert_eq!(receiver.recv(), Ok(7));
}
