//! Short requests beside long ones: before llama.cpp's server, and in virtual time as the simulated one says.

use super::{new_table, ratio};
use crate::advise::ask::Ask;
use crate::advise::bound::beside;
use crate::compare::figures::quantile;
use crate::compare::policy::{self, Short};
use crate::compare::real::{Size, segment};
use crate::compare::segment::{Segment, send};
use crate::compare::stage::{Door, Setting};
use crate::compare::target::Target;
use crate::load::outcome::Outcome;
use crate::load::traffic::{Class, Planned};
use crate::peers::llama::Llama;
use crate::sim::spec::Spec;
use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// Slots, and how many long requests beside the short ones in them.
const CASES: [(usize, &[usize]); 2] = [(2, &[0, 1]), (4, &[2, 3])];
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// In virtual time no short request meets another, and so many come that each phase of the long ones is met.
const APART: Duration = Duration::from_secs(20);
const SIMULATED: u32 = 1_000;
/// A message's way from the client to the server, or back.
const HOP: Duration = Duration::from_micros(100);

/// One case, of short requests in seconds.
struct Case {
    slots: usize,
    longs: usize,
    /// P50 of the first token; mean of the whole answer, which has no middle: it is one time where no long prompt is
    /// read meanwhile, and another one where one is.
    measured: [f64; 2],
    simulated: [f64; 2],
}

/// Measures all cases before llama.cpp's server, simulates them as `spec` with as many sequences, prints both, and
/// returns them for a record.
pub async fn closeness(llama: &Llama, spec: Spec, shorts: usize, threads: usize) -> Result<Value> {
    let mut cases = Vec::new();
    for (slots, longs) in CASES {
        let server = llama.start(slots, threads).await?;
        for &longs in longs {
            let segment = segment(Size { seed: 1, rounds: 1, shorts }, 0, longs);
            let measured = measured(&segment, server.address(), slots).await?;
            let spec = Spec { max_num_seqs: slots, ..spec };
            let tokens = prompt_tokens(&segment, server.address()).await?;
            let simulated = simulated(spec, &segment, tokens, longs)?;
            println!("{slots} slots, {longs} long: done");
            cases.push(Case { slots, longs, measured, simulated });
        }
    }
    let head = ["slots", "long beside", "first token P50", "simulated", "", "whole, mean", "simulated", ""];
    let mut table = new_table(head);
    for Case { slots, longs, measured, simulated } in &cases {
        let seconds = |value: f64| format!("{value:.3} s");
        let both =
            |at: usize| [seconds(measured[at]), seconds(simulated[at]), ratio(simulated[at], measured[at])];
        table.add_row([vec![slots.to_string(), longs.to_string()], both(0).into(), both(1).into()].concat());
    }
    println!("{table}");
    let rows = cases.iter().map(|case| {
        json!({
            "slots": case.slots, "long": case.longs,
            "first_token_p50": case.measured[0], "first_token_p50_simulated": case.simulated[0],
            "whole_mean": case.measured[1], "whole_mean_simulated": case.simulated[1],
        })
    });
    Ok(rows.collect())
}

async fn measured(segment: &Segment, server: SocketAddr, slots: usize) -> Result<[f64; 2]> {
    let short = Short { prompt_chars: 1, max_tokens: 1 };
    let setting = Setting {
        servers: vec![server],
        slots,
        policy: policy::shared("llamacpp", slots, 1, short),
        short,
        queue: 0,
        keep_alive: false,
    };
    let mut door = Door::open(Target::Direct, &setting).await?;
    let round = send(segment, &mut door, &[server], LOOK_EVERY, &ProgressBar::hidden()).await?;
    let shorts: Vec<&Outcome> =
        round.outcomes.iter().filter(|outcome| outcome.class == Class::Short).collect();
    ensure!(shorts.iter().all(|outcome| outcome.result.is_ok()), "a short request failed");
    let first = shorts.iter().filter_map(|one| one.result.as_ref().ok()).map(|served| served.first_token);
    let mut first: Vec<f64> = first.map(|time| time.as_secs_f64()).collect();
    first.sort_by(f64::total_cmp);
    let whole: f64 = shorts.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
    Ok([quantile(&first, 0.5), whole / shorts.len() as f64])
}

/// Tokens of a short and of a long prompt, as the server counts them.
async fn prompt_tokens(segment: &Segment, server: SocketAddr) -> Result<[u32; 2]> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let mut tokens = [0; 2];
    for (tokens, planned) in tokens.iter_mut().zip([segment.plan.first(), segment.supply.first()]) {
        let mut body: Value = serde_json::from_str(&planned.context("no request")?.body)?;
        body["stream"] = json!(false);
        body["max_tokens"] = json!(1);
        if let Some(body) = body.as_object_mut() {
            body.remove("stream_options");
        }
        let request = http.post(format!("http://{server}/v1/chat/completions"));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer: Value = serde_json::from_str(&request.send().await?.text().await?)?;
        let counted = answer["usage"]["prompt_tokens"].as_u64();
        *tokens = u32::try_from(counted.with_context(|| format!("no usage.prompt_tokens: {answer}"))?)?;
    }
    Ok(tokens)
}

/// The same in virtual time: prompts of as many tokens as the server counted.
fn simulated(spec: Spec, segment: &Segment, [short, long]: [u32; 2], longs: usize) -> Result<[f64; 2]> {
    let ask = |planned: &Planned, prompt_tokens, place: u32| Ask {
        at: APART * place + planned.at,
        class: planned.class,
        prompt_tokens,
        prompt_chars: 0,
        output_tokens: planned.output_tokens,
        max_tokens: Some(planned.output_tokens),
    };
    let shorts = segment.plan.iter().cycle().zip(0..SIMULATED);
    let shorts = shorts.map(|(planned, place)| ask(planned, short, place));
    let all: Vec<Ask> = shorts.chain(segment.supply.iter().map(|planned| ask(planned, long, 0))).collect();
    let found = beside(spec, &all, longs, HOP)?.short;
    Ok([found.first_token.quantile(0.5).as_secs_f64(), found.whole.mean().as_secs_f64()])
}
