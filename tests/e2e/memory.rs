//! Memory under many and large bodies: bounded together, given back, and never held twice.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::watched::{PATIENCE, poll};
use super::wire::{Framing, Reader};
use super::{RealWorld, exchange, ok};
use crate::stories::{Body, Protocol, Request, Sent, World};

const MIB: usize = 1 << 20;
const KIB: usize = 1 << 10;

#[test]
fn four_hundred_slow_and_parked_uploads_stay_within_the_buffer() {
    const SIZE: usize = 256 * KIB;
    const BUFFER: usize = 16 * MIB;
    let mut world = RealWorld::start(&format!(
        r#"{{"limits": {{"body_bytes": {MIB}, "buffered_bytes": {BUFFER}, "body_timeout": "60s"}},
            "classes": [{{"name": "all", "concurrency": 1, "queue": {{"capacity": 400, "timeout": "60s"}}}}]}}"#
    ));
    let running = world.launch(&whole(KIB));
    world.arrivals(1);
    let before = resident(&world);
    let slow = Request { body: Body::Withheld(vec![b' '; SIZE]), ..whole(KIB) };
    let parked = whole(SIZE);
    let sent: Vec<Sent> =
        (0..400).map(|place| world.launch(if place % 2 == 0 { &slow } else { &parked })).collect();
    // All have a place or were refused once as many are left as fit.
    let fit = BUFFER / SIZE;
    poll(
        || format!("all but {fit} to be refused"),
        || (refused(&mut world, &sent) >= 400 - fit).then_some(()),
    );
    let grown = resident(&world).saturating_sub(before);
    assert!(grown < 4 * BUFFER, "{grown} bytes for a buffer of {BUFFER}, when {} came", 400 * SIZE);

    // Those that wait are answered, and those that do not end leave: then there is room for as many again.
    world.answer_at_once(ok());
    world.answer(0, ok());
    assert_eq!(world.response(running).status, 200);
    let mut passed = 0;
    for (place, sent) in sent.iter().enumerate() {
        if place % 2 == 1 {
            let response = world.response(*sent);
            let reason = response.header("x-sluice-reason").unwrap_or_default();
            assert!(
                response.status == 200 || (response.status, reason) == (503, "overloaded"),
                "{response:?}"
            );
            passed += usize::from(response.status == 200);
        } else if !world.answered(*sent) {
            world.leave(*sent);
        }
    }
    assert!(passed <= fit, "{passed} bodies waited at once");
    for _ in 0..2 * fit {
        let sent = world.launch(&whole(SIZE));
        assert_eq!(world.response(sent).status, 200);
    }
    world.close();
}

#[test]
fn uploads_that_do_not_end_are_refused_and_make_room() {
    const SIZE: usize = 256 * KIB;
    let policy = format!(
        r#"{{"limits": {{"body_bytes": {MIB}, "buffered_bytes": {}, "body_timeout": "2s"}}}}"#,
        10 * SIZE
    );
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut world = RealWorld::start(&policy);
        world.answer_at_once(ok());
        // As much as there may be, twice: the second time there is only room if the first has given it back.
        for _ in 0..2 {
            let slow = Request { protocol, body: Body::Withheld(vec![b' '; SIZE]), ..whole(KIB) };
            let sent: Vec<Sent> = (0..9).map(|_| world.launch(&slow)).collect();
            for sent in sent {
                let response = world.response(sent);
                let reason = response.header("x-sluice-reason").unwrap_or_default();
                assert_eq!((response.status, reason), (408, "body_timeout"));
            }
        }
        let sent = world.launch(&whole(MIB - KIB));
        assert_eq!(world.response(sent).status, 200);
        world.close();
    }
}

