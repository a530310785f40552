//! Random texts with sentences, paragraphs and zones, and limits of queries to zones.

use super::{corpus::Writer, random::Random};

/// What stands between two words, and may end a sentence.
const BETWEEN: [&str; 16] = [
    ". ", ". ", ". ", "? ", "! ", ".", ".  ", "...", "., ", ".) ", ". (", " . ", "?!", ", ", "; ",
    " - ",
];
/// What may stand before a dot that ends no sentence.
const TITLES: [&str; 12] =
    ["J", "j", "Mr", "MR", "DR", "Dr", "AB", "Ab", "Mrs", "drs", "A5", "MRT"];
const TAGS: [&str; 12] = [
    "<p>",
    "</p>",
    "<div class=\"a b\">",
    "<br>",
    "<br/>",
    "<li>",
    "<P>",
    "<b>",
    "</b>",
    "<i>",
    "<tr><td>",
    "<!-- a. b -->",
];
const ZONES: [&str; 5] = ["h1", "h2", "H1", "th", "note"];
/// Zones that a query may name; the last one has no text.
const NAMED: [&str; 6] = ["h1", "h2", "th", "note", "H2", "h9"];

/// A text of so many words.
pub fn text(writer: &mut Writer, count: usize) -> String {
    let mut text = String::new();
    let mut open: Vec<&'static str> = Vec::new();
    for number in 0..count {
        if writer.has_tags && writer.random.once_in(6) {
            tag(writer.random, &mut open, &mut text);
        }
        if writer.random.once_in(25) {
            text.push_str(writer.random.pick(&TITLES));
        } else {
            let word = writer.word();
            let is_capital = writer.random.once_in(5);
            let (first, rest) = word.split_at(1);
            text.push_str(&if is_capital { first.to_uppercase() } else { first.to_owned() });
            text.push_str(rest);
        }
        let is_end = writer.random.once_in(4);
        if is_end {
            text.push_str(writer.random.pick(&BETWEEN));
        } else if number + 1 < count {
            text.push(' ');
        }
    }
    while let Some(zone) = open.pop() {
        text.push_str(&format!("</{zone}>"));
    }
    text
}

/// Adds a tag. Zones end in any order.
fn tag(random: &mut Random, open: &mut Vec<&'static str>, text: &mut String) {
    match random.below(4) {
        0 | 1 => {
            let zone = random.pick(&ZONES);
            let attribute = if random.once_in(4) { " class=\"x\"" } else { "" };
            text.push_str(&format!("<{zone}{attribute}>"));
            open.push(zone);
        }
        2 if !open.is_empty() => {
            let zone = open.remove(random.below(open.len()));
            text.push_str(&format!("</{zone}>"));
        }
        _ => text.push_str(random.pick(&TAGS)),
    }
}

/// `ZONE:h1 ` or `ZONESPAN:(h1,h2) `.
pub fn limit(random: &mut Random) -> String {
    let name = if random.once_in(2) { "ZONE" } else { "ZONESPAN" };
    let (one, two) = (random.pick(&NAMED), random.pick(&NAMED));
    match random.below(4) {
        0 => format!("{name}:({one},{two}) "),
        1 => format!("{name}:({one}) "),
        _ => format!("{name}:{one} "),
    }
}
