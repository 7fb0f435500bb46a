//! Traffic drawn from what was published about real services, for when there is no trace at hand.

use super::trace::{Arrival, Trace};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};
use std::time::Duration;

/// A service whose lengths and rhythm are known.
///
/// Quantiles of the lengths and the variation of the gaps are those of the Azure LLM inference trace 2023 (CC BY 4.0;
/// Patel et al., "Splitwise", ISCA 2024). That gaps are drawn from a gamma distribution, whose variation says how bursty
/// the traffic is, follows Wang et al., "BurstGPT", KDD 2025. Each figure is drawn for itself: in the trace, too, the
/// lengths of prompt and answer hardly hang together (correlation -0.11 and 0.00).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Published {
    /// A conversation service: 19,366 requests.
    AzureConv,
    /// A coding service, with long prompts, short answers and bursts: 8,819 requests.
    AzureCode,
}

/// The parts of the requests for which [`Shape`] says how long they are at most.
const PARTS: [f64; 11] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

struct Shape {
    prompt: [f64; PARTS.len()],
    output: [f64; PARTS.len()],
    /// The standard deviation of the gaps between requests as a multiple of their mean: the median over stretches of
    /// 300 requests, so that the changes of the hour do not count. 1 is a Poisson process.
    variation: f64,
}

impl Published {
    /// `count` requests at `rate` a second, decided by `seed`.
    ///
    /// # Errors
    ///
    /// When the rate is not above 0, or there is to be no request.
    pub fn generate(self, rate: f64, count: usize, seed: u64) -> Result<Trace> {
        ensure!(
            rate.is_finite() && rate > 0.0,
            "a rate must be above 0 requests a second; this one is {rate}"
        );
        let Shape { prompt, output, variation } = self.shape();
        let shape = variation.powi(-2);
        let gaps =
            Gamma::new(shape, 1.0 / (rate * shape)).with_context(|| format!("gaps at a rate of {rate}"))?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut arrivals, mut at) = (Vec::with_capacity(count), 0.0);
        for _ in 0..count {
            let due = Duration::try_from_secs_f64(at)
                .with_context(|| format!("{count} requests at {rate} a second take too long"))?;
            arrivals.push(Arrival {
                at: due,
                prompt_tokens: draw(&prompt, &mut random),
                output_tokens: draw(&output, &mut random),
            });
            at += gaps.sample(&mut random);
        }
        Trace::new(arrivals)
    }

    fn shape(self) -> Shape {
        match self {
            Published::AzureConv => Shape {
                prompt: [2., 29., 181., 207., 396., 1020., 1189., 2734., 4083., 4142., 14050.],
                output: [7., 16., 41., 54., 85., 129., 395., 424., 451., 601., 1000.],
                variation: 1.02,
            },
            Published::AzureCode => Shape {
                prompt: [3., 17., 75., 147., 578., 1469., 2744., 5186., 7302., 7436., 7437.],
                output: [6., 6., 6., 7., 9., 13., 24., 55., 90., 249., 1899.],
                variation: 8.06,
            },
        }
    }
}

/// A length: between two quantiles, all ratios are equally likely.
fn draw(quantiles: &[f64; PARTS.len()], random: &mut ChaCha8Rng) -> u32 {
    let part: f64 = random.random();
    let above = PARTS.partition_point(|&known| known <= part).clamp(1, PARTS.len() - 1);
    let (low, high) = (quantiles[above - 1], quantiles[above]);
    let between = (part - PARTS[above - 1]) / (PARTS[above] - PARTS[above - 1]);
    (low * (high / low).powf(between)).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const ALL: [(Published, &str); 2] =
        [(Published::AzureConv, "azure2023-conv.csv"), (Published::AzureCode, "azure2023-code.csv")];

    fn median(lengths: impl Iterator<Item = u32>) -> f64 {
        let mut lengths: Vec<u32> = lengths.collect();
        lengths.sort_unstable();
        f64::from(lengths[lengths.len() / 2])
    }

    #[test]
    fn the_seed_decides_everything() {
        let generate = |seed| Published::AzureConv.generate(2.0, 50, seed).unwrap();
        assert_eq!(generate(1), generate(1));
        assert_ne!(generate(1), generate(2));
    }

    #[test]
    fn what_is_drawn_has_the_rate_the_lengths_and_the_rhythm() {
        for (published, _) in ALL {
            let trace = published.generate(5.0, 100_000, 1).unwrap();
            let rate = trace.rate().unwrap();
            assert!((4.6..5.4).contains(&rate), "{rate}");
            let gaps = trace.arrivals().windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64());
            let squares: f64 = gaps.clone().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
            let variation = (squares * rate * rate - 1.0).sqrt();
            let Shape { prompt, output, variation: published } = published.shape();
            assert!((0.9..1.1).contains(&(variation / published)), "{variation}");
            for (drawn, shape) in [
                (median(trace.arrivals().iter().map(|arrival| arrival.prompt_tokens)), prompt),
                (median(trace.arrivals().iter().map(|arrival| arrival.output_tokens)), output),
            ] {
                assert!((0.95..1.05).contains(&(drawn / shape[5])), "{drawn}");
            }
        }
    }

    #[test]
    fn the_samples_are_of_the_kind() {
        for (published, file) in ALL {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(file);
            let trace = Trace::read(&path).unwrap();
            assert_eq!((trace.arrivals().len() % 1_000, trace.left_out()), (0, 0));
            let Shape { prompt, .. } = published.shape();
            let sampled = median(trace.arrivals().iter().map(|arrival| arrival.prompt_tokens));
            // The first minutes are not the whole hour.
            assert!((0.5..2.0).contains(&(sampled / prompt[5])), "{sampled}");
        }
    }

    #[test]
    fn a_rate_that_is_none_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(Published::AzureConv.generate(rate, 3, 1).is_err(), "{rate}");
        }
        assert!(Published::AzureConv.generate(1.0, 0, 1).is_err());
    }
}
