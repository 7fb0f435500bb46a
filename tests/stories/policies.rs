//! The policies that stories are told under. Short timeouts where a story waits for them, long ones where it must not.

/// Everything fits.
pub const ROOMY: &str = r#"{
    "limits": {"body_bytes": 2097152, "prompt_chars": null, "max_tokens": 1024, "default_max_tokens": 256},
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "concurrency": 64,
         "queue": {"capacity": 8, "timeout": "30s"}},
        {"name": "long", "concurrency": 64, "queue": {"capacity": 8, "timeout": "30s"}}
    ]
}"#;

/// Little fits, and what does not is refused.
pub const STRICT: &str = r#"{
    "limits": {"body_bytes": 1000, "buffered_bytes": 100000, "prompt_chars": 100, "max_tokens": 1024,
               "over_max_tokens": "reject", "sequences": 4},
    "classes": [{"name": "short", "concurrency": 8, "queue": {"capacity": 8, "timeout": "30s"}}]
}"#;

/// One at a time in each class, two may wait, for long.
pub const ONE_SLOT: &str = r#"{
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "concurrency": 1,
         "queue": {"capacity": 2, "timeout": "30s"}},
        {"name": "long", "concurrency": 1, "queue": {"capacity": 2, "timeout": "30s"}}
    ]
}"#;

/// One at a time, and nobody waits long for anything.
pub const HASTY: &str = r#"{
    "limits": {"body_timeout": "300ms"},
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 2, "timeout": "300ms"}}]
}"#;

/// The statuses of a full queue and of a vain wait, the other way round.
pub const SWAPPED_STATUSES: &str = r#"{
    "classes": [{"name": "short", "concurrency": 1, "queue":
        {"capacity": 1, "timeout": "300ms", "overflow_status": 503, "timeout_status": 429}}]
}"#;

/// One at a time, and nobody may wait.
pub const NO_QUEUE: &str = r#"{
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 0}}]
}"#;

/// The client is told nothing but what it needs.
pub const QUIET: &str = r#"{
    "response_headers": false,
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 0}}]
}"#;

/// Room for two bodies of a kilobyte each.
pub const SMALL_BUFFER: &str = r#"{
    "limits": {"body_bytes": 1200, "buffered_bytes": 2500},
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 8, "timeout": "30s"}}]
}"#;

/// Two classes on one slot.
pub const POOL: &str = r#"{
    "pools": [{"name": "gpu", "concurrency": 1}],
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "pool": "gpu",
         "queue": {"capacity": 8, "timeout": "30s"}},
        {"name": "long", "pool": "gpu", "queue": {"capacity": 8, "timeout": "30s"}}
    ]
}"#;

/// Three slots, of which the more urgent class has one to itself.
pub const RESERVED: &str = r#"{
    "pools": [{"name": "gpu", "concurrency": 3}],
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "pool": "gpu", "reserved": 1,
         "queue": {"capacity": 8, "timeout": "30s"}},
        {"name": "long", "pool": "gpu", "queue": {"capacity": 8, "timeout": "30s"}}
    ]
}"#;

/// Three slots, of which the less urgent class has one at most.
pub const CAPPED: &str = r#"{
    "pools": [{"name": "gpu", "concurrency": 3}],
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "pool": "gpu",
         "queue": {"capacity": 8, "timeout": "30s"}},
        {"name": "long", "pool": "gpu", "concurrency": 1, "queue": {"capacity": 8, "timeout": "30s"}}
    ]
}"#;

/// One slot, and who has waited for 300 ms goes before newer ones of more urgent classes.
pub const PROMOTING: &str = r#"{
    "pools": [{"name": "gpu", "concurrency": 1}],
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "pool": "gpu",
         "queue": {"capacity": 8, "timeout": "30s"}},
        {"name": "long", "pool": "gpu", "queue": {"capacity": 8, "timeout": "30s", "promote_after": "300ms"}}
    ]
}"#;

/// Tokens for a few short requests, and for no long one.
pub const BUDGET: &str = r#"{
    "pools": [{"name": "gpu", "concurrency_tokens": 100}],
    "classes": [
        {"name": "short", "at_most": {"prompt_chars": 200, "max_tokens": 256}, "pool": "gpu",
         "queue": {"capacity": 8, "timeout": "30s"}},
        {"name": "long", "pool": "gpu", "queue": {"capacity": 8, "timeout": "30s", "promote_after": "300ms"}}
    ]
}"#;

/// One at a time, and tenants take turns.
pub const TURNS: &str = r#"{
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 32, "timeout": "30s"}}],
    "fairness": {"key": "header:x-tenant"}
}"#;

/// The same by the body's `user`.
pub const USERS: &str = r#"{
    "classes": [{"name": "short", "concurrency": 1, "queue": {"capacity": 32, "timeout": "30s"}}],
    "fairness": {"key": "body:user"}
}"#;

/// Only what is known or listed is served.
pub const LISTED: &str = r#"{
    "endpoints": [
        {"path": "/ask", "dialect": "prompt"},
        {"path": "/v1/embeddings", "dialect": "pass"},
        {"path": "/internal/chat/completions", "dialect": "pass"}
    ],
    "unlisted_posts": "reject",
    "classes": [{"name": "short", "concurrency": 8, "queue": {"capacity": 8, "timeout": "30s"}}]
}"#;

/// What the corpus is written for, with one backend or the other.
macro_rules! reference {
    ($backend:literal) => {
        concat!(
            r#"{"backend": ""#,
            $backend,
            r#"",
            "limits": {"body_bytes": 1048576, "prompt_chars": null, "prompt_tokens": 8000, "max_tokens": 1024,
                       "default_max_tokens": 256, "sequences": 8},
            "classes": [{"name": "long", "concurrency": 4, "queue": {"capacity": 8, "timeout": "30s"}}]
        }"#
        )
    };
}

pub const REFERENCE: &str = reference!("vllm");
pub const REFERENCE_SGLANG: &str = reference!("sglang");
pub const REFERENCE_TGI: &str = reference!("tgi");
pub const REFERENCE_LLAMACPP: &str = reference!("llamacpp");
pub const REFERENCE_OLLAMA: &str = reference!("ollama");
pub const REFERENCE_OPENAI: &str = reference!("openai");
