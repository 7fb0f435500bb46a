//! The effects that batching is known for, shown on the batch.

use super::batch::Batch;
use super::cluster::Cluster;
use super::job::{Job, Prefix, Token};
use super::replay::{Offer, Replay, replay};
use super::spec::{Scheduling, Spec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// A step of 10 ms, 1 ms more a sequence and 2 ms more a prompt token: figures that show in a sum who was in it.
const SPEC: Spec = Spec {
    max_num_seqs: 3,
    max_num_batched_tokens: 100_000,
    chunked_prefill: true,
    scheduling: Scheduling::Fifo,
    max_model_len: 10_000,
    kv_blocks: 10_000,
    block_size: 4,
    prefix_caching: true,
    gpus: 1,
    base: Duration::from_millis(10),
    per_sequence: Duration::from_millis(1),
    per_prefill_token: Duration::from_millis(2),
    per_context_token: Duration::ZERO,
};

fn job(prompt_tokens: u32, output_tokens: u32) -> Job {
    Job { prompt_tokens, output_tokens, ..Job::default() }
}

fn batch(spec: Spec, jobs: &[(char, Job)]) -> Batch<char> {
    let mut batch = Batch::new(spec).unwrap();
    for &(owner, job) in jobs {
        batch.push(owner, job).unwrap();
    }
    batch
}

/// Runs one step; its length in milliseconds and the owners who got a token.
fn step(batch: &mut Batch<char>) -> (u128, String) {
    let lasts = batch.begin().expect("something to do");
    let mut told = String::new();
    batch.finish(|&owner, _| told.push(owner));
    (lasts.as_millis(), told)
}

fn at_once(spec: Spec, jobs: impl IntoIterator<Item = Job>) -> Replay {
    let plan: Vec<Offer> = jobs.into_iter().map(|job| Offer { at: Duration::ZERO, job }).collect();
    replay(spec, &plan).unwrap()
}

#[test]
fn a_step_grows_with_the_batch() {
    let mut batch = batch(SPEC, &[('a', job(1, 9))]);
    assert_eq!(step(&mut batch), (13, "a".into()));
    assert_eq!(step(&mut batch), (11, "a".into()));
    batch.push('b', job(1, 9)).unwrap();
    batch.push('c', job(1, 9)).unwrap();
    assert_eq!(step(&mut batch), (17, "abc".into()));
    assert_eq!(step(&mut batch), (13, "abc".into()));
}

#[test]
fn a_step_grows_with_the_context() {
    let spec = Spec { per_context_token: Duration::from_millis(1), ..SPEC };
    let mut batch = batch(spec, &[('a', job(5, 9))]);
    assert_eq!(step(&mut batch).0, 10 + 1 + 5 * 2 + 5);
    assert_eq!(step(&mut batch).0, 10 + 1 + 6);
    assert_eq!(step(&mut batch).0, 10 + 1 + 7);
}

#[test]
fn a_long_prompt_shares_its_step_with_the_decodes() {
    let mut batch = batch(SPEC, &[('a', job(1, 9))]);
    step(&mut batch);
    batch.push('b', job(500, 9)).unwrap();
    assert_eq!(step(&mut batch), (1_012, "ab".into()));
    assert_eq!(step(&mut batch), (12, "ab".into()));
}

#[test]
fn unchunked_a_long_prompt_stalls_the_decodes() {
    let mut batch = batch(Spec { chunked_prefill: false, ..SPEC }, &[('a', job(1, 9))]);
    step(&mut batch);
    batch.push('b', job(500, 9)).unwrap();
    assert_eq!(step(&mut batch), (1_011, "b".into()));
    assert_eq!(step(&mut batch), (12, "ab".into()));
}

#[test]
fn chunked_no_step_is_longer_than_its_token_budget() {
    let mut batch = batch(Spec { max_num_batched_tokens: 101, ..SPEC }, &[('a', job(1, 99))]);
    step(&mut batch);
    batch.push('b', job(250, 9)).unwrap();
    batch.push('c', job(10, 9)).unwrap();
    // One token of the budget is a's, the rest reads b's prompt; c has what b leaves of the third step.
    assert_eq!(step(&mut batch), (10 + 2 + 200, "a".into()));
    assert_eq!(step(&mut batch), (10 + 2 + 200, "a".into()));
    assert_eq!(step(&mut batch), (10 + 3 + 2 * 60, "abc".into()));
    assert_eq!(step(&mut batch), (13, "abc".into()));
}

#[test]
fn chunks_cost_the_reader_what_they_save_the_others() {
    let long = [job(1, 400), job(4_000, 1)];
    let longest_gap = |spec| {
        let mut batch = batch(spec, &[('a', long[0])]);
        step(&mut batch);
        batch.push('b', long[1]).unwrap();
        let (mut gap, mut longest, mut first) = (0, 0, None);
        let mut now = 0;
        while first.is_none() || batch.running() > 0 {
            let Some(lasts) = batch.begin() else { break };
            (now, gap) = (now + lasts.as_millis(), gap + lasts.as_millis());
            batch.finish(|owner, _| match owner {
                'a' => (longest, gap) = (longest.max(gap), 0),
                _ => first = Some(now),
            });
        }
        (longest, first.unwrap())
    };
    let (stall_whole, read_whole) = longest_gap(Spec { chunked_prefill: false, ..SPEC });
    let (stall_chunks, read_chunks) = longest_gap(Spec { max_num_batched_tokens: 256, ..SPEC });
    assert!(stall_chunks * 10 < stall_whole, "{stall_chunks} {stall_whole}");
    assert!(read_chunks > read_whole, "{read_chunks} {read_whole}");
}

#[test]
fn no_more_than_max_num_seqs_run_and_the_line_is_first_in_first_out() {
    let mut batch = batch(SPEC, &['a', 'b', 'c', 'd', 'e'].map(|owner| (owner, job(1, 2))));
    assert_eq!(step(&mut batch).1, "abc");
    assert_eq!((batch.running(), batch.waiting()), (3, 2));
    assert_eq!(step(&mut batch).1, "abc");
    assert_eq!(step(&mut batch).1, "de");
    assert_eq!(step(&mut batch).1, "de");
    assert_eq!(batch.begin(), None);
}

#[test]
fn whoever_left_gives_the_place_to_the_next() {
    let mut batch = batch(SPEC, &['a', 'b', 'c', 'd', 'e'].map(|owner| (owner, job(1, 9))));
    step(&mut batch);
    batch.retain(|&owner| owner != 'b' && owner != 'd');
    assert_eq!(step(&mut batch).1, "ace");
}

#[test]
fn the_urgent_overtake_those_that_wait_but_nobody_who_runs() {
    let urgent = |priority| Job { priority, ..job(1, 2) };
    let jobs = [('a', urgent(0)), ('b', urgent(0)), ('c', urgent(-1))];
    let spec = Spec { max_num_seqs: 1, ..SPEC };
    let order = |scheduling| {
        let mut batch = batch(Spec { scheduling, ..spec }, &jobs[..1]);
        let mut order = step(&mut batch).1;
        for &(owner, job) in &jobs[1..] {
            batch.push(owner, job).unwrap();
        }
        while batch.begin().is_some() {
            batch.finish(|&owner, _| order.push(owner));
        }
        order
    };
    assert_eq!(order(Scheduling::Fifo), "aabbcc");
    assert_eq!(order(Scheduling::Priority), "aaccbb");
}

#[test]
fn when_blocks_run_out_the_last_is_preempted_and_still_completes() {
    // Room for 6 blocks of 4 tokens; each of the two ends with 4 blocks.
    let spec = Spec { kv_blocks: 6, max_model_len: 24, prefix_caching: false, ..SPEC };
    let mut batch = batch(spec, &[('a', job(8, 8)), ('b', job(8, 8))]);
    let (mut told, mut read) = (String::new(), Vec::new());
    while let Some(lasts) = batch.begin() {
        read.push((lasts.as_millis() - 10 - batch.running() as u128) / 2);
        assert!(batch.kv_usage() <= 1.0);
        batch.finish(|&owner, _| told.push(owner));
    }
    assert_eq!(batch.stats().preemptions, 1);
    assert!(told.starts_with("ababab") && told.ends_with("bbb"), "{told}");
    assert_eq!(told.matches('a').count() + told.matches('b').count(), 16);
    // The two prompts, and later b's prompt with the five tokens that it had made: 13 tokens in a step of b alone.
    assert_eq!(read.iter().filter(|&&tokens| tokens > 0).collect::<Vec<_>>(), [&16, &13]);
}

#[test]
fn with_priorities_the_least_urgent_is_preempted_though_it_came_first() {
    let spec = Spec {
        kv_blocks: 6,
        max_model_len: 24,
        prefix_caching: false,
        scheduling: Scheduling::Priority,
        ..SPEC
    };
    let late = Job { priority: -5, ..job(8, 8) };
    let mut batch = batch(spec, &[('a', job(8, 8)), ('b', late)]);
    let mut told = String::new();
    while batch.begin().is_some() {
        batch.finish(|&owner, _| told.push(owner));
    }
    assert_eq!(batch.stats().preemptions, 1);
    assert!(told.ends_with("aaa"), "{told}");
}

#[test]
fn a_prefix_that_was_read_before_is_not_read_again() {
    let prefix = Some(Prefix { id: 1, tokens: 100 });
    let shared = Job { prefix, ..job(110, 2) };
    let mut batch = batch(Spec { max_num_seqs: 1, ..SPEC }, &[('a', shared), ('b', shared)]);
    assert_eq!(step(&mut batch).0, 10 + 1 + 2 * 110);
    step(&mut batch);
    let lasts = batch.begin().unwrap();
    let mut cached = 0;
    batch.finish(|_, token| cached = token.cached_tokens);
    assert_eq!((lasts.as_millis(), cached), (10 + 1 + 2 * 10, 100));
    assert_eq!((batch.stats().prefix_queries, batch.stats().prefix_hits), (220, 100));
    // Whoever says the same alone has to read all of it.
    let other = Job { prefix: Some(Prefix { id: 2, tokens: 100 }), ..shared };
    while batch.begin().is_some() {
        batch.finish(|_, _| {});
    }
    batch.push('c', other).unwrap();
    assert_eq!(step(&mut batch).0, 10 + 1 + 2 * 110);
}

#[test]
fn a_prompt_known_as_a_whole_still_has_its_last_block_read() {
    let whole = Job { prefix: Some(Prefix { id: 1, tokens: 8 }), ..job(8, 1) };
    let mut batch = batch(SPEC, &[('a', whole)]);
    assert_eq!(step(&mut batch).0, 10 + 1 + 2 * 8);
    batch.push('b', whole).unwrap();
    assert_eq!(step(&mut batch).0, 10 + 1 + 2 * 4);
}

#[test]
fn a_prefix_is_forgotten_when_others_need_its_blocks() {
    let spec = Spec { kv_blocks: 10, max_model_len: 40, ..SPEC };
    let shared = Job { prefix: Some(Prefix { id: 1, tokens: 20 }), ..job(21, 1) };
    let mut batch = batch(spec, &[('a', shared)]);
    step(&mut batch);
    batch.push('b', job(38, 1)).unwrap();
    step(&mut batch);
    batch.push('c', shared).unwrap();
    assert_eq!(step(&mut batch).0, 10 + 1 + 2 * 21);
}

#[test]
fn two_replicas_do_in_half_the_time_what_one_does() {
    let jobs = [job(1, 100); 12];
    let one = at_once(SPEC, jobs);
    let two = at_once(Spec { gpus: 2, ..SPEC }, jobs);
    assert_eq!(one.end, two.end * 2);
    assert_eq!(one.stats.generation_tokens, two.stats.generation_tokens);
}

#[test]
fn a_request_goes_to_the_replica_that_is_free() {
    let mut cluster = Cluster::new(Spec { gpus: 2, ..SPEC }).unwrap();
    let (mut now, mut told) = (Duration::ZERO, Vec::new());
    for owner in ['a', 'b'] {
        cluster.push(owner, job(1_000, 1)).unwrap();
        cluster.advance(now, |_, _, _| {});
        now += Duration::from_millis(500);
    }
    while let Some(due) = cluster.due() {
        cluster.advance(due, |&owner, at, _| told.push((owner, at.as_millis())));
    }
    assert_eq!(told, [('a', 2_011), ('b', 2_511)]);
}

#[test]
fn what_is_longer_than_the_model_takes_is_refused() {
    let mut batch = Batch::new(SPEC).unwrap();
    assert!(batch.push('a', job(9_000, 1_001)).is_err());
    assert!(batch.push('a', job(u32::MAX, u32::MAX)).is_err());
    assert!(batch.push('a', job(9_000, 1_000)).is_ok());
}

/// Random servers under random histories, many with far too few blocks.
#[test]
fn no_token_is_lost_or_doubled_and_no_block_leaks() {
    let mut preemptions = 0;
    for seed in 0..300 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let spec = random_spec(&mut random);
        let mut batch = Batch::new(spec).unwrap();
        let mut wanted: Vec<(u32, u32, bool)> = Vec::new();
        loop {
            if wanted.len() < 60 && random.random_bool(0.3) {
                let job = random_job(&mut random, spec.max_model_len);
                batch.push(wanted.len(), job).unwrap();
                wanted.push((job.output_tokens, 0, false));
            }
            if random.random_bool(0.02) && !wanted.is_empty() {
                let leaves = random.random_range(0..wanted.len());
                batch.retain(|&owner| owner != leaves);
                wanted[leaves].2 = true;
            }
            if batch.begin().is_none() && wanted.len() == 60 {
                break;
            }
            assert!(batch.running() <= spec.max_num_seqs, "seed {seed}");
            if random.random_bool(0.02) && !wanted.is_empty() {
                let leaves = random.random_range(0..wanted.len());
                batch.retain(|&owner| owner != leaves);
                wanted[leaves].2 = true;
            }
            batch.finish(|&owner, Token { index, last, .. }| {
                let (length, made, left) = &mut wanted[owner];
                assert!(!*left && index == *made, "seed {seed}: token {index} of {owner} after {made}");
                *made += 1;
                assert_eq!(last, made == length, "seed {seed}");
            });
        }
        assert!(wanted.iter().all(|(length, made, left)| *left || made == length), "seed {seed}");
        assert_eq!((batch.running(), batch.waiting(), batch.kv_usage()), (0, 0, 0.0), "seed {seed}");
        preemptions += batch.stats().preemptions;
    }
    assert!(preemptions > 1_000, "{preemptions} preemptions are too few to prove anything");
}

