//! `gosched serve --debug` and `gosched top`, asked over real sockets while the server is busy.

use crate::gosched::gosched;
use crate::serve::{Server, request};
use gosched_http::client::{Answer, Asked};
use gosched_trace_format::{Kind, verify};
use prometheus_parse::{Scrape, Value as Number};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Clients that keep a server busy until they are dropped.
struct Load {
    stops: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<gosched::thread::JoinHandle<()>>,
}

impl Load {
    fn on(server: &Server) -> Load {
        let (stops, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |_| {
            let (stops, answered) = (stops.clone(), answered.clone());
            let mut connection = server.connect();
            gosched::go(move || {
                while !stops.load(Relaxed) {
                    let answer = connection.exchange(&request("/mixed"), Asked::Body).unwrap();
                    assert_eq!(answer.status, 200);
                    answered.fetch_add(1, Relaxed);
                }
            })
        };
        Load { clients: (0..4).map(client).collect(), stops, answered }
    }

    /// Waits until so many more requests were answered.
    fn wait_for(&self, more: u64) {
        let until = self.answered.load(Relaxed) + more;
        while self.answered.load(Relaxed) < until {
            gosched::thread::yield_now();
        }
    }

    fn end(self) {
        self.stops.store(true, Relaxed);
        self.clients.into_iter().for_each(|client| client.join().unwrap());
    }
}

fn debugged() -> Server {
    Server::start(&["--debug", "127.0.0.1:0"])
}

#[track_caller]
fn well(answer: Answer, kind: &str) -> String {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some(kind));
    String::from_utf8(answer.body).unwrap()
}

const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

#[test]
fn pages_under_load() {
    let server = debugged();
    let load = Load::on(&server);
    load.wait_for(20);
    let index = well(server.get_debug("/debug/"), HTML);
    let links = index.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let links: Vec<_> = links.filter(|link| link.starts_with("/debug/")).collect();
    assert!(links.len() >= 5, "{links:?}");
    for link in links {
        assert_eq!(
            server.get_debug(&link.replace("seconds=5", "seconds=0.1")).status,
            200,
            "{link}"
        );
    }
    let dump = well(server.get_debug("/debug/dump"), TEXT);
    assert!(dump.contains("goroutine 1 \"main\" ["), "{dump}");
    let groups = well(server.get_debug("/debug/dump?groups=1"), TEXT);
    assert!(groups.contains(" goroutine") && groups.contains("created by "), "{groups}");
    assert_eq!(server.get_debug("/debug/none").status, 404);
    assert_eq!(server.get_debug("/debug").status, 200);
    assert_eq!(server.get_debug("/").status, 404);
    assert_eq!(server.get("/debug/").status, 404, "the pages are not the program's own");
    let post = b"POST /debug/dump HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(server.connect_debug().exchange(post, Asked::Body).unwrap().status, 405);
    load.end();
}

