//! The setting `blend_mode`: how words with blended characters are indexed.

/// The places of a word from which blended characters are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) head: bool,
    pub(crate) tail: bool,
    /// Whether they are cut out of its middle too.
    pub(crate) middle: bool,
}

/// The value of `blend_mode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlendMode {
    /// Each variant yields a keyword.
    pub(crate) variants: Vec<Trim>,
    /// Whether words of blended characters only are left out.
    pub(crate) skips_pure: bool,
}

const NAMES: [(&str, Trim); 5] = [
    ("trim_none", Trim { head: false, tail: false, middle: false }),
    ("trim_head", Trim { head: true, tail: false, middle: false }),
    ("trim_tail", Trim { head: false, tail: true, middle: false }),
    ("trim_both", Trim { head: true, tail: true, middle: false }),
    ("trim_all", Trim { head: true, tail: true, middle: true }),
];

impl Default for BlendMode {
    fn default() -> Self {
        Self { variants: vec![NAMES[0].1], skips_pure: false }
    }
}

impl BlendMode {
    /// Parses a comma-separated list.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn parse(list: &str) -> Result<Self, String> {
        let mut mode = Self { variants: Vec::new(), skips_pure: false };
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match NAMES.iter().find(|(other, _)| *other == name) {
                Some((_, trim)) if mode.variants.contains(trim) => {}
                Some((_, trim)) => mode.variants.push(*trim),
                None if name == "skip_pure" => mode.skips_pure = true,
                None => {
                    return Err(format!(
                        "there is no mode '{name}': take trim_none, trim_head, trim_tail, trim_both, trim_all or \
                         skip_pure"
                    ));
                }
            }
        }
        if mode.variants.is_empty() {
            return Err(
                "nothing would be indexed: add trim_none, trim_head, trim_tail, trim_both or trim_all"
                    .to_owned(),
            );
        }
        Ok(mode)
    }

    /// The inverse of [`Self::parse`].
    pub(crate) fn to_list(&self) -> String {
        let name =
            |trim: &Trim| NAMES.iter().find(|(_, other)| other == trim).map(|(name, _)| *name);
        let mut names: Vec<_> = self.variants.iter().filter_map(name).collect();
        if self.skips_pure {
            names.push("skip_pure");
        }
        names.join(",")
    }
}
