//! What docs/operate.md shows works on the real Envoy.

use std::fs;
use std::path::Path;
use std::process::Command;

use rig::envoy::{Config, Envoy};
use rig::model::http::ModelServer;
use rig::sim::preset::Preset;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::shipped::{manager_mut, yaml};
use super::watched::poll;

const DOCS: &str = include_str!("../../docs/operate.md");

/// The filter is discovered from a file, whose replacement holds for the next request; one with a mistake is refused;
/// and the alerts ask for metrics that there are.
#[test]
fn the_policy_is_replaced_by_discovery() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("discovery");
    fs::create_dir_all(&dir).unwrap();
    let discovered = dir.join("sluice.yaml");
    let config = Config::shipped("envoy.yaml").unwrap();
    let filter = blocks("yaml")[0].replace("/etc/envoy/sluice.yaml", discovered.to_str().unwrap());
    let resource = blocks("yaml")[1].replace("target/sluice.wasm", config.module.to_str().unwrap());
    let put = |resource: &str| {
        let beside = dir.join("sluice.new");
        fs::write(&beside, resource).unwrap();
        fs::rename(&beside, &discovered).unwrap();
    };
    let mut whole = yaml("envoy.yaml");
    manager_mut(&mut whole)["http_filters"][0] = serde_norway::from_str::<Value>(&filter).unwrap()[0].take();
    put(&resource);
    let runtime = Runtime::new().unwrap();
    let (envoy, _model) = start(config, &whole, &dir, &runtime);
    let limit = || limit_in_force(&envoy, "/v1/chat/completions");
    let count = |name: &str| {
        let stats = envoy.stats().unwrap();
        stats.get(&format!("extension_config_discovery.http_filter.sluice.{name}"))
    };
    assert_eq!(limit().as_deref(), Some("9"));

    let lower = resource.replace(r#""max_tokens": 4096, "default_max_tokens": 1024"#, r#""max_tokens": 3"#);
    assert_ne!(lower, resource);
    put(&lower);
    poll(|| "the new policy".to_owned(), || (count("config_reload") == 2).then_some(()));
    assert_eq!(limit().as_deref(), Some("3"));

    put(&lower.replace("max_tokens", "max_token"));
    poll(|| "the refusal".to_owned(), || (count("config_fail") == 1).then_some(()));
    assert_eq!(limit().as_deref(), Some("3"));

    let there = envoy.admin_get("/stats/prometheus").unwrap();
    let asked: Vec<&str> = blocks("promql")[0]
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| word.starts_with("sluice_") || word.starts_with("envoy_"))
        .collect();
    assert!(asked.len() >= 6, "{asked:?}");
    for name in asked {
        assert!(there.lines().any(|line| line.starts_with(&format!("{name}{{"))), "there is no {name}");
    }
}

/// A policy for each of several servers, each off at the routes of the others.
#[test]
fn routes_choose_among_several_filters() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("several");
    fs::create_dir_all(&dir).unwrap();
    let mut config = Config::shipped("envoy.yaml").unwrap();
    let mut whole = yaml("envoy.yaml");
    let filters = manager_mut(&mut whole)["http_filters"].as_array_mut().unwrap();
    let mut small = filters[0].clone();
    small["name"] = "sluice-small".into();
    let plugin = &mut small["typed_config"]["config"];
    plugin["name"] = "sluice-small".into();
    plugin["vm_config"]["code"]["local"]["filename"] = config.module.to_str().unwrap().into();
    plugin["configuration"]["value"] = r#"{"domain": "small", "limits": {"max_tokens": 3}}"#.into();
    filters.insert(0, small);
    config.policy = Some(r#"{"domain": "large", "limits": {"max_tokens": 7}}"#.to_owned());
    let large = blocks("yaml")[2].replace("cluster: large", "cluster: llm_long");
    let large = serde_norway::from_str::<Value>(&large).unwrap()[0].take();
    let off = large["typed_per_filter_config"]["sluice-small"].clone();
    let routes = manager_mut(&mut whole).pointer_mut("/route_config/virtual_hosts/0/routes").unwrap();
    let routes = routes.as_array_mut().unwrap();
    for route in &mut *routes {
        route["typed_per_filter_config"] = json!({ "sluice": off });
    }
    routes.insert(0, large);
    let runtime = Runtime::new().unwrap();
    let (envoy, _model) = start(config, &whole, &dir, &runtime);
    assert_eq!(limit_in_force(&envoy, "/large/v1/chat/completions").as_deref(), Some("7"));
    assert_eq!(limit_in_force(&envoy, "/v1/chat/completions").as_deref(), Some("3"));
    for domain in ["small", "large"] {
        let admitted =
            format!("wasmcustom.sluice.requests_total.domain.{domain}.class.short.outcome.admitted");
        assert_eq!(envoy.stats().unwrap().get(&admitted), 1, "{domain}");
    }
}

/// Envoy with the configuration `whole`, written into `dir`, before a model server that runs in `runtime`.
fn start(mut config: Config, whole: &Value, dir: &Path, runtime: &Runtime) -> (Envoy, ModelServer) {
    config.yaml = dir.join("envoy.json");
    fs::write(&config.yaml, whole.to_string()).unwrap();
    let model = runtime.block_on(ModelServer::start(0, Preset::Gpu.spec())).unwrap();
    config.clusters = ["llm_short", "llm_long"].map(|cluster| (cluster.to_owned(), model.address())).into();
    (Envoy::start(&config).unwrap(), model)
}

/// The output limit that a chat asking for 9 tokens comes to.
fn limit_in_force(envoy: &Envoy, path: &str) -> Option<String> {
    let url = format!("http://{}{path}", envoy.addr());
    let body = r#"{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9}"#;
    let output = Command::new("curl").args(["-si", &url, "-d", body]).output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer.lines().find_map(|line| Some(line.strip_prefix("x-sluice-max-tokens: ")?.trim().to_owned()))
}

/// What stands between the fences of `language`, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    DOCS.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}