#[test]
fn a_parked_body_is_held_once() {
    const SIZE: usize = 4 * MIB;
    const PARKED: usize = 32;
    let mut world =
        RealWorld::start(r#"{"classes": [{"name": "all", "concurrency": 1, "queue": {"timeout": "60s"}}]}"#);
    let running = world.launch(&whole(KIB));
    world.arrivals(1);
    // The first one also grows the module's own memory to what reading such a body takes.
    let mut parked = vec![world.launch(&whole(SIZE))];
    world.metric_becomes("sluice.queued.domain.default.class.all", 1);
    let before = resident(&world);
    parked.extend((1..PARKED).map(|_| world.launch(&whole(SIZE))));
    world.metric_becomes("sluice.queued.domain.default.class.all", PARKED as u64);
    let grown = resident(&world).saturating_sub(before);
    let bodies = (PARKED - 1) * SIZE;
    assert!(grown > bodies / 2, "{grown} bytes are too few to hold {bodies}: this measures nothing");
    assert!(grown < bodies * 3 / 2, "{grown} bytes for bodies of {bodies}");
    world.answer_at_once(ok());
    world.answer(0, ok());
    for sent in parked.into_iter().chain([running]) {
        assert_eq!(world.response(sent).status, 200);
    }
    world.close();
}

#[test]
fn rounds_of_large_bodies_reach_a_plateau() {
    plateau(40, 10);
}

#[test]
#[ignore = "takes minutes: ./build.sh bench memory"]
fn many_rounds_of_many_large_bodies_reach_a_plateau() {
    plateau(200, 20);
}

/// Sends bodies of 900 KB from as many clients at once, in rounds. What stays of each would be seen: from the middle of
/// the rounds to their end memory grows by less than half of what one round brings.
fn plateau(clients: usize, rounds: usize) {
    const SIZE: usize = 900_000;
    let server = sink();
    let world = RealWorld::start_with("{}", |config| {
        config.clusters.iter_mut().for_each(|(_, address)| *address = server);
    });
    let mut sizes = Vec::new();
    for _ in 0..rounds {
        let sending: Vec<_> = (0..clients)
            .map(|_| {
                let address = world.envoy.addr();
                thread::spawn(move || assert_eq!(send(address, &whole(SIZE)), 200))
            })
            .collect();
        sending.into_iter().for_each(|client| client.join().expect("200"));
        sizes.push(resident(&world));
    }
    println!("{clients} bodies of {SIZE} bytes a round; resident after each, in MiB: {:?}", mib(&sizes));
    let late = sizes[rounds - 1].saturating_sub(sizes[rounds / 2 - 1]);
    assert!(late < clients * SIZE / 2, "still growing: {:?}", mib(&sizes));
    world.close();
}

fn mib(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().map(|size| size / MIB).collect()
}

/// A chat of about `size` bytes that are no prompt.
fn whole(size: usize) -> Request {
    let filler = "x".repeat(size.saturating_sub(120));
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"Hello"}}],"max_tokens":5,"metadata":{{"filler":"{filler}"}}}}"#
    );
    super::post("/v1/chat/completions", &body)
}

/// The status of the answer to one request on a connection of its own.
fn send(address: SocketAddr, request: &Request) -> u16 {
    let mut stream = TcpStream::connect(address).expect("a connection to Envoy");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(&exchange::head(request)).expect("a head sent");
    exchange::body(request).iter().for_each(|piece| stream.write_all(piece).expect("a body sent"));
    exchange::receive(&mut Reader::new(&stream), |_| ()).expect("an answer").status
}

/// A model server that keeps nothing.
fn sink() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut reader = Reader::new(&stream);
                while let Ok(Some(head)) = reader.request() {
                    let mut body = Vec::new();
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                    let whole = reader.body(head.framing(Framing::None), &mut body).is_ok();
                    if !whole || (&stream).write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn refused(world: &mut RealWorld, sent: &[Sent]) -> usize {
    sent.iter().filter(|sent| world.answered(**sent)).count()
}

/// Envoy's memory, in bytes.
fn resident(world: &RealWorld) -> usize {
    let path = format!("/proc/{}/status", world.envoy.pid());
    let status = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * KIB
}
