//! A model server that answers after a fixed time, as cheaply as it can, and writes down when.

use super::stay::Stay;
use crate::http1::{field, next};
use anyhow::Result;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    stays: Arc<Mutex<Vec<Stay>>>,
    task: AbortHandle,
}

impl Server {
    /// Each request is answered about `service` after it has come, a fifth more or less, so that not all end at once.
    /// Stays are written down only where that takes any time.
    pub async fn start(service: Duration) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stays = Arc::new(Mutex::default());
        let log = Arc::clone(&stays);
        let start = Instant::now();
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                // A connection that breaks is Envoy's to notice.
                tokio::spawn(async move { serve(stream, service, start, &log).await });
            }
        };
        Ok(Server { address, stays, task: tokio::spawn(accept).abort_handle() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The stays since the last time, in the order in which they began: each from the request's last byte to the first
    /// one of its answer; its turn is the number that its client gave it.
    pub fn take_stays(&self) -> Vec<Stay> {
        let mut stays = std::mem::take(&mut *self.stays.lock().unwrap_or_else(PoisonError::into_inner));
        stays.sort_by_key(|stay| stay.from);
        stays
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    service: Duration,
    start: Instant,
    log: &Mutex<Vec<Stay>>,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    while let Some(whole) = next(&mut stream, &mut received).await? {
        let from = start.elapsed();
        if !service.is_zero() {
            let number = number(&received[..whole]);
            let fifths = u32::try_from(number * 7 % 5).unwrap_or(0);
            sleep(service * (8 + fifths) / 10).await;
            let stay = Stay { turn: number, from, to: start.elapsed() };
            log.lock().unwrap_or_else(PoisonError::into_inner).push(stay);
        }
        received.drain(..whole);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
    }
    Ok(())
}

fn number(request: &[u8]) -> usize {
    field(request, "x-number").unwrap_or(0)
}
