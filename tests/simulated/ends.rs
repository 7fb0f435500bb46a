//! Every way in which a stream can end, at every point of its life: one slot or place comes back, once.

use std::time::Duration;

use crate::harness::process::Settings;
use crate::harness::world::NativeWorld;
use crate::stories::policies::ONE_SLOT;
use crate::stories::words::{CHAT, chat_body, exchange, ok, short, take_slot};
use crate::stories::{Answer, Body, Request, Sent, World};

/// A slot whose answer broke off is kept for 20 ms, since the model server may not know yet, and given back by the timer.
const LINGER: Duration = Duration::from_millis(30);

/// Where in its life a stream is when it ends.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// Its body is not whole.
    Reading,
    /// It waits in line.
    Parked,
    /// It holds the slot and has no answer.
    Running,
    /// Its answer has begun.
    Answered,
}

/// A stream at a point, with nobody else on the way but who must be.
fn at(world: &mut NativeWorld, point: Point) -> Sent {
    match point {
        Point::Reading => world.send(&short().body(Body::Withheld(br#"{"messages":"#.to_vec()))),
        Point::Parked => {
            take_slot(world, &short());
            world.send(&short())
        }
        Point::Running => take_slot(world, &short()),
        Point::Answered => {
            let sent = take_slot(world, &short());
            world.answer(0, Answer::Begin(vec![b"data: 1\n\n".to_vec()]));
            sent
        }
    }
}

/// Brings a stream to `point`, has two more wait, ends it, and checks what came back.
fn ends(point: Point, end: impl FnOnce(&mut NativeWorld, Sent)) {
    let mut world = NativeWorld::new(ONE_SLOT);
    let sent = at(&mut world, point);
    let next = world.send(&short());
    let before = world.arrived();
    end(&mut world, sent);
    assert_eq!(end_calls(&world, sent), ["on_log", "on_done", "on_delete"], "{point:?}");
    let went_on = usize::from(matches!(point, Point::Running | Point::Answered));
    assert!(world.arrived() <= before + went_on, "{point:?}");
    world.pass(LINGER);
    assert_eq!(world.arrived(), before + went_on, "{point:?}");
    if let Point::Parked = point {
        world.answer(0, ok());
    }
    let last = world.arrived() - 1;
    world.answer(last, ok());
    assert_eq!(world.response(next).status, 200, "{point:?}");
    world.close();
}

fn end_calls(world: &NativeWorld, sent: Sent) -> Vec<&'static str> {
    world.process.exchange(sent.0, |exchange| exchange.end_calls.clone())
}

const EVERYWHERE: [Point; 4] = [Point::Reading, Point::Parked, Point::Running, Point::Answered];

#[test]
fn the_client_leaves() {
    for point in EVERYWHERE {
        ends(point, |world, sent| world.leave(sent));
    }
}

#[test]
fn envoy_gives_up_on_it() {
    for (status, details) in
        [(504, "stream_idle_timeout"), (504, "max_duration_timeout"), (403, "rbac_access_denied")]
    {
        for point in EVERYWHERE {
            ends(point, |world, sent| world.envoy_answers(sent, status, details));
        }
    }
}

#[test]
fn what_envoy_ends_in_the_filters_place_is_told_once() {
    let mut world = NativeWorld::new(ONE_SLOT);
    take_slot(&mut world, &short());
    for _ in 0..2 {
        let waiting = world.send(&short());
        world.envoy_answers(waiting, 504, "stream_idle_timeout");
    }
    let told = |(_, line): &&(u32, String)| line.contains("Envoy itself ended");
    assert_eq!(world.process.logs().iter().filter(told).count(), 1);
    world.answer(0, ok());
    world.close();
}

#[test]
fn the_model_server_answers_fails_or_breaks_off() {
    for status in [200, 404, 500] {
        ends(Point::Running, |world, _| world.answer(0, crate::stories::words::answer(status)));
    }
    ends(Point::Answered, |world, _| world.answer(0, Answer::End));
    for point in [Point::Running, Point::Answered] {
        ends(point, |world, _| world.answer(0, Answer::Reset));
    }
}

#[test]
fn a_request_that_never_got_to_the_filter_takes_and_gives_nothing() {
    let mut world = NativeWorld::new(ONE_SLOT);
    let held = take_slot(&mut world, &short());
    let waiting = world.send(&short());
    let stillborn = world.send_stillborn(&short());
    assert_eq!(end_calls(&world, stillborn), ["on_log", "on_done", "on_delete"]);
    assert_eq!(world.arrived(), 1);
    world.answer(0, ok());
    assert_eq!(world.response(held).status, 200);
    assert!(!world.answered(waiting));
    world.close();
}

#[test]
fn an_internal_redirect_gives_the_slot_back_and_takes_one_anew() {
    let mut world = NativeWorld::new(ONE_SLOT);
    let sent = take_slot(&mut world, &short());
    world.redirect(sent);
    world.arrivals(2);
    world.metric_becomes("sluice.inflight.domain.default.class.short", 1);
    world.answer(1, ok());
    assert_eq!(world.response(sent).status, 200);
    exchange(&mut world, &short());
    world.close();
}

#[test]
fn envoys_own_body_limit_comes_first() {
    let mut world = NativeWorld::with(Settings { buffer_limit: 2000, ..Settings::default() }, ONE_SLOT);
    let sent = world.send(&Request::post(CHAT, chat_body(&"x".repeat(3000), "")));
    assert_eq!(world.response(sent).status, 413);
    assert_eq!(end_calls(&world, sent), ["on_log", "on_done", "on_delete"]);
    world.metric_becomes("sluice.requests_total.domain.default.class.none.outcome.body_too_large", 1);
    exchange(&mut world, &short());
    world.close();
}

#[test]
fn a_body_that_our_edit_makes_too_large_for_envoy_leaves_no_slot_taken() {
    let mut world = NativeWorld::with(Settings { buffer_limit: 2000, ..Settings::default() }, ONE_SLOT);
    let frame = chat_body("", "").len();
    for _ in 0..3 {
        let sent = world.send(&Request::post(CHAT, chat_body(&"x".repeat(2000 - frame), "")));
        assert_eq!(world.response(sent).status, 413);
        assert_eq!(end_calls(&world, sent), ["on_log", "on_done", "on_delete"]);
    }
    assert_eq!(world.arrived(), 0);
    exchange(&mut world, &short());
    world.close();
}

#[test]
fn everybody_leaves_at_once() {
    let mut world = NativeWorld::new(ONE_SLOT);
    let everybody: Vec<Sent> = (0..3).map(|_| world.send(&short())).collect();
    world.leave_all(&everybody);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.arrived(), 1, "who has left was sent on");
    let before = world.arrived();
    take_slot(&mut world, &short());
    assert_eq!(world.arrived(), before + 1);
    world.close();
}