/// The page is whole: what its script looks for is there, and nothing comes from elsewhere.
#[test]
fn the_live_page_stands_alone() {
    let server = debugged();
    let answer = server.get_debug("/debug/sched");
    let policy = answer.header("content-security-policy").unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'") && policy.contains("connect-src 'self'"));
    let page = well(answer, HTML);
    let (markup, script) = page.split_once("<script>").unwrap();
    let named = script.split("$(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let named: Vec<_> = named.collect();
    assert!(named.len() > 12, "{named:?}");
    for id in named {
        assert!(markup.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for from_elsewhere in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
}

/// Lanes move: looks come one after the other, each once, with what the goroutines do.
#[test]
fn the_state_in_json() {
    let server = debugged();
    let load = Load::on(&server);
    let (mut next, mut looks, mut running) = (0, 0, 0);
    let mut connection = server.connect_debug();
    while looks < 100 || running < 20 {
        let path = format!("/debug/sched.json?since={next}");
        let state = json(&connection.exchange(&request(&path), Asked::Body).unwrap());
        assert_eq!(state["processors"].as_array().unwrap().len(), 2);
        let recent = &state["recent"];
        for look in recent["looks"].as_array().unwrap() {
            let lanes = look[1].as_array().unwrap();
            assert_eq!(lanes.len(), 2);
            let sites = recent["sites"].as_array().unwrap();
            let site = |lane: &Value| sites.get(lane[2].as_u64().unwrap_or(u64::MAX) as usize);
            let is_handler = |lane: &&Value| {
                lane[0] == 2
                    && site(lane).is_some_and(|at| at.as_str().unwrap().contains("server.rs"))
            };
            running += lanes.iter().filter(is_handler).count();
            looks += 1;
        }
        let after = recent["next"].as_u64().unwrap();
        assert_eq!(after, if looks == 0 { 0 } else { looks });
        next = after;
        let goroutines = &state["goroutines"];
        assert!(goroutines["total"].as_u64() >= Some(3), "{goroutines}");
    }
    let quiet = json(&server.get_debug("/debug/sched.json"));
    assert!(quiet["recent"].is_null());
    assert!(quiet["metrics"]["/sched/switches/scheduled:switches"].as_u64() > Some(0));
    load.end();
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type"), Some("application/json"));
    serde_json::from_slice(&answer.body).unwrap()
}

/// The text is read by a parser that is not ours; every line of it.
#[test]
fn metrics_for_prometheus() {
    let server = debugged();
    let load = Load::on(&server);
    load.wait_for(50);
    let answer = server.get_debug("/debug/metrics");
    let text = well(answer, "text/plain; version=0.0.4; charset=utf-8");
    let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).count();
    let parts = scrape.samples.iter().map(|sample| match &sample.value {
        Number::Histogram(buckets) => buckets.len(),
        Number::Untyped(_)
            if sample.metric.ends_with("_sum") || sample.metric.ends_with("_count") =>
        {
            1
        }
        Number::Counter(_) | Number::Gauge(_) => 1,
        other => panic!("{} is {other:?}", sample.metric),
    });
    assert_eq!(parts.sum::<usize>(), lines, "{text}");
    assert!(scrape.docs.len() >= gosched::metrics::all().len());
    let mut numbers = HashMap::new();
    for sample in &scrape.samples {
        let label = sample.labels.values().next().cloned().unwrap_or_default();
        match &sample.value {
            Number::Counter(n) | Number::Gauge(n) | Number::Untyped(n) => {
                let old = numbers.insert((sample.metric.clone(), label), *n);
                assert_eq!(old, None, "{} twice", sample.metric);
            }
            Number::Histogram(buckets) => {
                assert!(buckets.windows(2).all(|two| two[0].less_than < two[1].less_than));
                assert!(buckets.windows(2).all(|two| two[0].count <= two[1].count));
                assert_eq!(buckets.last().unwrap().less_than, f64::INFINITY);
            }
            Number::Summary(_) => panic!("no summaries"),
        }
    }
    let number = |name: &str, label: &str| numbers[&(name.to_owned(), label.to_owned())];
    assert_eq!(number("gosched_sched_gomaxprocs_threads", ""), 2.0);
    assert!(number("gosched_sched_goroutines_goroutines", "") >= 3.0);
    assert!(number("gosched_sched_latencies_seconds_count", "") > 0.0);
    let switches = "gosched_processor_switches_total";
    let by_processor = number(switches, "0") + number(switches, "1");
    let by_way: f64 = ["direct", "in_place", "scheduled"]
        .map(|way| number(&format!("gosched_sched_switches_{way}_switches_total"), ""))
        .iter()
        .sum();
    // Read one after the other while all goes on.
    assert!(by_processor >= 50.0 && by_way >= 50.0);
    load.end();
}

/// A trace is recorded while others are answered; a second one is refused; a client that goes away ends
/// its own.
#[test]
fn traces_under_load() {
    let server = debugged();
    let load = Load::on(&server);
    let tracing = server.connect_debug();
    let mut stream = tracing.stream();
    stream.write_all(&request("/debug/trace?seconds=3600")).unwrap();
    // The head says that it has begun.
    let mut head = [0; 15];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    load.wait_for(20);
    let refused = server.get_debug("/debug/trace?seconds=1");
    assert_eq!(refused.status, 409);
    let text = String::from_utf8(refused.body).unwrap();
    assert!(text.contains("there is one already"), "{text}");
    assert_eq!(server.get_debug("/debug/trace?seconds=none").status, 400);
    drop(tracing);
    let answer = loop {
        load.wait_for(1);
        let answer = server.get_debug("/debug/trace?seconds=0.2");
        if answer.status != 409 {
            break answer;
        }
    };
    assert_eq!(answer.status, 200);
    let verified = verify(&answer.body, |_, _| {}).unwrap();
    assert!(verified.count(Kind::GoStart) > 0, "{verified:?}");
    load.end();
}

/// Profiles are made while others are answered; a second one of the CPUs is refused.
#[test]
fn profiles_under_load() {
    let server = debugged();
    let load = Load::on(&server);
    load.wait_for(20);
    let index = well(server.get_debug("/debug/pprof/"), HTML);
    for name in ["block", "goroutine", "mutex", "threadcreate"] {
        assert!(index.contains(&format!("/debug/pprof/{name}?debug=1")), "{index}");
        let text = well(server.get_debug(&format!("/debug/pprof/{name}?debug=1")), TEXT);
        assert!(!text.is_empty());
        let packed = server.get_debug(&format!("/debug/pprof/{name}"));
        assert!(packed.status == 200 && packed.body.starts_with(b"\x1f\x8b"), "{name}");
    }
    let words = well(server.get_debug("/debug/pprof/cmdline"), TEXT);
    assert!(words.contains("\0serve\0"), "{words:?}");
    assert_eq!(server.get_debug("/debug/pprof/heap").status, 404);
    let profile = server.get_debug("/debug/pprof/profile?seconds=0.3");
    assert!(profile.status == 200 && profile.body.starts_with(b"\x1f\x8b"));
    let long = server.connect_debug();
    long.stream().write_all(&request("/debug/pprof/profile?seconds=3600")).unwrap();
    // Nobody else sleeps.
    while !well(server.get_debug("/debug/dump"), TEXT).contains("[sleep") {}
    load.wait_for(20);
    let refused = server.get_debug("/debug/pprof/profile?seconds=1");
    assert_eq!(refused.status, 409, "{refused:?}");
    load.end();
}

#[test]
fn who_may_see_them() {
    let server = debugged();
    let strange = b"GET /debug/dump HTTP/1.1\r\nHost: example.org\r\n\r\n";
    assert_eq!(server.connect_debug().exchange(strange, Asked::Body).unwrap().status, 403);
    let refused = gosched(["serve", "--addr", "127.0.0.1:0", "--debug", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("can be reached from other machines"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--debug-exposed"), "{}", refused.stderr);
    let alone = gosched(["serve", "--debug-exposed"]);
    assert_eq!(alone.code, Some(2));
}

#[test]
fn exposed_pages_say_so() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gosched"))
        .args(["serve", "--addr", "127.0.0.1:0", "--debug", "0.0.0.0:0", "--debug-exposed"])
        .env_remove("GOSCHED")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("open to everybody who reaches that address"), "{line}");
}

#[test]
fn top_shows_a_table_or_json() {
    let server = debugged();
    let load = Load::on(&server);
    load.wait_for(20);
    let address = server.debug_address();
    let table = gosched(["top", address, "--once", "--interval", "100"]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    for part in ["GOMAXPROCS 2", "goroutines", "running", "threads", "latency", "switches", "queue"]
    {
        assert!(table.stdout.contains(part), "{part}\n{}", table.stdout);
    }
    let rows = table.stdout.lines().filter(|line| line.trim_start().starts_with(['0', '1']));
    assert_eq!(rows.count(), 2, "{}", table.stdout);
    let json = gosched(["top", address, "--once", "--json"]);
    let state: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(state["pid"], server.id());
    load.end();
    // What listens there is another server.
    let other = gosched(["top", server.address(), "--once"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("serves no debug pages of gosched"), "{}", other.stderr);
}

#[test]
fn top_where_nothing_listens() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = gosched(["top", &free.to_string(), "--once"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains(&format!("nothing listens at {free}")), "{}", run.stderr);
}
