//! Text as people and models write it, in an order that nobody can foretell.

use fastrand::Rng;

const WORDS: [&str; 24] = include!("words.rs");
const CODE: [&str; 8] = [
    "let gate = open(\"upper\")?;\n",
    "if level < 3 {\n\treturn Err(\"low\");\n}\n",
    "println!(\"{level}\\n\");\n",
    "for barge in barges {\n    barge.raise(level);\n}\n",
    "// wait until it is full\n",
    "}\n\n",
    "print(f'{barge}: {level:>4}')\n",
    "path = r\"C:\\locks\"\n",
];

/// About `size` bytes of prose.
pub fn prose(random: &mut Rng, size: usize) -> String {
    written(size, |text| {
        text.push_str(one_of(random, &WORDS));
        text.push(' ');
    })
}

/// About `size` bytes of Markdown: headings, lists, tables, and code between fences.
pub fn markdown(random: &mut Rng, size: usize) -> String {
    written(size, |text| match random.u8(..8) {
        0 => text.push_str(&format!("\n## {}\n\n", words(random, 3))),
        1..4 => text.push_str(&format!("- **{}**: {}\n", words(random, 1), words(random, 6))),
        4 => text.push_str(&format!("| {} | `{}` |\n", words(random, 2), words(random, 1))),
        5 => text.push_str(&format!("{}\n\n", words(random, 12))),
        _ => {
            let lines: String = (0..random.u8(1..6)).map(|_| one_of(random, &CODE)).collect();
            text.push_str(&format!("```\n{lines}```\n"));
        }
    })
}

fn written(size: usize, mut more: impl FnMut(&mut String)) -> String {
    let mut text = String::new();
    while text.len() < size {
        more(&mut text);
    }
    text
}

fn words(random: &mut Rng, count: usize) -> String {
    let words: Vec<&str> = (0..count).map(|_| one_of(random, &WORDS)).collect();
    words.join(" ")
}

fn one_of(random: &mut Rng, list: &[&'static str]) -> &'static str {
    list[random.usize(..list.len())]
}
