//! Which calls to make: words of the plugin configuration, as in `hold read class`.

/// A step: the calls for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The headers are held until the body is whole.
    Hold,
    /// The body is read.
    Read,
    /// `x-sluice-class` is set, by the body's size, so that Envoy looks for the route anew.
    Class,
    /// The headers of request and response are read.
    Headers,
    /// The clock is read in each callback of a request that the filter reads it in.
    Clock,
    /// Headers are added to the response.
    Respond,
    /// Filter state is set for the access log.
    Properties,
    /// Counters and histograms are fed.
    Metrics,
    /// A record of shared data is written as the request goes on and as it ends.
    Shared,
    /// In every other request an output limit is inserted into the body, and the content length set accordingly.
    Edit,
}

const WORDS: [(&str, Step); 10] = [
    ("hold", Step::Hold),
    ("read", Step::Read),
    ("class", Step::Class),
    ("headers", Step::Headers),
    ("clock", Step::Clock),
    ("respond", Step::Respond),
    ("properties", Step::Properties),
    ("metrics", Step::Metrics),
    ("shared", Step::Shared),
    ("edit", Step::Edit),
];

/// The steps to take, and how often each of their calls is made in place of once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    times: [u32; WORDS.len()],
}

impl Plan {
    /// No step: each callback returns at once.
    pub const NONE: Plan = Plan { times: [0; WORDS.len()] };

    /// Reads words with spaces between them; `word=3` makes its calls three times over. An error says which word is
    /// wrong and what is allowed.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let mut plan = Plan::NONE;
        for word in text.split_whitespace() {
            let (name, times) = word.split_once('=').unwrap_or((word, "1"));
            let place = WORDS.iter().position(|(known, _)| *known == name);
            let (Some(place), Ok(times @ 1..)) = (place, times.parse()) else {
                let known = WORDS.map(|(known, _)| known).join(", ");
                return Err(format!(
                    "{word:?} is no step; there are {known}, each also with =TIMES (1 or more)"
                ));
            };
            plan.times[place] = times;
        }
        for (name, step) in [("read", Step::Read), ("class", Step::Class), ("edit", Step::Edit)] {
            if plan.has(step) && !plan.has(Step::Hold) {
                return Err(format!("{name} needs hold: without it body and headers have gone on by then"));
            }
        }
        Ok(plan)
    }

    /// Whether a step is taken at all.
    pub fn has(&self, step: Step) -> bool {
        self.times(step) > 0
    }

    /// How often each call of a step is made.
    pub fn times(&self, step: Step) -> u32 {
        self.times[step as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_its_step() {
        for (place, (word, step)) in WORDS.into_iter().enumerate() {
            assert_eq!(step as usize, place);
            let plan = Plan::parse(&format!("hold {word}")).unwrap();
            assert!(plan.has(step) && plan.has(Step::Hold));
            assert_eq!(plan.times.iter().sum::<u32>(), if step == Step::Hold { 1 } else { 2 });
        }
        assert_eq!(Plan::parse(""), Ok(Plan::NONE));
        assert_eq!(Plan::parse("clock=20").unwrap().times(Step::Clock), 20);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for bad in ["hodl", "clock=0", "clock=many", "=3", "read", "headers edit"] {
            let error = Plan::parse(bad).unwrap_err();
            assert!(error.contains(bad.split(' ').next_back().unwrap()), "{error}");
        }
    }
}
