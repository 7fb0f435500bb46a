//! Bytes -> a backend, a path, a policy and a body: the filter's judgement against the twin's.

use std::cell::OnceCell;
use std::rc::Rc;

use serde_json::Value;
use sluice::core::body::{BACKENDS, Backend, Dialect, dialect};
use sluice::core::config;
use sluice::core::engine::{Engine, Gate, Judged};
use sluice::core::head::Head;
use sluice::core::refusal::{Reason, Refusal};
use sluice::core::units::Time;

use crate::twin::{self, Right, Wrong};

/// How many of the bytes say what the rest is for.
pub const HEADER: usize = 3;

/// Policies, but for the backend: the usual one, one for each way to refuse, and one where all weighs differently.
pub const POLICIES: [&str; 4] = [
    r#"{"prompt_chars": null, "prompt_tokens": 8000, "sequences": 8}"#,
    r#"{}"#,
    r#"{"max_tokens": 64, "default_max_tokens": 7, "over_max_tokens": "reject", "prompt_chars": 50, "sequences": 1, "background": true}"#,
    r#"{"max_tokens": 4096, "default_max_tokens": 4096, "prompt_chars": null, "sequences": 1000000, "media_tokens": 0, "bytes_per_token": 2.7}"#,
];

/// A path beside the backend's own ones, by which a body is read as the plainest dialect.
const OWN_PATH: &str = "/fuzz/prompt";

thread_local! {
    static TABLES: OnceCell<Vec<Table>> = const { OnceCell::new() };
}

/// A backend under a policy, and what it serves.
struct Table {
    engine: Engine,
    paths: Vec<(&'static str, &'static Dialect)>,
}

/// What the header's three bytes have to be for this backend's path, under a policy by its place.
pub fn header(backend: &str, path: &str, policy: u8) -> Option<[u8; HEADER]> {
    let place = BACKENDS.iter().position(|(name, _)| *name == backend)?;
    let served = paths(BACKENDS[place].1);
    let path = served.iter().position(|(known, _)| path.trim_end_matches('/').ends_with(known))?;
    Some([u8::try_from(place).ok()?, u8::try_from(path).ok()?, policy])
}

/// The policy at that place, for this backend.
pub fn policy_json(backend: &str, place: usize) -> String {
    let fairness = if place == 1 { r#"{"key": "body:user"}"# } else { "null" };
    format!(
        r#"{{"backend": "{backend}", "limits": {}, "fairness": {fairness},
            "endpoints": [{{"path": "{OWN_PATH}", "dialect": "prompt"}}]}}"#,
        POLICIES[place]
    )
}

/// Judges the request in `data` twice.
///
/// # Panics
/// Where the two disagree.
pub fn check(data: &[u8]) {
    let Some(([backend, path, policy], body)) = data.split_first_chunk::<HEADER>() else { return };
    TABLES.with(|tables| {
        let tables = tables.get_or_init(tables_of_all);
        let place = usize::from(*backend) % BACKENDS.len() * POLICIES.len();
        let table = &tables[place + usize::from(*policy) % POLICIES.len()];
        let (path, dialect) = table.paths[usize::from(*path) % table.paths.len()];
        compare(table, path, dialect, body);
    });
}

fn compare(table: &Table, path: &str, dialect: &Dialect, body: &[u8]) {
    let mut head = Head::new(None);
    head.note(b":method", b"POST");
    head.note(b":path", path.as_bytes());
    let Gate::Guard(guarded) = table.engine.gate(&head, false) else { panic!("{path} is not guarded") };
    assert_eq!(guarded.name, dialect.name, "{path}");

    let policy = &table.engine.policy;
    let ours = table.engine.judge(guarded, body);
    let right = twin::judge(guarded.name, policy, body);
    let what = || format!("{path} on {}: {}", policy.backend.name(), String::from_utf8_lossy(body));
    match (ours, right) {
        (Ok(judged), Ok(right)) => agree(&judged, &right, body, &what),
        (Err(refusal), Err(wrong)) => {
            assert!(shares(&refusal, &wrong), "{}\nrefused: {refusal:?}\nthe twin: {wrong:?}", what());
        }
        (ours, right) => panic!("{}\nthe filter: {ours:?}\nthe twin: {right:?}", what()),
    }
}

fn agree(judged: &Judged, right: &Right, body: &[u8], what: &dyn Fn() -> String) {
    let edited = judged.edit.as_ref().map(|edit| edit.apply(body));
    let after = edited.as_deref().unwrap_or(body);
    let ours = Right {
        prompt: (judged.prompt.chars, judged.prompt.tokens),
        max_tokens: judged.max_tokens,
        tokens: judged.tokens,
        action: judged.action,
        class: judged.class.index(),
        stream: judged.stream,
        body: after.to_vec(),
    };
    if ours != *right {
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        panic!(
            "{}\nthe filter: {ours:?}\n{}\nthe twin: {right:?}\n{}",
            what(),
            text(&ours.body),
            text(&right.body)
        );
    }
    if let Some(edit) = &judged.edit {
        assert_eq!(edit.body_len(body.len()), after.len(), "{}", what());
        // serde_json knows neither lone surrogates nor numbers beyond f64, and one level less: what it took before the
        // edit it takes after it, and the same members besides.
        if let Ok(before) = serde_json::from_slice::<Value>(body) {
            let after = serde_json::from_slice::<Value>(after)
                .unwrap_or_else(|error| panic!("{}\nis no JSON once edited: {error}", what()));
            assert!(kept(&before, &after), "{}\nlost a member: {after}", what());
        }
    }
}

/// Whether all that is in `before` is in `after`, numbers, strings and nulls, which may be limits, aside.
fn kept(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| after.get(key).is_some_and(|after| kept(value, after)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(before, after)| kept(before, after))
        }
        (Value::Null | Value::Number(_) | Value::String(_), _) => true,
        _ => before == after,
    }
}

/// Whether the twin refuses for the same reason.
fn shares(refusal: &Refusal, wrong: &Wrong) -> bool {
    assert!(!refusal.message.is_empty());
    match wrong {
        // Reading stops at the first fault, which may be one of a field.
        Wrong::Json => refusal.reason == Reason::InvalidBody,
        Wrong::Fields(fields) => {
            let blamed = refusal.param.as_deref().unwrap_or_default();
            let last = blamed.rsplit('.').next().unwrap_or_default();
            let last = last.split('[').next().unwrap_or_default();
            refusal.reason == Reason::InvalidBody
                && fields.iter().any(|field| field == blamed || field == last)
        }
        Wrong::Over(reason) => refusal.reason == *reason,
    }
}

fn tables_of_all() -> Vec<Table> {
    let policies = |(name, backend): (&'static str, Backend)| {
        (0..POLICIES.len()).map(move |place| {
            let json = policy_json(name, place);
            let policy =
                config::parse(json.as_bytes()).unwrap_or_else(|mistakes| panic!("{json}\n{mistakes}"));
            Table { engine: Engine::new(Rc::new(policy), Time::default()), paths: paths(backend) }
        })
    };
    BACKENDS.into_iter().flat_map(policies).collect()
}

/// What a backend serves. Longest first, so that the first that a path ends with is its own.
pub fn paths(backend: Backend) -> Vec<(&'static str, &'static Dialect)> {
    let own = dialect::named("prompt", backend).map(|dialect| (OWN_PATH, dialect));
    let mut paths: Vec<_> = dialect::paths(backend).chain(own).collect();
    paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    paths
}
