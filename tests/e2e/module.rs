//! The built module: what it asks of its host, what it weighs, what it is made of.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use rig::envoy::{Config, root};
use wasmparser::{Parser, Payload};

/// What hosts of ABI 0.2.1 offer. Anything else makes Envoy refuse the module.
const HOST: [&str; 37] = [
    "proxy_add_header_map_value",
    "proxy_call_foreign_function",
    "proxy_close_stream",
    "proxy_continue_stream",
    "proxy_define_metric",
    "proxy_dequeue_shared_queue",
    "proxy_done",
    "proxy_enqueue_shared_queue",
    "proxy_get_buffer_bytes",
    "proxy_get_current_time_nanoseconds",
    "proxy_get_header_map_pairs",
    "proxy_get_header_map_value",
    "proxy_get_log_level",
    "proxy_get_metric",
    "proxy_get_property",
    "proxy_get_shared_data",
    "proxy_get_status",
    "proxy_grpc_call",
    "proxy_grpc_cancel",
    "proxy_grpc_close",
    "proxy_grpc_send",
    "proxy_grpc_stream",
    "proxy_http_call",
    "proxy_increment_metric",
    "proxy_log",
    "proxy_record_metric",
    "proxy_register_shared_queue",
    "proxy_remove_header_map_value",
    "proxy_replace_header_map_value",
    "proxy_resolve_shared_queue",
    "proxy_send_local_response",
    "proxy_set_buffer_bytes",
    "proxy_set_effective_context",
    "proxy_set_header_map_pairs",
    "proxy_set_property",
    "proxy_set_shared_data",
    "proxy_set_tick_period_milliseconds",
];
/// The calls of WASI that older hosts have too.
const WASI: [&str; 6] =
    ["clock_time_get", "environ_get", "environ_sizes_get", "fd_write", "proc_exit", "random_get"];

const LARGEST: u64 = 700 * 1024;

#[test]
fn the_module_imports_only_what_hosts_offer() {
    let bytes = fs::read(Config::shipped("envoy.yaml").unwrap().module).unwrap();
    let mut imports = BTreeSet::new();
    for payload in Parser::new(0).parse_all(&bytes) {
        if let Payload::ImportSection(section) = payload.unwrap() {
            imports.extend(section.into_imports().map(|import| {
                let import = import.unwrap();
                (import.module.to_owned(), import.name.to_owned())
            }));
        }
    }
    assert!(!imports.is_empty());
    for (module, name) in imports {
        let offered = match module.as_str() {
            "env" => HOST.contains(&name.as_str()),
            "wasi_snapshot_preview1" => WASI.contains(&name.as_str()),
            _ => false,
        };
        assert!(offered, "{module}.{name} is not offered by every host");
    }
}

#[test]
fn only_the_twin_for_tests_can_be_told_to_fail() {
    let holds = |path: &Path, needle: &str| {
        fs::read(path).unwrap().windows(needle.len()).any(|bytes| bytes == needle.as_bytes())
    };
    let shipped = Config::shipped("envoy.yaml").unwrap().module;
    assert!(holds(&Config::trap_module().unwrap(), "x-sluice-test-trap"));
    assert!(!holds(&shipped, "x-sluice-test-trap"));
    assert!(holds(&shipped, "x-sluice-class"), "the search finds nothing");
}

#[test]
fn the_module_is_small() {
    let size = fs::metadata(Config::shipped("envoy.yaml").unwrap().module).unwrap().len();
    assert!(size < LARGEST, "{size} bytes");
}

#[test]
fn only_the_glue_names_the_host() {
    let mut offenders = Vec::new();
    let src = root().join("src");
    visit(&src, &mut |path| {
        let glue = path.starts_with(src.join("proxy")) || path == src.join("lib.rs");
        if !glue && fs::read_to_string(path).unwrap().contains("proxy_wasm") {
            offenders.push(path.to_path_buf());
        }
    });
    assert!(offenders.is_empty(), "{offenders:?}");
}

#[test]
fn the_module_is_made_of_five_crates() {
    let tree = |depth: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--package", "sluice", "--edges", "normal", "--target", "wasm32-wasip1"])
            .args(["--prefix", "none", "--format", "{p}", "--no-dedupe", "--offline", "--depth", depth])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
        names.filter(|name| name != "sluice").collect::<BTreeSet<_>>()
    };
    let direct = tree("1");
    assert_eq!(direct, ["hashbrown", "log", "proxy-wasm", "serde", "serde_json"].map(str::to_owned).into());
    // What these pull in; serde's macros run at build time only.
    let more = [
        "allocator-api2",
        "equivalent",
        "foldhash",
        "itoa",
        "memchr",
        "proc-macro2",
        "quote",
        "ryu",
        "serde_core",
        "serde_derive",
        "syn",
        "unicode-ident",
        "zmij",
    ];
    for name in tree("9").difference(&direct) {
        assert!(more.contains(&name.as_str()), "{name} has come in");
    }
}

fn visit(dir: &Path, file: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, file);
        } else {
            file(&path);
        }
    }
}
