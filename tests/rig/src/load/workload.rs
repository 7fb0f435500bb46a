//! A workload: classes of requests, their shares and lengths, and when they come.

use super::request::{CHARS_PER_TOKEN, Style};
use super::trace::{Arrival, Trace};
use super::traffic::{Class, Planned};
use anyhow::{Context, Result, bail, ensure};
use rand::distr::weighted::WeightedIndex;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The longest prompt or answer that is sent, in tokens; beyond that a typing error is likelier than a wish.
const MOST_TOKENS: u32 = 10_000_000;

/// Classes of requests, each with its share of all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// At least one, with names of their own.
    pub classes: Vec<Kind>,
}

/// A class: how many of all requests, and how long they are.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// What reports call it; best the name of the policy's class for it.
    pub name: String,
    /// Its part of the requests, in proportion to the other classes' shares.
    pub share: f64,
    /// The shortest and the longest prompt, in tokens; all lengths between are equally likely.
    pub prompt_tokens: [u32; 2],
    /// The same of answers.
    pub output_tokens: [u32; 2],
}

impl Workload {
    /// Four short chat turns to one long document, as long as those of the demo.
    pub fn mixed() -> Workload {
        let kind = |name: &str, share, prompt_tokens, output_tokens| Kind {
            name: name.to_owned(),
            share,
            prompt_tokens,
            output_tokens,
        };
        Workload {
            classes: vec![
                kind("short", 80.0, [25, 300], [16, 64]),
                kind("long", 20.0, [2_500, 5_000], [350, 550]),
            ],
        }
    }

    /// Reads a YAML file: `classes`, each with `name`, `share`, `prompt_tokens: [least, most]` and `output_tokens` likewise.
    ///
    /// # Errors
    ///
    /// With the file, when it cannot be read; with all that is wrong in it.
    pub fn read(path: &Path) -> Result<Workload> {
        let read = || {
            let workload: Workload = serde_norway::from_str(&fs::read_to_string(path)?)?;
            workload.checked()
        };
        read().with_context(|| format!("workload {}", path.display()))
    }

    /// Reads classes as flags give them: `name=share:prompt:output`, lengths in tokens as `25..300` or `16`.
    ///
    /// # Errors
    ///
    /// With all that is wrong.
    pub fn of_flags(flags: &[String]) -> Result<Workload> {
        let classes = flags.iter().map(|flag| {
            kind(flag)
                .with_context(|| format!("{flag:?} is no class; it should be as short=80:25..300:16..64"))
        });
        Workload { classes: classes.collect::<Result<_>>()? }.checked()
    }

    fn checked(self) -> Result<Workload> {
        let mut mistakes = Vec::new();
        if self.classes.is_empty() {
            mistakes.push("classes: there must be at least one".to_owned());
        }
        let mut names = BTreeSet::new();
        for Kind { name, share, prompt_tokens, output_tokens } in &self.classes {
            if name.is_empty() || !names.insert(name) {
                mistakes.push(format!("classes.{name}.name: every class needs a name of its own"));
            }
            if !(share.is_finite() && *share > 0.0) {
                mistakes.push(format!("classes.{name}.share: must be above 0; this one is {share}"));
            }
            for (field, [least, most]) in [("prompt_tokens", prompt_tokens), ("output_tokens", output_tokens)]
            {
                if !(1 <= *least && least <= most && *most <= MOST_TOKENS) {
                    mistakes.push(format!(
                        "classes.{name}.{field}: must be [least, most] with 1 <= least <= most <= {MOST_TOKENS}; \
                         this one is [{least}, {most}]"
                    ));
                }
            }
        }
        ensure!(mistakes.is_empty(), "{}", mistakes.join("; "));
        Ok(self)
    }

    /// Requests at independent random moments, `rate` a second (a Poisson process), until there are `count` of them or
    /// `span` is over; decided by `seed`.
    ///
    /// # Errors
    ///
    /// When the rate is not above 0, or none comes within the span.
    pub fn poisson(
        &self,
        rate: f64,
        count: usize,
        span: Duration,
        style: &Style,
        seed: u64,
    ) -> Result<Vec<Planned>> {
        ensure!(
            rate.is_finite() && rate > 0.0,
            "a rate must be above 0 requests a second; this one is {rate}"
        );
        let gaps = Exp::new(rate).with_context(|| format!("gaps at a rate of {rate}"))?;
        let mut draw = Draw::new(self, style, seed)?;
        let (mut plan, mut at) = (Vec::new(), 0.0);
        loop {
            at += gaps.sample(&mut draw.random);
            match Duration::try_from_secs_f64(at) {
                Ok(due) if due < span && plan.len() < count => plan.push(draw.request(due)),
                _ => break,
            }
        }
        ensure!(
            !plan.is_empty(),
            "at {rate} requests a second none comes within {span:?}: there is nothing to send"
        );
        Ok(plan)
    }

