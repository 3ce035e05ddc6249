//! What one answer says, by name.

use serde_json::Value;
use std::collections::HashMap;

/// An answer of `/debug/sched.json`.
pub(super) struct Look<'a> {
    all: &'a Value,
}

/// How often times of which size were seen: where each bucket ends, in nanoseconds, and its count.
pub(super) struct Times {
    buckets: Vec<(u64, u64)>,
}

impl<'a> Look<'a> {
    /// # Errors
    /// It is something else.
    pub(super) fn new(all: &'a Value) -> Result<Look<'a>, String> {
        match all["metrics"].is_object() && all["processors"].is_array() {
            true => Ok(Look { all }),
            false => Err("the process answers with something else".to_owned()),
        }
    }

    /// A number, by the names on the way to it.
    pub(super) fn number(&self, path: &[&str]) -> u64 {
        path.iter().fold(self.all, |at, name| &at[*name]).as_u64().unwrap_or(0)
    }

    pub(super) fn metric(&self, name: &str) -> u64 {
        self.all["metrics"][name].as_u64().unwrap_or(0)
    }

    pub(super) fn text(&self, name: &str) -> &'a str {
        self.all[name].as_str().unwrap_or("?")
    }

    pub(super) fn processors(&self) -> &'a [Value] {
        self.all["processors"].as_array().map_or(&[], Vec::as_slice)
    }

    /// What goroutines wait for, the many first.
    pub(super) fn reasons(&self) -> Vec<(&'a str, u64)> {
        let reasons = self.all["goroutines"]["by_reason"].as_object();
        let mut reasons: Vec<_> = reasons
            .into_iter()
            .flatten()
            .map(|(why, n)| (why.as_str(), n.as_u64().unwrap_or(0)))
            .collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        reasons
    }

    /// Scheduling latencies since `before`.
    pub(super) fn latencies_since(&self, before: &Look<'_>) -> Times {
        let then: HashMap<_, _> = before.latencies().collect();
        let grown =
            |(end, n): (u64, u64)| (end, n.saturating_sub(then.get(&end).map_or(0, |n| *n)));
        Times { buckets: self.latencies().map(grown).collect() }
    }

    fn latencies(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.all["histograms"]["/sched/latencies:seconds"].as_array();
        let bucket =
            |one: &Value| (one[1].as_u64().unwrap_or(u64::MAX), one[2].as_u64().unwrap_or(0));
        all.into_iter().flatten().map(bucket)
    }
}

impl Times {
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// A time that so many of a thousand did not reach: a bucket's end. `None` without any.
    pub(super) fn quantile(&self, of_thousand: u64) -> Option<u64> {
        let mut left = (self.count() * of_thousand).div_ceil(1000);
        if left == 0 {
            return None;
        }
        self.buckets.iter().find_map(|(end, count)| {
            left = left.saturating_sub(*count);
            (left == 0).then_some(*end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn quantiles() {
        let times = Times { buckets: vec![(10, 90), (20, 9), (u64::MAX, 1)] };
        let wanted = [(500, Some(10)), (900, Some(10)), (901, Some(20)), (1000, Some(u64::MAX))];
        for (of_thousand, end) in wanted {
            assert_eq!(times.quantile(of_thousand), end, "{of_thousand}");
        }
        assert_eq!(Times { buckets: vec![(10, 0)] }.quantile(500), None);
    }
}
