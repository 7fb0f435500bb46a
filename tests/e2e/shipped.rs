//! The files in envoy/ are what they say they are, and the real Envoy takes them.

use std::fs;
use std::path::PathBuf;

use rig::envoy::{Config, root};
use serde_json::Value;

#[test]
fn envoy_accepts_the_shipped_configuration() {
    Config::shipped("envoy.yaml").unwrap().validate().unwrap();
}

#[test]
fn envoy_accepts_the_baseline() {
    Config::shipped("baseline.yaml").unwrap().validate().unwrap();
}

#[test]
fn envoy_refuses_a_policy_with_a_mistake() {
    let mut config = Config::shipped("envoy.yaml").unwrap();
    config.policy = Some(r#"{"limits": {"max_token": 1}}"#.to_owned());
    let refusal = config.validate().unwrap_err().to_string();
    assert!(refusal.contains("limits.max_token"), "{refusal}");
}

#[test]
fn the_yaml_embeds_exactly_the_policy_file() {
    let yaml = yaml("envoy.yaml");
    let embedded = filters(&yaml)[0].pointer("/typed_config/config/configuration/value").unwrap();
    assert_eq!(embedded.as_str().unwrap(), fs::read_to_string(path("policy.json")).unwrap());
}

#[test]
fn the_baseline_lacks_only_the_filter_and_its_routes() {
    let mut expected = yaml("envoy.yaml");
    let manager = manager_mut(&mut expected);
    manager["http_filters"].as_array_mut().unwrap().retain(|filter| filter["name"] != "sluice");
    let routes = manager.pointer_mut("/route_config/virtual_hosts/0/routes").unwrap().as_array_mut().unwrap();
    routes.retain(|route| route["name"] == "passed");
    assert_eq!(expected, yaml("baseline.yaml"));
}

#[test]
fn the_routes_have_time_for_the_longest_wait() {
    let policy: Value = serde_json::from_str(&fs::read_to_string(path("policy.json")).unwrap()).unwrap();
    let waits = policy["classes"].as_array().unwrap().iter().map(|class| seconds(&class["queue"]["timeout"]));
    let wait = waits.fold(seconds(&policy["limits"]["body_timeout"]), f64::max);
    let yaml = yaml("envoy.yaml");
    for route in virtual_host(&yaml)["routes"].as_array().unwrap() {
        let (name, action) = (&route["name"], &route["route"]);
        let idle = seconds(&action["idle_timeout"]);
        assert!(idle >= wait + 5.0, "{name}: a held request would be ended while it waits");
        if name != "held" {
            assert!(
                idle > seconds(&action["timeout"]),
                "{name}: a silent answer would be ended before its timeout"
            );
        }
    }
}

#[test]
fn the_routes_buffer_what_the_policy_allows() {
    let policy: Value = serde_json::from_str(&fs::read_to_string(path("policy.json")).unwrap()).unwrap();
    let yaml = yaml("envoy.yaml");
    let buffer = virtual_host(&yaml)["request_body_buffer_limit"].as_u64().unwrap();
    let read = yaml.pointer("/static_resources/listeners/0/per_connection_buffer_limit_bytes").unwrap();
    // One read more than the limit must still fit, for the filter to refuse it in its own words.
    assert!(buffer >= policy["limits"]["body_bytes"].as_u64().unwrap() + read.as_u64().unwrap());
}

#[test]
fn each_setting_that_the_docs_explain_is_set() {
    let yaml = fs::read_to_string(path("envoy.yaml")).unwrap();
    let docs = fs::read_to_string(root().join("docs/envoy.md")).unwrap();
    let explained: Vec<&str> =
        docs.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(!explained.is_empty());
    for setting in explained {
        assert!(yaml.contains(&format!("{setting}:")), "{setting} is explained, but not set");
    }
}

fn path(name: &str) -> PathBuf {
    root().join("envoy").join(name)
}

pub fn yaml(name: &str) -> Value {
    serde_norway::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn manager(yaml: &Value) -> &Value {
    yaml.pointer("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config").unwrap()
}

pub fn manager_mut(yaml: &mut Value) -> &mut Value {
    yaml.pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config").unwrap()
}

fn filters(yaml: &Value) -> &[Value] {
    manager(yaml)["http_filters"].as_array().unwrap()
}

fn virtual_host(yaml: &Value) -> &Value {
    manager(yaml).pointer("/route_config/virtual_hosts/0").unwrap()
}

fn seconds(duration: &Value) -> f64 {
    duration.as_str().unwrap().strip_suffix('s').unwrap().parse().unwrap()
}
