//! Bytes -> a request's headers: the path, the patience and the rest, each against the plainest reading of it.

use std::rc::Rc;

use sluice::core::body::{BACKENDS, dialect};
use sluice::core::config;
use sluice::core::engine::{Engine, Gate};
use sluice::core::head::Head;
use sluice::core::paths::Table;
use sluice::core::units::Time;

/// The names that headers get, by the first byte of their line.
const NAMES: [&[u8]; 9] = [
    b":path",
    b"x-sluice-queue-timeout",
    b"content-length",
    b"content-type",
    b"content-encoding",
    b"connection",
    b"upgrade",
    b"x-tenant-id",
    b"x-sluice-class",
];

/// Reads `data` as a header a line: a byte that says which, and its value.
///
/// # Panics
/// Where a header is read wrongly, or what is decided by them is no answer.
pub fn check(data: &[u8]) {
    let mut head = Head::new(Some("x-tenant-id"));
    head.note(b":method", b"POST");
    let mut patience = None;
    for line in data.split(|byte| *byte == b'\n') {
        let Some((which, value)) = line.split_first() else { continue };
        let name = NAMES[usize::from(*which) % NAMES.len()];
        head.note(name, value);
        match name {
            b":path" => check_path(value),
            b"x-sluice-queue-timeout" => patience = std::str::from_utf8(value).ok().and_then(plain_duration),
            _ => {}
        }
    }
    assert_eq!(head.patience().map(|patience| patience.as_nanos()), patience);
    assert!(head.ours.iter().all(|name| name.starts_with(b"x-sluice-")));
    let engine = Engine::new(Rc::new(config::parse(b"{}").expect("the default")), Time::default());
    for ended in [false, true] {
        if let Gate::Refuse(family, refusal) = engine.gate(&head, ended) {
            serde_json::from_str::<serde_json::Value>(&refusal.body(family)).expect("a refusal in JSON");
            assert!((400..=599).contains(&refusal.status));
        }
    }
}

fn check_path(path: &[u8]) {
    for (_, backend) in BACKENDS {
        let rows: Vec<&str> = dialect::paths(backend).map(|(path, _)| path).collect();
        let table = Table::new(rows.iter().map(|row| (*row, *row)));
        assert_eq!(table.find(path), plain_find(path, &rows).as_ref(), "{}", String::from_utf8_lossy(path));
    }
}

/// Segments from the first to the last, as a router would go through them.
fn plain_find<'r>(path: &[u8], rows: &[&'r str]) -> Option<&'r str> {
    let end = path.iter().position(|byte| b"?#".contains(byte)).unwrap_or(path.len());
    let mut path = &path[..end];
    if path.first() != Some(&b'/')
        && let Some(authority) = path.windows(3).position(|three| three == b"://")
    {
        path = &path[authority + 3..];
        path = path.iter().position(|byte| *byte == b'/').map_or(b"", |slash| &path[slash..]);
    }
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let digits =
            path.get(at + 1..at + 3).filter(|two| path[at] == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let text = digits.and_then(|two| std::str::from_utf8(two).ok());
        match text.and_then(|text| u8::from_str_radix(text, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(path[at]);
                at += 1;
            }
        }
    }
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    let of = |row: &'r str| row.split('/').filter(|segment| !segment.is_empty()).map(str::as_bytes);
    let fits = |row: &&&'r str| match of(row).count() {
        0 => segments.is_empty(),
        count => count <= segments.len() && segments[segments.len() - count..].iter().copied().eq(of(row)),
    };
    rows.iter().filter(fits).max_by_key(|row| of(row).count()).copied()
}

/// A duration in nanoseconds, by decimal arithmetic in 128 bits.
fn plain_duration(text: &str) -> Option<u128> {
    let text = text.trim();
    let (number, unit) =
        [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000u128)]
            .into_iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u128 = whole.parse::<u64>().ok()?.into();
    let mut part = 0;
    let mut worth = unit;
    for digit in fraction.bytes() {
        worth /= 10;
        part += u128::from(digit - b'0') * worth;
    }
    // What a duration of Rust cannot count in 64 bits of nanoseconds is none.
    u64::try_from(whole.checked_mul(unit)?.checked_add(part)?).ok().map(u128::from)
}