    /// Requests for clients that send one after the other; decided by `seed`.
    ///
    /// # Errors
    ///
    /// When there is to be none.
    pub fn supply(&self, count: usize, style: &Style, seed: u64) -> Result<Vec<Planned>> {
        ensure!(count > 0, "there must be at least one request to send");
        let mut draw = Draw::new(self, style, seed)?;
        Ok((0..count).map(|_| draw.request(Duration::ZERO)).collect())
    }
}

/// The requests of a trace, with prompts of as many tokens as were there; `short` says up to how many tokens of prompt
/// and answer a request counts as short.
pub fn replay(trace: &Trace, short: (u32, u32), style: &Style, seed: u64) -> Vec<Planned> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let planned = |&Arrival { at, prompt_tokens, output_tokens }: &Arrival| {
        let fits = prompt_tokens <= short.0 && output_tokens <= short.1;
        let class = if fits { Class::Short } else { Class::Long };
        let body = style.body(&mut random, chars(prompt_tokens), output_tokens);
        Planned { at, class, output_tokens, body }
    };
    trace.arrivals().iter().map(planned).collect()
}

/// `least..most`, or one number for both.
fn range(text: &str) -> Result<[u32; 2]> {
    let number = |text: &str| {
        text.trim().parse::<u32>().ok().with_context(|| format!("{text:?} is no whole number of tokens"))
    };
    match text.split_once("..") {
        Some((least, most)) => Ok([number(least)?, number(most.trim_start_matches('='))?]),
        None => Ok([number(text)?; 2]),
    }
}

fn kind(flag: &str) -> Result<Kind> {
    let (name, rest) = flag.split_once('=').context("it has no =")?;
    let [share, prompt, output] = rest.split(':').collect::<Vec<_>>()[..] else {
        bail!("after the = there must be three parts with : between them");
    };
    Ok(Kind {
        name: name.trim().to_owned(),
        share: share.trim().parse().with_context(|| format!("the share {share:?} is no number"))?,
        prompt_tokens: range(prompt)?,
        output_tokens: range(output)?,
    })
}

fn chars(tokens: u32) -> usize {
    (tokens as usize).saturating_mul(CHARS_PER_TOKEN)
}

/// Draws requests of a workload.
struct Draw<'a> {
    random: ChaCha8Rng,
    which: WeightedIndex<f64>,
    classes: Vec<(Class, &'a Kind)>,
    style: &'a Style,
}

