//! Many clients at once: none too many at the model server, none forgotten, none left behind.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::watched::poll;
use super::{RealWorld, chat, http2, ok};
use crate::stories::{Answer, Body, Protocol, Request, Response, Sent, World};

const POLICY: &str = r#"{
    "classes": [{"name": "all", "concurrency": 4, "queue": {"capacity": 8, "timeout": "60s"}}]
}"#;
const INFLIGHT: &str = "sluice.inflight.domain.default.class.all";
const QUEUED: &str = "sluice.queued.domain.default.class.all";

#[test]
fn a_burst_is_bounded_and_everybody_is_answered() {
    let mut world = RealWorld::start(POLICY);
    let sent: Vec<Sent> = (0..200).map(|_| world.launch(&chat(10))).collect();
    world.metric_becomes(QUEUED, 8);
    world.metric_becomes(INFLIGHT, 4);
    let mut answered = 0;
    while answered < 12 {
        let inside = world.arrived() - answered;
        assert_eq!(inside, 4.min(12 - answered), "after {answered} answers");
        world.answer(answered, ok());
        answered += 1;
    }
    let responses: Vec<Response> = sent.iter().map(|sent| world.response(*sent)).collect();
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 12);
    for refused in responses.iter().filter(|response| response.status != 200) {
        assert_eq!(refused.status, 429, "{refused:?}");
        let seconds: u64 = header(refused, "retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds), "{refused:?}");
        assert_eq!(header(refused, "x-sluice-reason"), "queue_full");
    }
    assert_eq!(world.arrived(), 12);
    empty(&mut world);
}

#[test]
fn clients_that_vanish_while_queued_leave_nothing() {
    let policy = POLICY.replace("\"capacity\": 8", "\"capacity\": 100");
    let mut world = RealWorld::start(&policy);
    let running: Vec<Sent> = (0..4).map(|_| world.send(&chat(10))).collect();
    world.arrivals(4);
    let sent: Vec<Sent> = (0..100).map(|_| world.launch(&chat(10))).collect();
    world.metric_becomes(QUEUED, 100);
    sent.into_iter().for_each(|sent| world.leave(sent));
    world.metric_becomes(QUEUED, 0);
    assert_eq!(world.arrived(), 4);
    for (index, sent) in running.into_iter().enumerate() {
        world.answer(index, ok());
        assert_eq!(world.response(sent).status, 200);
    }
    empty(&mut world);
}

#[test]
fn clients_that_vanish_before_the_answer_leave_nothing() {
    let mut world = RealWorld::start(&POLICY.replace("\"concurrency\": 4", "\"concurrency\": 100"));
    let sent: Vec<Sent> = (0..100).map(|_| world.launch(&chat(10))).collect();
    world.arrivals(100);
    world.metric_becomes(INFLIGHT, 100);
    sent.into_iter().for_each(|sent| world.leave(sent));
    empty(&mut world);
}

#[test]
fn clients_that_vanish_within_the_answer_leave_nothing() {
    let mut world = RealWorld::start(&POLICY.replace("\"concurrency\": 4", "\"concurrency\": 100"));
    let sent: Vec<Sent> = (0..100).map(|_| world.launch(&chat(10))).collect();
    world.arrivals(100);
    (0..100).for_each(|index| world.answer(index, Answer::Begin(vec![b"data: 1\n\n".to_vec()])));
    for sent in &sent {
        poll(|| "an answer's head".to_owned(), || world.answered(*sent).then_some(()));
    }
    world.metric_becomes(INFLIGHT, 100);
    sent.into_iter().for_each(|sent| world.leave(sent));
    empty(&mut world);
}

#[test]
fn clients_that_vanish_within_their_body_leave_nothing() {
    let mut world = RealWorld::start(POLICY);
    let request = Request { body: Body::Withheld(b"{\"messages\":".to_vec()), ..chat(1) };
    let sent: Vec<Sent> = (0..100).map(|_| world.send(&request)).collect();
    sent.into_iter().for_each(|sent| world.leave(sent));
    assert_eq!(world.arrived(), 0);
    empty(&mut world);
}

#[test]
fn a_connection_that_dies_takes_all_its_streams_and_no_other() {
    let mut world = RealWorld::start(&POLICY.replace("\"capacity\": 8", "\"capacity\": 100"));
    let stream = TcpStream::connect(world.envoy.addr()).unwrap();
    let die = http2::start_crowd(stream, chat(10), 54);
    world.metric_becomes(QUEUED, 50);
    let last = world.launch(&chat(10));
    world.metric_becomes(QUEUED, 51);
    world.answer_at_once(ok());
    die();
    assert_eq!(world.response(last).status, 200);
    empty(&mut world);
}

