//! A request over HTTP/2 in clear text, on a connection of its own.

use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::ext::Protocol;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};

use super::exchange::{Inbox, nothing};
use super::watched::{PATIENCE, Watched};
use crate::stories::{Body, Request, Response};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime"));

/// Sends `request` and reads its answer in the background. What is returned closes the connection.
pub fn start(
    stream: TcpStream,
    inbox: Watched<Inbox>,
    request: Request,
    written: Arc<AtomicUsize>,
) -> Box<dyn FnOnce() + Send> {
    let task = RUNTIME.spawn(async move {
        let response = exchange(stream, &inbox, &request, written).await;
        inbox.change(|inbox| {
            inbox.sent = true;
            inbox.response = Some(response.unwrap_or_else(|_| nothing()));
        });
    });
    Box::new(move || task.abort())
}

/// Sends `request` so many times over one connection, whose end nobody awaits. What is returned closes it.
pub fn start_crowd(stream: TcpStream, request: Request, count: usize) -> Box<dyn FnOnce() + Send> {
    let task = RUNTIME.spawn(async move {
        let stream = socket(stream).expect("a socket");
        let (client, connection) = h2::client::handshake(stream).await.expect("a connection");
        let crowd = async {
            let mut answers = Vec::new();
            for _ in 0..count {
                let mut client = client.clone().ready().await.expect("room for a stream");
                let (answer, mut body) = client.send_request(head(&request), false).expect("a stream");
                let (pieces, ..) = parts(&request.body);
                body.send_data(pieces.concat().into(), true).expect("room for a body");
                answers.push(answer);
            }
            std::future::pending::<()>().await;
            drop(answers);
        };
        tokio::select! {
            () = crowd => {}
            _ = connection => {}
        }
    });
    Box::new(move || task.abort())
}

async fn exchange(
    stream: TcpStream,
    inbox: &Watched<Inbox>,
    request: &Request,
    written: Arc<AtomicUsize>,
) -> Result<Response, h2::Error> {
    let stream = socket(stream).map_err(|_| h2::Reason::CONNECT_ERROR)?;
    let (client, connection) = h2::client::handshake(Counted { stream, written }).await?;
    // The connection lives as long as this task: leaving drops both.
    tokio::select! {
        answer = converse(client, inbox, request) => answer,
        broken = connection => Err(broken.err().unwrap_or_else(|| h2::Reason::CANCEL.into())),
    }
}

async fn converse(
    client: h2::client::SendRequest<Bytes>,
    inbox: &Watched<Inbox>,
    request: &Request,
) -> Result<Response, h2::Error> {
    let (pieces, trailers, ends) = parts(&request.body);
    let mut client = client.ready().await?;
    let began = Instant::now();
    while request.method == "CONNECT" && !client.is_extended_connect_protocol_enabled() {
        // The server allows it in its first frame, or never.
        if began.elapsed() > PATIENCE {
            return Err(h2::Reason::CONNECT_ERROR.into());
        }
        tokio::task::yield_now().await;
    }
    let only_head = pieces.is_empty() && trailers.is_none() && ends;
    let (answer, mut body) = client.send_request(head(request), only_head)?;
    if !only_head {
        let last = pieces.len().saturating_sub(1);
        for (index, piece) in pieces.iter().enumerate() {
            let end = ends && trailers.is_none() && index == last;
            body.send_data(Bytes::copy_from_slice(piece), end)?;
        }
        if let Some(trailers) = trailers {
            body.send_trailers(trailers)?;
        }
    }
    inbox.change(|inbox| inbox.sent = true);
    let (head, mut body) = answer.await?.into_parts();
    inbox.change(|inbox| inbox.answered = true);
    let mut response = Response {
        status: head.status.as_u16(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body: Vec::new(),
        complete: true,
    };
    while let Some(piece) = body.data().await {
        match piece {
            Ok(piece) => {
                body.flow_control().release_capacity(piece.len())?;
                response.body.extend_from_slice(&piece);
            }
            Err(_) => return Ok(Response { complete: false, ..response }),
        }
    }
    Ok(response)
}

/// Pieces, trailers, and whether an end is sent at all.
fn parts(body: &Body) -> (Vec<Vec<u8>>, Option<HeaderMap>, bool) {
    let full = |pieces: &[Vec<u8>]| pieces.iter().filter(|piece| !piece.is_empty()).cloned().collect();
    match body {
        Body::Whole(body) => (full(std::slice::from_ref(body)), None, true),
        Body::Chunks(pieces) => (full(pieces), None, true),
        Body::Trailers(pieces, trailers) => {
            let trailers =
                trailers.iter().map(|(name, value)| (field(name), text(value.as_bytes()))).collect();
            (full(pieces), Some(trailers), true)
        }
        Body::Withheld(first) => (full(std::slice::from_ref(first)), None, false),
    }
}

fn head(request: &Request) -> http::Request<()> {
    let uri = format!("http://models.test{}", request.path);
    let mut head =
        http::Request::builder().method(request.method.as_str()).uri(uri).body(()).expect("a request");
    for (name, value) in &request.headers {
        if name == ":protocol" {
            let protocol = std::str::from_utf8(value).expect("a protocol's name");
            head.extensions_mut().insert(Protocol::from(protocol));
            continue;
        }
        head.headers_mut().append(field(name), text(value));
    }
    // As curl does; nobody sends a length without a body but in a POST.
    if let Body::Whole(body) = &request.body
        && !head.headers().contains_key("content-length")
        && (!body.is_empty() || request.method == "POST")
    {
        head.headers_mut().insert("content-length", body.len().into());
    }
    head
}

fn field(name: &str) -> HeaderName {
    HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).expect("a header's name")
}

fn text(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).expect("a header's value")
}

fn socket(stream: TcpStream) -> io::Result<tokio::net::TcpStream> {
    stream.set_nonblocking(true)?;
    tokio::net::TcpStream::from_std(stream)
}

/// A stream that counts what is written to it.
struct Counted {
    stream: tokio::net::TcpStream,
    written: Arc<AtomicUsize>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = &result {
            self.written.fetch_add(*count, Ordering::SeqCst);
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
