use gosched::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A directory of the test's own, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("gosched-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[gosched::test(timeout = "300s")]
fn a_file_is_written_and_read() {
    let directory = Directory::new("file");
    let path = directory.0.join("a");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all(b"hello, file").unwrap();
    assert_eq!(file.seek(SeekFrom::Start(7)).unwrap(), 7);
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "file");
    file.set_len(5).unwrap();
    file.sync_all().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5);
    assert_eq!(fs::read(&path).unwrap(), b"hello");
    let mut part = [0; 2];
    file.read_exact_at(&mut part, 1).unwrap();
    assert_eq!(&part, b"el");
    assert!(File::create_new(&path).is_err());
}

#[gosched::test(timeout = "300s")]
fn directories_and_names() {
    let directory = Directory::new("names");
    let at = |name: &str| directory.0.join(name);
    fs::write(at("a"), "text").unwrap();
    fs::copy(at("a"), at("b")).unwrap();
    fs::rename(at("b"), at("c")).unwrap();
    fs::hard_link(at("a"), at("d")).unwrap();
    fs::create_dir(at("sub")).unwrap();
    let mut names: Vec<_> = fs::read_dir(&directory.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "c", "d", "sub"]);
    assert_eq!(fs::read_to_string(at("c")).unwrap(), "text");
    assert!(fs::exists(at("a")).unwrap() && !fs::exists(at("b")).unwrap());
    assert!(fs::metadata(at("sub")).unwrap().is_dir());
    fs::remove_dir(at("sub")).unwrap();
    fs::remove_file(at("a")).unwrap();
    assert!(fs::read(at("a")).is_err());
}

/// A read from a pipe without a writer's word lasts as long as it takes; others run.
#[gosched::test(timeout = "300s")]
fn a_read_that_lasts_holds_up_nobody() {
    let before = gosched::runtime::gomaxprocs(1);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut file = File::from(std::os::fd::OwnedFd::from(reader));
    let reads = gosched::go(move || file.read(&mut [0; 8]).unwrap());
    for _ in 0..100 {
        gosched::thread::yield_now();
    }
    writer.write_all(b"abc").unwrap();
    assert_eq!(reads.join().unwrap(), 3);
    gosched::runtime::gomaxprocs(before);
}
