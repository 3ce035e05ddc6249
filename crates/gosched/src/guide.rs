//! The chapters of the guide, so that their examples are compiled and run with this crate's.

macro_rules! chapters {
    ($($name:ident: $file:literal,)+) => {
        $(#[doc = include_str!(concat!("../../../docs/guide/", $file))] mod $name {})+
    };
}

chapters! {
    from_threads: "from-threads.md",
    from_async: "from-async.md",
    from_go: "from-go.md",
    how_it_works: "how-it-works.md",
    goroutine_or_thread: "goroutine-or-thread.md",
    ffi: "ffi.md",
    tuning: "tuning.md",
    containers: "containers.md",
    traces: "traces.md",
    troubleshooting: "troubleshooting.md",
}
