//! What fuzzing begins with, and what it once found, holds.

use fuzz::found::{TARGETS, inputs};
use fuzz::seeds;

#[test]
fn every_seed_holds() {
    let seeds = [("body", seeds::bodies()), ("policy", seeds::policies()), ("head", seeds::heads())];
    for (target, seeds) in seeds {
        let check = TARGETS.iter().find(|(name, _)| *name == target).expect("a target").1;
        assert!(seeds.len() > 2, "{target}");
        seeds.iter().for_each(|seed| check(seed));
    }
}

#[test]
fn each_request_of_the_corpus_holds_to_every_backend_and_under_every_policy() {
    for seed in seeds::bodies() {
        for (backend, policy) in (0..6).flat_map(|backend| (0..4).map(move |policy| (backend, policy))) {
            for path in 0..12 {
                fuzz::body::check(&[&[backend, path, policy], &seed[fuzz::body::HEADER..]].concat());
            }
        }
    }
}

#[test]
fn what_was_found_once_holds() {
    for (target, check) in TARGETS {
        for (path, input) in inputs(target).expect("readable files") {
            println!("{}", path.display());
            check(&input);
        }
    }
}

#[test]
fn the_dictionary_has_the_words_that_matter() {
    let words = seeds::dictionary();
    for word in ["max_tokens", "messages", "num_predict", "classes", "buffered_bytes"] {
        assert!(words.contains(&format!("\"\\\"{word}\\\"\"\n")), "{word}");
    }
}