#[test]
fn the_order_decides_everything() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let spec = Spec { kv_blocks: 60, max_model_len: 200, gpus: 2, ..SPEC };
    let plan: Vec<Offer> = (0..200)
        .map(|index| Offer { at: Duration::from_millis(index * 40), job: random_job(&mut random, 200) })
        .collect();
    let first = replay(spec, &plan).unwrap();
    assert!(first.stats.preemptions > 0 && first.stats.prefix_hits > 0);
    assert_eq!(replay(spec, &plan).unwrap(), first);
}

fn random_spec(random: &mut ChaCha8Rng) -> Spec {
    let max_model_len: u32 = random.random_range(8..200);
    let block_size = random.random_range(1..9);
    let chunked_prefill = random.random_bool(0.7);
    let least = max_model_len.div_ceil(block_size);
    Spec {
        max_num_seqs: random.random_range(1..8),
        max_num_batched_tokens: if chunked_prefill { random.random_range(8..64) } else { max_model_len },
        chunked_prefill,
        scheduling: if random.random_bool(0.5) { Scheduling::Fifo } else { Scheduling::Priority },
        max_model_len,
        kv_blocks: random.random_range(least..=2 * least),
        block_size,
        prefix_caching: random.random_bool(0.5),
        ..SPEC
    }
}

fn random_job(random: &mut ChaCha8Rng, max_model_len: u32) -> Job {
    let prompt_tokens = random.random_range(1..max_model_len);
    let prefix = Prefix { id: random.random_range(0..3), tokens: random.random_range(0..100) };
    Job {
        prompt_tokens,
        output_tokens: random.random_range(1..=max_model_len - prompt_tokens),
        priority: random.random_range(-2..3),
        prefix: random.random_bool(0.5).then_some(prefix),
    }
}
