//! What is measured, to the millisecond, on a clock that is set.

use std::time::Duration;

use crate::harness::world::NativeWorld;
use crate::stories::policies::ONE_SLOT;
use crate::stories::words::{CHAT, chat_body, ok, short, take_slot};
use crate::stories::{Answer, Request, World};

fn samples(world: &NativeWorld, metric: &str) -> Vec<u64> {
    world.process.metrics().samples(&format!("sluice.{metric}.domain.default.class.short")).to_vec()
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_streamed_answer_is_timed_from_its_release() {
    let mut world = NativeWorld::new(ONE_SLOT);
    let held = take_slot(&mut world, &short());
    let streamed =
        world.send(&Request::post(CHAT, chat_body("12345678", r#","max_tokens":20,"stream":true"#)));
    world.pass(millis(300));
    world.answer(0, ok());
    world.pass(millis(70));
    world.answer(1, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
    world.pass(millis(50));
    world.answer(1, Answer::More(vec![b"data: 2\n\n".to_vec()]));
    world.answer(1, Answer::End);
    assert_eq!(samples(&world, "queue_ms"), [0, 300]);
    assert_eq!(samples(&world, "ttft_ms"), [70]);
    assert_eq!(samples(&world, "decode_ms"), [50]);
    assert_eq!(samples(&world, "duration_ms"), [300, 420]);
    assert_eq!(samples(&world, "prompt_tokens"), [1, 2]);
    assert_eq!(samples(&world, "max_tokens_effective"), [10, 20]);
    assert_eq!(world.response(held).header("x-sluice-queue-ms"), Some("0"));
    assert_eq!(world.response(streamed).header("x-sluice-queue-ms"), Some("300"));
    world.close();
}

#[test]
fn a_plain_answer_has_no_first_token() {
    let mut world = NativeWorld::new(ONE_SLOT);
    take_slot(&mut world, &short());
    world.pass(millis(70));
    world.answer(0, ok());
    assert_eq!(samples(&world, "duration_ms"), [70]);
    assert!(samples(&world, "ttft_ms").is_empty());
    assert!(samples(&world, "decode_ms").is_empty());
    world.close();
}

#[test]
fn who_was_refused_in_the_queue_measures_no_wait_of_the_served() {
    let mut world = NativeWorld::new(ONE_SLOT);
    take_slot(&mut world, &short());
    world.send(&short());
    world.pass(Duration::from_secs(31));
    assert_eq!(samples(&world, "queue_ms"), [0]);
    world.close();
}
