//! Raises faults that are not stack overflows, with handlers that the first argument names.
//!
//! A user's handler ends the process with code 42 and says what it saw.

use std::env;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use gosched_fiber::fault;
use gosched_fiber::stack::{self, Class};

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Where nothing is ever mapped.
const BAD_ADDRESS: usize = 0x40;

fn main() {
    let mode = env::args().nth(1).expect("a mode");
    match mode.as_str() {
        "default" => default(fault_now),
        "default-sent" => default(send_segv),
        "default-bus" => default(raise_bus),
        "std" => install_then(fault_now),
        "before" => before(tell, libc::SA_SIGINFO | libc::SA_ONSTACK, fault_now),
        "before-sent" => before(tell, libc::SA_SIGINFO | libc::SA_ONSTACK, send_segv),
        "before-plain" => before_plain(),
        "before-nodefer" => before(tell, libc::SA_SIGINFO | libc::SA_NODEFER, fault_now),
        "before-masking" => before_masking(),
        "before-once" => before(repair_nothing, libc::SA_SIGINFO | libc::SA_RESETHAND, fault_now),
        "before-repairing" => before(repair, libc::SA_SIGINFO | libc::SA_ONSTACK, use_repaired),
        "after" => after(fault_now),
        "after-chaining" => after_chaining(),
        "stray" => before(tell, libc::SA_SIGINFO | libc::SA_ONSTACK, stray_into_a_guard),
        "sent-with-address" => {
            before(tell, libc::SA_SIGINFO | libc::SA_ONSTACK, send_guard_address)
        }
        "unmapped" => before(tell, libc::SA_SIGINFO | libc::SA_ONSTACK, use_unmapped),
        "ignored-sent" => ignored(send_segv),
        "ignored-fault" => ignored(fault_now),
        other => panic!("no mode {other}"),
    }
    println!("still alive");
}

fn install_then(act: fn()) {
    fault::install().expect("installs");
    act();
}

fn default(act: fn()) {
    set_action(libc::SIGSEGV, libc::SIG_DFL, 0, None);
    set_action(libc::SIGBUS, libc::SIG_DFL, 0, None);
    install_then(act);
}

fn before(handler: Handler, flags: c_int, act: fn()) {
    set_action(libc::SIGSEGV, handler as *const () as usize, flags, None);
    install_then(act);
}

fn before_plain() {
    extern "C" fn plain(signal: c_int) {
        say(&format!("plain handler, signal {signal}"));
        end();
    }
    set_action(libc::SIGSEGV, plain as *const () as usize, 0, None);
    install_then(fault_now);
}

fn before_masking() {
    let flags = libc::SA_SIGINFO;
    set_action(libc::SIGSEGV, tell as *const () as usize, flags, Some(libc::SIGUSR1));
    install_then(fault_now);
}

fn after(act: fn()) {
    fault::install().expect("installs");
    let flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    set_action(libc::SIGSEGV, tell as *const () as usize, flags, None);
    act();
}

/// The handler that `chain` passes signals to.
static OURS: AtomicUsize = AtomicUsize::new(0);

/// A library that installs its handler later and passes on what it does not know.
fn after_chaining() {
    extern "C" fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        say("chaining");
        let ours = ptr::with_exposed_provenance::<()>(OURS.load(SeqCst));
        // SAFETY: what `sigaction` returned with SA_SIGINFO set.
        let ours = unsafe { mem::transmute::<*const (), Handler>(ours) };
        ours(signal, info, context);
    }
    fault::install().expect("installs");
    let flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let old = set_action(libc::SIGSEGV, chain as *const () as usize, flags, None);
    OURS.store(old.sa_sigaction, SeqCst);
    stack::grow(64 << 10, || descend(0));
}

fn ignored(act: fn()) {
    set_action(libc::SIGSEGV, libc::SIG_IGN, 0, None);
    install_then(act);
}

