//! `gosched bench`: the words are gosched-bench's own.

use clap::builder::PossibleValuesParser;

/// Run one of the benches and print a line of JSON; `list` names them
///
/// The same as the program gosched-bench; `bench/peers/compare` sets it beside Go, tokio, may and
/// threads of the system.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct BenchArgs {
    /// Which one, or `list`
    #[arg(value_name = "BENCH", value_parser = names(), hide_possible_values = true)]
    bench: String,

    /// What the bench takes: --n N, --procs P, tls=own|shared, verify=1, key=value ...
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

impl BenchArgs {
    /// The command line of gosched-bench.
    pub(crate) fn words(self) -> impl Iterator<Item = String> {
        std::iter::once(self.bench).chain(self.options)
    }
}

fn names() -> PossibleValuesParser {
    gosched_bench::names().chain(["list"]).collect::<Vec<_>>().into()
}
