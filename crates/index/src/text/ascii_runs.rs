//! Splits a text into ASCII and other runs. Most text is ASCII, which needs little normalisation.

/// The text as pairs of an ASCII run and the rest after it. The rest is not ASCII, except for its first
/// character: combining marks may join that one. No character combines with an ASCII character after it, so
/// each rest can be normalised alone.
pub(super) fn ascii_runs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ascii = ascii_prefix(rest.as_bytes());
        let other = rest.as_bytes()[ascii..].iter().take_while(|byte| !byte.is_ascii()).count();
        let (piece, behind) = rest.split_at(ascii + other);
        rest = behind;
        let before = usize::from(ascii > 0 && other > 0);
        Some(piece.split_at(ascii - before))
    })
}

/// The length of the ASCII prefix in bytes.
fn ascii_prefix(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<16>();
    let whole = blocks.iter().take_while(|block| block.is_ascii()).count() * 16;
    whole + bytes[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text() {
        let runs = |text| ascii_runs(text).collect::<Vec<_>>();
        assert_eq!(runs("a naïve café"), [("a n", "aï"), ("ve ca", "fé")]);
        assert_eq!(runs("日本"), [("", "日本")]);
        assert_eq!(runs("é日 and so on, and so on"), [("", "é日"), (" and so on, and so on", "")]);
        assert_eq!(runs(""), []);
    }
}
