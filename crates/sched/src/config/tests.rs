use super::{Applied, Class, Config, KEYS};

#[path = "../../../../testprogs/fuzz.rs"]
mod fuzz;

/// Whether every item of the text is understood. What is understood is sane.
fn all_apply(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let (mut config, mut panic_aborts) = (Config::new(), false);
    let mut all = true;
    // That one holds for the process, and other tests make stacks.
    for item in text.split(',').filter(|item| !item.contains("unguarded")) {
        let (key, value) = item.split_once('=').unwrap_or((item, "1"));
        all &= config.apply(key.trim(), value.trim(), &mut panic_aborts) == Applied::Holds;
    }
    assert!(config.procs.is_none_or(|procs| procs > 0));
    assert!(config.slice_ns.is_none_or(|ns| ns >= super::SLICE_MIN_NS));
    let _ = config.stack_bytes.and_then(Class::for_bytes);
    all
}

/// One that is only named would be silent about having no effect.
#[test]
fn every_key_of_the_table_is_acted_on() {
    for (key, _) in KEYS {
        let applied = Config::new().apply(key, "not a value of any", &mut false);
        // A folder may have any name.
        assert!(matches!(applied, Applied::NotUnderstood) || *key == "root", "{key}: {applied:?}");
    }
    assert_eq!(Config::new().apply("nonsense", "1", &mut false), Applied::Unknown);
}

#[test]
fn settings_end_nothing() {
    let good: [&[u8]; 5] = [
        b"procs=4,tls=own,stack=256k,maxthreads=100",
        b"schedtrace=1000,scheddetail=1,schedtracejson=0",
        b"asyncpreemptoff=1,slice=10ms,numa=pin,gc=off",
        b"slice=off, updatemaxprocs = 0 ,containermaxprocs",
        b"traceback=single,panic=abort,stack=1M,slice=100us,chaos=7",
    ];
    fuzz::run("settings", 3_000, &good, all_apply);
}
