//! docs/policy.md says what the parser does.

use serde_json::{Value, json};
use sluice::core::body::dialect;
use sluice::core::config;

use crate::{good, lines, with};

const DOCS: &str = include_str!("../../docs/policy.md");

fn blocks() -> impl Iterator<Item = &'static str> {
    DOCS.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// The rows of the reference: path, default.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    DOCS.lines().filter_map(|line| {
        // Paths have a table of their own.
        let row = line.strip_prefix("| `").filter(|row| !row.starts_with('/'))?;
        let cells: Vec<_> = row.split(" | ").collect();
        assert_eq!(cells.len(), 6, "{line}");
        Some((cells[0].trim_end_matches('`'), cells[2].trim_matches('`')))
    })
}

#[test]
fn the_reference_names_every_key_and_no_other() {
    let mut documented: Vec<_> = rows().map(|(path, _)| path.to_owned()).collect();
    documented.sort();
    assert_eq!(documented, config::keys());
}

#[test]
fn the_reference_names_every_path_and_dialect() {
    let readme = include_str!("../../README.md");
    let table = |text: &'static str| text.lines().filter(|line| line.starts_with("| `/")).collect::<Vec<_>>();
    for dialect in dialect::ALL {
        let name = format!("`{}`", dialect.name);
        assert!(DOCS.lines().any(|line| line.starts_with("| `endpoints[].dialect`") && line.contains(&name)));
        for path in dialect.paths {
            let path = format!("`{path}`");
            assert!(
                table(DOCS).iter().any(|row| row.contains(&path) && row.contains(&name)),
                "{path} {name}"
            );
            assert!(table(readme).iter().any(|row| row.contains(&path)), "{path}");
        }
    }
}

#[test]
fn the_reference_knows_the_defaults() {
    let default = blocks().next().unwrap();
    assert_eq!(config::parse(default.as_bytes()), config::parse(b"{}"));
    let default: Value = serde_json::from_str(default).unwrap();
    for (path, value) in rows() {
        // A default in words stands for itself; a JSON one must make no difference where it is written.
        let Ok(value) = serde_json::from_str::<Value>(value) else {
            let words = ["as above", "none, must be given", "half the timeout", "absent"];
            assert!(words.contains(&value), "{path}: {value}");
            continue;
        };
        assert_eq!(good(with(path, value.clone())), good(with("limits", json!({}))), "{path}");
        if !path.contains("[]") && path != "limits" {
            let pointer = format!("/{}", path.replace('.', "/"));
            assert_eq!(default.pointer(&pointer), Some(&value), "{path}");
        }
    }
}

#[test]
fn the_examples_are_good() {
    assert!(blocks().count() >= 2);
    for block in blocks() {
        let policy = config::parse(block.as_bytes()).unwrap_or_else(|mistakes| panic!("{block}\n{mistakes}"));
        assert!(!policy.to_string().contains('\n'));
    }
    let text = DOCS.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let said = lines(
        r#"{"limits":{"max_token":1},"classes":[{"name":"a","models":["m"]},{"name":"b","queue":{"timeout":"30"}}]}"#,
    );
    assert_eq!(text.trim_end().lines().map(str::trim).collect::<Vec<_>>(), said);
}
