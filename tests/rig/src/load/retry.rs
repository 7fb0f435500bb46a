//! When a client tries again: the rules of OpenAI's and Anthropic's SDKs.

use super::outcome::Failure;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use rand::Rng;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// The first wait without a word from the server; it doubles with each retry.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// So much of such a wait may be taken off by chance.
const JITTER: f64 = 0.25;
/// Told to wait longer than this, clients give up.
const LONGEST_OBEYED: Duration = Duration::from_secs(120);

/// What the server said about trying again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// `x-should-retry`, which overrules the status.
    pub should_retry: Option<bool>,
    /// `retry-after-ms`, else `retry-after`, in seconds or as a date.
    pub after: Option<Duration>,
}

impl Advice {
    /// Reads an answer's headers; what makes no sense there counts as absent.
    pub fn of(headers: &HeaderMap) -> Advice {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let number = |name: &str| text(name).and_then(|text| text.trim().parse::<f64>().ok());
        let seconds = number("retry-after-ms").map(|millis| millis / 1e3).or_else(|| number("retry-after"));
        let until = || {
            let date = rfc2822::parse(text("retry-after")?).ok()?;
            Some(date.timestamp().duration_since(Timestamp::now()).as_secs_f64())
        };
        Advice {
            should_retry: match text("x-should-retry") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            after: seconds.or_else(until).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }
}

/// How long a client waits before its next attempt; none when it gives up. `retries` is how often it has tried again so
/// far. Once an answer has begun, nobody asks; `failure` is then the end.
pub fn wait(failure: &Failure, advice: &Advice, retries: u32, random: &mut impl Rng) -> Option<Duration> {
    let retried = match failure {
        Failure::Status(408 | 409 | 429 | 500.., _)
        | Failure::Unreachable
        | Failure::Broken
        | Failure::TimedOut => true,
        Failure::Status(..) | Failure::Incomplete => false,
    };
    if !advice.should_retry.unwrap_or(retried) {
        return None;
    }
    match advice.after {
        Some(after) if after > LONGEST_OBEYED => None,
        // Obeyed to the letter: clients add no jitter of their own.
        Some(after) if !after.is_zero() => Some(after),
        _ => {
            let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(retries)).min(LONGEST_WAIT);
            Some(doubled.mul_f64(1.0 - JITTER * random.random::<f64>()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn advice(headers: &[(&'static str, &str)]) -> Advice {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Advice::of(&headers.collect())
    }

    fn waits(failure: &Failure, advice: &Advice, retries: u32) -> Option<Duration> {
        wait(failure, advice, retries, &mut ChaCha8Rng::seed_from_u64(1))
    }

    fn status(status: u16) -> Failure {
        Failure::Status(status, String::new())
    }

    #[test]
    fn some_statuses_and_every_broken_connection_are_tried_again() {
        let retried = |failure| waits(&failure, &Advice::default(), 0).is_some();
        assert!([408, 409, 429, 500, 502, 503, 529].into_iter().all(|code| retried(status(code))));
        assert!(![400, 401, 404, 413, 415, 422].into_iter().any(|code| retried(status(code))));
        assert!([Failure::Broken, Failure::Unreachable, Failure::TimedOut].into_iter().all(retried));
        assert!(!retried(Failure::Incomplete));
    }

    #[test]
    fn the_server_has_the_last_word() {
        assert_eq!(waits(&status(503), &advice(&[("x-should-retry", "false")]), 0), None);
        assert!(waits(&status(400), &advice(&[("x-should-retry", "true")]), 0).is_some());
        for (headers, millis) in [
            (&[("retry-after", "1")][..], Some(1_000)),
            (&[("retry-after", "0.4")], Some(400)),
            (&[("retry-after", "7"), ("retry-after-ms", "300")], Some(300)),
            (&[("retry-after", "121")], None),
        ] {
            assert_eq!(
                waits(&status(429), &advice(headers), 0),
                millis.map(Duration::from_millis),
                "{headers:?}"
            );
        }
    }

    #[test]
    fn a_date_is_a_time_to_wait() {
        let soon = Timestamp::now() + Duration::from_secs(60);
        let date = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&soon).unwrap();
        let after = advice(&[("retry-after", &date)]).after.unwrap();
        assert!((Duration::from_secs(30)..=Duration::from_secs(60)).contains(&after), "{after:?}");
        assert_eq!(advice(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]).after, None);
    }

    #[test]
    fn without_a_word_waits_double_up_to_a_limit() {
        for headers in
            [&[][..], &[("retry-after", "0")], &[("retry-after", "soon")], &[("retry-after", "-1")]]
        {
            for (retries, most) in [(0, 500), (1, 1_000), (3, 4_000), (4, 8_000), (50, 8_000)] {
                let waited = waits(&status(429), &advice(headers), retries).unwrap();
                let most = Duration::from_millis(most);
                assert!((most.mul_f64(0.75)..=most).contains(&waited), "{headers:?} {retries} {waited:?}");
            }
        }
    }
}
