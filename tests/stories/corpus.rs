//! Every line of the corpus is answered as it says, and the next request after it is served as ever.

use std::fs;

use super::World;
use super::case::{Case, Outcome};
use super::words::{ok, still_serves};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/requests.jsonl");

pub fn each_line_is_answered_rightly(world: &mut dyn World) {
    let lines = fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}"));
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let case = Case::parse(line);
        if let Err(what) = case.judge(&outcome(world, &case)) {
            wrong.push(format!("{}: {what}", case.id()));
        }
        still_serves(world);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the request meets; the model server answers it where it gets there.
fn outcome(world: &mut dyn World, case: &Case) -> Outcome {
    let before = world.arrived();
    let sent = world.send(&case.request());
    let mut arrival = None;
    if world.arrived() > before {
        arrival = world.arrivals(before + 1).pop();
        world.answer(before, ok());
    }
    Outcome { response: world.response(sent), arrival }
}
