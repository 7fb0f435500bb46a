//! Where requests have keys, those that wait take turns by them.

use super::words::{CHAT, chat_body, ok, short_named};
use super::{Request, World};

fn tenant(name: &str, tenant: &str) -> Request {
    short_named(name).header("x-tenant", tenant)
}

fn user(name: &str, user: &str) -> Request {
    Request::post(CHAT, chat_body(name, &format!(r#","max_tokens":10,"user":{user}"#)))
}

/// Sends all, the first of which takes the slot; then answers one after the other. The names in order of arrival.
fn served(world: &mut dyn World, requests: &[Request]) -> Vec<String> {
    let sent: Vec<_> = requests.iter().map(|request| world.send(request)).collect();
    for place in 0..requests.len() {
        world.arrivals(place + 1);
        assert_eq!(world.arrived(), place + 1);
        world.answer(place, ok());
    }
    for sent in sent {
        assert_eq!(world.response(sent).status, 200);
    }
    assert!(world.healthy());
    let arrivals = world.arrivals(requests.len());
    arrivals.iter().map(|arrival| prompt(&arrival.body)).collect()
}

fn prompt(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    body["messages"][0]["content"].as_str().expect("a prompt").to_owned()
}

fn place(served: &[String], name: &str) -> usize {
    served.iter().position(|served| served == name).expect("served")
}

pub fn a_flood_delays_another_by_one_turn(world: &mut dyn World) {
    let mut requests: Vec<Request> = (0..8).map(|n| tenant(&format!("flood{n}"), "a")).collect();
    requests.push(tenant("single", "b"));
    requests.push(tenant("other", "c"));
    let served = served(world, &requests);
    assert!(place(&served, "single") <= 3 && place(&served, "other") <= 3, "{served:?}");
    let flood: Vec<&String> = served.iter().filter(|name| name.starts_with("flood")).collect();
    assert!(flood.is_sorted(), "{served:?}");
}

pub fn those_without_a_key_share_one(world: &mut dyn World) {
    let mut requests: Vec<Request> = (0..6).map(|n| short_named(&format!("nobody{n}"))).collect();
    requests.push(tenant("somebody", "a"));
    let served = served(world, &requests);
    assert!(place(&served, "somebody") <= 2, "{served:?}");
}

pub fn turns_go_by_user(world: &mut dyn World) {
    let mut requests: Vec<Request> = (0..6).map(|n| user(&format!("flood{n}"), r#""ann""#)).collect();
    requests.push(user("single", r#""bob""#));
    // The same user, spelt otherwise.
    requests.push(user("flood6", r#""\u0061nn""#));
    let served = served(world, &requests);
    assert!(place(&served, "single") <= 2, "{served:?}");
    assert_eq!(place(&served, "flood6"), 7, "{served:?}");
}
