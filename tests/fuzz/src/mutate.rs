//! Bodies that are nearly right: a valid one with a few changes of the kinds that readers of JSON stumble over.

use fastrand::Rng;

/// What is put in: pieces of JSON, numbers and strings at which readers part ways, bytes that are no text.
const PIECES: [&[u8]; 40] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\"",
    b"\\",
    b"null",
    b"true",
    b"0",
    b"-0",
    b"-1",
    b"1e3",
    b"1E400",
    b"1.0",
    b"1.5",
    b"4294967301",
    b"99999999999999999999",
    b"\"100\"",
    b"\"1_000\"",
    b"\" 7 \"",
    b"\"x\"",
    b"[]",
    b"{}",
    b"\\u0000",
    b"\\ud83d",
    b"\\ud83d\\ude00",
    b"\\u006d",
    b"\\x",
    b"NaN",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x84\xaa",
    b"\xc5\xbf",
    "你好😀".as_bytes(),
    b"\0",
    b"\n",
    b"/*",
];

/// Keys that are read somewhere.
const KEYS: [&str; 16] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n_predict",
    "options",
    "num_predict",
    "parameters",
    "max_new_tokens",
    "sampling_params",
    "n",
    "min_tokens",
    "messages",
    "prompt",
    "input",
    "stream",
    "user",
];

/// `seed` after one to four changes; `other` lends a piece of itself.
pub fn mutate(random: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut body = seed.to_vec();
    for _ in 0..random.usize(1..=4) {
        change(random, &mut body, other);
    }
    body
}

fn change(random: &mut Rng, body: &mut Vec<u8>, other: &[u8]) {
    let at = random.usize(0..=body.len());
    let to = random.usize(at..=body.len().min(at + 24));
    match random.u8(0..9) {
        0 => drop(body.splice(at..to, [])),
        1 => drop(body.splice(at..at, PIECES[random.usize(0..PIECES.len())].iter().copied())),
        2 => drop(body.splice(at..to, PIECES[random.usize(0..PIECES.len())].iter().copied())),
        3 => {
            let piece = body[at..to].to_vec();
            body.splice(to..to, piece);
        }
        4 if at < body.len() => body[at] = random.u8(..),
        5 => {
            let from = random.usize(0..=other.len());
            let piece = &other[from..random.usize(from..=other.len().min(from + 64))];
            body.splice(at..at, piece.iter().copied());
        }
        6 => member(random, body),
        7 => value(random, body),
        _ => body.truncate(at),
    }
}

/// One more member behind some brace, so that what comes out is often whole.
fn member(random: &mut Rng, body: &mut Vec<u8>) {
    let braces: Vec<usize> = places(body, |byte| byte == b'{');
    let Some(brace) = random.choice(&braces).copied() else { return };
    let comma = if body.get(brace + 1) == Some(&b'}') { "" } else { "," };
    let values = ["5", "5000", "-1", "null", "\"7\"", "1e2", "[]", "{}", "true", "\"text\"", "0"];
    let text =
        format!("\"{}\":{}{comma}", KEYS[random.usize(0..KEYS.len())], values[random.usize(0..values.len())]);
    body.splice(brace + 1..brace + 1, text.into_bytes());
}

/// Another value behind some colon.
fn value(random: &mut Rng, body: &mut Vec<u8>) {
    let colons: Vec<usize> = places(body, |byte| byte == b':');
    let Some(start) = random.choice(&colons).map(|colon| colon + 1) else { return };
    let end =
        body[start..].iter().position(|byte| b",}]".contains(byte)).map_or(body.len(), |len| start + len);
    body.splice(start..end, PIECES[random.usize(8..25)].iter().copied());
}

fn places(body: &[u8], is: impl Fn(u8) -> bool) -> Vec<usize> {
    body.iter().enumerate().filter(|(_, byte)| is(**byte)).map(|(place, _)| place).collect()
}
