//! The files in envoy/ are what they say they are, and the real Envoy takes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rig::envoy::{Config, Envoy, root};
use rig::model::http::ModelServer;
use rig::sim::preset::Preset;
use serde_json::Value;

use super::watched::poll;

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
    let listener = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let manager = expected.pointer_mut(listener).unwrap();
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

/// docs/operate.md: the filter is discovered from a file, whose replacement holds for the next request; one with a
/// mistake is refused; and the alerts ask for metrics that there are.
#[test]
fn the_policy_is_replaced_by_discovery_as_the_docs_say() {
    let docs = fs::read_to_string(root().join("docs/operate.md")).unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("discovery");
    fs::create_dir_all(&dir).unwrap();
    let discovered = dir.join("sluice.yaml");
    let mut config = Config::shipped("envoy.yaml").unwrap();
    let filter = blocks(&docs, "yaml")[0].replace("/etc/envoy/sluice.yaml", discovered.to_str().unwrap());
    let resource = blocks(&docs, "yaml")[1].replace("target/sluice.wasm", config.module.to_str().unwrap());
    let put = |resource: &str| {
        let beside = dir.join("sluice.new");
        fs::write(&beside, resource).unwrap();
        fs::rename(&beside, &discovered).unwrap();
    };
    let mut whole = yaml("envoy.yaml");
    let filters = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0";
    *whole.pointer_mut(filters).unwrap() = serde_norway::from_str::<Value>(&filter).unwrap()[0].clone();
    config.yaml = dir.join("envoy.json");
    fs::write(&config.yaml, whole.to_string()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let model = runtime.block_on(ModelServer::start(0, Preset::Gpu.spec())).unwrap();
    config.clusters = ["llm_short", "llm_long"].map(|cluster| (cluster.to_owned(), model.address())).into();

    put(&resource);
    let envoy = Envoy::start(&config).unwrap();
    let clamped = || {
        let url = format!("http://{}/v1/chat/completions", envoy.addr());
        let body = r#"{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9}"#;
        let output = Command::new("curl").args(["-si", &url, "-d", body]).output().unwrap();
        let head = String::from_utf8(output.stdout).unwrap();
        head.lines().find_map(|line| Some(line.strip_prefix("x-sluice-max-tokens: ")?.trim().to_owned()))
    };
    let count = |name: &str| {
        let stats = envoy.stats().unwrap();
        stats.get(&format!("extension_config_discovery.http_filter.sluice.{name}"))
    };
    assert_eq!(clamped().as_deref(), Some("9"));

    let lower = resource.replace(r#""max_tokens": 4096, "default_max_tokens": 1024"#, r#""max_tokens": 3"#);
    assert_ne!(lower, resource);
    put(&lower);
    poll(|| "the new policy".to_owned(), || (count("config_reload") == 2).then_some(()));
    assert_eq!(clamped().as_deref(), Some("3"));

    put(&lower.replace("max_tokens", "max_token"));
    poll(|| "the refusal".to_owned(), || (count("config_fail") == 1).then_some(()));
    assert_eq!(clamped().as_deref(), Some("3"));

    let there = envoy.admin_get("/stats/prometheus").unwrap();
    let asked: Vec<&str> = blocks(&docs, "promql")[0]
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| word.starts_with("sluice_") || word.starts_with("envoy_"))
        .collect();
    assert!(asked.len() >= 6, "{asked:?}");
    for name in asked {
        assert!(there.lines().any(|line| line.starts_with(&format!("{name}{{"))), "there is no {name}");
    }
}

/// What stands between the fences of `language`.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

fn path(name: &str) -> PathBuf {
    root().join("envoy").join(name)
}

fn yaml(name: &str) -> Value {
    serde_norway::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
}

fn manager(yaml: &Value) -> &Value {
    yaml.pointer("/static_resources/listeners/0/filter_chains/0/filters/0/typed_config").unwrap()
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
