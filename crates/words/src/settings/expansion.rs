//! The setting `expand_keywords`: the forms of a word that a query looks for beside the word itself.

/// The value of `expand_keywords`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordExpansion {
    /// Words that contain the word, or begin with it, as far as the table's settings allow wildcards: `*word*`.
    pub has_parts: bool,
    /// The word as written, if the table indexes it: `=word`.
    pub has_exact: bool,
}

impl WordExpansion {
    /// No other forms.
    pub const NONE: Self = Self { has_parts: false, has_exact: false };

    /// Parses `0`, `1`, `star`, `exact`, or the last two with a comma between them.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(value: &str) -> Result<Self, String> {
        match value.trim() {
            "0" => return Ok(Self::NONE),
            "1" => return Ok(Self { has_parts: true, has_exact: true }),
            _ => {}
        }
        let mut forms = Self::NONE;
        for name in value.split(',').map(str::trim) {
            match name {
                "star" => forms.has_parts = true,
                "exact" => forms.has_exact = true,
                _ => return Err(format!("'{value}' is not allowed: take 0, 1, star or exact")),
            }
        }
        Ok(forms)
    }

    /// The inverse of [`Self::parse`].
    pub(super) fn name(self) -> &'static str {
        match (self.has_parts, self.has_exact) {
            (false, false) => "0",
            (true, true) => "1",
            (true, false) => "star",
            (false, true) => "exact",
        }
    }
}
