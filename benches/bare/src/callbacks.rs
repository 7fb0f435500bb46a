//! Envoy's callbacks, and the calls made in each: in the filter's order, with values as long as the filter's.

use std::cell::Cell;

use crate::host::{self, COUNTER, HISTOGRAM, REQUEST, RESPONSE};
use crate::plan::{Plan, Step};

const CONTINUE: u32 = 0;
const PAUSE: u32 = 1;

/// Bodies up to so many bytes are short: among those measured, what the filter's policy says of them.
const SHORT: usize = 4096;
/// As long as the filter's record of one worker with requests of one of two classes.
const RECORD: [u8; 256] = [7; 256];
/// Written over the body's first byte where there is no output limit.
const LIMIT: &str = "{\"max_tokens\":256,";

const METRICS: [(u32, &str); 7] = [
    (COUNTER, "sluice.max_tokens_total.domain.default.class.short.action.kept"),
    (HISTOGRAM, "sluice.prompt_tokens.domain.default.class.short"),
    (HISTOGRAM, "sluice.max_tokens_effective.domain.default.class.short"),
    (HISTOGRAM, "sluice.queue_ms.domain.default.class.short"),
    (COUNTER, "sluice.requests_total.domain.default.class.short.outcome.admitted"),
    (COUNTER, "sluice.responses_total.domain.default.class.short.code.2xx"),
    (HISTOGRAM, "sluice.duration_ms.domain.default.class.short"),
];
/// The last of them come at the end of a request.
const AT_END: usize = 5;

const PROPERTIES: [(&str, &str); 6] = [
    ("sluice.class", "short"),
    ("sluice.outcome", "admitted"),
    ("sluice.prompt_chars", "1500"),
    ("sluice.prompt_tokens", "400"),
    ("sluice.max_tokens", "256"),
    ("sluice.queue_ms", "0"),
];
const RESPONSE_HEADERS: [(&str, &str); 5] = [
    ("x-sluice-class", "short"),
    ("x-sluice-max-tokens", "256"),
    ("x-sluice-queue-ms", "0"),
    ("x-sluice-max-tokens-action", "kept"),
    ("server-timing", "queue;dur=0, upstream;dur=0"),
];

thread_local! {
    static PLAN: Cell<Plan> = const { Cell::new(Plan::NONE) };
    static METRIC_IDS: Cell<[u32; METRICS.len()]> = const { Cell::new([0; METRICS.len()]) };
    static EDITS: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calls of a step as often as the plan says.
fn take(step: Step, calls: impl Fn()) {
    for _ in 0..PLAN.get().times(step) {
        calls();
    }
}

fn metrics(which: std::ops::Range<usize>) {
    let ids = METRIC_IDS.get();
    for (id, (kind, _)) in ids.iter().zip(METRICS).take(which.end).skip(which.start) {
        if kind == COUNTER { host::increment_metric(*id) } else { host::record_metric(*id, 3) }
    }
}

fn share() {
    host::set_shared_data("sluice.4.default.slots", &RECORD);
}

/// The marker of the ABI that this module speaks.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_abi_version_0_2_1() {}

unsafe extern "C" {
    fn __wasm_call_ctors();
}

#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    // SAFETY: the linker makes this function; the host calls `_initialize` once, before all others.
    unsafe { __wasm_call_ctors() }
}

/// Memory for what the host hands over; whoever gets it gives it back.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    Box::into_raw(Box::<[u8]>::new_uninit_slice(size)).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_vm_start(_: u32, _: usize) -> bool {
    true
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_configure(_: u32, size: usize) -> bool {
    match Plan::parse(&String::from_utf8_lossy(&host::configuration(size))) {
        Ok(plan) => {
            PLAN.set(plan);
            if plan.has(Step::Metrics) {
                METRIC_IDS.set(METRICS.map(|(kind, name)| host::define_metric(kind, name)));
            }
            true
        }
        Err(mistake) => {
            host::complain(&mistake);
            false
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_context_create(_: u32, parent: u32) {
    // A root has no parent.
    if parent != 0 {
        take(Step::Clock, host::clock);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_request_headers(_: u32, _: usize, ended: u32) -> u32 {
    take(Step::Headers, || drop(host::headers(REQUEST)));
    if PLAN.get().has(Step::Hold) && ended == 0 { PAUSE } else { CONTINUE }
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_request_body(_: u32, size: usize, ended: u32) -> u32 {
    take(Step::Clock, host::clock);
    if ended == 0 {
        return if PLAN.get().has(Step::Hold) { PAUSE } else { CONTINUE };
    }
    take(Step::Read, || drop(host::body(size)));
    take(Step::Shared, share);
    if PLAN.get().has(Step::Edit) && EDITS.replace(!EDITS.get()) {
        // More than once would change what is sent on.
        host::set_header("content-length", &(size + LIMIT.len() - 1).to_string());
        host::replace_body_prefix(1, LIMIT.as_bytes());
    }
    take(Step::Class, || host::set_header("x-sluice-class", if size <= SHORT { "short" } else { "long" }));
    take(Step::Metrics, || metrics(0..AT_END));
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_response_headers(_: u32, _: usize, _: u32) -> u32 {
    take(Step::Headers, || drop(host::headers(RESPONSE)));
    take(Step::Clock, host::clock);
    take(Step::Respond, || {
        RESPONSE_HEADERS.into_iter().for_each(|(name, value)| host::add_header(name, value))
    });
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_response_body(_: u32, _: usize, ended: u32) -> u32 {
    if ended != 0 {
        take(Step::Clock, host::clock);
        take(Step::Shared, share);
    }
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_log(_: u32) {
    take(Step::Metrics, || metrics(AT_END..METRICS.len()));
    take(Step::Properties, || {
        PROPERTIES.into_iter().for_each(|(name, value)| host::set_property(name, value))
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_done(_: u32) -> u32 {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_delete(_: u32) {}
