//! Writes what fuzzing begins with: `fuzz-seeds DIRECTORY` makes a folder for each target, and `words.dict`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

use fuzz::seeds;

fn main() -> ExitCode {
    let Some(dir) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: fuzz-seeds DIRECTORY");
        return ExitCode::FAILURE;
    };
    match write(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", dir.display());
            ExitCode::FAILURE
        }
    }
}

fn write(dir: &std::path::Path) -> io::Result<()> {
    for (target, inputs) in
        [("body", seeds::bodies()), ("policy", seeds::policies()), ("head", seeds::heads())]
    {
        let dir = dir.join(target);
        fs::create_dir_all(&dir)?;
        for (place, input) in inputs.iter().enumerate() {
            fs::write(dir.join(format!("{place:04}")), input)?;
        }
    }
    fs::write(dir.join("words.dict"), seeds::dictionary())
}
