//! `rig load`: sends a workload to any server of OpenAI's chat, and says how it fared.

use super::client::Options;
use super::drive::{drive, drive_closed};
use super::published::Published;
use super::request::Style;
use super::trace::Trace;
use super::traffic::Planned;
use super::workload::{Workload, replay};
use crate::report::record::Record;
use crate::report::run::{Run, write_csv};
use crate::report::validity::lateness_warning;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Url;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No time given may be longer, in seconds: a day.
const LONGEST: f64 = 86_400.0;
const CONNECT: Duration = Duration::from_secs(5);
const PATH: &str = "/v1/chat/completions";

/// What to send, how, and what to write.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Where to send: http://host:port, with a path where it is not /v1/chat/completions.
    #[arg(long)]
    url: Url,
    /// Open loop: requests a second at random moments (a Poisson process); of a trace or service, its rhythm at this rate.
    #[arg(long)]
    rate: Option<f64>,
    /// Closed loop: so many clients, each of which sends its next request when its last one has ended.
    #[arg(long, conflicts_with_all = ["rate", "trace", "published"])]
    clients: Option<usize>,
    /// Send the requests of a CSV file, with the columns of the Azure LLM inference or BurstGPT traces, at their moments.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Leave out the first seconds of the trace.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, requires = "trace")]
    from: f64,
    /// Draw requests as a service was published to get them; --rate is its rate.
    #[arg(long, value_enum, conflicts_with = "trace", requires = "rate")]
    published: Option<Published>,
    /// The most tokens of prompt and of answer, as 500:256, with which a request of a trace or service counts as short.
    #[arg(long, value_name = "PROMPT:OUTPUT", default_value = "500:256", value_parser = bounds)]
    short: (u32, u32),
    /// Classes of requests, from a YAML file: classes, each with name, share, prompt_tokens and output_tokens as [least, most].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "published", "class"])]
    mix: Option<PathBuf>,
    /// A class: name=share:prompt tokens:output tokens, as short=80:25..300:16..64; may be given several times.
    #[arg(long, conflicts_with_all = ["trace", "published"])]
    class: Vec<String>,
    /// For how long requests are sent, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    duration: f64,
    /// The most requests that are sent.
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    /// Decides every prompt, length, moment and retry.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The model's name.
    #[arg(long, default_value = "simulated")]
    model: String,
    /// Ask for answers in one piece. Their first token is there when the last one is.
    #[arg(long)]
    plain: bool,
    /// Have the model go on to the output limit (vLLM, SGLang, llama.cpp), so that answers are as long as planned.
    #[arg(long)]
    ignore_eos: bool,
    /// Count an answer of another length than planned as a failure.
    #[arg(long)]
    exact: bool,
    /// How long a client waits for the end of its answer, over all attempts, in seconds. A failure counts as this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    timeout: f64,
    /// How long a client waits for one attempt before it tries again, in seconds; without it, as long as for all.
    #[arg(long, value_name = "SECONDS")]
    attempt_timeout: Option<f64>,
    /// How often clients try again after 408, 409, 429, 5xx or a broken connection: as OpenAI's and Anthropic's SDKs do.
    #[arg(long, default_value_t = 2)]
    retries: u32,
    /// Keep connections for later requests. llama.cpp's server closes them after answers, and requests may get lost.
    #[arg(long)]
    keep_alive: bool,
    /// Write the record of the run: figures, histograms, machine.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a row a request.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page with pictures.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Sends, prints the table, writes what was asked for.
