//! The output limits of one body: each object that holds one is brought under the ceiling by itself.

use super::{Action, ClampRefusal};
use crate::core::body::{Amount, Edit, Holder, Limit, Sway, View};
use crate::core::policy::{Limits, OverMaxTokens};

/// Bounds each object that holds a limit, or has to: the largest limit in force, and the most that was done.
pub(super) fn every_holder(
    view: &View,
    limits: &Limits,
    edits: &mut Vec<Edit>,
) -> Result<(u64, Action), ClampRefusal> {
    let mut most = None;
    let (mut rest, mut minima) = (&view.limits[..], &view.min_tokens[..]);
    for (place, holder) in view.holders.iter().enumerate() {
        let (in_force, action) = bound(holder, take_of(&mut rest, place), limits, edits)?;
        for minimum in take_of(&mut minima, place) {
            // Backends refuse a minimum over the maximum; the client could not know that we would lower it.
            if action != Action::Kept && matches!(minimum.amount, Amount::Count(min) if min > in_force) {
                edits.push(Edit { span: minimum.span.clone(), text: in_force.to_string() });
            }
        }
        let (largest, done) = most.unwrap_or((0, action));
        most = Some((in_force.max(largest), if done == Action::Kept { action } else { done }));
    }
    // Without a holder the backend is going to refuse the body; until it does, the request is not a small one.
    Ok(most.unwrap_or((limits.max_tokens, Action::Kept)))
}

/// Those of the holder at `place`, which stand at the start of what is left.
fn take_of<'l>(rest: &mut &'l [Limit], place: usize) -> &'l [Limit] {
    let (these, others) = rest.split_at(rest.partition_point(|limit| limit.holder <= place));
    *rest = others;
    these
}

/// Brings every spelling in one object under the ceiling. Backends disagree on which of two counts, so the larger one
/// is in force, and what is not positive counts as the ceiling. Where the backend is not sure to see any of them, the
/// client's wish goes in, or else the default.
fn bound(
    holder: &Holder,
    these: &[Limit],
    limits: &Limits,
    edits: &mut Vec<Edit>,
) -> Result<(u64, Action), ClampRefusal> {
    let (mut in_force, mut action, mut wish, mut sure) = (0, Action::Kept, None, false);
    for limit in these.iter().filter(|limit| limit.amount != Amount::Unset) {
        match limit.sway {
            Sway::Set => sure = true,
            Sway::Perhaps | Sway::Wish => {
                wish = Some(wish.map_or(limit, |least: &Limit| smaller(least, limit)));
            }
        }
        if limit.sway == Sway::Wish {
            continue;
        }
        let Amount::Count(asked) = limit.amount else {
            in_force = limits.max_tokens;
            continue;
        };
        let bounded = under(limit, asked, limits)?;
        in_force = in_force.max(bounded);
        if asked > bounded {
            action = Action::Clamped;
        }
        // A string is a number to one backend and nothing to the next, so it becomes one to all.
        if asked > bounded || limit.quoted {
            edits.push(Edit { span: limit.span.clone(), text: bounded.to_string() });
        }
    }
    if sure {
        return Ok((in_force, action));
    }
    let value = match wish {
        Some(limit @ Limit { amount: Amount::Count(asked), .. }) => {
            let value = under(limit, *asked, limits)?;
            if value < *asked {
                action = Action::Clamped;
            }
            value
        }
        _ => {
            action = Action::Defaulted;
            limits.default_max_tokens.min(limits.max_tokens)
        }
    };
    edits.push(put_in(holder, these, value));
    Ok((in_force.max(value), action))
}

/// What is left of `asked` under the ceiling.
fn under(limit: &Limit, asked: u64, limits: &Limits) -> Result<u64, ClampRefusal> {
    let ceiling = limits.max_tokens;
    if asked > ceiling && limits.over_max_tokens == OverMaxTokens::Reject {
        return Err(ClampRefusal::MaxTokensTooLarge { param: limit.name, asked, limit: ceiling });
    }
    Ok(asked.min(ceiling))
}

