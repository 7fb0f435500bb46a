//! Inputs that once showed a fault, kept in `tests/fuzz/found/<target>/`.

use std::fs;
use std::path::PathBuf;

/// Judges one input, and panics where the filter is wrong.
pub type Check = fn(&[u8]);

/// The targets by their names on the command line.
pub const TARGETS: [(&str, Check); 3] =
    [("body", crate::body::check), ("policy", crate::policy::check), ("head", crate::head::check)];

/// What was found for a target. None where nothing was.
///
/// # Errors
/// Where a file is there but cannot be read.
pub fn inputs(target: &str) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("found").join(target);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    fs::read_dir(dir)?
        .map(|entry| entry.and_then(|entry| Ok((entry.path(), fs::read(entry.path())?))))
        .collect()
}
