//! tiedot's document.

use serde::Serialize;

use crate::random::SplitMix64;

/// A document with nine values in six places.
#[derive(Serialize)]
pub(super) struct Sample {
    nested: Outer,
    strs: [String; 2],
    pub(super) ints: [i64; 2],
    floats: [f64; 2],
}

#[derive(Serialize)]
struct Outer {
    nested: Inner,
}

#[derive(Serialize)]
struct Inner {
    #[serde(rename = "str")]
    text: String,
    int: i64,
    float: f64,
}

impl Sample {
    /// A random document with integers below a bound.
    pub(super) fn new(random: &mut SplitMix64, below: u64) -> Self {
        let text = |random: &mut SplitMix64| format!("{:.6}", random.unit());
        let int = |random: &mut SplitMix64| random.below(below as usize) as i64;
        Self {
            nested: Outer {
                nested: Inner { text: text(random), int: int(random), float: random.unit() },
            },
            strs: [text(random), text(random)],
            ints: [int(random), int(random)],
            floats: [random.unit(), random.unit()],
        }
    }
}
