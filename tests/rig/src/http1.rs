//! Messages of HTTP/1, read as cheaply as a benchmark wants it.

use std::io::Result;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Reads until `received` begins with a whole message, and says how long that is; `None` when the other side has closed.
///
/// # Errors
///
/// When the connection breaks.
pub async fn next(stream: &mut (impl AsyncRead + Unpin), received: &mut Vec<u8>) -> Result<Option<usize>> {
    loop {
        if let Some(length) = length(received) {
            return Ok(Some(length));
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

/// How long the first message of HTTP/1 in `bytes` is, once it is whole. Its length must be given.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let length = field(&bytes[..head], "content-length").unwrap_or(0);
    (bytes.len() >= head + length).then_some(head + length)
}

/// A number in a head, by the name of its field.
pub fn field(head: &[u8], name: &str) -> Option<usize> {
    let lines = head.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut fields = lines.filter_map(|line| line.split_once(": "));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name))?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"POST / HTTP/1.1\r\nX-Number: 7\r\ncontent-length: 3\r\n\r\nabc";

    #[test]
    fn a_message_is_whole_with_its_body() {
        assert_eq!(length(MESSAGE), Some(MESSAGE.len()));
        assert_eq!(length(&[MESSAGE, b"POST"].concat()), Some(MESSAGE.len()));
        assert_eq!(length(&MESSAGE[..MESSAGE.len() - 1]), None);
        assert_eq!(field(MESSAGE, "x-number"), Some(7));
    }

    #[tokio::test]
    async fn messages_come_one_after_the_other_and_then_none() {
        let (mut stream, mut received) = (&[MESSAGE, MESSAGE, b"POST"].concat()[..], Vec::new());
        for _ in 0..2 {
            let length = next(&mut stream, &mut received).await.unwrap();
            assert_eq!(length, Some(MESSAGE.len()));
            received.drain(..MESSAGE.len());
        }
        assert_eq!(next(&mut stream, &mut received).await.unwrap(), None);
    }
}
