//! What a request costs in calls of the host, as docs/overhead.md says.

use std::collections::BTreeMap;

use crate::harness::world::NativeWorld;
use crate::stories::words::{CHAT, chat_body, ok, short};
use crate::stories::{Request, World};

const DOCS: &str = include_str!("../../docs/overhead.md");

/// A plain exchange of a request of 2 KB, whose worker has seen others before.
fn calls(more: &str) -> BTreeMap<&'static str, usize> {
    let mut world = NativeWorld::new("{}");
    for arrival in 0..2 {
        world.send(&short());
        world.answer(arrival, ok());
    }
    world.process.calls().clear();
    world.send(&Request::post(CHAT, chat_body(&"lock ".repeat(390), more)));
    world.answer(2, ok());
    let calls = world.process.calls().clone();
    world.close();
    calls
}

#[test]
fn a_request_makes_the_calls_that_the_docs_list() {
    let kept = calls(r#","max_tokens":10"#);
    let listed: BTreeMap<&str, usize> = DOCS
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let name = cells.next()?.strip_suffix('`')?;
            Some((name, cells.next()?.parse().expect("a number of calls")))
        })
        .collect();
    assert_eq!(listed, kept);
}

#[test]
fn an_edit_takes_two_calls_more() {
    let (kept, mut edited) = (calls(r#","max_tokens":10"#), calls(""));
    assert_eq!(edited.remove("proxy_set_buffer_bytes"), Some(1));
    *edited.get_mut("proxy_replace_header_map_value").expect("the class") -= 1;
    assert_eq!(edited, kept);
}

#[test]
fn a_worker_that_is_alone_does_not_read_what_it_wrote() {
    assert_eq!(calls(r#","max_tokens":10"#).get("proxy_get_shared_data"), None);
}