impl<'a> Draw<'a> {
    fn new(workload: &'a Workload, style: &'a Style, seed: u64) -> Result<Draw<'a>> {
        let which = WeightedIndex::new(workload.classes.iter().map(|kind| kind.share))
            .context("shares of the classes")?;
        let classes = workload.classes.iter().map(|kind| (Class::of(&kind.name), kind)).collect();
        Ok(Draw { random: ChaCha8Rng::seed_from_u64(seed), which, classes, style })
    }

    fn request(&mut self, at: Duration) -> Planned {
        let (class, kind) = self.classes[self.which.sample(&mut self.random)];
        let mut draw = |[least, most]: [u32; 2]| self.random.random_range(least..=most);
        let (prompt_tokens, output_tokens) = (draw(kind.prompt_tokens), draw(kind.output_tokens));
        let body = self.style.body(&mut self.random, chars(prompt_tokens), output_tokens);
        Planned { at, class, output_tokens, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn plan(rate: f64, seed: u64) -> Result<Vec<Planned>> {
        Workload::mixed().poisson(rate, 10_000, MINUTE, &Style::default(), seed)
    }

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(plan(2.0, 1).unwrap(), plan(2.0, 1).unwrap());
        assert_ne!(plan(2.0, 1).unwrap(), plan(2.0, 2).unwrap());
    }

    #[test]
    fn requests_come_at_their_rate_and_in_their_shares() {
        let plan = plan(20.0, 1).unwrap();
        assert!(
            plan.is_sorted_by_key(|request| request.at) && plan.iter().all(|request| request.at < MINUTE)
        );
        // 1,200 are expected; five standard deviations are 173.
        assert!((1_027..1_373).contains(&plan.len()), "{}", plan.len());
        let short =
            plan.iter().filter(|request| request.class == Class::Short).count() as f64 / plan.len() as f64;
        assert!((0.74..0.86).contains(&short), "{short}");
        for request in &plan {
            let lengths = if request.class == Class::Short { 16..=64 } else { 350..=550 };
            assert!(lengths.contains(&request.output_tokens));
        }
        let few = Workload::mixed().poisson(20.0, 7, MINUTE, &Style::default(), 1).unwrap();
        assert_eq!(few[..], plan[..7]);
    }

    #[test]
    fn flags_and_files_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mix.yaml");
        let yaml = "classes:\n  - {name: chat, share: 0.9, prompt_tokens: [10, 20], output_tokens: [5, 5]}\n";
        fs::write(&path, yaml).unwrap();
        let file = Workload::read(&path).unwrap();
        assert_eq!(file, Workload::of_flags(&["chat=0.9:10..20:5".into()]).unwrap());
        let supply = file.supply(3, &Style::default(), 1).unwrap();
        assert!(supply.len() == 3 && supply.iter().all(|request| request.class.name() == "chat"));
    }

    #[test]
    fn the_file_in_the_docs_is_what_is_sent_without_one() {
        let docs = fs::read_to_string(crate::envoy::root().join("docs/rig.md")).unwrap();
        let yaml = docs.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let path = tempfile::NamedTempFile::new().unwrap();
        fs::write(&path, yaml).unwrap();
        assert_eq!(Workload::read(path.path()).unwrap(), Workload::mixed());
    }

    #[test]
    fn all_mistakes_are_named() {
        for (flags, parts) in [
            (&[][..], &["at least one"][..]),
            (&["chat"], &["\"chat\"", "no =", "short=80"]),
            (&["chat=1:2"], &["three parts"]),
            (&["chat=x:2:3"], &["\"x\""]),
            (&["chat=1:2..y:3"], &["\"y\""]),
            (
                &["a=0:1:1", "b=NaN:1:1", "c=-1:1:1"],
                &["classes.a.share", "classes.b.share", "classes.c.share"],
            ),
            (
                &["a=1:0:1", "b=1:5..4:1", "c=1:1:4000000000"],
                &["a.prompt_tokens", "b.prompt_tokens", "c.output_tokens"],
            ),
            (&["a=1:1:1", "a=1:1:1"], &["name of its own"]),
        ] {
            let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
            let error = format!("{:#}", Workload::of_flags(&flags).unwrap_err());
            assert!(parts.iter().all(|part| error.contains(part)), "{flags:?}: {error}");
        }
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            assert!(plan(rate, 1).is_err(), "{rate}");
        }
        assert!(Workload::mixed().supply(0, &Style::default(), 1).is_err());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mix.yaml");
        fs::write(&path, "classes:\n  - {name: a, shares: 1}\n").unwrap();
        let error = format!("{:#}", Workload::read(&path).unwrap_err());
        assert!(error.contains("mix.yaml") && error.contains("shares"), "{error}");
    }

    #[test]
    fn a_trace_is_replayed_with_its_lengths() {
        let arrival = |millis, prompt_tokens, output_tokens| Arrival {
            at: Duration::from_millis(millis),
            prompt_tokens,
            output_tokens,
        };
        let trace = Trace::new(vec![arrival(0, 500, 256), arrival(5, 501, 1), arrival(9, 1, 257)]).unwrap();
        let plan = replay(&trace, (500, 256), &Style::default(), 1);
        let classes: Vec<_> = plan.iter().map(|request| request.class).collect();
        assert_eq!(classes, [Class::Short, Class::Long, Class::Long]);
        let body: serde_json::Value = serde_json::from_str(&plan[0].body).unwrap();
        assert_eq!(body["messages"][0]["content"].as_str().unwrap().len(), 2_000);
        assert_eq!((plan[1].at, plan[2].output_tokens), (Duration::from_millis(5), 257));
    }
}
