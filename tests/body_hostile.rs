//! Bodies that somebody made to be slow or large: what reading them takes does not grow beyond their own size.
//!
//! Memory is counted here, and is the same for a body ten times as long. How long it takes is measured by
//! `./build.sh bench body`, a byte at two sizes; `body_twin` has shapes so long that anything quadratic would not end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use sluice::core::body::{BACKENDS, dialect, read};

/// Counts what this thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: everything is left to the system's allocator; only calls and sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|counted| {
            let (times, bytes) = counted.get();
            counted.set((times + 1, bytes + layout.size()));
        });
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A shape's start, what it repeats, and its end.
const SHAPES: [(&str, &str, &str); 24] = [
    ("{", "\"a\":1,", "\"b\":1}"),
    ("{\"x\":{", "\"a\":1,", "\"b\":1}}"),
    ("{", "\"max_tokenz\":1,", "\"b\":1}"),
    ("{", "\"m\\u0061x_tokenz\":1,", "\"b\":1}"),
    ("{\"messages\":[", "{},", "{}]}"),
    ("{\"messages\":[", "{\"content\":[{}]},", "{}]}"),
    ("{\"messages\":[", "{\"content\":\"\\n\"},", "{}]}"),
    ("{\"messages\":[", "[[[]]],", "{}]}"),
    ("{\"messages\":[{\"content\":[", "{\"source\":{\"data\":\"x\"}},", "{}]}]}"),
    ("{\"tools\":[", "{\"a\":[]},", "{}]}"),
    ("{\"", "k", "\":1}"),
    ("{\"", "\\u006b", "\":1}"),
    ("{\"", "k\\ud83d", "\":1}"),
    ("{\"max_tokens\":1", "0", "}"),
    ("{\"max_tokens\":1e", "0", "1}"),
    ("{\"max_tokens\":1.", "0", "}"),
    ("{\"max_tokens\":\"", "0", "1\"}"),
    ("{\"max_tokens\":\"", "\\u0030", "1\"}"),
    ("{\"model\":\"", "\\u0030", "1\",\"user\":\"x\"}"),
    ("{\"prompt\":[", "1,", "1]}"),
    ("{\"prompt\":[", "[1,\"x\"],", "1]}"),
    ("{\"input_embeds\":[", "[[0.1],[0.2]],", "[[1]]]}"),
    ("{\"messages\":\"", "é\\n你😀", "\"}"),
    ("{\"x\":1", " \n\t\r", "}"),
];

fn body((before, unit, after): (&str, &str, &str), size: usize) -> String {
    [before, &unit.repeat(size / unit.len()), after].concat()
}

#[test]
fn what_reading_allocates_does_not_grow_with_the_body() {
    for shape in SHAPES {
        let [small, large] = [10_000, 100_000].map(|size| body(shape, size));
        for dialect in dialect::ALL {
            for (name, backend) in BACKENDS {
                let allocated = |body: &str| {
                    let (times, bytes) = ALLOCATED.get();
                    let verdict = read(dialect, backend, body.as_bytes()).map(|_| ());
                    let (times_after, bytes_after) = ALLOCATED.get();
                    (times_after - times, bytes_after - bytes, verdict.map_err(|bad| bad.message))
                };
                let (small, large) = (allocated(&small), allocated(&large));
                assert_eq!(small.2, large.2, "{shape:?}, {dialect:?} to {name}");
                // Offsets in paths have more digits; nothing else may differ.
                let more = large.1.saturating_sub(small.1);
                assert!(
                    large.0 <= small.0 + 1 && more <= 16,
                    "{shape:?}, {dialect:?} to {name}: {small:?}, {large:?}"
                );
            }
        }
    }
}
