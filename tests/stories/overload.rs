//! Bodies in hand together are bounded.

use super::words::{CHAT, chat_body, exchange, ok, refused, short, take_slot};
use super::{Body, Request, World};

/// A request with a body of a kilobyte.
fn bulky() -> Request {
    let frame = chat_body("", r#","max_tokens":10"#).len();
    Request::post(CHAT, chat_body(&"x".repeat(1000 - frame), r#","max_tokens":10"#))
}

pub fn bodies_beyond_the_buffer_are_refused(world: &mut dyn World) {
    let unfinished = || bulky().body(Body::Withheld(vec![b' '; 1000]));
    let reading = [world.send(&unfinished()), world.send(&unfinished())];
    let response = refused(world, &bulky());
    response.refused(503, "overloaded");
    response.says_when_to_retry();
    exchange(world, &short());
    world.leave(reading[0]);
    exchange(world, &bulky());
}

pub fn parked_bodies_count(world: &mut dyn World) {
    let held = take_slot(world, &bulky());
    let parked = [world.send(&bulky()), world.send(&bulky())];
    refused(world, &bulky()).refused(503, "overloaded");
    world.answer(0, ok());
    world.response(held);
    world.arrivals(2);
    let fresh = world.send(&bulky());
    for (index, sent) in [(1, parked[0]), (2, parked[1]), (3, fresh)] {
        world.arrivals(index + 1);
        world.answer(index, ok());
        assert_eq!(world.response(sent).status, 200);
    }
}
