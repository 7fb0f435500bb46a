//! The policy as text: what the log says is in force.

use std::fmt;

use super::{Class, Fairness, Limits, OverMaxTokens, Policy, Pool, Queue};

/// One line for the log: what is in force.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { body_bytes, buffered_bytes, body_timeout, max_tokens, default_max_tokens, .. } =
            self.limits;
        write!(f, "domain {}, backend {}", self.domain, self.backend.name())?;
        if !self.pools.is_empty() {
            write!(f, ", pools {}", List(&self.pools))?;
        }
        write!(f, ", classes {}", List(&self.classes))?;
        if let Some(fairness) = &self.fairness {
            write!(f, ", in turns by {fairness}")?;
        }
        write!(
            f,
            "; max_tokens {max_tokens} ({}), default {default_max_tokens}",
            self.limits.over_max_tokens
        )?;
        write!(f, ", prompt_chars {}", Bound(self.limits.prompt_chars))?;
        write!(f, ", prompt_tokens {}", Bound(self.limits.prompt_tokens))?;
        write!(f, ", sequences {}", self.limits.sequences)?;
        write!(f, "; body_bytes {body_bytes} within {body_timeout:?}, buffered_bytes {buffered_bytes}")
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (concurrency {}", self.name, Bound(self.concurrency))?;
        budget(f, self.concurrency_tokens)?;
        f.write_str(")")
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Queue { capacity, timeout, .. } = self.queue;
        write!(f, "{} (", self.name)?;
        if let Some(pool) = &self.pool {
            write!(f, "pool {pool}, ")?;
        }
        if self.reserved > 0 {
            write!(f, "reserved {}, ", self.reserved)?;
        }
        write!(f, "concurrency {}", Bound(self.concurrency))?;
        budget(f, self.concurrency_tokens)?;
        if self.pool.is_none() && self.concurrency.is_none() && self.concurrency_tokens.is_none() {
            return f.write_str(", never waits)");
        }
        write!(f, ", queue {capacity} for {timeout:?})")
    }
}

/// The rare bounds are only told of where there are any, so that the line stays one that is read.
fn budget(f: &mut fmt::Formatter<'_>, tokens: Option<u64>) -> fmt::Result {
    match tokens {
        Some(tokens) => write!(f, ", tokens {tokens}"),
        None => Ok(()),
    }
}

impl fmt::Display for Fairness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fairness::Header(name) => write!(f, "header:{name}"),
            Fairness::User => f.write_str("body:user"),
            Fairness::Model => f.write_str("body:model"),
        }
    }
}

impl fmt::Display for OverMaxTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OverMaxTokens::Clamp => "clamp",
            OverMaxTokens::Reject => "reject",
        })
    }
}

/// Several, with commas between.
struct List<'l, T>(&'l [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// A bound that may be absent, as text.
struct Bound<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Bound<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("unbounded"),
        }
    }
}
