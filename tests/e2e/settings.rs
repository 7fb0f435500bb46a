//! Settings of Envoy that the filter's promises rest on.

use super::watched::poll;
use super::{RealWorld, chat, ok, post};
use crate::stories::{Protocol, Request, World};

#[test]
fn without_header_hold_the_filter_says_which_setting_is_missing() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut world = RealWorld::start_with("{}", |config| config.header_hold = false);
        let request = Request { protocol, ..chat(1) };
        for _ in 0..3 {
            let sent = world.send(&request);
            let response = world.response(sent);
            assert_eq!(response.status, 500, "{response:?}");
            let body = String::from_utf8(response.body).unwrap();
            assert!(body.contains("allow_on_headers_stop_iteration"), "{body}");
            assert_eq!(world.logged(sent, "details"), "sluice_misconfigured");
        }
        assert_eq!(world.arrived(), 0);
        assert!(world.healthy(), "{:?}", world.failures());
    }
}

#[test]
fn metrics_have_labels_and_buckets() {
    let mut world = RealWorld::start("{}");
    let sent = world.send(&chat(1));
    world.answer(0, ok());
    assert_eq!(world.response(sent).status, 200);
    let page = poll(
        || "the request's samples".to_owned(),
        || {
            let page = world.envoy.admin_get("/stats/prometheus").expect("the page");
            page.contains(r#"sluice_duration_ms_count{domain="default",class="short"} 1"#).then_some(page)
        },
    );
    for line in [
        r#"sluice_requests_total{domain="default",class="short",outcome="admitted"} 1"#,
        r#"sluice_max_tokens_total{domain="default",class="short",action="defaulted"} 1"#,
        r#"sluice_responses_total{domain="default",class="short",code="2xx"} 1"#,
        r#"sluice_inflight{domain="default",class="short"} 0"#,
        r#"sluice_queue_ms_bucket{domain="default",class="short",le="1"} 1"#,
        r#"sluice_duration_ms_bucket{domain="default",class="short",le="300000"} 1"#,
        r#"sluice_max_tokens_effective_bucket{domain="default",class="short",le="512"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "no {line} in\n{}", ours(&page));
    }
    world.close();
}

#[test]
fn a_mistaken_policy_leaves_the_one_before_in_force() {
    let mut world = RealWorld::start(r#"{"limits": {"max_tokens": 100}}"#);
    let refusal = world.envoy.reconfigure(r#"{"limits": {"max_tokens": "many"}}"#).unwrap_err().to_string();
    assert!(refusal.contains("limits.max_tokens"), "{refusal}");
    let sent = world.send(&post("/v1/completions", r#"{"prompt":"x","max_tokens":500}"#));
    assert_eq!(world.arrivals(1)[0].body, br#"{"prompt":"x","max_tokens":100}"#);
    world.answer(0, ok());
    assert_eq!(world.response(sent).status, 200);
    world.close();
}

fn ours(page: &str) -> String {
    page.lines().filter(|line| line.starts_with("sluice_")).collect::<Vec<_>>().join("\n")
}
