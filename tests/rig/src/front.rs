//! `rig front`: an Envoy with the shipped configuration before a server of the caller's, for tests in other languages.

use crate::envoy::{Config, Envoy};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::net::SocketAddr;
use std::{io, thread};
use tokio::sync::oneshot;
use tokio::task::{block_in_place, spawn_blocking};

/// What to start.
#[derive(Args, Debug)]
pub struct Options {
    /// The model server, behind both clusters.
    #[arg(long)]
    upstream: SocketAddr,
    /// The policy in place of the shipped one: its JSON, not a file.
    #[arg(long)]
    policy: Option<String>,
    /// Leave out `allow_on_headers_stop_iteration`, to see what the filter says then.
    #[arg(long)]
    no_header_hold: bool,
}

/// Prints a line of JSON with the addresses once Envoy serves, and ends it when standard input ends: so it never
/// outlives who started it.
pub async fn front(options: Options) -> Result<()> {
    let mut config = Config::shipped("envoy.yaml")?;
    config.clusters = ["llm_short", "llm_long"].map(|name| (name.to_owned(), options.upstream)).to_vec();
    config.policy = options.policy;
    config.header_hold = !options.no_header_hold;
    let envoy = spawn_blocking(move || Envoy::start(&config)).await?.context("Envoy")?;
    println!("{}", json!({"clients": envoy.addr(), "admin": envoy.admin()}));
    // A thread of its own: the runtime would wait for a blocking task, also when a signal is to end all this.
    let (end, ended) = oneshot::channel();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = end.send(());
    });
    ended.await?;
    block_in_place(|| envoy.stop())
}
