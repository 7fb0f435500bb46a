//! HTTP/1.1 as bytes, for both ends of Envoy: heads by `httparse`, bodies by hand, since the tests need odd ones.

use std::io::{self, Read};

/// How a message's body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

/// A message's first line, as two or three words, and its headers.
#[derive(Clone, Debug)]
pub struct Head {
    /// A status, where it is an answer.
    pub status: u16,
    /// Method and path, where it is a request.
    pub method: String,
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_slice())
    }

    /// `otherwise` where the head itself says nothing.
    pub fn framing(&self, otherwise: Framing) -> Framing {
        if self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"chunked")) {
            return Framing::Chunked;
        }
        let length = self.header("content-length").map(|value| String::from_utf8_lossy(value).parse());
        length.map_or(otherwise, |length| length.map_or(Framing::None, Framing::Length))
    }
}

/// Bytes read from one side, message by message.
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new() }
    }

    /// The head of the next request; none where the connection ends before it.
    pub fn request(&mut self) -> io::Result<Option<Head>> {
        self.head(|bytes| {
            let mut headers = [httparse::EMPTY_HEADER; 128];
            let mut request = httparse::Request::new(&mut headers);
            let status = request.parse(bytes).map_err(io::Error::other)?;
            let head = Head {
                status: 0,
                method: request.method.unwrap_or_default().to_owned(),
                path: request.path.unwrap_or_default().to_owned(),
                headers: owned(request.headers),
            };
            Ok(length(status).map(|length| (head, length)))
        })
    }

    /// The head of the next answer; none where the connection ends before it.
    pub fn response(&mut self) -> io::Result<Option<Head>> {
        self.head(|bytes| {
            let mut headers = [httparse::EMPTY_HEADER; 128];
            let mut response = httparse::Response::new(&mut headers);
            let status = response.parse(bytes).map_err(io::Error::other)?;
            let head = Head {
                status: response.code.unwrap_or_default(),
                method: String::new(),
                path: String::new(),
                headers: owned(response.headers),
            };
            Ok(length(status).map(|length| (head, length)))
        })
    }

    /// Reads a body piece by piece into `body`; an error where the connection breaks within it.
    pub fn body(&mut self, framing: Framing, body: &mut Vec<u8>) -> io::Result<()> {
        match framing {
            Framing::None => Ok(()),
            Framing::Length(length) => self.take(length, body),
            Framing::Chunked => self.chunks(body),
            Framing::UntilClose => {
                while self.more()? {}
                body.append(&mut self.buffer);
                Ok(())
            }
        }
    }

    fn head(
        &mut self,
        parse: impl Fn(&[u8]) -> io::Result<Option<(Head, usize)>>,
    ) -> io::Result<Option<Head>> {
        loop {
            if let Some((head, length)) = parse(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(Some(head));
            }
            if !self.more()? {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            if size == 0 {
                // What may stand before the empty line are trailers.
                while !self.line()?.is_empty() {}
                return Ok(());
            }
            self.take(size, body)?;
            self.line()?;
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn take(&mut self, mut length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let now = length.min(self.buffer.len());
            body.extend(self.buffer.drain(..now));
            length -= now;
            if length == 0 {
                return Ok(());
            }
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 65536];
        let count = self.source.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count > 0)
    }
}

/// One chunk.
pub fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
    bytes.extend_from_slice(piece);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn length(status: httparse::Status<usize>) -> Option<usize> {
    match status {
        httparse::Status::Complete(length) => Some(length),
        httparse::Status::Partial => None,
    }
}

fn owned(headers: &[httparse::Header<'_>]) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec())).collect()
}
