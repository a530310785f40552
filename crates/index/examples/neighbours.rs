//! What the text index of real texts costs to build, and what runs of characters and pairs of words
//! cost to find, by processor time.
//!
//! `neighbours FILE [runs3,runs,pairs,triples,crossed] [queries]`: the file holds documents as `id:u32 (bytes:u32 text){title, text}`, little
//! endian. `REMORA_SEED` draws other queries; the seed is printed. With `check` for kinds
//! each answer is compared with a scan, with `build` nothing is found.

#![expect(clippy::unwrap_used, reason = "a program for measuring")]

use std::{
    collections::BTreeMap,
    io::Write,
    time::{Duration, Instant},
};

use remora_index::{
    segment::{Document, Segment, SegmentBuilder, SegmentSpec, TextSpec},
    text::{AtomKind, Normalization, Pattern, TextIndex, atoms},
};

type Texts = Vec<(u32, String, String)>;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % limit
    }
}

fn read(path: &str) -> Texts {
    let bytes = std::fs::read(path).unwrap();
    let (mut at, mut texts) = (0, Vec::new());
    let number = |at: &mut usize| {
        *at += 4;
        u32::from_le_bytes(bytes[*at - 4..*at].try_into().unwrap())
    };
    let text = |at: &mut usize| {
        let length = number(at) as usize;
        *at += length;
        String::from_utf8(bytes[*at - length..*at].to_vec()).unwrap()
    };
    while at < bytes.len() {
        texts.push((number(&mut at), text(&mut at), text(&mut at)));
    }
    texts
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

fn build(texts: &Texts) -> Segment {
    let spec = SegmentSpec {
        texts: vec![TextSpec { id: 1, normalization: Normalization::default() }],
        ..SegmentSpec::default()
    };
    let bytes: usize = texts.iter().map(|row| row.1.len() + row.2.len()).sum();
    let start = cpu();
    let mut builder = SegmentBuilder::new(&spec);
    builder.reserve_text(bytes);
    for (id, title, text) in texts {
        let document = Document {
            key: &id.to_be_bytes(),
            columns: &[],
            texts: &[vec![title.as_str(), text.as_str()]],
            words: &[],
            paths: &remora_index::paths::PathKeys::default(),
        };
        builder.add(&document).unwrap();
    }
    let added = cpu() - start;
    let segment = builder.finish().unwrap();
    let whole = cpu() - start;
    println!(
        "built {} documents, {:.1} MB: {:.2} s ({:.2} s adding), {:.1} MB/s of processor time",
        texts.len(),
        bytes as f64 / 1e6,
        whole.as_secs_f64(),
        added.as_secs_f64(),
        bytes as f64 / 1e6 / whole.as_secs_f64()
    );
    let sizes: Vec<String> = segment
        .section_sizes()
        .iter()
        .map(|(name, _, bytes)| format!("{name} {:.2}", *bytes as f64 / 1e6))
        .collect();
    println!("sections in MB: {} all {:.2}", sizes.join(" "), segment.byte_count() as f64 / 1e6);
    segment
}

/// A run of characters, or words with single spaces between them; of `crossed` two words of two texts,
/// which mostly stand nowhere behind each other.
fn draw(texts: &Texts, random: &mut Random, kind: &str) -> String {
    if kind == "crossed" {
        let pairs = [draw(texts, random, "pairs"), draw(texts, random, "pairs")];
        let words = pairs.iter().filter_map(|pair| pair.split(' ').next());
        return words.collect::<Vec<_>>().join(" ");
    }
    loop {
        let text = Normalization::default().apply(&texts[random.below(texts.len())].2).into_owned();
        let all: Vec<(AtomKind, &str)> = atoms(&text).collect();
        if all.is_empty() {
            continue;
        }
        let at = random.below(all.len());
        let (wanted, length) = match kind {
            "pairs" => (AtomKind::Word, 3),
            "triples" => (AtomKind::Word, 5),
            _ => (AtomKind::Character, if kind == "runs3" { 3 } else { 3 + random.below(6) }),
        };
        let Some(part) = all.get(at..at + length) else { continue };
        let fits = part.iter().enumerate().all(|(at, atom)| match wanted {
            AtomKind::Word if at % 2 == 1 => atom.1 == " ",
            _ => atom.0 == wanted,
        });
        if fits {
            return part.iter().map(|atom| atom.1).collect();
        }
    }
}

fn once(index: &TextIndex, query: &str) -> (f64, f64, u32) {
    let pattern = Pattern::new(query, &Normalization::default()).unwrap();
    let mut best = [f64::MAX; 2];
    let mut count = 0;
    for _ in 0..5 {
        let start = Instant::now();
        let docs = index.find(&pattern).unwrap().docs;
        best[0] = best[0].min(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        count = match index.count(&pattern).unwrap() {
            Some(count) => count,
            None => index.find(&pattern).unwrap().docs.count(),
        };
        best[1] = best[1].min(start.elapsed().as_secs_f64() * 1e6);
        assert_eq!(count, docs.count());
    }
    (best[0], best[1], count)
}

fn percentiles(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    format!("p50 {:7.1} p90 {:7.1} p99 {:7.1} most {:7.1}", at(0.5), at(0.9), at(0.99), at(1.0))
}

fn measure(index: &TextIndex, texts: &Texts, random: &mut Random, kind: &str, queries: usize) {
    let mut by_class: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let mut slowest: Vec<(f64, String, u32)> = Vec::new();
    for _ in 0..queries {
        let query = draw(texts, random, kind);
        let (find, count, found) = once(index, &query);
        slowest.push((find, query, found));
        for class in [found.max(1).ilog10(), 9] {
            let class = by_class.entry(class).or_default();
            class.0.push(find);
            class.1.push(count);
        }
    }
    for (class, (mut find, mut count)) in by_class {
        let name = if class == 9 { "all".into() } else { format!("10^{class} documents") };
        let number = find.len();
        let (find, count) = (percentiles(&mut find), percentiles(&mut count));
        println!("{kind:8} {name:16} {number:5}  find us {find}   count us {count}");
    }
    slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown: Vec<String> =
        slowest.iter().take(8).map(|one| format!("{} ({:.0}, {})", one.1, one.0, one.2)).collect();
    println!("{kind:8} slowest: {}", shown.join(", "));
}

fn check(index: &TextIndex, texts: &Texts, random: &mut Random, queries: usize) {
    let normalize = |text: &String| Normalization::default().apply(text).into_owned();
    let all: Vec<[String; 2]> =
        texts.iter().map(|row| [normalize(&row.1), normalize(&row.2)]).collect();
    for at in 0..queries {
        let query = draw(texts, random, ["runs", "pairs", "triples", "crossed"][at % 4]);
        let pattern = Pattern::new(&query, &Normalization::default()).unwrap();
        let docs = index.find(&pattern).unwrap().docs;
        let finder = |text: &String| text.contains(pattern.text());
        let expected = (0..).zip(&all).filter(|(_, row)| row.iter().any(finder)).map(|one| one.0);
        assert!(docs.iter().eq(expected), "{query}");
    }
    assert!(index.has_right_neighbours().unwrap());
    println!("checked {queries}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts = read(&arguments[0]);
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(clock.unwrap().as_nanos() as u64);
    println!("REMORA_SEED={seed}");
    let mut random = Random(seed);
    let segment = build(&texts);
    let kinds = arguments.get(1).map_or("runs3,runs,pairs,triples", String::as_str);
    if kinds == "build" {
        return;
    }
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(format!("{}.seg", arguments[0]))
        .unwrap();
    file.write_all(&segment.bytes().unwrap()).unwrap();
    drop(segment);
    let segment = Segment::open_file(file).unwrap();
    let index = segment.text(1).unwrap();
    for query in ["日本の", "東京都", "united states", "railway station", "of the", "in the"]
    {
        let (find, count, found) = once(index, query);
        println!("{query}: find {find:.1} us, count {count:.1} us, {found} documents");
    }
    let queries = arguments.get(2).map_or(2000, |queries| queries.parse().unwrap());
    if kinds == "check" {
        check(index, &texts, &mut random, queries);
        return;
    }
    for kind in kinds.split(',') {
        measure(index, &texts, &mut random, kind, queries);
    }
}
