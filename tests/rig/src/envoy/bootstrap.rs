//! The shipped YAML, made fit to run anywhere: free ports, other model servers, another policy.
//!
//! Everything else stays as shipped, so that what runs is what an operator gets.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Breakers, Config};

/// The shipped listener.
pub const CLIENTS: &str = "clients";
/// A listener without the filter that answers at once: by it one knows that the worker has come so far.
pub const PROBE: &str = "probe";

const LISTENER_FILE: &str = "listeners.json";
const MANAGER: &str = "/filter_chains/0/filters/0/typed_config";
const ACCESS_LOG: &str =
    "/filter_chains/0/filters/0/typed_config/access_log/0/typed_config/log_format/json_format";

/// A configuration in two parts: the listener, which can be replaced at run time, and the rest.
pub struct Bootstrap {
    rest: Value,
    listener: Value,
}

impl Bootstrap {
    /// Reads `config.yaml` and puts in what `config` says.
    pub fn load(config: &Config) -> Result<Self> {
        let text = fs::read_to_string(&config.yaml).with_context(|| config.yaml.display().to_string())?;
        let mut rest: Value =
            serde_norway::from_str(&text).with_context(|| config.yaml.display().to_string())?;
        *at(&mut rest, "/admin/address/socket_address/port_value")? = json!(0);
        let mut clusters: BTreeMap<&str, Vec<SocketAddr>> = BTreeMap::new();
        for (name, address) in &config.clusters {
            clusters.entry(name).or_default().push(*address);
        }
        for (name, addresses) in clusters {
            set_cluster(&mut rest, name, &addresses)?;
        }
        if let Some(breakers) = &config.breakers {
            set_breakers(&mut rest, breakers)?;
        }
        if !config.upstream_keep_alive {
            set_one_request_a_connection(&mut rest)?;
        }
        let listeners = at(&mut rest, "/static_resources/listeners")?.as_array_mut().context("listeners")?;
        let mut listener = listeners.pop().context("no listener")?;
        *at(&mut listener, "/address/socket_address/port_value")? = json!(0);
        if let Some(plugin) = plugin(&mut listener)? {
            *at(plugin, "/vm_config/code/local/filename")? = json!(config.module);
            *at(plugin, "/allow_on_headers_stop_iteration")? = json!(config.header_hold);
        }
        for (route, timeout) in &config.idle_timeouts {
            set_idle_timeout(&mut listener, route, *timeout)?;
        }
        if !config.retries {
            for route in routes(&mut listener)? {
                at(route, "/route")?.as_object_mut().context("a route")?.remove("retry_policy");
            }
        }
        let filters = at(&mut listener, &format!("{MANAGER}/http_filters"))?;
        filters.as_array_mut().context("http_filters")?.splice(..0, config.filters.iter().cloned());
        for (name, format) in &config.log_fields {
            at(&mut listener, ACCESS_LOG)?[name] = json!(format);
        }
        let mut bootstrap = Self { rest, listener };
        if let Some(policy) = &config.policy {
            bootstrap.set_policy(policy)?;
        }
        Ok(bootstrap)
    }

    /// Puts in another policy, and tells whether it differs from the one before.
    pub fn set_policy(&mut self, policy: &str) -> Result<bool> {
        let Some(plugin) = plugin(&mut self.listener)? else { bail!("no filter to give a policy to") };
        let value = at(plugin, "/configuration/value")?;
        let differs = value.as_str() != Some(policy);
        *value = json!(policy);
        Ok(differs)
    }

    /// Writes the whole as one static configuration into `dir`.
    pub fn write_static(&self, dir: &Path) -> Result<PathBuf> {
        let mut whole = self.rest.clone();
        whole["static_resources"]["listeners"] = json!([self.listener]);
        write(dir, "envoy.json", &whole)
    }

    /// Writes a configuration into `dir` whose listener Envoy reads from a file of its own and watches there.
    pub fn write_dynamic(&self, dir: &Path) -> Result<PathBuf> {
        self.write_listener(dir)?;
        let mut whole = self.rest.clone();
        whole["node"] = json!({"id": "rig", "cluster": "rig"});
        whole["stats_flush_interval"] = json!("0.2s");
        whole["static_resources"]["listeners"] = json!([probe()]);
        whole["dynamic_resources"]["lds_config"] = json!({
            "resource_api_version": "V3",
            "path_config_source": {"path": dir.join(LISTENER_FILE), "watched_directory": {"path": dir}},
        });
        write(dir, "envoy.json", &whole)
    }

