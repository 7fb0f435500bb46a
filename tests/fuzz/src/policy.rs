//! Bytes -> a policy: one that can be run, or mistakes that say what is wrong.

use std::rc::Rc;

use serde_json::Value;
use sluice::core::body::dialect;
use sluice::core::config;
use sluice::core::engine::Engine;
use sluice::core::policy::Policy;
use sluice::core::units::Time;

/// Reads `data` as the plugin's configuration.
///
/// # Panics
/// Where the answer is none that an operator can use.
pub fn check(data: &[u8]) {
    let blank = data.iter().all(u8::is_ascii_whitespace);
    let json = serde_json::from_slice::<Value>(data);
    match config::parse(data) {
        Ok(policy) => {
            assert!(blank || json.is_ok_and(|json| json.is_object()), "taken without being an object");
            run(policy);
        }
        Err(mistakes) => {
            assert!(!blank && !mistakes.0.is_empty());
            // One a line, so that none hides behind another in a log.
            assert_eq!(mistakes.to_string().lines().count(), mistakes.0.len(), "{mistakes}");
        }
    }
}

/// Whatever was taken can be printed, run, and bounds what comes.
fn run(policy: Policy) {
    assert!(!policy.to_string().is_empty());
    let last = policy.classes.last().expect("a class");
    assert_eq!(last.at_most, Default::default(), "the last class takes everything");
    let limits = &policy.limits;
    assert!(limits.default_max_tokens <= limits.max_tokens && limits.max_tokens > 0);
    assert!(limits.body_bytes <= limits.buffered_bytes);
    let ceiling = limits.max_tokens;
    let chat = dialect::named("chat", policy.backend).expect("a chat");
    let engine = Engine::new(Rc::new(policy), Time::default());
    let body = br#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":999999999999}"#;
    if let Ok(judged) = engine.judge(chat, body) {
        assert!(judged.max_tokens <= ceiling && judged.class.index() < engine.policy.classes.len());
    }
}