#[test]
fn a_client_that_does_not_read_keeps_no_slot_of_a_server_that_is_done() {
    let mut world = RealWorld::start(&POLICY.replace("\"concurrency\": 4", "\"concurrency\": 1"));
    let stream = TcpStream::connect(world.envoy.addr()).unwrap();
    let die = http2::start_crowd(stream, chat(10), 1);
    world.arrivals(1);
    // Larger than what a client takes that has not said that it has read anything.
    let Answer::Whole { status, headers, .. } = ok() else { panic!("a whole answer") };
    world.answer(0, Answer::Whole { status, headers, body: vec![b' '; 300_000] });
    let next = world.launch(&chat(10));
    world.arrivals(2);
    world.answer(1, ok());
    assert_eq!(world.response(next).status, 200);
    die();
    empty(&mut world);
}

#[test]
fn a_model_server_that_is_gone_takes_no_slot_with_it() {
    let policy = POLICY.replace("\"concurrency\": 4", "\"concurrency\": 1");
    let mut world = RealWorld::start_with(&policy, |config| {
        // Nobody listens where a listener has just been.
        let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        config.clusters.iter_mut().for_each(|(_, address)| *address = gone);
    });
    for _ in 0..50 {
        let sent = world.launch(&chat(10));
        assert_eq!(world.response(sent).status, 503);
        assert_ne!(world.logged(sent, "upstream_host"), "-", "it was sent on");
    }
    world.metric_becomes(INFLIGHT, 0);
    world.metric_becomes("sluice.responses_total.domain.default.class.all.code.5xx", 50);
    world.close();
}

#[test]
fn two_workers_answer_everybody() {
    let mut world = RealWorld::start_with(POLICY, |config| config.concurrency = 2);
    world.answer_at_once(ok());
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let sent: Vec<Sent> = (0..100).map(|_| world.launch(&Request { protocol, ..chat(10) })).collect();
        for sent in sent {
            let status = world.response(sent).status;
            assert!(status == 200 || status == 429, "{status}");
        }
        world.metric_becomes(QUEUED, 0);
        world.metric_becomes(INFLIGHT, 0);
    }
    world.close();
}

#[test]
fn a_huge_upload_is_refused_by_its_head() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut world = RealWorld::start(POLICY);
        let huge = Request { protocol, body: Body::Whole(vec![b' '; 20 << 20]), ..chat(1) };
        let sent = world.send(&huge);
        let response = world.response(sent);
        assert_eq!(response.status, 413, "{response:?}");
        assert_eq!(header(&response, "x-sluice-reason"), "body_too_large");
        assert_eq!(world.logged(sent, "details"), "sluice_body_too_large");
        assert_eq!(world.arrived(), 0);
        empty(&mut world);
    }
}

#[test]
fn a_huge_upload_without_a_length_is_refused_in_the_filters_words() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut world = RealWorld::start(POLICY);
        let body = Body::Chunks(vec![vec![b' '; 1 << 20]; 20]);
        let sent = world.send(&Request { protocol, body, ..chat(1) });
        let response = world.response(sent);
        assert_eq!(response.status, 413, "{response:?}");
        assert_eq!(header(&response, "x-sluice-reason"), "body_too_large");
        empty(&mut world);
    }
}

#[test]
fn the_largest_body_allowed_passes_and_may_grow() {
    let (start, end) = (r#"{"messages":[],"metadata":{"filler":""#, r#""}}"#);
    let filler = "x".repeat((8 << 20) - start.len() - end.len());
    let body = format!("{start}{filler}{end}").into_bytes();
    let mut world = RealWorld::start("{}");
    let pieces: Vec<Vec<u8>> = body.chunks(1 << 16).map(<[u8]>::to_vec).collect();
    for (index, (protocol, sent)) in [
        (Protocol::Http1, Body::Whole(body.clone())),
        (Protocol::Http1, Body::Chunks(pieces.clone())),
        (Protocol::Http2, Body::Whole(body.clone())),
        (Protocol::Http2, Body::Chunks(pieces)),
    ]
    .into_iter()
    .enumerate()
    {
        let sent = world.launch(&Request { protocol, body: sent, ..chat(1) });
        let arrival = world.arrivals(index + 1).remove(index);
        assert!(arrival.body.len() > body.len(), "no limit came in");
        assert!(arrival.body.ends_with(&body[body.len() - filler.len()..]));
        world.answer(index, ok());
        assert_eq!(world.response(sent).status, 200);
    }
    world.close();
}

/// Nothing is held any more, and the worker serves the next one.
fn empty(world: &mut RealWorld) {
    world.metric_becomes(QUEUED, 0);
    world.metric_becomes(INFLIGHT, 0);
    world.answer_at_once(ok());
    let sent = world.send(&chat(1));
    assert_eq!(world.response(sent).status, 200);
    world.metric_becomes(INFLIGHT, 0);
    // Longer than the timer that shows gauges.
    world.pass(Duration::from_millis(300));
    assert_eq!(world.metric(INFLIGHT), 0);
    assert!(world.healthy(), "{:?}", world.failures());
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    let found = response.headers.iter().find(|(header, _)| header == name);
    found.map_or_else(|| panic!("no {name} in {response:?}"), |(_, value)| value)
}
