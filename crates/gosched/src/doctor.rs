//! What the machine offers, what the runtime has chosen, why, and what to change.
//!
//! The command `gosched doctor` prints it. Go has nothing like it.
//!
//! ```
//! let report = gosched::doctor::examine();
//! assert_eq!(report.gomaxprocs, gosched::runtime::gomaxprocs(0));
//! println!("{report}");
//! ```

pub use gosched_sched::doctor::{Fact, Report, Section, examine};