    /// Writes the listener's file. Envoy sees the rename, never half a file.
    pub fn write_listener(&self, dir: &Path) -> Result<()> {
        let mut listener = self.listener.clone();
        listener["@type"] = json!("type.googleapis.com/envoy.config.listener.v3.Listener");
        let written = write(dir, "listeners.new", &json!({"resources": [listener]}))?;
        fs::rename(written, dir.join(LISTENER_FILE))?;
        Ok(())
    }
}

fn write(dir: &Path, name: &str, value: &Value) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, serde_json::to_vec_pretty(value)?)?;
    Ok(path)
}

fn at<'a>(value: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    value.pointer_mut(pointer).with_context(|| format!("the configuration has no {pointer}"))
}

fn set_cluster(rest: &mut Value, name: &str, addresses: &[SocketAddr]) -> Result<()> {
    let clusters = at(rest, "/static_resources/clusters")?.as_array_mut().context("clusters")?;
    let cluster = clusters.iter_mut().find(|cluster| cluster["name"] == name);
    let cluster = cluster.with_context(|| format!("no cluster {name}"))?;
    let endpoint = |address: &SocketAddr| json!({"endpoint": {"address": {"socket_address": {"address": address.ip(), "port_value": address.port()}}}});
    *at(cluster, "/load_assignment/endpoints/0/lb_endpoints")? = addresses.iter().map(endpoint).collect();
    if addresses.len() > 1 {
        // The best that Envoy does by itself for answers of very different lengths.
        cluster["lb_policy"] = json!("LEAST_REQUEST");
    }
    Ok(())
}

fn set_breakers(rest: &mut Value, breakers: &Breakers) -> Result<()> {
    for cluster in at(rest, "/static_resources/clusters")?.as_array_mut().context("clusters")? {
        // Over HTTP/1 a request has a connection to itself, so that connections bound the requests under way and
        // all others are pending.
        cluster["circuit_breakers"] = json!({"thresholds": [{
            "max_connections": breakers.max_requests,
            "max_requests": breakers.max_requests,
            "max_pending_requests": breakers.max_pending_requests,
        }]});
    }
    Ok(())
}

fn set_one_request_a_connection(rest: &mut Value) -> Result<()> {
    const HTTP: &str =
        "/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    for cluster in at(rest, "/static_resources/clusters")?.as_array_mut().context("clusters")? {
        at(cluster, HTTP)?["common_http_protocol_options"]["max_requests_per_connection"] = json!(1);
    }
    Ok(())
}

fn routes(listener: &mut Value) -> Result<&mut Vec<Value>> {
    at(listener, &format!("{MANAGER}/route_config/virtual_hosts/0/routes"))?.as_array_mut().context("routes")
}

fn set_idle_timeout(listener: &mut Value, name: &str, timeout: Duration) -> Result<()> {
    let route = routes(listener)?.iter_mut().find(|route| route["name"] == name);
    let route = route.with_context(|| format!("no route {name}"))?;
    *at(route, "/route/idle_timeout")? = json!(format!("{}s", timeout.as_secs_f64()));
    Ok(())
}

/// The filter's PluginConfig; none in the baseline, and none here where Envoy has to discover it.
fn plugin(listener: &mut Value) -> Result<Option<&mut Value>> {
    let filters = at(listener, MANAGER)?["http_filters"].as_array_mut().context("http_filters")?;
    let filter =
        filters.iter_mut().find(|filter| filter["name"] == "sluice" && filter.get("typed_config").is_some());
    filter.map(|filter| at(filter, "/typed_config/config")).transpose()
}

fn probe() -> Value {
    let router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    let manager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    json!({
        "name": PROBE,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "manager", "typed_config": {
            "@type": manager,
            "stat_prefix": PROBE,
            "http_filters": [{"name": "router", "typed_config": {"@type": router}}],
            "route_config": {"virtual_hosts": [{"name": PROBE, "domains": ["*"], "routes": [
                {"match": {"prefix": "/"}, "direct_response": {"status": 200}},
            ]}]},
        }}]}],
    })
}
