//! How fast the filter reads bodies, beside two baselines that see the same machine: `serde_json` ignoring all of it,
//! and copying it. Built as the module is and run in V8 by `./build.sh bench body`; natively by
//! `cargo run --release --package bench-body`.
//!
//! Each figure is the median of rounds that alternate between the three; ratios are taken within a round. What is
//! found in a body is checked each time that it is read. An argument measures only the kinds whose names hold it.

mod bodies;
mod measure;
mod text;

use std::rc::Rc;

use bodies::Bodies;
use measure::{Figures, figures, growth};
use sluice::core::config;
use sluice::core::engine::Engine;
use sluice::core::units::Time;

const SIZES: [(&str, usize); 4] =
    [("1 KB", 1_000), ("10 KB", 10_000), ("100 KB", 100_000), ("1 MB", 1_000_000)];
/// The shape's cost a byte is compared between these two.
const GROWTH: [usize; 2] = [100_000, 1_000_000];

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let wanted = |body: &Bodies| body.kind.contains(&only);
    let policy = config::parse(br#"{"limits":{"prompt_chars":null}}"#).expect("a policy");
    let engine = Engine::new(Rc::new(policy), Time::default());
    let mut rows = Vec::new();
    for (name, size) in SIZES {
        for body in bodies::all(size).into_iter().filter(wanted) {
            rows.push((name, figures(&engine, &body), body));
        }
        eprintln!("bodies of {name} are measured");
    }
    println!(
        "| body | size | read, GB/s | `serde_json` ignoring, GB/s | copied, GB/s | read / ignoring | read / copied |"
    );
    println!("|---|---|---|---|---|---|---|");
    let kinds: Vec<&str> = rows.iter().map(|(_, _, bodies)| bodies.kind).collect();
    rows.sort_by_key(|(_, _, bodies)| kinds.iter().position(|kind| *kind == bodies.kind));
    for (size, Figures { read, ignored, copied, to_ignored, to_copied }, Bodies { kind, .. }) in rows {
        println!(
            "| {kind} | {size} | {read:.2} | {ignored:.2} | {copied:.1} | {to_ignored:.2} | {to_copied:.3} |"
        );
    }
    println!("\n| hostile shape | ns a byte at 100 KB | at 1 MB | growth |");
    println!("|---|---|---|---|");
    let [small, large] = GROWTH.map(bodies::hostile);
    for (small, large) in small.iter().zip(&large).filter(|(body, _)| wanted(body)) {
        let [at_small, at_large, growth] = growth(&engine, small, large);
        println!("| {} | {at_small:.2} | {at_large:.2} | {growth:.2} |", small.kind);
    }
}
