//! Another policy takes over without anybody noticing.

use super::policies::{ONE_SLOT, STRICT};
use super::words::{CHAT, chat_body, exchange, ok, refused, short, take_slot};
use super::{Request, World};

pub fn new_requests_come_under_the_new_policy(world: &mut dyn World) {
    let over = Request::post(CHAT, chat_body("hi", r#","max_tokens":5000"#));
    exchange(world, &over);
    world.reconfigure(STRICT);
    refused(world, &over).refused(400, "max_tokens_too_large");
    exchange(world, &short());
    assert!(world.healthy());
}

pub fn who_waits_is_served_under_the_old_policy(world: &mut dyn World) {
    let held = take_slot(world, &short());
    let waiting = [world.send(&short()), world.send(&short())];
    world.reconfigure(&ONE_SLOT.replace("\"capacity\": 2", "\"capacity\": 3"));
    for (index, sent) in [held, waiting[0], waiting[1]].into_iter().enumerate() {
        world.arrivals(index + 1);
        world.answer(index, ok());
        assert_eq!(world.response(sent).status, 200);
    }
    exchange(world, &short());
    assert!(world.healthy());
}
