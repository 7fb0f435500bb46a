//! What is none of ours passes, and what is ours cannot hide.

use super::words::{CHAT, exchange, short, take_slot};
use super::{Body, Request, World};

fn untouched(world: &mut dyn World, request: &Request) {
    let (arrival, response) = exchange(world, request);
    let Body::Whole(body) = &request.body else { panic!("a whole body") };
    arrival.has_body(body);
    assert_eq!(arrival.path, request.path);
    let ours = |name: &str| name.starts_with("x-sluice-") || name == "server-timing";
    assert!(!response.headers.iter().any(|(name, _)| ours(name)), "{:?}", response.headers);
}

pub fn a_get_passes(world: &mut dyn World) {
    for path in ["/v1/models", "/health", CHAT] {
        untouched(world, &Request::get(path));
    }
    world.metric_becomes("sluice.passed_through_total.domain.default", 3);
}

pub fn an_unlisted_post_passes_unchanged(world: &mut dyn World) {
    let body = r#"{"max_tokens":99999,"input":"not json at all"#;
    for path in ["/v1/embeddings", "/v1/messages/count_tokens", "/tokenize", "/v1/chat/completionsx"] {
        untouched(world, &Request::post(path, body));
    }
    untouched(world, &Request::post("/v1/files", vec![0xff; 100_000]).header("content-encoding", "gzip"));
}

pub fn health_passes_while_all_is_full(world: &mut dyn World) {
    take_slot(world, &short());
    let waiting = [world.send(&short()), world.send(&short())];
    untouched(world, &Request::get("/health"));
    assert!(!waiting.into_iter().any(|sent| world.answered(sent)));
}

pub fn a_prefix_and_a_query_stay_guarded(world: &mut dyn World) {
    let paths = [
        "/v1/chat/completions/",
        "/v1/chat/completions?api-version=1",
        "/openai/deployments/m/chat/completions",
        "/chat/completions",
    ];
    for path in paths {
        let (_, response) = exchange(world, &Request { path: path.to_owned(), ..short() });
        assert_eq!(response.header("x-sluice-class"), Some("short"), "{path}");
    }
}

pub fn an_encoded_path_stays_guarded(world: &mut dyn World) {
    let path = "/v1/chat/%63ompletions";
    let (arrival, response) = exchange(world, &Request { path: path.to_owned(), ..short() });
    assert_eq!(response.header("x-sluice-class"), Some("short"));
    assert_eq!(arrival.path, path);
}