///
/// # Errors
///
/// When an argument makes no sense, nothing listens there, a file cannot be written, or no request was answered.
pub async fn load(arguments: Arguments) -> Result<()> {
    let options = arguments.options()?;
    let span = seconds("--duration", arguments.duration)?;
    let plan = arguments.plan(span)?;
    let url = endpoint(&arguments.url)?;
    reachable(&url).await?;
    let bar = progress(&plan, arguments.clients, span)?;
    let outcomes = match arguments.clients {
        Some(clients) => drive_closed(&plan, clients, span, url.as_str(), &options, &bar).await?,
        None => drive(&plan, url.as_str(), &options, &bar).await?,
    };
    bar.finish_and_clear();

    let run = Run::of(&outcomes, options.timeout);
    println!("{}", run.table());
    let mut notes = arguments.notes(&plan);
    notes.extend(lateness_warning(&outcomes));
    notes.iter().for_each(|note| println!("{note}"));
    if arguments.json.is_some() || arguments.html.is_some() {
        let mut figures = run.figures()?;
        figures["loop"] = json!(if arguments.clients.is_some() { "closed" } else { "open" });
        let record = Record::new(&format!("A load on {url}"), &[arguments.seed], figures);
        if let Some(path) = &arguments.json {
            record.write(path)?;
        }
        if let Some(path) = &arguments.html {
            run.page(&record, &notes)?.write(path)?;
        }
    }
    arguments.csv.as_deref().map_or(Ok(()), |path| write_csv(&outcomes, path))?;
    for path in [&arguments.html, &arguments.json, &arguments.csv].into_iter().flatten() {
        println!("written: {}", path.display());
    }
    ensure!(run.served() > 0, "none of the {} requests had a complete answer", outcomes.len());
    Ok(())
}

impl Arguments {
    fn options(&self) -> Result<Options> {
        Ok(Options {
            timeout: seconds("--timeout", self.timeout)?,
            attempt_timeout: self
                .attempt_timeout
                .map(|given| seconds("--attempt-timeout", given))
                .transpose()?,
            max_retries: self.retries,
            keep_alive: self.keep_alive,
            exact: self.exact,
        })
    }

    fn plan(&self, span: Duration) -> Result<Vec<Planned>> {
        let style = Style {
            model: self.model.clone(),
            stream: !self.plain,
            include_usage: true,
            ignore_eos: self.ignore_eos,
        };
        ensure!(self.requests > 0, "--requests must be at least 1");
        if let Some(trace) = self.trace()? {
            let trace = trace.window(Duration::ZERO, span)?.first(self.requests)?;
            return Ok(replay(&trace, self.short, &style, self.seed));
        }
        let workload = match (&self.mix, &self.class[..]) {
            (Some(path), _) => Workload::read(path)?,
            (None, []) => Workload::mixed(),
            (None, flags) => Workload::of_flags(flags)?,
        };
        match (self.rate, self.clients) {
            (Some(rate), _) => workload.poisson(rate, self.requests, span, &style, self.seed),
            (None, Some(0)) => bail!("--clients must be at least 1"),
            (None, Some(_)) => workload.supply(self.requests, &style, self.seed),
            (None, None) => bail!("say how requests are to come: --rate, --clients, --trace or --published"),
        }
    }

    /// The trace or the published service, at its rate.
    fn trace(&self) -> Result<Option<Trace>> {
        if let (Some(service), Some(rate)) = (self.published, self.rate) {
            return service.generate(rate, self.requests, self.seed).map(Some);
        }
        let Some(path) = &self.trace else { return Ok(None) };
        ensure!(
            (0.0..=1e12).contains(&self.from),
            "--from must be 0 or more seconds; this one is {}",
            self.from
        );
        let trace = Trace::read(path)?.window(Duration::from_secs_f64(self.from), Duration::MAX)?;
        let trace = match self.rate {
            Some(rate) => trace.at_rate(rate).context("--rate")?,
            None => trace,
        };
        Ok(Some(trace))
    }

    /// What a reader of the figures has to know.
    fn notes(&self, plan: &[Planned]) -> Vec<String> {
        let mut notes = Vec::new();
        match self.clients {
            Some(clients) => notes.push(format!(
                "Closed loop: {clients} clients send one request after the other. A slow server is asked less often, so \
                 the time that others would wait for it does not show."
            )),
            None => notes.push(format!(
                "Open loop: {} requests were due at their moments, whatever the answers did; times count from then.",
                plan.len()
            )),
        }
        notes.push(format!("A request that failed counts as {} s in the quantiles.", self.timeout));
        if self.plain {
            notes.push(
                "Answers came in one piece: the first token is there when the whole answer is.".to_owned(),
            );
        }
        notes
    }
}

