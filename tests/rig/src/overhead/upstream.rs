//! The upstream: a process of its own that answers as cheaply as it can.

use super::chat::ANSWER;
use crate::http1::next;
use anyhow::{Context, Result};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};

/// Events of an answer that comes as such.
pub const EVENTS: u32 = 1000;
/// Between two of them: far enough apart for each to be read by itself.
pub const APART: Duration = Duration::from_millis(1);
/// The subcommand that serves.
pub const COMMAND: &str = "overhead-upstream";

/// A process that serves until this is dropped.
pub struct Upstream {
    child: Child,
    address: SocketAddr,
}

impl Upstream {
    /// Starts this very program as the upstream.
    pub fn start() -> Result<Upstream> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the upstream")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no output of the upstream")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the upstream says {line:?}"))?;
        Ok(Upstream { child, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the process does: it prints its address, and serves until its input ends, which it does with its parent.
pub async fn serve() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    loop {
        let (stream, _) = listener.accept().await?;
        // A connection that breaks is Envoy's to notice.
        tokio::spawn(async move { answer(stream).await });
    }
}

async fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(64 * 1024);
    while let Some(whole) = next(&mut stream, &mut received).await? {
        let head = &received[..whole.min(4096)];
        let wanted = |name: &str| {
            let line = format!("{ANSWER}: {name}\r\n");
            head.windows(line.len()).any(|window| window == line.as_bytes())
        };
        let (events, never) = (wanted("events"), wanted("never"));
        received.drain(..whole);
        if events {
            stream_events(&mut stream).await?;
        } else if !never {
            stream.write_all(WHOLE.as_bytes()).await?;
        }
    }
    Ok(())
}

async fn stream_events(stream: &mut TcpStream) -> Result<()> {
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await?;
    let mut tick = interval(APART);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let chunk = format!("{:x}\r\n{EVENT}\r\n", EVENT.len());
    for _ in 0..EVENTS {
        tick.tick().await;
        stream.write_all(chunk.as_bytes()).await?;
    }
    stream.write_all(END).await?;
    Ok(())
}

/// Ends an answer in chunks.
pub const END: &[u8] = b"0\r\n\r\n";
const EVENT: &str = "data: {\"id\":\"chatcmpl-7f0c\",\"object\":\"chat.completion.chunk\",\"created\":1764460800,\
    \"model\":\"llama-3.1-8b-instruct\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" lock\"},\
    \"logprobs\":null,\"finish_reason\":null}]}\n\n";
const WHOLE: &str = "HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 03:00:00 GMT\r\nserver: uvicorn\r\n\
    content-type: application/json\r\ncontent-length: 371\r\n\r\n\
    {\"id\":\"chatcmpl-7f0c4e1f52b94b61\",\"object\":\"chat.completion\",\"created\":1764460800,\
    \"model\":\"llama-3.1-8b-instruct\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\
    \"content\":\"A lock raises and lowers boats between stretches of water of different levels.\"},\
    \"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":512,\"total_tokens\":529,\
    \"completion_tokens\":17}}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::length;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        assert_eq!(length(WHOLE.as_bytes()), Some(WHOLE.len()));
    }
}
