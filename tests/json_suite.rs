//! Every kind of good and bad JSON, as a field of a request: a suite of parsing files, if one is at hand.
//!
//! `SLUICE_JSON_SUITE` names a folder of files as nst/JSONTestSuite has them: `y_…` has to be accepted, `n_…` refused,
//! `i_…` is left to the parser. Without it nothing is judged here, and the test says so; the same kinds are judged by
//! `body_twin` in any case.

use std::path::Path;
use std::{env, fs};

use sluice::core::body::{Backend, dialect, read};

#[test]
fn every_file_of_the_suite_is_judged_by_rfc_8259() {
    let Some(folder) = env::var_os("SLUICE_JSON_SUITE") else {
        println!("not run: SLUICE_JSON_SUITE names no folder of parsing files");
        return;
    };
    let mut judged = 0;
    for entry in fs::read_dir(Path::new(&folder)).expect("the folder named by SLUICE_JSON_SUITE") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name").to_owned();
        let json = fs::read(&path).expect("a file");
        let body = [&br#"{"messages":[{"role":"user","content":"hi"}],"x":"#[..], &json, b"}"].concat();
        for dialect in dialect::ALL {
            let verdict = read(dialect, Backend::Vllm, &body);
            match name.get(..2) {
                Some("y_") => assert!(verdict.is_ok(), "{name}: {verdict:?}"),
                Some("n_") => assert!(verdict.is_err(), "{name} is accepted"),
                _ => {}
            }
        }
        judged += 1;
    }
    println!("{judged} files judged");
    assert!(judged > 0, "no files in {}", Path::new(&folder).display());
}