/// `PROMPT:OUTPUT` in tokens.
fn bounds(text: &str) -> Result<(u32, u32)> {
    let (prompt, output) = text.split_once(':').context("it should be two numbers of tokens, as 500:256")?;
    Ok((prompt.trim().parse()?, output.trim().parse()?))
}

fn seconds(flag: &str, given: f64) -> Result<Duration> {
    ensure!(
        given > 0.0 && given <= LONGEST,
        "{flag} must be above 0 and at most {LONGEST} seconds; this one is {given}"
    );
    Ok(Duration::from_secs_f64(given))
}

/// The URL with the path of the chat where it has none.
pub fn endpoint(url: &Url) -> Result<Url> {
    ensure!(
        url.scheme() == "http",
        "--url must begin with http:// (there is no TLS here); this one is {url}"
    );
    let mut url = url.clone();
    if url.path() == "/" {
        url.set_path(PATH);
    }
    Ok(url)
}

/// Fails at once where otherwise every request would.
pub async fn reachable(url: &Url) -> Result<()> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    // In a URL an IPv6 address stands in brackets.
    let place = (host.trim_start_matches('[').trim_end_matches(']'), port);
    let connected = timeout(CONNECT, TcpStream::connect(place)).await;
    connected
        .with_context(|| format!("{host}:{port} took no connection within {CONNECT:?}"))?
        .with_context(|| format!("nothing can be sent to {host}:{port}"))?;
    Ok(())
}

