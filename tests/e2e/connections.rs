//! What connections go through: several requests at once in one, upgrades.

use std::io::Write;
use std::net::TcpStream;

use super::wire::Reader;
use super::{RealWorld, chat, exchange, ok, watched};
use crate::stories::{Body, Protocol, Request, World};

#[test]
fn a_request_sent_before_the_answer_to_the_one_before_is_served_after_it() {
    let mut world = RealWorld::start("{}");
    // The first is refused, the others are served. (Envoy itself gives up a connection on which answers of its own
    // pile up faster than it writes them, so a refused one stands first.)
    let requests = [Request { body: Body::Whole(b"{".to_vec()), ..chat(1) }, chat(1), chat(1)];
    let mut stream = TcpStream::connect(world.envoy.addr()).unwrap();
    stream.set_read_timeout(Some(watched::PATIENCE)).unwrap();
    let bytes: Vec<u8> =
        requests.iter().flat_map(|r| [exchange::head(r), exchange::body(r).concat()].concat()).collect();
    stream.write_all(&bytes).unwrap();
    let mut reader = Reader::new(&stream);
    let mut served = 0;
    for status in [400, 200, 200] {
        if status == 200 {
            world.answer(served, ok());
            served += 1;
        }
        let response = exchange::receive(&mut reader, |_| ()).unwrap();
        assert_eq!((response.status, response.complete), (status, true), "{response:?}");
    }
    assert_eq!(world.arrived(), 2);
    world.close();
}

#[test]
fn an_upgrade_passes_where_nothing_is_guarded() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut world = RealWorld::start("{}");
        let sent = world.launch(&upgrade("/v1/realtime", protocol));
        let arrival = world.arrivals(1).remove(0);
        assert_eq!((arrival.method.as_str(), arrival.path.as_str()), ("GET", "/v1/realtime"));
        assert!(arrival.headers.iter().any(|(name, value)| name == "upgrade" && value == b"websocket"));
        let headers = [("upgrade", "websocket"), ("connection", "upgrade")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        world.answer(0, crate::stories::Answer::Whole { status: 101, headers, body: Vec::new() });
        // HTTP/2 has no status of its own for it.
        let status = if protocol == Protocol::Http1 { 101 } else { 200 };
        assert_eq!(world.response(sent).status, status);
        world.close();
    }
}

#[test]
fn an_upgrade_is_refused_where_the_path_is_guarded() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut world = RealWorld::start("{}");
        let method = if protocol == Protocol::Http1 { "POST" } else { "CONNECT" };
        let request = Request { method: method.to_owned(), ..upgrade("/v1/chat/completions", protocol) };
        let sent = world.launch(&request);
        assert_eq!(world.response(sent).status, 400, "{protocol:?}");
        assert_eq!(world.logged(sent, "details"), "sluice_unsupported_upgrade");
        assert_eq!(world.arrived(), 0);
        world.close();
    }
}

fn upgrade(path: &str, protocol: Protocol) -> Request {
    let (method, headers): (&str, &[(&str, &str)]) = match protocol {
        Protocol::Http1 => {
            ("GET", &[("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")])
        }
        Protocol::Http2 => ("CONNECT", &[(":protocol", "websocket"), ("sec-websocket-version", "13")]),
    };
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect(),
        body: if protocol == Protocol::Http1 { Body::Whole(Vec::new()) } else { Body::Withheld(Vec::new()) },
        protocol,
    }
}
