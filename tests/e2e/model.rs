//! A model server that does nothing by itself: it writes down what arrives and holds it until told.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use super::watched::Watched;
use super::wire::{Framing, Reader, chunk};
use crate::stories::{Answer, Arrival};

/// What all servers share that hold it.
pub type Arrivals = Watched<Desk>;

#[derive(Default)]
pub struct Desk {
    /// What has arrived, in order.
    pub held: Vec<Held>,
    /// The answer that is given without being told.
    pub at_once: Option<Answer>,
    /// The most that were open at the same time.
    pub peak: usize,
}

impl Desk {
    /// How many requests are open: neither answered to their end nor given up by Envoy.
    pub fn open(&self) -> usize {
        self.held.iter().filter(|held| held.is_open()).count()
    }
}

/// A request that waits for its answer.
pub struct Held {
    pub arrival: Arrival,
    /// When it was read to its end.
    pub came: Instant,
    tell: Sender<Answer>,
    connection: Arc<TcpStream>,
    ended: bool,
}

impl Held {
    pub fn answer(&self, answer: Answer) {
        // The connection may have gone with its client; then nobody is left to answer.
        let _ = self.tell.send(answer);
    }

    /// Asks the kernel, who knows of a connection's end before any thread of ours does.
    fn is_open(&self) -> bool {
        // Until the request has ended no thread reads from its connection.
        !self.ended && self.connection.set_nonblocking(true).is_ok() && {
            let peeked = self.connection.peek(&mut [0]);
            let open = matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
            self.connection.set_nonblocking(false).is_ok() && open
        }
    }
}

/// Starts a server on a free port; it serves until the test process ends.
pub fn start(cluster: &str, arrivals: &Arrivals) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let (cluster, arrivals) = (cluster.to_owned(), arrivals.clone());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (cluster, arrivals) = (cluster.clone(), arrivals.clone());
            // What breaks here is seen by Envoy, and so by the test.
            thread::spawn(move || serve(Arc::new(stream), &cluster, &arrivals));
        }
    });
    Ok(address)
}

fn serve(stream: Arc<TcpStream>, cluster: &str, arrivals: &Arrivals) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::new(&*stream);
    while let Some(head) = reader.request()? {
        let mut body = Vec::new();
        reader.body(head.framing(Framing::None), &mut body)?;
        let arrival = Arrival {
            cluster: cluster.to_owned(),
            method: head.method,
            path: head.path,
            headers: head.headers,
            body,
        };
        let (tell, told) = channel();
        let connection = Arc::clone(&stream);
        let place = arrivals.change(|desk| {
            let held = Held { arrival, came: Instant::now(), tell, connection, ended: false };
            if let Some(answer) = &desk.at_once {
                held.answer(answer.clone());
            }
            desk.held.push(held);
            desk.peak = desk.peak.max(desk.open());
            desk.held.len() - 1
        });
        // Before its last byte is on its way: the next request may be here before this thread goes on.
        let end = || arrivals.change(|desk| desk.held[place].ended = true);
        if !answer(&stream, &told, end)? {
            return stream.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// Answers one request as told, and calls `end` right before its end; false where the connection is to be closed.
fn answer(mut stream: &TcpStream, told: &Receiver<Answer>, end: impl Fn()) -> io::Result<bool> {
    while let Ok(answer) = told.recv() {
        match answer {
            Answer::Whole { status, headers, body } => {
                let mut bytes = format!("HTTP/1.1 {status} Told\r\n");
                if status != 101 {
                    bytes.push_str(&format!("content-length: {}\r\n", body.len()));
                }
                for (name, value) in headers {
                    bytes.push_str(&format!("{name}: {value}\r\n"));
                }
                bytes.push_str("\r\n");
                let mut bytes = bytes.into_bytes();
                bytes.extend_from_slice(&body);
                end();
                stream.write_all(&bytes)?;
                // What follows an upgrade is no HTTP any more; these tests are content with its beginning.
                return Ok(status != 101);
            }
            Answer::Begin(pieces) => {
                stream.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
                )?;
                write_pieces(stream, &pieces)?;
            }
            Answer::More(pieces) => write_pieces(stream, &pieces)?,
            Answer::End => {
                end();
                stream.write_all(b"0\r\n\r\n")?;
                return Ok(true);
            }
            Answer::Reset => {
                end();
                return Ok(false);
            }
        }
    }
    Ok(false)
}

fn write_pieces(mut stream: &TcpStream, pieces: &[Vec<u8>]) -> io::Result<()> {
    pieces.iter().filter(|piece| !piece.is_empty()).try_for_each(|piece| stream.write_all(&chunk(piece)))
}
