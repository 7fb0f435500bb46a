//! Every line of the corpus is answered as it says, and the next request after it is served as ever.

use std::fs;

use super::World;
use super::case::{Case, Outcome};
use super::words::{ok, still_serves};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/requests.jsonl");

pub fn each_line_for_vllm_is_answered_rightly(world: &mut dyn World) {
    answers_rightly(world, "vllm");
}

pub fn each_line_for_sglang_is_answered_rightly(world: &mut dyn World) {
    answers_rightly(world, "sglang");
}

pub fn each_line_for_tgi_is_answered_rightly(world: &mut dyn World) {
    answers_rightly(world, "tgi");
}

pub fn each_line_for_llamacpp_is_answered_rightly(world: &mut dyn World) {
    answers_rightly(world, "llamacpp");
}

pub fn each_line_for_ollama_is_answered_rightly(world: &mut dyn World) {
    answers_rightly(world, "ollama");
}

pub fn each_line_for_openai_is_answered_rightly(world: &mut dyn World) {
    answers_rightly(world, "openai");
}

/// Under the reference policy of that backend.
fn answers_rightly(world: &mut dyn World, backend: &str) {
    let lines = fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}"));
    let mut wrong = Vec::new();
    for case in lines.lines().map(Case::parse).filter(|case| case.backend() == backend) {
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
