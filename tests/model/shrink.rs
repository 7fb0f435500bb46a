//! From a history that fails to the shortest one that does.

use crate::history::{MS, Op};
use crate::world::Fault;

/// Entries that shrinking may go through, over all runs.
const ENTRIES: usize = 1_000_000;

/// The shortest part of `ops` found that still fails, and how. `run` tells whether a history fails.
pub fn shrink(ops: &[Op], fault: Fault, run: &dyn Fn(&[Op]) -> Option<Fault>) -> (Vec<Op>, Fault) {
    let mut best: (Vec<Op>, Fault) = (ops.iter().filter(|op| op.at <= fault.at).cloned().collect(), fault);
    let mut left = ENTRIES;
    let mut attempt = |part: Vec<Op>, best: &mut (Vec<Op>, Fault)| {
        if part.len() > left {
            return false;
        }
        left -= part.len();
        match run(&part) {
            Some(fault) => {
                *best = (part.into_iter().filter(|op| op.at <= fault.at).collect(), fault);
                true
            }
            _ => false,
        }
    };
    // What happened shortly before is the likeliest cause.
    for window in [20, 100, 500, 2000, 5000, 12_000] {
        let since = best.1.at.saturating_sub(window * MS);
        let part: Vec<Op> = best.0.iter().filter(|op| op.at >= since).cloned().collect();
        if attempt(part, &mut best) {
            break;
        }
    }
    let mut chunk = best.0.len().div_ceil(2);
    while chunk >= 1 {
        let mut from = 0;
        let mut found = false;
        while from < best.0.len() {
            let to = (from + chunk).min(best.0.len());
            let part = best.0[..from].iter().chain(&best.0[to..]).cloned().collect();
            if attempt(part, &mut best) {
                found = true;
            } else {
                from = to;
            }
        }
        if chunk == 1 && !found {
            break;
        }
        if !found || chunk > best.0.len() {
            chunk = (chunk / 2).min(best.0.len()).max(usize::from(chunk > 1));
        }
        if chunk == 0 {
            break;
        }
    }
    best
}
