//! The corpus on the real Envoy: each request gets its right answer, and its connection serves the next one.

use std::fs;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::exchange::{self, Exchange};
use super::wire::Reader;
use super::{RealWorld, ok};
use crate::stories::case::{Case, Outcome};
use crate::stories::policies::REFERENCE;
use crate::stories::{Body, Protocol, Request, Response, World};

const ROUNDS: usize = 10;
/// `body_bytes` of the policy.
const LIMIT: usize = 1 << 20;
const SEED: u64 = 20_260_730;

#[test]
fn every_request_of_the_corpus_is_answered_right_in_any_order() {
    let mut cases = cases();
    let mut world = RealWorld::start(REFERENCE);
    world.answer_at_once(ok());
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut client = Client::new(&world);
    let mut wrong = Vec::new();
    for round in 0..ROUNDS {
        random.shuffle(&mut cases);
        for case in &cases {
            let before = world.arrivals.look(|desk| desk.held.len());
            let mut request = case.request();
            // Every other round goes over HTTP/2 where that can be; an upgrade cannot.
            if round % 2 == 1 && !is_upgrade(&request) {
                request.protocol = Protocol::Http2;
            }
            let response = client.exchange(&request);
            if client.connection.is_none() && request.protocol == Protocol::Http1 && !may_close(&request) {
                wrong.push(format!("round {round}, {}: its connection serves no other", case.id()));
            }
            let arrival = world.arrivals.look(|desk| desk.held.get(before).map(|held| held.arrival.clone()));
            if let Err(what) = case.judge(&Outcome { response, arrival }) {
                wrong.push(format!("round {round}, {:?}, {}: {what}", request.protocol, case.id()));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
    world.metric_becomes("sluice.inflight.domain.default.class.long", 0);
    assert!(world.healthy(), "{:?}", world.failures());
}

/// Whether the request is refused before its end, so that what follows on its connection is still its own.
fn may_close(request: &Request) -> bool {
    match &request.body {
        Body::Withheld(_) => true,
        Body::Whole(body) => body.len() > LIMIT || is_upgrade(request),
        _ => false,
    }
}

fn is_upgrade(request: &Request) -> bool {
    request.headers.iter().any(|(name, _)| name == "connection")
}

fn cases() -> Vec<Case> {
    let path = rig::envoy::root().join("tests/corpus/requests.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // The other backends' lines are told as stories, each under a policy of its own.
    text.lines().map(Case::parse).filter(|case| case.backend() == "vllm").collect()
}

/// Sends one request after the other on one connection of HTTP/1, as long as the server lets it.
struct Client {
    address: SocketAddr,
    connection: Option<(TcpStream, Reader<TcpStream>)>,
}

impl Client {
    fn new(world: &RealWorld) -> Self {
        Self { address: world.envoy.addr(), connection: None }
    }

    fn exchange(&mut self, request: &Request) -> Response {
        if request.protocol == Protocol::Http2 {
            return Exchange::start(self.address, request).unwrap().response();
        }
        let (stream, mut reader) = self.connection.take().unwrap_or_else(|| {
            let stream = TcpStream::connect(self.address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(super::watched::PATIENCE)).unwrap();
            (stream.try_clone().unwrap(), Reader::new(stream))
        });
        // A thread of its own, since the answer may come before all is sent.
        let bytes: Vec<Vec<u8>> =
            [exchange::head(request)].into_iter().chain(exchange::body(request)).collect();
        let sending = stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            bytes.iter().try_for_each(|piece| (&sending).write_all(piece)).is_ok()
        });
        let response = exchange::receive(&mut reader, |_| ()).unwrap_or_else(|_| exchange::nothing());
        let closes = response.headers.iter().any(|(name, value)| name == "connection" && value == "close");
        if closes {
            // Envoy does so where it has answered before the request's end. The writer then ends with the connection.
            let _ = stream.shutdown(Shutdown::Both);
        } else {
            self.connection = Some((stream, reader));
        }
        let _ = writer.join();
        response
    }
}
