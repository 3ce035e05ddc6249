//! The command line: `BENCH|list [--n N] [--procs P] [key=value ...]`.
//!
//! `--key value`, `--key=value` and `key=value` are the same, for every key; a later one wins. A
//! key that a bench doesn't know is left alone, as one call of `compare` gives all peers the same.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Args {
    /// The bench's name.
    pub(crate) bench: String,
    /// `--procs`, else `PROCS` in the environment, else the number of CPUs.
    pub(crate) procs: usize,
    options: BTreeMap<String, String>,
}

/// A command line that asks for what there isn't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageError(String);

impl UsageError {
    pub(crate) const USAGE: &str = "usage: gosched-bench BENCH|list [--n N] [--procs P] \
        [tls=own|shared] [verify=1] [trace=1] [key=value ...]";

    pub(crate) fn new(what: impl Into<String>) -> Self {
        UsageError(what.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Args {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, UsageError> {
        let mut words = words.into_iter();
        let bench = words.next().ok_or_else(|| UsageError::new("no bench named"))?;
        let options = options(words)?;
        let mut args = Args { bench, procs: 0, options };
        args.procs = args.get("procs", default_procs())?.max(1);
        Ok(args)
    }

    /// Whether `key` was given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.options.contains_key(key)
    }

    /// The value of `key`, or `default` when it was not given. Numbers may be written `1_000`.
    pub(crate) fn get<T: FromStr>(&self, key: &str, default: T) -> Result<T, UsageError> {
        let Some(text) = self.options.get(key) else { return Ok(default) };
        let value = text.parse().or_else(|_| text.replace('_', "").parse());
        value.map_err(|_| UsageError(format!("bad value for {key}: {text:?}")))
    }

    /// How often the bench does its work: at least once.
    pub(crate) fn n(&self, default: u64) -> Result<u64, UsageError> {
        Ok(self.get("n", default)?.max(1))
    }

    /// A time in seconds, fractions allowed.
    pub(crate) fn secs(&self, key: &str, default: f64) -> Result<Duration, UsageError> {
        let secs = self.get(key, default)?;
        Duration::try_from_secs_f64(secs)
            .map_err(|error| UsageError(format!("bad value for {key}: {error}")))
    }

    /// The meaning of the word that `key` has; the first one is the default.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<T, UsageError> {
        let (default, _) = choices[0];
        let word = self.options.get(key).map_or(default, String::as_str);
        match choices.iter().find(|(choice, _)| *choice == word) {
            Some((_, meaning)) => Ok(*meaning),
            None => {
                let words: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
                Err(UsageError(format!("{key} is {}, not {word:?}", words.join(" or "))))
            }
        }
    }
}

fn options(
    mut words: impl Iterator<Item = String>,
) -> Result<BTreeMap<String, String>, UsageError> {
    let mut options = BTreeMap::new();
    while let Some(word) = words.next() {
        let (key, value) = match (word.strip_prefix("--"), word.split_once('=')) {
            (_, Some((key, value))) => (key.trim_start_matches("--").into(), value.into()),
            (Some(key), None) => {
                let missing = || UsageError(format!("--{key} wants a value"));
                (key.to_string(), words.next().ok_or_else(missing)?)
            }
            (None, None) => return Err(UsageError(format!("what is {word:?}?"))),
        };
        options.insert(key, value);
    }
    Ok(options)
}

fn default_procs() -> usize {
    let asked = std::env::var("PROCS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or_else(|| available_parallelism().map_or(1, |cpus| cpus.get()))
}

#[cfg(test)]
mod tests;
