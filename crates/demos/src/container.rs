//! A made-up container: what `/proc` and `/sys` look like in one with less CPU time than its host
//! has CPUs. Removed when it is dropped.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process, thread};

/// CPUs of the host.
pub(crate) const HOST_CPUS: usize = 64;

#[derive(Debug)]
pub(crate) struct Container {
    folder: PathBuf,
}

impl Container {
    /// One whose quota is the CPUs that this machine has.
    pub(crate) fn new() -> Result<Container, String> {
        let folder = env::temp_dir().join(format!("gosched-demo-{}", process::id()));
        let container = Container { folder };
        container.fill().map_err(|error| {
            format!("can't write a made-up container into {}: {error}", container.folder())
        })?;
        Ok(container)
    }

    pub(crate) fn folder(&self) -> String {
        self.folder.display().to_string()
    }

    fn fill(&self) -> io::Result<()> {
        let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
        let list = format!("0-{}\n", HOST_CPUS - 1);
        self.file("proc/self/status", &format!("Name:\tdemo\nCpus_allowed_list:\t{list}"))?;
        self.file("sys/devices/system/cpu/online", &list)?;
        self.file("proc/self/cgroup", "0::/\n")?;
        let mount = "35 26 0:30 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";
        self.file("proc/self/mountinfo", mount)?;
        self.file("sys/fs/cgroup/cpu.max", &format!("{}00000 100000\n", cpus))
    }

    fn file(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(path, text)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // A few small files in the folder for such.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
