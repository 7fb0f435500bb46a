//! One request on its way, as its client sees it: a connection of its own, so that it can be told apart in Envoy's
//! access log and leave without others.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::http2;
use super::watched::Watched;
use super::wire::{Framing, Head, Reader, chunk};
use crate::stories::{Body, Protocol, Request, Response};

/// What the client knows so far.
#[derive(Default)]
pub struct Inbox {
    /// Everything that the request has was handed to the kernel.
    pub sent: bool,
    /// The server has asked for the body.
    pub go_on: bool,
    /// The answer's head has come.
    pub answered: bool,
    /// The answer, once it is whole or its connection is broken.
    pub response: Option<Response>,
}

pub struct Exchange {
    pub inbox: Watched<Inbox>,
    /// The client's own address.
    pub local: SocketAddr,
    /// How many bytes were handed to the kernel.
    written: Arc<AtomicUsize>,
    leave: Box<dyn FnOnce() + Send>,
}

impl Exchange {
    /// Sends `request` to `address`, in threads of its own.
    pub fn start(address: SocketAddr, request: &Request) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?, request)
    }

    /// The same over a connection that is there already, and has served nothing yet.
    pub fn over(stream: TcpStream, request: &Request) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        let inbox = Watched::new(Inbox::default());
        let written = Arc::new(AtomicUsize::new(0));
        let leave: Box<dyn FnOnce() + Send> = match request.protocol {
            Protocol::Http1 => {
                let connection = Arc::new(stream);
                read(Arc::clone(&connection), inbox.clone());
                write(Arc::clone(&connection), inbox.clone(), request.clone(), Arc::clone(&written));
                Box::new(move || {
                    // Nothing is left to close where Envoy was first.
                    let _ = connection.shutdown(Shutdown::Both);
                })
            }
            Protocol::Http2 => http2::start(stream, inbox.clone(), request.clone(), Arc::clone(&written)),
        };
        Ok(Self { inbox, local, written, leave })
    }

    /// How many bytes were handed to the kernel, once that is all that the request has.
    pub fn written(&self) -> Option<usize> {
        self.inbox.look(|inbox| inbox.sent).then(|| self.written.load(Ordering::SeqCst))
    }

    pub fn answered(&self) -> bool {
        self.inbox.look(|inbox| inbox.answered)
    }

    pub fn ended(&self) -> bool {
        self.inbox.look(|inbox| inbox.response.is_some())
    }

    pub fn response(&self) -> Response {
        self.inbox.wait(
            |inbox| format!("an answer (head has come: {})", inbox.answered),
            |inbox| inbox.response.clone(),
        )
    }

    /// Closes the connection.
    pub fn leave(self) {
        (self.leave)();
    }
}

/// The head of `request` on the wire of HTTP/1.1.
pub fn head(request: &Request) -> Vec<u8> {
    let mut bytes =
        format!("{} {} HTTP/1.1\r\nhost: models.test\r\n", request.method, request.path).into_bytes();
    for (name, value) in &request.headers {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    let length_given = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let bodyless = matches!(request.method.as_str(), "GET" | "HEAD" | "CONNECT");
    match &request.body {
        Body::Whole(body) if body.is_empty() && bodyless => {}
        Body::Whole(_) | Body::Withheld(_) if length_given => {}
        Body::Whole(body) => {
            bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes())
        }
        Body::Chunks(_) | Body::Trailers(..) | Body::Withheld(_) => {
            bytes.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// The pieces in which the body of `request` goes over the wire of HTTP/1.1.
pub fn body(request: &Request) -> Vec<Vec<u8>> {
    let length_given = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let chunks = |pieces: &[Vec<u8>]| {
        pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| chunk(piece)).collect()
    };
    match &request.body {
        Body::Whole(body) => vec![body.clone()],
        Body::Withheld(first) if length_given || first.is_empty() => vec![first.clone()],
        Body::Withheld(first) => vec![chunk(first)],
        Body::Chunks(pieces) => {
            let mut wire: Vec<Vec<u8>> = chunks(pieces);
            wire.push(b"0\r\n\r\n".to_vec());
            wire
        }
        Body::Trailers(pieces, trailers) => {
            let mut wire: Vec<Vec<u8>> = chunks(pieces);
            let lines: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            wire.push(format!("0\r\n{lines}\r\n").into_bytes());
            wire
        }
    }
}

/// The answer that `reader` has next; `on_head` is told when its head is there, informational ones too.
pub fn receive<R: io::Read>(reader: &mut Reader<R>, mut on_head: impl FnMut(&Head)) -> io::Result<Response> {
    let head = loop {
        let head = reader.response()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        on_head(&head);
        if head.status >= 200 || head.status == 101 {
            break head;
        }
    };
    let framing = match head.status {
        204 | 304 => Framing::None,
        _ => head.framing(Framing::UntilClose),
    };
    let mut body = Vec::new();
    let complete = reader.body(framing, &mut body).is_ok();
    Ok(Response { status: head.status, headers: texts(&head.headers), body, complete })
}

/// An answer that never came.
pub fn nothing() -> Response {
    Response { status: 0, headers: Vec::new(), body: Vec::new(), complete: false }
}

fn texts(headers: &[(String, Vec<u8>)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned())).collect()
}

fn read(connection: Arc<TcpStream>, inbox: Watched<Inbox>) {
    thread::spawn(move || {
        let mut reader = Reader::new(&*connection);
        let response = receive(&mut reader, |head| {
            inbox.change(|inbox| {
                inbox.go_on |= head.status == 100;
                inbox.answered |= head.status != 100;
            });
        });
        inbox.change(|inbox| inbox.response = Some(response.unwrap_or_else(|_| nothing())));
    });
}

fn write(connection: Arc<TcpStream>, inbox: Watched<Inbox>, request: Request, written: Arc<AtomicUsize>) {
    thread::spawn(move || {
        let asks = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("expect"));
        let put = |bytes: &[u8]| {
            let result = (&*connection).write_all(bytes);
            written.fetch_add(bytes.len(), Ordering::SeqCst);
            result
        };
        let mut all = put(&head(&request));
        if asks {
            inbox.wait(
                |_| "100 Continue".to_owned(),
                |inbox| (inbox.go_on || inbox.answered || inbox.response.is_some()).then_some(()),
            );
        }
        for piece in body(&request) {
            all = all.and_then(|()| put(&piece));
        }
        // Envoy may have answered and closed before it had all; the reader tells.
        inbox.change(|inbox| inbox.sent = true);
    });
}