fn set_action(
    signal: c_int,
    handler: usize,
    flags: c_int,
    masked: Option<c_int>,
) -> libc::sigaction {
    // SAFETY: all zeroes is a value of this type.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    let mut old = action;
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    if let Some(masked) = masked {
        // SAFETY: valid for writes of its type.
        unsafe { libc::sigaddset(&mut action.sa_mask, masked) };
    }
    // SAFETY: callers pass a handler that fits the flags.
    assert_eq!(unsafe { libc::sigaction(signal, &action, &mut old) }, 0);
    old
}

extern "C" fn tell(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's, or passed on from there.
    let info = unsafe { &*info };
    // SAFETY: any signal's description can be read as a fault's.
    let address = unsafe { info.si_addr() }.addr();
    let sent = info.si_code <= 0;
    say(&format!("user handler, signal {signal}, context {}", !context.is_null()));
    say(&if sent { "sent".into() } else { format!("address {address:#x}") });
    say(&format!("segv blocked {}", is_blocked(libc::SIGSEGV)));
    say(&format!("usr1 blocked {}", is_blocked(libc::SIGUSR1)));
    end();
}

/// Returns, so that the fault repeats.
extern "C" fn repair_nothing(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    say("called once");
}

/// The page that `repair` makes accessible.
static PAGE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn repair(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    let page = ptr::with_exposed_provenance_mut(PAGE.load(SeqCst));
    // SAFETY: mapped by `use_repaired`.
    unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE) };
}

fn map_page() -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: asks for memory anywhere.
    let page = unsafe { libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0) };
    page.expose_provenance()
}

fn use_repaired() {
    PAGE.store(map_page(), SeqCst);
    write_to(PAGE.load(SeqCst));
    say("repaired");
}

fn use_unmapped() {
    let page = map_page();
    // SAFETY: mapped above, used by nobody.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(page), 4096) };
    write_to(page);
}

fn stray_into_a_guard() {
    let stack = stack::alloc(Class::DEFAULT).expect("a stack");
    write_to(stack.guard().start);
}

fn fault_now() {
    write_to(BAD_ADDRESS);
}

fn write_to(address: usize) {
    // SAFETY: none; this is the fault that the test is about.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(address).write_volatile(1) };
}

fn send_segv() {
    let this = std::process::id() as libc::pid_t;
    // SAFETY: sends a signal to ourselves.
    unsafe { libc::kill(this, libc::SIGSEGV) };
}

/// Sends a signal whose description looks like an overflow of the stack it arrives on.
fn send_guard_address() {
    let mut stack = stack::alloc(Class::DEFAULT).expect("a stack");
    let address = stack.limit() - 8;
    stack::call_on(&mut stack, || send_segv_with(address));
}

fn send_segv_with(address: usize) {
    // SAFETY: all zeroes is a value of this type.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    info.si_signo = libc::SIGSEGV;
    info.si_code = libc::SI_QUEUE;
    let field = (&raw mut info).cast::<u8>().wrapping_add(ADDRESS_OFFSET).cast::<usize>();
    // SAFETY: inside `info`, which is 128 bytes; aligned.
    unsafe { field.write(address) };
    let this = std::process::id();
    // SAFETY: sends a signal to ourselves; `info` is valid for reads.
    unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, this, this, libc::SIGSEGV, &raw const info)
    };
}

/// Where `si_addr` lies in a description.
const ADDRESS_OFFSET: usize = 16;

fn raise_bus() {
    // SAFETY: sends a signal to ourselves.
    unsafe { libc::raise(libc::SIGBUS) };
}

fn is_blocked(signal: c_int) -> bool {
    // SAFETY: all zeroes is a value of this type.
    let mut mask: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: only asks; `mask` is valid for a write of its type.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &mut mask) };
    // SAFETY: filled above.
    unsafe { libc::sigismember(&mask, signal) == 1 }
}

fn say(text: &str) {
    println!("{text}");
}

/// Ends the process at once. An orderly exit would unmap the stack that a handler runs on.
fn end() -> ! {
    // SAFETY: ending the process has no obligations.
    unsafe { libc::_exit(42) }
}

#[inline(never)]
fn descend(depth: usize) -> usize {
    let frame = std::hint::black_box([depth; 32]);
    if depth == usize::MAX { 0 } else { descend(depth + 1) + frame[depth % 32] }
}