/// The smaller of two wishes, whatever is no number of tokens being none.
fn smaller<'l>(one: &'l Limit, other: &'l Limit) -> &'l Limit {
    match (one.amount, other.amount) {
        (Amount::Count(one), Amount::Count(more)) if one <= more => {}
        (_, Amount::Count(_)) => return other,
        _ => {}
    }
    one
}

/// The edit that gives an object its limit: in place of the `null` that the backend would read, or of nothing.
fn put_in(holder: &Holder, these: &[Limit], value: u64) -> Edit {
    let mut nulls =
        these.iter().filter(|limit| limit.sway == Sway::Set && limit.amount == Amount::Unset).peekable();
    let first = nulls.peek().copied().filter(|_| !holder.inject.strict);
    match nulls.find(|limit| limit.name == holder.inject.name).or(first) {
        Some(null) => Edit { span: null.span.clone(), text: value.to_string() },
        None => holder.put_in(value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, limits};
    use super::*;
    use crate::core::body::Backend;

    #[test]
    fn limits_are_bounded_wherever_the_dialect_has_them() {
        use Action::{Clamped, Defaulted, Kept};
        use Backend::{LlamaCpp, Ollama, OpenAi, Sglang, Tgi, Vllm};
        for (name, backend, before, after, in_force, action) in [
            ("tgi", Tgi, "{}", r#"{"parameters":{"max_new_tokens":256,"do_sample":true}}"#, 256, Defaulted),
            ("tgi", Tgi, r#"{"parameters":{}}"#, r#"{"parameters":{"max_new_tokens":256}}"#, 256, Defaulted),
            ("tgi", Tgi, r#"{"parameters":null}"#, r#"{"parameters":null}"#, 1024, Kept),
            (
                "tgi",
                Tgi,
                r#"{"parameters":{"max_new_tokens":2000}}"#,
                r#"{"parameters":{"max_new_tokens":1024}}"#,
                1024,
                Clamped,
            ),
            (
                "tgi_vertex",
                Tgi,
                r#"{"instances":[{},{"parameters":null},{"inputs":"a","parameters":{"x":1}},{"parameters":{"max_new_tokens":7}}]}"#,
                r#"{"instances":[{"parameters":{"max_new_tokens":256,"do_sample":true}},{"parameters":{"max_new_tokens":256,"do_sample":true}},{"inputs":"a","parameters":{"max_new_tokens":256,"x":1}},{"parameters":{"max_new_tokens":7}}]}"#,
                256,
                Defaulted,
            ),
            (
                "sglang",
                Sglang,
                r#"{"text":"a"}"#,
                r#"{"sampling_params":{"max_new_tokens":256},"text":"a"}"#,
                256,
                Defaulted,
            ),
            (
                "sglang",
                Sglang,
                r#"{"sampling_params":[{"max_new_tokens":5000,"min_new_tokens":2000},{"max_new_tokens":null,"min_new_tokens":300}]}"#,
                r#"{"sampling_params":[{"max_new_tokens":1024,"min_new_tokens":1024},{"max_new_tokens":256,"min_new_tokens":256}]}"#,
                1024,
                Clamped,
            ),
            (
                "sglang",
                Sglang,
                r#"{"sampling_params":{"max_new_tokens":0}}"#,
                r#"{"sampling_params":{"max_new_tokens":0}}"#,
                1024,
                Kept,
            ),
            (
                "vllm",
                Vllm,
                r#"{"sampling_params": null }"#,
                r#"{"sampling_params": {"max_tokens":256} }"#,
                256,
                Defaulted,
            ),
            (
                "ollama",
                Ollama,
                r#"{"OPTIONS":{"num_predict":-1}}"#,
                r#"{"OPTIONS":{"num_predict":1024}}"#,
                1024,
                Clamped,
            ),
            (
                "ollama",
                Ollama,
                r#"{"options":{"NUM_PREDICT":5}}"#,
                r#"{"options":{"num_predict":256,"NUM_PREDICT":5}}"#,
                256,
                Defaulted,
            ),
            (
                "chat",
                Ollama,
                r#"{"max_completion_tokens":100}"#,
                r#"{"max_tokens":100,"max_completion_tokens":100}"#,
                100,
                Kept,
            ),
            (
                "chat",
                Ollama,
                r#"{"max_completion_tokens":9999}"#,
                r#"{"max_tokens":1024,"max_completion_tokens":9999}"#,
                1024,
                Clamped,
            ),
            (
                "chat",
                Ollama,
                r#"{"max_completion_tokens":"x"}"#,
                r#"{"max_tokens":256,"max_completion_tokens":"x"}"#,
                256,
                Defaulted,
            ),
            (
                "chat",
                Ollama,
                r#"{"max_completion_tokens":9999,"max_tokens":8}"#,
                r#"{"max_completion_tokens":9999,"max_tokens":8}"#,
                8,
                Kept,
            ),
            ("chat", Ollama, r#"{"Max_To\u212aens":9999}"#, r#"{"Max_To\u212aens":1024}"#, 1024, Clamped),
            ("chat", Ollama, r#"{"max_tokens":0}"#, r#"{"max_tokens":1024}"#, 1024, Clamped),
            (
                "chat",
                LlamaCpp,
                r#"{"max_tokens":10,"n_predict":-1}"#,
                r#"{"max_tokens":10,"n_predict":1024}"#,
                1024,
                Clamped,
            ),
            ("chat", LlamaCpp, r#"{"n_predict":4294967301}"#, r#"{"n_predict":1024}"#, 1024, Clamped),
            ("chat", Vllm, r#"{"n_predict":5}"#, r#"{"max_tokens":256,"n_predict":5}"#, 256, Defaulted),
            ("llamacpp", LlamaCpp, r#"{"prompt":"x"}"#, r#"{"n_predict":256,"prompt":"x"}"#, 256, Defaulted),
            (
                "responses",
                LlamaCpp,
                r#"{"n_predict":5000}"#,
                r#"{"max_output_tokens":1024,"n_predict":1024}"#,
                1024,
                Clamped,
            ),
            (
                "responses",
                LlamaCpp,
                r#"{"max_tokens":50}"#,
                r#"{"max_output_tokens":50,"max_tokens":50}"#,
                50,
                Kept,
            ),
            (
                "responses",
                Vllm,
                r#"{"max_tokens":50}"#,
                r#"{"max_output_tokens":256,"max_tokens":50}"#,
                256,
                Defaulted,
            ),
            ("chat", OpenAi, "{}", r#"{"max_completion_tokens":256}"#, 256, Defaulted),
            (
                "chat",
                OpenAi,
                r#"{"max_tokens":null}"#,
                r#"{"max_completion_tokens":256,"max_tokens":null}"#,
                256,
                Defaulted,
            ),
            (
                "chat",
                OpenAi,
                r#"{"max_tokens":2000,"max_completion_tokens":3000}"#,
                r#"{"max_tokens":1024,"max_completion_tokens":1024}"#,
                1024,
                Clamped,
            ),
        ] {
            let (clamped, got) = body(name, backend, before, &limits()).unwrap();
            assert_eq!(
                (got.as_str(), clamped.max_tokens, clamped.action),
                (after, in_force, action),
                "{before}"
            );
        }
    }

    #[test]
    fn only_what_counts_can_be_too_large() {
        let strict = Limits { over_max_tokens: OverMaxTokens::Reject, ..limits() };
        let refused = |text: &str| body("chat", Backend::Ollama, text, &strict).is_err();
        assert!(refused(r#"{"max_completion_tokens":9000}"#));
        assert!(refused(r#"{"max_tokens":-1}"#));
        assert!(!refused(r#"{"max_completion_tokens":9000,"max_tokens":5}"#));
    }
}