/// A bar that counts ended requests: towards all of an open loop; of a closed one nobody knows how many there will be.
fn progress(plan: &[Planned], clients: Option<usize>, span: Duration) -> Result<ProgressBar> {
    let (bar, template) = match clients {
        None => {
            let last = plan.last().map_or(Duration::ZERO, |planned| planned.at);
            println!("{} requests within {:.1} s, then their answers", plan.len(), last.as_secs_f64());
            (ProgressBar::new(plan.len() as u64), "{bar:40} {pos}/{len} ended, {elapsed}")
        }
        Some(clients) => {
            println!(
                "{clients} clients for {} s, or until {} requests are sent",
                span.as_secs_f64(),
                plan.len()
            );
            (ProgressBar::new_spinner(), "{spinner} {pos} ended, {elapsed}")
        }
    };
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.enable_steady_tick(Duration::from_millis(250));
    Ok(bar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::ModelServer;
    use crate::sim::preset::Preset;
    use clap::Parser;
    use serde_json::Value;
    use std::fs;
    use std::net::TcpListener;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(url: &str, flags: &[&str]) -> Result<Arguments> {
        let flags = ["rig", "--url", url].into_iter().chain(flags.iter().copied());
        Ok(Program::try_parse_from(flags)?.arguments)
    }

    async fn run(url: &str, flags: &[&str]) -> Result<()> {
        load(arguments(url, flags)?).await
    }

    #[test]
    fn a_server_is_found_by_its_address_alone() {
        let of = |url: &str| endpoint(&url.parse().unwrap());
        assert_eq!(of("http://127.0.0.1:80").unwrap().as_str(), "http://127.0.0.1/v1/chat/completions");
        assert_eq!(of("http://127.0.0.1:8000/x").unwrap().as_str(), "http://127.0.0.1:8000/x");
        assert!(of("https://127.0.0.1").unwrap_err().to_string().contains("no TLS"));
    }

    #[tokio::test]
    async fn every_way_of_sending_ends_with_answers_and_files() {
        let server = ModelServer::start(0, Preset::Gpu.spec()).await.unwrap();
        let url = format!("http://{}", server.address());
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("trace.csv");
        fs::write(&trace, "Timestamp,Request tokens,Response tokens\n0,9,2\n1,9,2\n2,900,3\n9000,1,1\n")
            .unwrap();
        let trace = trace.to_str().unwrap();
        let class = ["--class", "chat=1:5..9:2"];
        for (name, flags) in [
            ("open", [&["--rate", "200", "--requests", "5", "--exact"][..], &class].concat()),
            (
                "closed",
                [&["--clients", "2", "--requests", "5", "--keep-alive", "--plain"][..], &class].concat(),
            ),
            ("trace", vec!["--trace", trace, "--rate", "0.05", "--duration", "50", "--requests", "1"]),
            ("published", vec!["--published", "azure-code", "--rate", "50", "--requests", "2"]),
        ] {
            let path = |kind: &str| dir.path().join(format!("{name}.{kind}")).to_str().unwrap().to_owned();
            let (json, csv, html) = (path("json"), path("csv"), path("html"));
            let files = ["--json", &json, "--csv", &csv, "--html", &html];
            run(&url, &[&flags, &files[..]].concat())
                .await
                .unwrap_or_else(|error| panic!("{name}: {error:#}"));
            let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
            let classes = record["figures"]["classes"].as_object().unwrap();
            let (_, class) = classes.iter().next_back().unwrap();
            assert_eq!(class["served"], class["sent"], "{name}: {class}");
            assert!(fs::read_to_string(&csv).unwrap().lines().count() > 1, "{name}");
            assert!(fs::read_to_string(&html).unwrap().contains("<svg"), "{name}");
        }
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_refused_before_anything_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let empty = dir.path().join("empty.csv");
        fs::write(&empty, "TIMESTAMP,ContextTokens,GeneratedTokens\n").unwrap();
        let empty = empty.to_str().unwrap();
        // Nothing listens there, and it is not reached.
        let url = "http://127.0.0.1:9";
        for (url, flags, said) in [
            (url, &[][..], "--rate, --clients, --trace or --published"),
            (url, &["--rate", "0"], "above 0"),
            (url, &["--rate", "NaN"], "above 0"),
            (url, &["--rate", "inf"], "above 0"),
            (url, &["--rate=-1"], "above 0"),
            (url, &["--rate", "1e-9"], "nothing to send"),
            (url, &["--clients", "0"], "--clients"),
            (url, &["--rate", "1", "--clients", "1"], "cannot be used with"),
            (url, &["--rate", "1", "--requests", "0"], "--requests"),
            (url, &["--rate", "1", "--duration", "0"], "--duration"),
            (url, &["--rate", "1", "--duration", "NaN"], "--duration"),
            (url, &["--rate", "1", "--timeout", "1e300"], "--timeout"),
            (url, &["--rate", "1", "--attempt-timeout", "0"], "--attempt-timeout"),
            (url, &["--trace", empty], "no request"),
            (url, &["--trace", "/nowhere.csv"], "/nowhere.csv"),
            (url, &["--trace", empty, "--from=-1"], "--from"),
            (url, &["--published", "azure-conv"], "--rate"),
            (url, &["--rate", "1", "--class", "x"], "short=80"),
            (url, &["--rate", "1", "--mix", "/nowhere.yaml"], "/nowhere.yaml"),
            (url, &["--trace", empty, "--short", "5"], "500:256"),
            ("https://127.0.0.1:9", &["--rate", "1"], "http://"),
            ("nowhere", &["--rate", "1"], "--url"),
            ("http://127.0.0.1:99999", &["--rate", "1"], "--url"),
        ] {
            let error = format!("{:#}", run(url, flags).await.unwrap_err());
            assert!(error.contains(said), "{url} {flags:?}: {error}");
        }
    }

    #[tokio::test]
    async fn where_nothing_listens_is_said_at_once() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = format!("{:#}", run(&format!("http://{free}"), &["--rate", "1"]).await.unwrap_err());
        assert!(error.contains(&free.to_string()), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_answers_nothing_right_is_an_error_with_the_table_before_it() {
        let server = ModelServer::start(0, Preset::Gpu.spec()).await.unwrap();
        let url = format!("http://{}/nothing-here", server.address());
        let error = run(&url, &["--rate", "100", "--requests", "3"]).await.unwrap_err().to_string();
        assert!(error.contains("none of the 3 requests"), "{error}");
    }
}
